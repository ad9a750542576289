//! The settings file: where it is, whether it may be believed, and what it says.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use toml::{Table, Value};

use crate::error::ConfigError;
use crate::key::Key;
use crate::layer::Layer;
use crate::origin::Origin;
use crate::{env, nearest};

impl Layer {
    /// What this settings file says: a flat TOML table with the names of the settings as keys.
    ///
    /// Unknown keys and values of a wrong type do not fail here: they are [problems](crate::Config::problems), and errors at
    /// the first use of that key.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a regular file, is larger than 1 MiB, is not TOML, or somebody else could have
    /// written it: its owner is neither this user nor root, or its mode lets others write.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Layer, ConfigError> {
        let path: Arc<Path> = path::absolute(path.as_ref())
            .unwrap_or_else(|_| path.as_ref().to_owned())
            .into();
        let text = read(&path).map_err(|why| ConfigError::file(&path, why))?;
        parse(&text, &path)
    }

    /// What the user's settings file says: the file that `KVIK_CONFIG` names, else `kvik/config.toml` in the folder
    /// `XDG_CONFIG_HOME`, else `.config/kvik/config.toml` in the folder `HOME`. `None` where there is no such file, and
    /// where `KVIK_CONFIG` is set to the empty text. Never a file from the working directory.
    ///
    /// # Errors
    ///
    /// As [`from_file`](Layer::from_file); a file named by `KVIK_CONFIG` must exist; one of these variables holds a path
    /// that is not absolute.
    pub fn user_file() -> Result<Option<Layer>, ConfigError> {
        match place(&env::variables()) {
            Place::None => Ok(None),
            Place::Refused(error) | Place::Ignored(error) => Err(error),
            Place::Named(path) => Layer::from_file(path).map(Some),
            Place::Usual(path) if missing(&path) => Ok(None),
            Place::Usual(path) => Layer::from_file(path).map(Some),
        }
    }
}

/// What the user's file says, for a process that must go on: what is wrong becomes part of the layer.
pub(crate) fn user_layer(variables: &[(OsString, OsString)]) -> Layer {
    let path = match place(variables) {
        Place::None => return Layer::new(),
        Place::Refused(error) => return Layer::unusable(error),
        Place::Ignored(problem) => return Layer::new().add_problem(problem),
        Place::Usual(path) if missing(&path) => return Layer::new(),
        Place::Usual(path) | Place::Named(path) => path,
    };
    Layer::from_file(path).unwrap_or_else(Layer::unusable)
}

/// Where the user's settings file is.
#[derive(Debug, PartialEq)]
enum Place {
    /// Nowhere: no variable says where, or `KVIK_CONFIG` is empty.
    None,
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
        variables
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, text)| text.as_os_str())
    };
    if let Some(named) = get("KVIK_CONFIG") {
        return match Path::new(named) {
            path if named.is_empty() || path.is_absolute() && named == "/dev/null" => Place::None,
            path if path.is_absolute() => Place::Named(path.to_owned()),
            _ => Place::Refused(ConfigError::place("KVIK_CONFIG", named.to_string_lossy())),
        };
    }
    // As the XDG rules have it, an empty variable is as good as an unset one.
    let folder = |name: &'static str| {
        get(name)
            .filter(|text| !text.is_empty())
            .map(|text| (name, text))
    };
    let (name, folder, rest): (_, &OsStr, _) = match (folder("XDG_CONFIG_HOME"), folder("HOME")) {
        (Some((name, folder)), _) => (name, folder, "kvik/config.toml"),
        (None, Some((name, folder))) => (name, folder, ".config/kvik/config.toml"),
        (None, None) => return Place::None,
    };
    match Path::new(folder) {
        path if path.is_absolute() => Place::Usual(path.join(rest)),
        _ => Place::Ignored(ConfigError::place(name, folder.to_string_lossy())),
    }
}

fn missing(path: &Path) -> bool {
    matches!(path.try_exists(), Ok(false))
}

/// The text of the file, or why it is not read. Checks are made on the open file, so that it cannot be exchanged in between.
fn read(path: &Path) -> Result<String, String> {
    // Without `O_NONBLOCK`, opening a FIFO would wait for a writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    trust(&metadata, geteuid().as_raw())?;
    text_of(file)
}

/// Whether nobody but this user and root can have written the file.
fn trust(metadata: &Metadata, user: u32) -> Result<(), String> {
    let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode());
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if owner != user && owner != 0 {
        return Err(format!(
            "it belongs to user {owner}, who is neither the user of this process ({user}) nor root"
        ));
    }
    if mode & 0o002 != 0 {
        return Err(format!(
            "everybody may write to it (mode {:o}); `chmod go-w` mends this",
            mode & 0o7777
        ));
    }
    // Where every user has a group of their own, it has the user's number and files are made writable for it.
    if mode & 0o020 != 0 && group != owner {
        return Err(format!(
            "group {group} may write to it (mode {:o}); `chmod go-w` mends this",
            mode & 0o7777
        ));
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
pub(crate) fn parse(text: &str, path: &Arc<Path>) -> Result<Layer, ConfigError> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].matches('\n').count() + 1
        });
        ConfigError::file(
            path,
            format!("line {line} is not TOML: {}", error.message()),
        )
    })?;
    let origin = Origin::UserFile(Arc::clone(path));
    Ok(table
        .into_iter()
        .fold(Layer::new(), |layer, (name, value)| {
            match Key::from_name(&name) {
                Some(key) => {
                    let said = text_of_value(&value)
                        .map_err(|text| ConfigError::value(key, text, origin.clone()));
                    layer.insert_from_file(key, said.map(OsString::from), origin.clone())
                }
                None => {
                    let nearest = nearest::nearest(&name, Key::ALL.iter().map(|key| key.name()));
                    layer.add_problem(ConfigError::unknown(name, nearest, origin.clone()))
                }
            }
        }))
}

/// The value as the environment would spell it; `Err` with its TOML text for types that no setting has.
fn text_of_value(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(yes) => Ok(if *yes { "on" } else { "off" }.to_owned()),
        Value::Array(values) if values.is_empty() => Ok("none".to_owned()),
        Value::Array(values) if values.iter().all(Value::is_integer) => Ok(values
            .iter()
            .filter_map(Value::as_integer)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(", ")),
        Value::Array(_) => Err("[...]".to_owned()),
        Value::Table(_) => Err("{...}".to_owned()),
        Value::Datetime(time) => Err(time.to_string()),
    }
}

const LARGEST: u64 = 1 << 20;
