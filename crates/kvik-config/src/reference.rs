//! The documentation page of all settings, made from the table.

use std::fmt::Write;

use crate::key::{Effect, Key};

/// The page `docs/src/configuration.md`, in Markdown: the rules, and every setting of the table.
#[must_use]
pub fn reference() -> String {
    let mut page = format!("{HEAD}{OVERVIEW}");
    for &key in Key::ALL {
        page.push_str(&overview(key));
    }
    page.push_str("\n## Every setting\n");
    for &key in Key::ALL {
        page.push_str(&section(key));
    }
    page
}

fn overview(key: Key) -> String {
    format!(
        "| [`{key}`](#{key}) | {} | {} | {} | {} |\n",
        default(key.default()),
        key.kvikio_default()
            .map_or("no such setting".to_owned(), default),
        key.unit(),
        match key.effect() {
            Effect::Now => "yes",
            Effect::CommandOnly => "in the command",
            Effect::Planned => "planned",
            Effect::Stored => "stored only",
        }
    )
}

fn section(key: Key) -> String {
    let mut text = format!("\n### {key}\n\n{}\n\n", key.sentence());
    // Writing to a string cannot fail.
    let _ = writeln!(text, "- Value: {}", key.expected());
    let _ = writeln!(text, "- Default: {}", default(key.default()));
    if let Some(kvikio) = key.kvikio_default() {
        let _ = writeln!(text, "- KvikIO's default: {}", default(kvikio));
    }
    let variables: Vec<_> = key
        .variables()
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    let _ = writeln!(text, "- Variables: {}", variables.join(", "));
    let _ = writeln!(text, "- Effect: {}", key.effect().meaning());
    text
}

fn default(text: &str) -> String {
    if text.is_empty() {
        "none".to_owned()
    } else {
        format!("`{text}`")
    }
}

const HEAD: &str = "\
<!-- Written by `cargo xtask codegen` from crates/kvik-config/src/key.rs. Do not edit. -->

# Configuration

Every setting has a value that somebody said, or its default. `kvik config` prints all of them, with who said each.

## Who is heard

The strongest source that says anything about a setting decides. From the weakest to the strongest:

1. the default of the table below;
2. a suggestion, made by a library on top of kvik (`Config::suggest`); the first one stays;
3. the user's settings file;
4. the environment: `KVIK_*` before `KVIKIO_*`;
5. the program, for the whole process (`Config::set_process`);
6. a context of the thread (`Config::enter`), the innermost first; other threads do not see it;
7. the options of a handle;
8. the options of a call.

File and environment are read once per process, when a setting is needed for the first time. What changes there later has no
effect on a running process.

## What is a value

- A value is read as a whole or not at all: `4MiB` is four mebibytes, `4abc` is an error. Blanks at the ends do not count.
- Sizes are whole numbers of bytes, with or without a unit: `4194304`, `4096 B`, `64k`, `64 KiB`, `8MiB`, `1g`, `2 TiB`. All units
  count in 1024s. `KB`, `MB`, `GB` and `TB` are refused, since to half of their users they count in 1000s.
- Yes is `on`, `true`, `yes`, `1` or any other whole number; no is `off`, `false`, `no` or `0`; in any case.
- Words are not sensitive to case.
- Times are seconds, with decimals if wanted: `60`, `0.5`.
- Variables with the same prefix that mean the same setting (`KVIKIO_NTHREADS` and `KVIKIO_NUM_THREADS`) must hold the same text.

A bad value from the environment or the settings file is the error of the first use of *that setting*; all others work. A bad
value said by the program is refused at once, with everything that was said together with it. `kvik config` and `kvik doctor` list
what is wrong, also unknown names in the settings file and variables that are almost one of ours.

## The settings file

It is the file that `KVIK_CONFIG` names, else `$XDG_CONFIG_HOME/kvik/config.toml`, else `$HOME/.config/kvik/config.toml`; never a
file of the working directory. An empty `KVIK_CONFIG` means no settings file. It is a flat TOML table with the names below:

```toml
num_threads = 8
task_size = \"8 MiB\"
compat_mode = \"auto\"
auto_direct_io_read = true
http_status_codes = [429, 500, 502, 503, 504]
```

- The file must be a regular file of at most 1 MiB that nobody but its owner may write to (mode `go-w`; the group may, where its
  number is the owner's), and the owner must be the user of the process or root.
- A file that `KVIK_CONFIG` names must exist, and the path must be absolute. A usual file need not exist; one that belongs to
  another user, or that this user may not read, is passed over and listed as a problem, and so is a folder in
  `XDG_CONFIG_HOME` or `HOME` that is not an absolute path.
- If the file cannot be used for another reason, nobody knows what it would have said: every setting that no stronger source says
  is an error until the file is mended.

";

const OVERVIEW: &str = "\
## All settings

The last column says whether this version acts on the setting. What is *planned* is read and checked, and takes effect with the
part that it belongs to. What is *stored only* is read and checked for programs that set it for KvikIO, and changes nothing. The
log is the command's: a program that uses the library installs a `tracing` subscriber of its own.

| Setting | Default | KvikIO's default | Unit | In effect |
|---|---|---|---|---|
";
