//! Runs the command in a directory of its own, away from the settings of whoever tests.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// What a run said, and its exit code.
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// A run of the command, in a directory that is gone afterwards.
pub(crate) struct Run {
    folder: TempDir,
    stdin: String,
    variables: Vec<(String, String)>,
}

impl Run {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, stdin: String::new(), variables: Vec::new() }
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    pub(crate) fn settings(self, text: &str) -> Self {
        let folder = self.folder.path().join("config/pelton");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The directory that the command runs in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The command with `arguments`, ready to be started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pelton"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("HOME", self.folder.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn pelton(&self, arguments: &[&str]) -> Said {
        let mut child = self.command(arguments).spawn().unwrap();
        // A command that does not read its input has closed it.
        let _ = child.stdin.take().unwrap().write_all(self.stdin.as_bytes());
        said(child.wait_with_output().unwrap())
    }
}

/// What `output` holds.
pub(crate) fn said(output: Output) -> Said {
    Said {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

pub(crate) fn pelton(arguments: &[&str]) -> Said {
    Run::new().pelton(arguments)
}
