//! The two vendor libraries, loaded as the settings name them.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use kvik_config::{Config, ConfigError};
use kvik_sys::{Candidates, CuFile, Cuda};

use super::{CuFileLibrary, version};
use crate::probe::Fact;

/// The CUDA driver, not yet started; or why there is none, in a clause without a stop.
pub(super) fn cuda(config: &Config) -> Result<Cuda, String> {
    let candidates = candidates(config.cuda_library(), Candidates::cuda)?;
    // SAFETY: a candidate is the name under which the vendor's library is installed, found where the system's linker looks, or
    // the file that the user named in a setting for it, which no file of the working directory can say; the vendor's
    // initialisers may run in any process.
    unsafe { Cuda::load(&candidates) }.map_err(|error| error.to_string())
}

/// cuFile's library and its version, which it tells without its driver.
pub(super) fn cufile(config: &Config) -> Fact<CuFileLibrary> {
    let candidates = match candidates(config.cufile_library(), Candidates::cufile) {
        Ok(candidates) => candidates,
        Err(why) => return Fact::absent(why),
    };
    // SAFETY: as for `cuda`. Loading it neither opens its driver nor writes its log.
    match unsafe { CuFile::load(&candidates) } {
        Ok(library) => Fact::Known(CuFileLibrary {
            version: Fact::from_result(library.get_version(), "cuFileGetVersion")
                .and_then(version, "it names no version"),
            file: file(library.path(), library.name()),
        }),
        Err(error) => Fact::absent(error.to_string()),
    }
}

/// The file a library was loaded from; where the linker does not tell, the name it was asked for.
pub(super) fn file(path: Option<PathBuf>, name: &OsStr) -> String {
    match path {
        Some(path) => path.display().to_string(),
        None => name.display().to_string(),
    }
}

pub(super) fn show(f: &mut fmt::Formatter<'_>, version: &Fact<String>, file: &str) -> fmt::Result {
    match version {
        Fact::Known(version) => write!(f, "{version} ({file})"),
        Fact::Absent { absent } => write!(f, "of an unknown version ({file}): {absent}"),
    }
}

fn candidates(
    named: Result<Option<PathBuf>, ConfigError>,
    else_by_name: fn() -> Candidates,
) -> Result<Candidates, String> {
    match named {
        Ok(Some(path)) => Ok(Candidates::only(path)),
        Ok(None) => Ok(else_by_name()),
        Err(error) => Err(error.to_string()),
    }
}
