//! Which functions of libcufile are bound. `cargo xtask codegen bindings` reads this list.

use crate::library::table;

table! {
    /// cuFile's functions, as the library exports them.
    Table of cufile {
        cuFileDriverOpen,
        cuFileDriverClose,
        cuFileDriverGetProperties,
        cuFileDriverSetPollMode,
        cuFileDriverSetMaxCacheSize,
        cuFileDriverSetMaxPinnedMemSize,

        cuFileHandleRegister,
        cuFileHandleDeregister,
        cuFileBufRegister,
        cuFileBufDeregister,
        cuFileRead,
        cuFileWrite,
    }
    and perhaps {
        cuFileUseCount since "1.4",
        cuFileBatchIOSetUp since "1.2",
        cuFileBatchIOSubmit since "1.2",
        cuFileBatchIOGetStatus since "1.2",
        cuFileBatchIOCancel since "1.2",
        cuFileBatchIODestroy since "1.2",
        cuFileReadAsync since "1.7",
        cuFileWriteAsync since "1.7",
        cuFileStreamRegister since "1.7",
        cuFileStreamDeregister since "1.7",
        cuFileDriverClose_v2 since "1.4",
        cuFileGetVersion since "1.8",
        cuFileSetParameterSizeT since "1.14",
        cuFileSetParameterBool since "1.14",
        cuFileSetParameterString since "1.14",
    }
}
