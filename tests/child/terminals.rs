//! Terminals: refused at once, and never taken as the controlling terminal.

use kvik::{ErrorKind, FileHandle};
use kvik_tests::os::terminal;

/// `terminals`, in a session of its own.
pub(crate) fn run(_args: &[String]) {
    let _ = nix::unistd::setsid();
    let controlling = || {
        std::fs::File::open("/dev/tty")
            .map(drop)
            .map_err(|error| error.raw_os_error())
    };
    assert_eq!(
        controlling(),
        Err(Some(libc::ENXIO)),
        "a new session has no terminal"
    );
    let error = FileHandle::open("/dev/tty").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSeekable, "{error}");

    let (_master, path) = terminal();
    let error = FileHandle::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSeekable, "{error}");
    let error = FileHandle::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSeekable, "{error}");
    assert_eq!(
        controlling(),
        Err(Some(libc::ENXIO)),
        "opening a terminal made it the controlling one"
    );
    let error = FileHandle::open("/dev/ptmx").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSeekable, "{error}");
}
