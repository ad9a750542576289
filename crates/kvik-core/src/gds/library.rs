//! cuFile's library, and where its log goes.

use std::env;
use std::ffi::CString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use kvik_config::Config;
use kvik_sys::{Candidates, CuFile, StringParameter};

use super::refusal::Refusal;

/// The library that the settings of the process name, else the system's.
pub(crate) fn load() -> Result<CuFile, Refusal> {
    let named = Config::current().cufile_library();
    let candidates = match named.map_err(|error| Refusal::of(error.into()))? {
        Some(path) => Candidates::only(path),
        None => Candidates::cufile(),
    };
    // SAFETY: the names are those of the vendor's library. A path is said by the program, the environment or the user's own
    // settings file, all of which decide what code runs in this process anyway.
    unsafe { CuFile::load(&candidates) }
        .map_err(|error| Refusal::new(format!("not installed: {error}")).because(error))
}

/// cuFile writes its log into the working directory unless told otherwise.
pub(super) fn keep_log_out_of_working_directory(cufile: &CuFile) {
    if is_said() {
        return;
    }
    if let Ok(folder) = log_folder() {
        // An older cuFile cannot be told: its log lies where it always did.
        let _ = cufile.set_parameter_string(StringParameter::LOG_DIR, &folder);
    }
}

/// Whether the user has said where the log goes: in a variable of cuFile's, or in the file with its settings. Those that are installed
/// with it do not.
#[expect(
    clippy::disallowed_methods,
    reason = "no settings of kvik's, but the variables of cuFile's own"
)]
fn is_said() -> bool {
    let file = env::var_os("CUFILE_ENV_PATH_JSON").unwrap_or_else(|| "/etc/cufile.json".into());
    env::var_os("CUFILE_LOGFILE_PATH").is_some()
        || fs::read_to_string(Path::new(&file)).is_ok_and(|settings| names_log_folder(&settings))
}

/// Whether settings of cuFile's, which are JSON with comments, name a folder for its log.
fn names_log_folder(settings: &str) -> bool {
    let mut lines = settings.lines();
    lines.any(|line| match (line.find("\"dir\""), line.find("//")) {
        (Some(named), Some(comment)) => named < comment,
        (named, _) => named.is_some(),
    })
}

/// A folder for temporary files that is this user's alone: in one that others may write to, they could lay a link in the
/// place of the log.
#[expect(
    clippy::disallowed_methods,
    reason = "no setting of kvik's, but where the system keeps temporary files"
)]
fn log_folder() -> io::Result<CString> {
    let user = nix::unistd::geteuid().as_raw();
    let folder = env::temp_dir().join(format!("kvik-cufile-{user}"));
    // It may be there already.
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    let there = fs::symlink_metadata(&folder)?;
    if !there.is_dir() || there.uid() != user || there.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(CString::new(folder.as_os_str().as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: &str, expected: bool) {
        assert_eq!(names_log_folder(settings), expected, "{settings}");
    }

    #[test]
    fn settings_of_cufile_say_where_its_log_goes_unless_that_is_a_comment() {
        check("", false);
        check("{\"logging\": {\"level\": \"ERROR\"}}", false);
        // As the toolkit installs it.
        let installed =
            "{\n  \"logging\": {\n    // \"dir\": \"<folder>\",\n    \"level\": \"ERROR\"\n  },\n}";
        check(installed, false);
        check("{\"logging\": {\"dir\": \"/var/log\"}}", true);
        check(
            "{\n  \"logging\": {\n    \"dir\" : \"/var/log\", // ours\n  }}",
            true,
        );
    }
}
