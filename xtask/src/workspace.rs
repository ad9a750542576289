//! The workspace as cargo and git see it: packages, dependencies, files.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{self, Done};

/// The folder that holds the workspace's Cargo.toml.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// One package of the graph, ours or from the registry.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    pub(crate) ours: bool,
    pub(crate) published: bool,
    /// Cargo.toml, relative to the root for our own packages.
    pub(crate) manifest: PathBuf,
    /// Names of what it depends on, for its build and its tests too.
    pub(crate) dependencies: Vec<String>,
    pub(crate) features: Vec<String>,
    pub(crate) targets: Vec<Target>,
}

/// One thing that cargo builds from a package.
pub(crate) struct Target {
    pub(crate) kind: String,
    /// Its first file, relative to the root for our own packages.
    pub(crate) source: PathBuf,
}

impl Package {
    pub(crate) fn is_library(&self) -> bool {
        self.targets.iter().any(|target| target.kind == "lib")
    }
}

/// What `cargo metadata` says, for the one platform that is tested.
pub(crate) struct Graph {
    pub(crate) target_directory: PathBuf,
    pub(crate) packages: Vec<Package>,
}

impl Graph {
    pub(crate) fn load() -> Done<Self> {
        Self::of("Cargo.toml")
    }

    /// That of another workspace of the repository. It fails where the lock of that one is not current.
    pub(crate) fn of(manifest: &str) -> Done<Self> {
        let manifest = format!("--manifest-path={manifest}");
        let text = process::ask(&mut process::cargo([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform=x86_64-unknown-linux-gnu",
            &manifest,
        ]))
        .map_err(|why| {
            format!(
                "{why}; if its Cargo.lock is not current, run `cargo update --workspace {manifest}`"
            )
        })?;
        let graph: Value =
            serde_json::from_str(&text).map_err(|why| format!("cargo metadata: {why}"))?;
        let packages = list(&graph["packages"]).iter().map(package).collect();
        Ok(Self {
            target_directory: PathBuf::from(string(&graph["target_directory"])),
            packages,
        })
    }

    /// Our own packages, in the order of their names.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.ours)
    }
}

fn package(value: &Value) -> Package {
    let mut features: Vec<String> = value["features"]
        .as_object()
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default();
    features.sort();
    Package {
        name: string(&value["name"]),
        version: string(&value["version"]),
        licence: value["license"].as_str().map(str::to_owned),
        ours: value["source"].is_null(),
        published: value["publish"]
            .as_array()
            .is_none_or(|registries| !registries.is_empty()),
        manifest: relative(&string(&value["manifest_path"])),
        dependencies: list(&value["dependencies"])
            .iter()
            .map(|dependency| string(&dependency["name"]))
            .collect(),
        features,
        targets: list(&value["targets"])
            .iter()
            .map(|target| Target {
                kind: string(&target["kind"][0]),
                source: relative(&string(&target["src_path"])),
            })
            .collect(),
    }
}

/// Every file that git tracks or would track, relative to the root, in order.
pub(crate) fn files() -> Done<Vec<PathBuf>> {
    let text = process::ask(
        Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root()),
    )?;
    let mut files: Vec<PathBuf> = text
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        // A file that was removed and not yet committed is still in the index.
        .filter(|file| root().join(file).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The text of a file of the workspace, or nothing where it is not text.
pub(crate) fn read(file: &Path) -> Done<Option<String>> {
    let bytes =
        std::fs::read(root().join(file)).map_err(|why| format!("{}: {why}", file.display()))?;
    Ok(String::from_utf8(bytes).ok())
}

/// Writes a file of the workspace and the folders above it.
pub(crate) fn write(file: &Path, text: &str) -> Done {
    let path = root().join(file);
    let folder = path.parent().unwrap_or_else(|| root());
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|why| format!("{}: {why}", file.display()))
}

fn relative(path: &str) -> PathBuf {
    let path = Path::new(path);
    path.strip_prefix(root()).unwrap_or(path).to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
