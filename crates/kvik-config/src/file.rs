//! The settings file: where it is, whether it may be believed, and what it says.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use toml::{Table, Value};

use crate::error::{ConfigError, Detail};
use crate::key::Key;
use crate::layer::Layer;
use crate::origin::Origin;
use crate::{env, nearest};

impl Layer {
    /// What this settings file says: a flat TOML table with the names of the settings as keys.
    ///
    /// Unknown keys and values of a wrong type do not fail here: they are [problems](crate::Config::problems), and errors
    /// at the first use of that key.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a regular file, is larger than 1 MiB, is not TOML, or somebody else could have
    /// written it: its owner is neither this user nor root, or its mode lets others write.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Layer, ConfigError> {
        let file = absolute(path.as_ref());
        let text = read(&file).map_err(|refusal| unusable(&file, refusal))?;
        parse(&text, &file)
    }

    /// What the user's settings file says: the file that `KVIK_CONFIG` names, else `kvik/config.toml` in the folder
    /// `XDG_CONFIG_HOME`, else `.config/kvik/config.toml` in the folder `HOME`. `None` where there is no such file, and
    /// where `KVIK_CONFIG` is empty. Never a file from the working directory.
    ///
    /// A file at one of the usual places that belongs to another user, or that this user may not read, is passed over: it is
    /// a [problem](crate::Config::problems) of a layer that says nothing. The same goes for a usual folder that is not named
    /// by an absolute path.
    ///
    /// # Errors
    ///
    /// As [`from_file`](Layer::from_file); also where `KVIK_CONFIG` names a file that does not exist, or none by an absolute
    /// path.
    pub fn user_file() -> Result<Option<Layer>, ConfigError> {
        user_file(&env::variables())
    }
}

/// [`Layer::user_file`] in this environment.
pub(crate) fn user_file(variables: &[(OsString, OsString)]) -> Result<Option<Layer>, ConfigError> {
    let path = match place(variables) {
        Place::Nowhere => return Ok(None),
        Place::Named(path) => return Layer::from_file(path).map(Some),
        Place::Refused(error) => return Err(error),
        Place::Ignored(problem) => return Ok(Some(Layer::new().add_problem(problem))),
        Place::Usual(path) => path,
    };
    let file = absolute(&path);
    match read(&file) {
        Ok(text) => parse(&text, &file).map(Some),
        Err(Refusal::Missing(_)) => Ok(None),
        Err(Refusal::Foreign(why)) => {
            let problem = Detail::Foreign { file, why }.into();
            Ok(Some(Layer::new().add_problem(problem)))
        }
        Err(refusal) => Err(unusable(&file, refusal)),
    }
}

/// Where the user's settings file is.
#[derive(Debug, PartialEq)]
enum Place {
    /// Nowhere: no variable says where, or `KVIK_CONFIG` is empty.
    Nowhere,
    /// There, and it must exist.
    Named(PathBuf),
    /// There, if it exists.
    Usual(PathBuf),
    /// Somebody named a file in a way we do not follow. What it says is not known.
    Refused(ConfigError),
    /// The usual folder is named in a way we do not follow. Nobody asked for a file, so there is none.
    Ignored(ConfigError),
}

fn place(variables: &[(OsString, OsString)]) -> Place {
    let get = |wanted: &str| {
        let found = variables.iter().find(|(name, _)| name == wanted);
        found.map(|(_, text)| text.as_os_str())
    };
    if let Some(named) = get("KVIK_CONFIG") {
        return match Path::new(named) {
            path if path.is_absolute() => Place::Named(path.to_owned()),
            _ if named.is_empty() => Place::Nowhere,
            _ => Place::Refused(Detail::Relative { text: lossy(named) }.into()),
        };
    }
    // As the rules of XDG have it, an empty variable is as good as an unset one.
    let folder = |variable| get(variable).filter(|text| !text.is_empty());
    let (variable, folder, rest) = match (folder("XDG_CONFIG_HOME"), folder("HOME")) {
        (Some(folder), _) => ("XDG_CONFIG_HOME", folder, "kvik/config.toml"),
        (None, Some(folder)) => ("HOME", folder, ".config/kvik/config.toml"),
        (None, None) => return Place::Nowhere,
    };
    if Path::new(folder).is_absolute() {
        Place::Usual(Path::new(folder).join(rest))
    } else {
        let text = lossy(folder);
        Place::Ignored(Detail::RelativeFolder { variable, text }.into())
    }
}

/// Why the text of a settings file is not read.
#[derive(Debug, PartialEq)]
enum Refusal {
    /// There is none.
    Missing(String),
    /// It is not this user's.
    Foreign(String),
    /// It could be this user's, but not like this.
    Bad(String),
}

/// The text of the file. Checks are made on the open file, so that it cannot be exchanged in between.
fn read(path: &Path) -> Result<String, Refusal> {
    // Without `O_NONBLOCK`, opening a FIFO would wait for a writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Refusal::Missing(error.to_string()),
            ErrorKind::PermissionDenied => Refusal::Foreign(error.to_string()),
            _ => Refusal::Bad(error.to_string()),
        })?;
    let metadata = file
        .metadata()
        .map_err(|error| Refusal::Bad(error.to_string()))?;
    trust(&Facts::from(&metadata), geteuid().as_raw())?;
    text_of(file).map_err(Refusal::Bad)
}

/// What trust in a file depends on.
struct Facts {
    regular: bool,
    owner: u32,
    group: u32,
    mode: u32,
}

impl From<&Metadata> for Facts {
    fn from(metadata: &Metadata) -> Facts {
        Facts {
            regular: metadata.is_file(),
            owner: metadata.uid(),
            group: metadata.gid(),
            mode: metadata.mode() & 0o7777,
        }
    }
}

/// Whether nobody but this user and root can have written the file. Pure.
fn trust(file: &Facts, user: u32) -> Result<(), Refusal> {
    let Facts {
        owner, group, mode, ..
    } = file;
    if !file.regular {
        return Err(Refusal::Bad("it is not a regular file".to_owned()));
    }
    if *owner != user && *owner != 0 {
        return Err(Refusal::Foreign(format!(
            "it belongs to user {owner}, who is neither the user of this process ({user}) nor root"
        )));
    }
    if mode & 0o002 != 0 {
        return Err(Refusal::Bad(format!(
            "everybody may write to it (mode {mode:o}), `chmod go-w` mends this"
        )));
    }
    // Where users have groups of their own, these have the users' numbers, and new files are often writable for them.
    if mode & 0o020 != 0 && group != owner {
        return Err(Refusal::Bad(format!(
            "group {group} may write to it (mode {mode:o}), `chmod go-w` mends this"
        )));
    }
    Ok(())
}

fn text_of(file: File) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err("it is larger than 1 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// What the text of a settings file says. Pure.
pub(crate) fn parse(text: &str, file: &Arc<Path>) -> Result<Layer, ConfigError> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.unwrap_or_default().matches('\n').count() + 1;
        let why = format!("line {line} is not TOML, {}", error.message());
        unusable(file, Refusal::Bad(why))
    })?;
    let origin = Origin::UserFile(Arc::clone(file));
    let mut layer = Layer::new();
    for (name, value) in table {
        layer = match Key::from_name(&name) {
            Some(key) if key.is_text() && !value.is_str() => {
                let error =
                    ConfigError::value(key, key.shown(spelling(&value).as_ref()), origin.clone());
                layer.say(key, Err(error), origin.clone())
            }
            Some(key) => layer.say(key, Ok(spelling(&value)), origin.clone()),
            None => {
                let nearest = nearest::nearest(&name, Key::ALL.iter().map(|key| key.name()));
                let file = Arc::clone(file);
                layer.add_problem(
                    Detail::Unknown {
                        name,
                        nearest,
                        file,
                    }
                    .into(),
                )
            }
        };
    }
    Ok(layer)
}

/// The value as the environment would spell it, or in a spelling that is not a value of any setting.
fn spelling(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        // With a point in any case: 4.0 threads are not 4 threads.
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(spelling).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Table(_) => "{...}".to_owned(),
    }
}

fn unusable(file: &Arc<Path>, refusal: Refusal) -> ConfigError {
    let (Refusal::Missing(why) | Refusal::Foreign(why) | Refusal::Bad(why)) = refusal;
    let file = Arc::clone(file);
    Detail::Unusable { file, why }.into()
}

fn absolute(path: &Path) -> Arc<Path> {
    path::absolute(path)
        .unwrap_or_else(|_| path.to_owned())
        .into()
}

fn lossy(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}

const LARGEST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_nobody_else_can_have_written_are_trusted() {
        let file = |owner, group, mode| Facts {
            regular: true,
            owner,
            group,
            mode,
        };
        let bad = |why: &str| Err(Refusal::Bad(why.to_owned()));
        let foreign = |why: &str| Err(Refusal::Foreign(why.to_owned()));
        for (facts, expected) in [
            (file(1000, 100, 0o644), Ok(())),
            (file(1000, 100, 0o400), Ok(())),
            (file(0, 0, 0o644), Ok(())),
            // A group of one's own has one's own number.
            (file(1000, 1000, 0o664), Ok(())),
            (file(0, 0, 0o664), Ok(())),
            (
                file(1000, 100, 0o664),
                bad("group 100 may write to it (mode 664), `chmod go-w` mends this"),
            ),
            (
                file(0, 1000, 0o664),
                bad("group 1000 may write to it (mode 664), `chmod go-w` mends this"),
            ),
            (
                file(1000, 1000, 0o646),
                bad("everybody may write to it (mode 646), `chmod go-w` mends this"),
            ),
            (
                file(1001, 1000, 0o600),
                foreign(
                    "it belongs to user 1001, who is neither the user of this process (1000) nor root",
                ),
            ),
            (
                Facts {
                    regular: false,
                    ..file(1000, 1000, 0o600)
                },
                bad("it is not a regular file"),
            ),
        ] {
            assert_eq!(
                trust(&facts, 1000),
                expected,
                "{} {} {:o}",
                facts.owner,
                facts.group,
                facts.mode
            );
        }
        // Root does not believe the files of others either.
        assert!(trust(&file(1000, 1000, 0o600), 0).is_err());
    }
}
