//! How a program ended.

use std::fmt;
use std::time::Duration;

/// How a program ended, and the resources that it used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Exit {
    /// The exit code or signal.
    pub status: Status,
    /// Whether the kernel dumped core.
    pub core: bool,
    /// Processor time in user mode, including children that the program waited for.
    pub user: Duration,
    /// Processor time in the kernel, including children that the program waited for.
    pub system: Duration,
    /// Maximum resident set size, in bytes.
    pub rss_max: u64,
}

impl Exit {
    pub(crate) const LOST: Self = Self {
        status: Status::Lost,
        core: false,
        user: Duration::ZERO,
        system: Duration::ZERO,
        rss_max: 0,
    };
}

/// How a program ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// It exited with a code of 0..=255.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It was killed because the supervisor was lost; its exit status is unknown.
    Lost,
}

impl fmt::Display for Exit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Status::Code(code) => write!(to, "exit code {code}")?,
            Status::Signal(signal) => match signal_name(signal) {
                Some(name) => write!(to, "signal {signal} ({name})")?,
                None => write!(to, "signal {signal}")?,
            },
            Status::Lost => to.write_str("killed after the supervisor was lost")?,
        }
        if self.core { to.write_str(", core dumped") } else { Ok(()) }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}
