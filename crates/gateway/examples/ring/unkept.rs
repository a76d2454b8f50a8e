//! Programs without a supervisor, started by this process itself. They are for valgrind, which counts instructions and
//! cannot follow the supervisor.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};

use gateway::ShardMail;
use spawn::{Command, Pipes, Report, Spawn, StartError, Stop};

pub(crate) struct Unkept {
    mailbox: event::Mailbox<ShardMail>,
    children: BTreeMap<u64, Child>,
}

impl Unkept {
    pub(crate) const fn new(mailbox: event::Mailbox<ShardMail>) -> Self {
        Self { mailbox, children: BTreeMap::new() }
    }

    fn run(&mut self, token: u64, command: &Command) -> std::io::Result<Report> {
        let mut child = std::process::Command::new(&command.program)
            .args(&command.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let lost = || std::io::Error::other("a pipe is missing");
        let pipes = Pipes {
            stdin: child.stdin.take().ok_or_else(lost)?.into(),
            stdout: child.stdout.take().ok_or_else(lost)?.into(),
            stderr: child.stderr.take().ok_or_else(lost)?.into(),
        };
        let pid = child.id();
        self.children.insert(token, child);
        Ok(Report::Started { token, pid, pipes })
    }
}

impl Spawn for Unkept {
    fn start(&mut self, token: u64, command: Command) {
        let report = self.run(token, &command).unwrap_or_else(|error| {
            eprintln!("{error}");
            let error = StartError::NotFound { program: command.program, path: None };
            Report::StartFailed { token, error }
        });
        self.mailbox.post(ShardMail::Program(report));
    }

    /// The ring ends its programs by closing their inputs; nothing waits for them.
    fn stop(&mut self, _: u64, _: Stop) {}

    fn program_socket(&mut self, _: spawn::SocketKind) -> std::io::Result<spawn::ProgramSocket> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn resident(&self, _: u32) -> Option<u64> {
        None
    }
}
