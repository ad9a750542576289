//! Opening a file: what the options mean, what kind of file may be opened, and what the handle holds.

use std::fs::{self, File, FileType};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kvik_config::{CompatMode, Config};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::Whence;

use crate::block_device::block_device_of;
use crate::compat::{self, EnginePreference, Facts, Route};
use crate::corridor::{Engine, EngineKind};
use crate::engine;
use crate::engine::auto::{Auto, Storage};
use crate::engine::cold::Cold;
use crate::engine::direct::{DirectEngine, DirectFile, Edges, Wish};
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::gds::CuFileFile;
use crate::options::OpenOptions;
use crate::os;
use crate::pool::ThreadPool;
use crate::probe::{self, Probe};
use crate::residency::CachedPages;

/// An open file and all that was decided about it.
pub(crate) struct Opened {
    pub(crate) file: Arc<File>,
    pub(crate) path: PathBuf,
    pub(crate) place: Place,
    /// The place as text, for statistics.
    pub(crate) name: Arc<str>,
    pub(crate) access: Access,
    /// Where offset 0 of a write lies: the end at opening for append, else the start.
    pub(crate) write_base: u64,
    pub(crate) engine: Arc<dyn Engine>,
    /// The same for the small host buffers through which the bytes of a device go.
    pub(crate) for_device: Arc<dyn Engine>,
    /// The file as cuFile is to know it, where it may move the bytes of devices.
    pub(crate) cufile: Option<Arc<CuFileFile>>,
    /// Whether small transfers may be done by `pread` and `pwrite` at once: not where another engine was asked for.
    pub(crate) inline: bool,
    pub(crate) cached: Arc<CachedPages>,
    /// What was decided at opening.
    pub(crate) route: Route,
    /// The way past the page cache, where the engine may take one; it tells when it was given up.
    pub(crate) direct: Option<Arc<DirectFile>>,
    pub(crate) config: Option<Config>,
    pub(crate) pool: Option<ThreadPool>,
}

/// What the handle may be used for.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// Opens `path` as the options say.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Opened> {
    let place = Place::from(path);
    access(options)
        .and_then(|access| {
            let file = || open_now(path, access, options);
            open_at(path, &place, access, file, options)
        })
        .map_err(|error| error.at(&place))
}

/// Makes the handle of what `file` opens; that comes after all that can be refused without it.
pub(crate) fn open_at(
    path: &Path,
    place: &Place,
    access: Access,
    file: impl FnOnce() -> Result<File>,
    options: &OpenOptions,
) -> Result<Opened> {
    let config = options.config.clone().unwrap_or_else(Config::current);
    let compat = options.compat.map_or_else(|| config.compat_mode(), Ok)?;
    let mut facts = Facts::default();
    // What else cuFile needs is looked at when a device is first used: opening loads no library of NVIDIA's.
    if compat == CompatMode::Off && Probe::collect().wsl {
        facts.without_cufile = Some("not usable under WSL".into());
    }
    if options.engine == EnginePreference::Only(EngineKind::Uring) {
        let rings = probe::io_uring_here();
        facts.without_uring = rings.why_not().map(|why| why.to_owned().into());
    }
    let mut route = compat::resolve(compat, options.engine, &facts)?;
    check_settings(&config, options.engine)?;
    let file = file()?;
    let pool = match &options.pool {
        Some(pool) => Some(pool.clone()),
        None if config.thread_pool_per_block_device()? => device_pool(&file, place),
        None => None,
    };
    let file = Arc::new(file);
    let cached = Arc::new(CachedPages::new(Arc::clone(&file)));
    let Chosen {
        engine,
        for_device,
        inline,
        direct,
    } = match options.engine {
        EnginePreference::Only(kind) => {
            let engine = engine_of(kind, &file, &config)?;
            Chosen {
                for_device: Arc::clone(&engine),
                engine,
                inline: kind == EngineKind::Posix,
                direct: None,
            }
        }
        EnginePreference::Auto => match direct_by_settings(&file, access, &config, &mut route)? {
            Some(chosen) => chosen,
            None => by_piece(&file, &cached, access, &config, &mut route)?,
        },
    };
    let cufile = match compat {
        CompatMode::On => None,
        CompatMode::Off => Some(CuFileFile::new(Arc::clone(&file), true)),
        CompatMode::Auto => Some(CuFileFile::new(Arc::clone(&file), false)),
    };
    Ok(Opened {
        cufile: cufile.map(Arc::new),
        engine,
        for_device,
        inline,
        direct,
        cached,
        write_base: if options.append { size(&file)? } else { 0 },
        file,
        path: path.to_owned(),
        place: place.clone(),
        name: place.to_string().into(),
        access,
        route,
        config: options.config.clone(),
        pool,
    })
}

/// An engine, and what a handle has to know about it.
struct Chosen {
    engine: Arc<dyn Engine>,
    for_device: Arc<dyn Engine>,
    inline: bool,
    direct: Option<Arc<DirectFile>>,
}

/// Refuses settings that opening needs and cannot use, before the file is made or emptied.
fn check_settings(config: &Config, engine: EnginePreference) -> Result<()> {
    config.thread_pool_per_block_device()?;
    if let EnginePreference::Auto
    | EnginePreference::Only(EngineKind::Scratch | EngineKind::Direct) = engine
    {
        config.bounce_buffer_size()?;
    }
    if engine == EnginePreference::Auto {
        Wish::to_read(config)?;
        Wish::to_write(config)?;
        Edges::of(config)?;
    }
    Ok(())
}

fn engine_of(kind: EngineKind, file: &Arc<File>, config: &Config) -> Result<Arc<dyn Engine>> {
    engine::for_kind(kind, file, config).unwrap_or_else(|| {
        let why = format!("the engine {kind} is not in this build for another processor");
        Err(Error::new(ErrorKind::Unsupported, Op::Open, why))
    })
}

/// Whether the options make sense together, and what they come to.
fn access(options: &OpenOptions) -> Result<Access> {
    let write = options.write || options.append;
    let why = if !options.read && !write {
        "neither read, write nor append was asked for"
    } else if options.append && options.truncate {
        "append and truncate contradict each other"
    } else if !write && (options.truncate || options.create || options.create_new) {
        "a file that is not written to cannot be created or truncated"
    } else {
        return Ok(Access {
            read: options.read,
            write,
        });
    };
    Err(Error::new(ErrorKind::Misuse, Op::Open, why))
}

/// Opens a file for reading, for a door of its own: without waiting, whatever it is.
///
/// # Errors
/// `IsADirectory`, and `NotSeekable` for FIFOs, sockets and terminals; else that of the system.
pub fn open_to_read(path: &Path) -> Result<File> {
    let options = OpenOptions::new().read(true);
    open_now(path, access(&options)?, &options)
}

/// Opens without waiting, looks what it is, and makes the descriptor an ordinary blocking one.
fn open_now(path: &Path, access: Access, options: &OpenOptions) -> Result<File> {
    // Looked at before it is opened too: the writer of a FIFO must not see a reader come and go.
    if let Ok(metadata) = fs::metadata(path) {
        check_kind(&metadata.file_type())?;
    }
    let mut how = std::fs::OpenOptions::new();
    how.read(access.read)
        .write(access.write)
        .truncate(options.truncate)
        .create(options.create || options.append)
        .create_new(options.create_new)
        .mode(options.mode.unwrap_or(0o644));
    // A FIFO without a writer must not make us wait, nor a terminal become ours; std adds O_CLOEXEC and tries again
    // after EINTR.
    how.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let opened = match how.open(path) {
        // A server holds a lease on the file and is asked to give it up; the kernel bounds that wait (lease-break-time).
        Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
            how.custom_flags(libc::O_NOCTTY).open(path)
        }
        opened => opened,
    };
    let file = opened.map_err(|cause| Error::io(Op::Open, cause))?;
    check(&file)?;
    let flags = fcntl(&file, FcntlArg::F_GETFL).map_err(|errno| Error::os(Op::Open, errno))?;
    let blocking = OFlag::from_bits_retain(flags) - OFlag::O_NONBLOCK;
    fcntl(&file, FcntlArg::F_SETFL(blocking)).map_err(|errno| Error::os(Op::Open, errno))?;
    Ok(file)
}

/// Refuses an open file that has no offsets.
pub(crate) fn check(file: &File) -> Result<()> {
    let metadata = file
        .metadata()
        .map_err(|cause| Error::io(Op::Open, cause))?;
    check_kind(&metadata.file_type())?;
    check_offsets(file)
}

/// Refuses what has no offsets by its kind.
fn check_kind(kind: &FileType) -> Result<()> {
    let (kind, what) = if kind.is_dir() {
        (ErrorKind::IsADirectory, "it is a directory")
    } else if kind.is_fifo() {
        (
            ErrorKind::NotSeekable,
            "it is a FIFO, which has no offsets to read or write at",
        )
    } else if kind.is_socket() {
        (
            ErrorKind::NotSeekable,
            "it is a socket, which has no offsets to read or write at",
        )
    } else {
        return Ok(());
    };
    Err(Error::new(kind, Op::Open, what))
}

/// Refuses terminals and other streams, which only the open file tells from devices that have offsets.
fn check_offsets(file: &File) -> Result<()> {
    match nix::unistd::lseek(file, 0, Whence::SeekCur) {
        Err(Errno::ESPIPE) => {
            let what =
                "it is a terminal or another stream, which has no offsets to read or write at";
            Err(Error::new(ErrorKind::NotSeekable, Op::Open, what))
        }
        _ => Ok(()),
    }
}

/// The engine for direct I/O, where settings ask for it.
fn direct_by_settings(
    file: &Arc<File>,
    access: Access,
    config: &Config,
    route: &mut Route,
) -> Result<Option<Chosen>> {
    let said = |wish| matches!(wish, Wish::Prefer | Wish::Must);
    let wish = |opened: bool, wish| {
        if opened && said(wish) {
            wish
        } else {
            Wish::Never
        }
    };
    let read = wish(access.read, Wish::to_read(config)?);
    let write = wish(access.write, Wish::to_write(config)?);
    if !said(read) && !said(write) {
        return Ok(None);
    }
    let both = Arc::new(DirectFile::new(Arc::clone(file)));
    if read == Wish::Must || write == Wish::Must {
        both.insist()?;
    }
    let why = match (said(read), said(write)) {
        (true, true) => "settings ask for it, for reads and writes",
        (true, false) => "settings ask for it, for reads",
        _ => "settings ask for it, for writes",
    };
    route.prefer(EngineKind::Direct, why);
    let engine = Arc::new(direct_engine(&both, read, write, config)?);
    Ok(Some(Chosen {
        for_device: Arc::clone(&engine) as Arc<dyn Engine>,
        engine,
        inline: false,
        direct: Some(both),
    }))
}

/// The engine that chooses for each piece, where nobody has chosen.
fn by_piece(
    file: &Arc<File>,
    cached: &Arc<CachedPages>,
    access: Access,
    config: &Config,
    route: &mut Route,
) -> Result<Chosen> {
    let storage = Storage::of(file);
    let why_not = if !access.read {
        Some("the handle is open for writing only")
    } else if Wish::to_read(config)? == Wish::Never {
        Some("settings forbid it for reads")
    } else if storage != Storage::Disk {
        Some("only on ext4, xfs and btrfs is it done unasked")
    } else {
        None
    };
    let direct = match why_not {
        Some(why) => {
            route.rule_out(EngineKind::Direct, why);
            None
        }
        None => Some(Arc::new(DirectFile::new(Arc::clone(file)))),
    };
    let auto = || -> Result<Auto> {
        let cold = match &direct {
            Some(direct) => {
                let engine = direct_engine(direct, Wish::May, Wish::Never, config)?;
                Some(Cold::new(engine))
            }
            None => None,
        };
        let (file, cached) = (Arc::clone(file), Arc::clone(cached));
        let bounce_buffer_size = config.bounce_buffer_size()?;
        Ok(Auto::new(file, cached, storage, cold, bounce_buffer_size))
    };
    Ok(Chosen {
        engine: Arc::new(auto()?),
        for_device: Arc::new(auto()?.for_slabs()),
        inline: true,
        direct,
    })
}

fn direct_engine(
    file: &Arc<DirectFile>,
    read: Wish,
    write: Wish,
    config: &Config,
) -> Result<DirectEngine> {
    let scratch = config.bounce_buffer_size()?;
    let engine = DirectEngine::new(Arc::clone(file), read, write);
    Ok(engine.limited(Edges::of(config)?, scratch))
}

/// The pool of the block device under the file; where there is none, the shared pool serves.
fn device_pool(file: &File, place: &Place) -> Option<ThreadPool> {
    match block_device_of(file.as_fd()) {
        Ok(device) => Some(ThreadPool::for_block_device(device.id)),
        Err(error) => {
            tracing::error!(%place, %error, "no thread pool per block device; the shared one serves");
            None
        }
    }
}

/// The size in bytes, asked of the operating system now; of a block device, its capacity.
pub(crate) fn size(file: &File) -> Result<u64> {
    let metadata = file
        .metadata()
        .map_err(|cause| Error::io(Op::Inspect, cause))?;
    match metadata.file_type().is_block_device() {
        true => os::block_device_size(file.as_fd()).map_err(|errno| Error::os(Op::Inspect, errno)),
        false => Ok(metadata.size()),
    }
}
