//! Starts the child binary with a scenario and says how it ended.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::faults::Shim;

/// A run of the child binary that is being prepared. The child ends itself by a signal after two minutes.
#[derive(Debug)]
pub struct Child(Command);

impl Child {
    /// The scenario `scenario` of `binary`. None of our settings reaches it from this process.
    #[must_use]
    pub fn new(binary: &str, scenario: &str) -> Child {
        let mut command = Command::new(binary);
        command.arg(scenario);
        Child(command).without_settings()
    }

    /// As [`new`](Child::new), started by `starter`, a shell script that ends with `exec "$@"`.
    #[must_use]
    pub fn new_by(starter: &str, binary: &str, scenario: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", starter, "sh", binary, scenario]);
        Child(command).without_settings()
    }

    fn without_settings(mut self) -> Child {
        // A settings file of whoever runs the tests must not decide how they end.
        self.0.env("KVIK_CONFIG", "");
        let variables = kvik::config::Key::ALL
            .iter()
            .flat_map(|key| key.variables());
        variables.chain(AWS.iter()).for_each(|variable| {
            self.0.env_remove(variable);
        });
        for file in ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"] {
            self.0.env(file, "/dev/null");
        }
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Child {
        self.0.arg(arg);
        self
    }

    /// Adds a number as an argument.
    #[must_use]
    pub fn number(self, number: u64) -> Child {
        self.arg(number.to_string())
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Child {
        self.0.env(name, value);
        self
    }

    /// Runs it in this folder.
    #[must_use]
    pub fn current_dir(mut self, folder: &Path) -> Child {
        self.0.current_dir(folder);
        self
    }

    /// Lets `shim` answer its system calls by `rules`.
    #[must_use]
    pub fn faults(self, shim: &Shim, rules: &str) -> Child {
        self.env("LD_PRELOAD", shim.path()).env("KVIK_FAULT", rules)
    }

    /// Runs it to its end, whatever that is.
    #[track_caller]
    #[must_use]
    pub fn output(mut self) -> Output {
        self.0.output().unwrap()
    }

    /// Runs it; fails unless it ended with code 0 and an empty stderr. Returns what it printed.
    #[track_caller]
    pub fn succeeds(self) -> String {
        let text = format!("{:?}", self.0);
        let output = self.output();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || !stderr.is_empty() {
            panic!(
                "{text}\nended with code {:?}, signal {:?}:\n{stderr}",
                output.status.code(),
                output.status.signal()
            );
        }
        String::from_utf8(output.stdout).unwrap()
    }
}

const AWS: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_CA_BUNDLE",
];
