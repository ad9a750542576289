//! Arrows between our crates point down, in dev-dependencies too.

use super::Problem;
use crate::workspace::Graph;

/// Who may know whom, from the ground up. The picture of it is in ARCHITECTURE.md.
const ARROWS: [(&str, &[&str]); 16] = [
    ("kvik-config", &[]),
    ("kvik-stats", &[]),
    ("kvik-sys", &[]),
    // Libraries of the machine, which no crate of ours knows. Tests load them.
    ("kvik-fake-common", &[]),
    ("kvik-fake-cuda", &["kvik-fake-common"]),
    ("kvik-fake-cufile", &["kvik-fake-common"]),
    ("kvik-fake-nvtx", &[]),
    // A program beside the others. The fake is for its tests alone.
    ("kvik-nsys", &["kvik-fake-nvtx"]),
    // The fake is for its tests alone, as for those of the command.
    (
        "kvik-core",
        &["kvik-config", "kvik-fake-cuda", "kvik-stats", "kvik-sys"],
    ),
    ("kvik-mmap", &["kvik-config", "kvik-core"]),
    ("kvik-remote", &["kvik-config", "kvik-core", "kvik-stats"]),
    (
        "kvik",
        &[
            "kvik-config",
            "kvik-core",
            "kvik-mmap",
            "kvik-remote",
            "kvik-stats",
        ],
    ),
    // The products see what a user sees.
    // The plain loops of the benches call the driver by themselves.
    ("kvik-bench", &["kvik", "kvik-fake-cuda", "kvik-sys"]),
    ("kvik-cli", &["kvik", "kvik-bench", "kvik-fake-cuda"]),
    (
        "kvik-tests",
        // kvik-sys for what the user's own program does on a device, kvik-cli for what the command fetches from servers.
        &[
            "kvik",
            "kvik-cli",
            "kvik-fake-cuda",
            "kvik-fake-cufile",
            "kvik-sys",
        ],
    ),
    // For the page of settings.
    ("xtask", &["kvik-config"]),
];

pub(super) fn check(graph: &Graph) -> Vec<Problem> {
    let ours: Vec<&str> = graph.ours().map(|package| package.name.as_str()).collect();
    let mut problems = Vec::new();
    for package in graph.ours() {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            let text = format!(
                "{} has no row in ARROWS of xtask/src/tidy/arrows.rs; give it one",
                package.name
            );
            problems.push(Problem::new(&package.manifest, 1, text));
            continue;
        };
        for dependency in &package.dependencies {
            if ours.contains(&dependency.as_str()) && !allowed.contains(&dependency.as_str()) {
                let text = format!(
                    "{} must not know {dependency}; arrows point down, see ARCHITECTURE.md",
                    package.name
                );
                problems.push(Problem::new(&package.manifest, 1, text));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_itself_points_down() {
        for (place, (name, allowed)) in ARROWS.iter().enumerate() {
            for below in *allowed {
                let found = ARROWS[..place].iter().any(|(lower, _)| lower == below);
                assert!(found, "{name} knows {below}, which does not stand below it");
            }
        }
    }
}
