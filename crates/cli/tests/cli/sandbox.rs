//! A folder of its own for each test, and the program run in it with an empty environment.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub(crate) struct Sandbox(TempDir);

/// How a run of the program ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The result object.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    /// The stop reason of the result object.
    pub(crate) fn reason(&self) -> String {
        self.json()["stop_reason"].as_str().unwrap().to_owned()
    }
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        Sandbox(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file into the working directory.
    pub(crate) fn file(&self, name: &str, text: &str) -> &Sandbox {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Writes a script of these JSON actions (or any other content) and gives its spec.
    pub(crate) fn script(&self, contents: &[&str]) -> String {
        let lines = contents
            .iter()
            .map(|content| serde_json::json!({ "content": content }));
        let lines: Vec<_> = lines.map(|line| line.to_string()).collect();
        self.lines(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Writes a script of these lines and gives its spec.
    pub(crate) fn lines(&self, lines: &[&str]) -> String {
        self.file("script.jsonl", &lines.join("\n"));
        "scripted:script.jsonl".to_owned()
    }

    /// The program, ready to run here.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paraph"));
        let home: &Path = self.0.path();
        command.args(args).current_dir(home).env_clear();
        command
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_DATA_HOME", self.path("data"));
        // What a test sees must not depend on how full this machine's disk is.
        command.env("PARAPH_LOW_DISK_MIB", "0");
        // Windows programs find their libraries by these.
        for name in ["SYSTEMROOT", "PATH"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.run_with(args, &[], "")
    }

    /// Runs the program with variables and with text on standard input.
    pub(crate) fn run_with(&self, args: &[&str], env: &[(&str, &str)], input: &str) -> Ended {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program may not want to read it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A JSON action that calls a tool.
pub(crate) fn tool(name: &str, args: &str) -> String {
    format!(r#"{{"kind":"tool","name":"{name}","args":{args}}}"#)
}

pub(crate) const PROFILE: &str =
    r#"{"kind":"tool","name":"get_user_profile","args":{"user_id":42}}"#;
pub(crate) const BILLING: &str =
    r#"{"kind":"tool","name":"get_user_billing","args":{"user_id":42}}"#;
pub(crate) const FINAL: &str = r#"{"kind":"final","answer":"Yes."}"#;
