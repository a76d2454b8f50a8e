//! Starts external commands, prints them and captures their output.

use serde_json::Value;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Why a step failed: a message, and a command that repeats the step.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) output: String,
    pub(crate) repeat: Option<String>,
}

impl Failure {
    pub(crate) fn new(output: impl Into<String>) -> Self {
        Self { output: output.into(), repeat: None }
    }

    /// Adds a place to an error: `.map_err(Failure::at("strace"))`.
    pub(crate) fn at<E: Display>(place: impl Display) -> impl Fn(E) -> Self {
        move |error| Self::new(format!("{place}: {error}"))
    }

    /// Adds the command that repeats the step, unless a more specific one is already set.
    pub(crate) fn repeated_by(mut self, command: impl Into<String>) -> Self {
        self.repeat.get_or_insert_with(|| command.into());
        self
    }

    /// Prints the failure as the end of a command.
    pub(crate) fn show(&self) -> ExitCode {
        eprintln!("{}", self.output.trim_end());
        if let Some(repeat) = &self.repeat {
            eprintln!("repeat with: {repeat}");
        }
        ExitCode::FAILURE
    }
}

/// The checkout in which the commands run.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// The folder in which cargo builds.
    pub(crate) target: PathBuf,
    /// The output of `cargo metadata --no-deps`.
    pub(crate) metadata: Value,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self, Failure> {
        let mut command = Command::new(cargo_program());
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let shown = show(&command);
        let output = command.stderr(Stdio::inherit()).output().map_err(Failure::at(&shown))?;
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(Failure::at(format!("{shown} gave no metadata")))?;
        let folder = |key: &str| {
            metadata[key]
                .as_str()
                .map(PathBuf::from)
                .ok_or_else(|| Failure::new(format!("{shown} gave no {key}")))
        };
        Ok(Self { root: folder("workspace_root")?, target: folder("target_directory")?, metadata })
    }

    /// Returns a cargo command in this checkout, without colours.
    pub(crate) fn cargo<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(cargo_program());
        command.args(args).current_dir(&self.root).env("CARGO_TERM_COLOR", "never");
        command
    }

    /// Builds with the release profile.
    pub(crate) fn release(&self, what: &[&str]) -> Result<(), Failure> {
        eprintln!("building as released: {}", what.join(" "));
        run(self.cargo(["build", "--release"].iter().chain(what))).map(drop)
    }

    /// Builds an example with the release profile. Returns its path.
    pub(crate) fn example(&self, package: &str, name: &str) -> Result<PathBuf, Failure> {
        self.release(&["-p", package, "--example", name])?;
        Ok(self.built("release", &format!("examples/{name}")))
    }

    /// Builds an example without inlining. Returns its path.
    pub(crate) fn traced_example(&self, package: &str, name: &str) -> Result<PathBuf, Failure> {
        eprintln!("building without optimisation: {package}, {name}");
        run(self.cargo(["build", "--profile", "trace", "-p", package, "--example", name]))?;
        Ok(self.built("trace", &format!("examples/{name}")))
    }

    /// Writes a file of the checkout, and prints its name.
    pub(crate) fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        write(&self.root.join(file), text)?;
        println!("wrote {file}");
        Ok(())
    }

    /// Returns the path of a program in the folder of a profile (`debug`, `release` or `trace`).
    pub(crate) fn built(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(name)
    }

    /// Returns a path for messages: relative to the checkout if it is inside.
    pub(crate) fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// Returns a command with its arguments.
pub(crate) fn command<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Creates a folder if it does not exist.
pub(crate) fn folder(path: PathBuf) -> Result<PathBuf, Failure> {
    fs::create_dir_all(&path).map_err(Failure::at(path.display()))?;
    Ok(path)
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(Failure::at(path.display()))
}

pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(Failure::at(path.display()))
}

fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// The prefixes of variables that are printed with a command.
const SHOWN: [&str; 4] = ["ROADSTEAD", "RUSTDOCFLAGS", "RUSTFLAGS", "LOOM_"];

/// Formats a command as it is typed in a shell, with the variables that were set for it.
pub(crate) fn show(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        let name = name.to_string_lossy();
        if let Some(value) = value.filter(|_| SHOWN.iter().any(|shown| name.starts_with(shown))) {
            words.push(format!("{name}={}", quoted(&value.to_string_lossy())));
        }
    }
    let program = Path::new(command.get_program());
    let short = program.file_name().unwrap_or(program.as_os_str());
    words.push(quoted(&short.to_string_lossy()));
    words.extend(command.get_args().map(|word| quoted(&word.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Runs a command. Returns its standard output and standard error in the order in which they were written.
pub(crate) fn run(command: Command) -> Result<String, Failure> {
    let mut said = String::new();
    let shown = show(&command);
    let status = follow(command, |line| {
        said.push_str(line);
        said.push('\n');
    })?;
    if status.success() {
        return Ok(said);
    }
    Err(Failure::new(format!("{said}{shown}: {status}")).repeated_by(shown))
}

/// Runs a command. Returns only its standard output, for further processing.
pub(crate) fn output(mut command: Command) -> Result<String, Failure> {
    let shown = show(&command);
    let failed = |why: String| Failure::new(why).repeated_by(shown.clone());
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("{shown}: {error}")))?;
    if output.status.success() {
        return String::from_utf8(output.stdout)
            .map_err(|error| failed(format!("{shown}: {error}")));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("{said}{shown}: {}", output.status)))
}

/// Runs a command, and passes each line of standard output and standard error to `each` when it is written.
pub(crate) fn follow(command: Command, each: impl FnMut(&str)) -> Result<ExitStatus, Failure> {
    follow_watched(command, Duration::MAX, each, |_| {})
}

/// Does the same. When there was no output for `patience`, `silent` is called with the process id.
pub(crate) fn follow_watched(
    mut command: Command,
    patience: Duration,
    mut each: impl FnMut(&str),
    mut silent: impl FnMut(u32),
) -> Result<ExitStatus, Failure> {
    let shown = show(&command);
    let failed = Failure::at(shown);
    let (reader, writer) = io::pipe().map_err(&failed)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(&failed)?)
        .stderr(writer)
        .spawn()
        .map_err(&failed)?;
    // The command also holds the writing ends. Without this drop, the reader would never see the end.
    drop(command);
    let lines = lines(reader);
    loop {
        match lines.recv_timeout(patience) {
            Ok(line) => each(&line.map_err(&failed)?),
            Err(RecvTimeoutError::Timeout) => silent(child.id()),
            Err(RecvTimeoutError::Disconnected) => return child.wait().map_err(&failed),
        }
    }
}

/// Reads the lines of a pipe on a separate thread until its last writer has closed it.
fn lines(reader: PipeReader) -> Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            let said = match reader.read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {
                    Ok(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned())
                }
                Err(error) => Err(error),
            };
            let last = said.is_err();
            if sender.send(said).is_err() || last {
                return;
            }
            line.clear();
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_channels_come_in_order() {
        let said = run(shell("echo one; echo two >&2; echo three")).unwrap();
        assert_eq!(said, "one\ntwo\nthree\n");
    }

    #[test]
    fn whoever_says_nothing_for_too_long_is_told_of() {
        let mut said = Vec::new();
        let silent = |pid: u32| {
            run(shell(&format!("kill {pid}"))).unwrap();
        };
        let waits = shell("echo one; exec sleep 3600");
        let each = |line: &str| said.push(line.to_owned());
        let status = follow_watched(waits, Duration::from_millis(300), each, silent).unwrap();
        assert!(!status.success());
        assert_eq!(said, ["one"]);
    }

    #[test]
    fn a_failure_carries_output_and_command() {
        let failure = run(shell("echo broken; exit 3")).unwrap_err();
        assert!(failure.output.contains("broken"), "{}", failure.output);
        assert_eq!(failure.repeat.as_deref(), Some("sh -c 'echo broken; exit 3'"));
    }

    #[test]
    fn output_is_without_what_was_said_beside_it() {
        assert_eq!(output(shell("echo page; echo warning >&2")).unwrap(), "page\n");
        let failure = output(shell("echo page; echo broken >&2; exit 1")).unwrap_err();
        assert!(failure.output.starts_with("broken\n"), "{}", failure.output);
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = run(Command::new("no-such-program-here")).unwrap_err();
        assert!(failure.output.starts_with("no-such-program-here: "), "{}", failure.output);
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("--features"), "--features");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
