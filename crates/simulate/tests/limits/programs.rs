//! Programs whose pipes a test reads and writes; the test decides what they do.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex};

use gateway::{Fleet, ShardMail};
use spawn::{Command, Pipes, ProgramSocket, Report, SocketKind, Spawn, Stop};

use crate::script::{Net, Scripted};

/// The name of a program that starts. Programs with other names never start.
pub(crate) const SCRIPTED: &str = "scripted";

/// Starts programs for one shard.
#[derive(Debug)]
pub(crate) struct Spawner {
    pub(crate) net: Arc<Mutex<Net>>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) shard: usize,
}

/// The peers at the other ends of the pipes of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// The peer that receives its requests.
    pub(crate) stdin: u32,
    /// The peer that sends its replies.
    pub(crate) stdout: u32,
}

impl Spawner {
    /// Creates a pipe, and a descriptor of the system that represents the gateway's end.
    fn pipe(&self) -> (u32, OwnedFd) {
        let fd = OwnedFd::from(File::open("/dev/null").unwrap());
        let mut net = self.net.lock().unwrap();
        let number = net.add(self.shard, 1 << 30);
        net.stand_ins.insert(fd.as_raw_fd(), number);
        (number, fd)
    }
}

impl Spawn for Spawner {
    fn start(&mut self, token: u64, command: Command) {
        if command.program != SCRIPTED {
            return;
        }
        let [(taken, stdin), (sent, stdout), (_, stderr)] = [(); 3].map(|()| self.pipe());
        self.net.lock().unwrap().programs.push(Program { stdin: taken, stdout: sent });
        let pipes = Pipes { stdin, stdout, stderr };
        let mailbox = self.fleet.mailbox(u32::try_from(self.shard).unwrap());
        mailbox.post(ShardMail::Program(Report::Started { token, pid: 1, pipes }));
    }

    fn stop(&mut self, _: u64, _: Stop) {}

    fn program_socket(&mut self, _: SocketKind) -> std::io::Result<ProgramSocket> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn resident(&self, _: u32) -> Option<u64> {
        None
    }
}

impl Scripted {
    /// Returns the number of the peer that a watched descriptor represents.
    pub(crate) fn number(&self, fd: &event::Fd) -> u32 {
        use std::os::fd::AsFd;
        let stand_in = || self.net.lock().unwrap().stand_ins[&fd.as_fd().as_raw_fd()];
        fd.simulated_number().unwrap_or_else(stand_in)
    }
}
