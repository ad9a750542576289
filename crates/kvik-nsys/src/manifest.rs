//! How Nsight Systems finds the plugin: a folder with its name, in which are the program and a manifest.

use std::path::{Path, PathBuf};

/// The name of the plugin, for `nsys profile --enable`, and of the folder in which its two files are.
pub const NAME: &str = "kvikio_nic";

/// The name of the program.
pub const EXECUTABLE: &str = "kvikio_nic_nsys_plugin";

/// The manifest, for a file `nsys-plugin.yaml` beside the program.
pub const MANIFEST: &str = include_str!("../nsys-plugin.yaml");

/// Where the folders of plugins are within an installation at `prefix`, whether or not there is one: what Nsight Systems has to
/// be told for it to find the plugin.
#[must_use]
pub fn search_dir(prefix: &Path) -> PathBuf {
    prefix.join("share/kvikio/nsys-plugins")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands behind `key`.
    fn field(key: &str) -> &str {
        let start = format!("{key}: ");
        MANIFEST
            .lines()
            .find_map(|line| line.strip_prefix(&start))
            .unwrap_or_else(|| panic!("the manifest has no {key}"))
    }

    #[test]
    fn the_manifest_names_the_plugin_and_its_program() {
        assert_eq!(field("PluginName"), NAME);
        assert_eq!(field("ExecutablePath"), EXECUTABLE);
        assert!(!field("FeatureName").is_empty() && !field("Description").is_empty());
    }

    #[test]
    fn the_manifest_says_of_the_options_what_the_program_says() {
        let options = crate::usage("x");
        let options: Vec<&str> = options
            .lines()
            .filter(|line| line.starts_with("  "))
            .collect();
        assert_eq!(options.len(), 4);
        for key in ["ExtendedDescription", "ExtendedDescriptionForGui"] {
            let (_, text) = MANIFEST.split_once(&format!("{key}: |\n")).unwrap();
            for line in &options {
                assert!(text.contains(&format!("  {line}\n")), "{key} lacks {line}");
            }
        }
    }
}
