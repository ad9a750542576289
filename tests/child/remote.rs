//! Reading remote objects, in this process and in a child of it.

use kvik::{Config, ErrorKind, ReadAtExt, RemoteHandle};
use kvik_tests::os::forked;
use kvik_tests::pattern::{assert_same, pattern};

/// `remote-read URL`
pub(crate) fn read(args: &[String]) {
    let object = RemoteHandle::open(&args[0]).unwrap();
    println!("{} bytes", object.read_to_end(0).unwrap().len());
}

/// `remote-by-default URL`: whatever the environment says.
pub(crate) fn by_default(args: &[String]) {
    let options = RemoteHandle::builder().config(&Config::default());
    match options.open(&args[0]) {
        Ok(object) => println!("{} bytes", object.len()),
        Err(error) => println!("{}: {error}", error.kind()),
    }
}

/// `remote-tried URL`: what came of it.
pub(crate) fn tried(args: &[String]) {
    match RemoteHandle::builder().max_attempts(1).open(&args[0]) {
        Ok(object) => println!("{} bytes", object.read_to_end(0).unwrap().len()),
        Err(error) => println!("{}: {error}", error.kind()),
    }
}

/// `remote-open URL`
pub(crate) fn open(args: &[String]) {
    let object = RemoteHandle::open(&args[0]).unwrap();
    println!("{}, {} bytes", object.kind(), object.len());
}

/// `remote-forked URL`
pub(crate) fn forks(args: &[String]) {
    let object = RemoteHandle::open(&args[0]).unwrap();
    let check = |object: &RemoteHandle| {
        assert_same(&object.read_to_end(0).unwrap(), &pattern(1, 0, 100_000));
        let pending = object.submit_read(vec![0; 20_000], 70_000);
        assert_eq!(pending.wait().unwrap(), 20_000);
        assert_same(&pending.into_buf(), &pattern(1, 70_000, 20_000));
    };
    check(&object);
    forked(|| {
        check(&object);
        check(&RemoteHandle::open(&args[0]).unwrap());
        drop(object.clone());
    })
    .succeeded();
    check(&object);
}

/// `remote-opening-forked URL`, of a server that never answers
pub(crate) fn opening_forks(args: &[String]) {
    let opening = RemoteHandle::submit_open(&args[0]);
    forked(|| {
        let error = opening.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forked, "{error}");
        assert!(opening.is_done());
        opening.cancel();
    })
    .succeeded();
    assert!(!opening.is_done());
    opening.cancel();
    let error = opening.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
}

/// `command ARGUMENTS`: what the command `kvik` does with them.
pub(crate) fn command(args: &[String]) {
    let code = kvik_cli::run(["kvik".to_owned()].iter().chain(args));
    assert_eq!(code, std::process::ExitCode::SUCCESS);
}

/// `remote-facts URL`
pub(crate) fn facts(args: &[String]) {
    match RemoteHandle::open(&args[0]) {
        Ok(object) => {
            let facts = object.s3().unwrap();
            let keys = facts.keys.as_deref().unwrap_or("no keys");
            let bytes = object.read_to_end(0).unwrap().len();
            let kind = object.kind();
            println!("{kind}, {bytes} bytes, {keys}, {}", facts.region);
        }
        Err(error) => println!("{}: {error}", error.kind()),
    }
}
