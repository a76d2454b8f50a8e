//! The messages between the daemon and the supervisor, and their encoding.
//!
//! What it is: two enums and their encoding, one message per packet. What it must never depend on: a socket, a
//! descriptor (descriptors travel in the same packet, outside of its bytes). Both ends are the same executable, so
//! messages have no version. A message that cannot be decoded is a bug and closes the connection.
//!
//! Numbers are little-endian. A text is its length (u32) and its bytes. A list is its count (u32) and its elements.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use crate::bounds::{Bounds, Cgroup, Limits};
use crate::command::Stop;
use crate::error::{StartError, Step};
use crate::exit::{Exit, Status};

mod bytes;

use bytes::{Reader, Writer};

/// A start in the form that the supervisor needs: all texts are bytes, and the name of the worker is a variable in
/// `env`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Start {
    pub(crate) program: Vec<u8>,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) cwd: Option<Vec<u8>>,
    pub(crate) env: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) env_clear: bool,
    /// The names of the daemon's variables that the program does not inherit.
    pub(crate) withheld: Vec<Vec<u8>>,
    /// Whether requests and replies are descriptors 3 and 4.
    pub(crate) three_four: bool,
    /// Whether `libstdbuf` unbuffers the output.
    pub(crate) stdbuf: bool,
    /// Whether a socket is sent with the pipes, which becomes descriptor 3.
    pub(crate) serves: bool,
    pub(crate) bounds: Bounds,
}

/// A message from the daemon.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// The first message, sent once.
    Hello {
        /// How long programs may run after the daemon has ended, before SIGTERM.
        grace: Duration,
        /// How long they may run after SIGTERM, before SIGKILL.
        term: Duration,
        /// The soft limit of descriptors of programs; `None`: no limit.
        descriptors: Option<u64>,
    },
    /// Carries the program's ends of its three pipes, then the socket on which it serves, if any.
    Start {
        token: u64,
        start: Box<Start>,
    },
    Stop {
        token: u64,
        how: Stop,
    },
    /// Requests a `Pong`.
    Ping,
}

/// A message from the supervisor.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Notice {
    /// The first message, sent once.
    Hello {
        pid: u32,
    },
    Started {
        token: u64,
        pid: u32,
    },
    StartFailed {
        token: u64,
        error: StartError,
    },
    Exited {
        token: u64,
        exit: Exit,
    },
    Pong,
}

impl Order {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            Self::Hello { grace, term, descriptors } => {
                to.byte(0).duration(*grace).duration(*term);
                to.long(descriptors.unwrap_or(u64::MAX));
            }
            Self::Start { token, start } => {
                to.byte(1).long(*token).text(&start.program);
                to.count(start.arguments.len());
                start.arguments.iter().for_each(|argument| _ = to.text(argument));
                to.optional(start.cwd.as_deref());
                to.count(start.env.len());
                start.env.iter().for_each(|(name, value)| _ = to.text(name).text(value));
                to.count(start.withheld.len());
                start.withheld.iter().for_each(|name| _ = to.text(name));
                for flag in [start.env_clear, start.three_four, start.stdbuf, start.serves] {
                    to.byte(u8::from(flag));
                }
                write_bounds(&mut to, &start.bounds);
            }
            Self::Stop { token, how } => {
                to.byte(2).long(*token).byte(u8::from(*how == Stop::Kill));
            }
            Self::Ping => _ = to.byte(3),
        }
        to.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let order = match from.byte()? {
            0 => Self::Hello {
                grace: from.duration()?,
                term: from.duration()?,
                descriptors: Some(from.long()?).filter(|&limit| limit != u64::MAX),
            },
            1 => Self::Start {
                token: from.long()?,
                start: Box::new(Start {
                    program: from.text()?,
                    arguments: from.list(Reader::text)?,
                    cwd: from.optional()?,
                    env: from.list(|from| Some((from.text()?, from.text()?)))?,
                    withheld: from.list(Reader::text)?,
                    env_clear: from.byte()? == 1,
                    three_four: from.byte()? == 1,
                    stdbuf: from.byte()? == 1,
                    serves: from.byte()? == 1,
                    bounds: read_bounds(&mut from)?,
                }),
            },
            2 => Self::Stop {
                token: from.long()?,
                how: if from.byte()? == 1 { Stop::Kill } else { Stop::Term },
            },
            3 => Self::Ping,
            _ => return None,
        };
        from.0.is_empty().then_some(order)
    }
}

impl Notice {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            Self::Hello { pid } => _ = to.byte(0).int(*pid),
            Self::Started { token, pid } => _ = to.byte(1).long(*token).int(*pid),
            Self::StartFailed { token, error } => {
                to.byte(2).long(*token);
                write_error(&mut to, error);
            }
            Self::Exited { token, exit } => {
                let (kind, value) = match exit.status {
                    Status::Code(code) => (0, code),
                    Status::Signal(signal) => (1, signal),
                    Status::Lost => (2, 0),
                };
                to.byte(3).long(*token).byte(kind).int(value.cast_unsigned());
                to.byte(u8::from(exit.core)).duration(exit.user).duration(exit.system);
                to.long(exit.rss_max);
            }
            Self::Pong => _ = to.byte(4),
        }
        to.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let notice = match from.byte()? {
            0 => Self::Hello { pid: from.int()? },
            1 => Self::Started { token: from.long()?, pid: from.int()? },
            2 => Self::StartFailed { token: from.long()?, error: read_error(&mut from)? },
            3 => {
                let token = from.long()?;
                let (kind, value) = (from.byte()?, from.int()?.cast_signed());
                let status = match kind {
                    0 => Status::Code(value),
                    1 => Status::Signal(value),
                    2 => Status::Lost,
                    _ => return None,
                };
                let exit = Exit {
                    status,
                    core: from.byte()? == 1,
                    user: from.duration()?,
                    system: from.duration()?,
                    rss_max: from.long()?,
                };
                Self::Exited { token, exit }
            }
            4 => Self::Pong,
            _ => return None,
        };
        from.0.is_empty().then_some(notice)
    }
}

fn write_bounds(to: &mut Writer, bounds: &Bounds) {
    let Bounds { user, group, no_new_privs, limits, cpus, nice, cgroup } = bounds;
    to.optional(user.as_ref().map(String::as_bytes));
    to.optional(group.as_ref().map(String::as_bytes));
    to.byte(u8::from(*no_new_privs));
    for limit in limits.all() {
        match limit {
            Some(limit) => _ = to.byte(1).long(limit),
            None => _ = to.byte(0),
        }
    }
    to.count(cpus.len());
    cpus.iter().for_each(|cpu| _ = to.long(*cpu as u64));
    to.int(nice.cast_unsigned());
    match cgroup {
        Cgroup::Auto => _ = to.byte(0),
        Cgroup::Off => _ = to.byte(1),
        Cgroup::Under(folder) => _ = to.byte(2).text(folder.as_os_str().as_bytes()),
    }
}

fn read_bounds(from: &mut Reader<'_>) -> Option<Bounds> {
    Some(Bounds {
        user: from.optional_string()?,
        group: from.optional_string()?,
        no_new_privs: from.byte()? == 1,
        limits: {
            let mut all = [None; 8];
            for limit in &mut all {
                *limit = if from.byte()? == 1 { Some(from.long()?) } else { None };
            }
            Limits::from_all(all)
        },
        cpus: from.list(|from| usize::try_from(from.long()?).ok())?,
        nice: from.int()?.cast_signed(),
        cgroup: match from.byte()? {
            0 => Cgroup::Auto,
            1 => Cgroup::Off,
            2 => Cgroup::Under(OsString::from_vec(from.text()?).into()),
            _ => return None,
        },
    })
}

/// Encodes an error alone, in the form in which a child that could not execute its program sends it through a pipe.
pub(crate) fn encode_error(error: &StartError) -> Vec<u8> {
    let mut to = Writer::default();
    write_error(&mut to, error);
    to.0
}

pub(crate) fn decode_error(bytes: &[u8]) -> Option<StartError> {
    read_error(&mut Reader(bytes))
}

fn write_error(to: &mut Writer, error: &StartError) {
    match error {
        StartError::NotFound { program, path } => {
            to.byte(0).text(program.as_bytes());
            to.optional(path.as_ref().map(String::as_bytes));
        }
        StartError::NotExecutable { file } => _ = to.byte(1).text(file.as_bytes()),
        StartError::Directory { file } => _ = to.byte(2).text(file.as_bytes()),
        StartError::NoInterpreter { file, interpreter } => {
            to.byte(3).text(file.as_bytes()).text(interpreter.as_bytes());
        }
        StartError::NotAProgram { file } => _ = to.byte(4).text(file.as_bytes()),
        StartError::WorkingDirectory { directory, errno } => {
            to.byte(5).text(directory.as_bytes()).int(errno.cast_unsigned());
        }
        StartError::Nul => _ = to.byte(6),
        StartError::TooLong { bytes } => _ = to.byte(7).long(*bytes as u64),
        StartError::System { step, errno } => {
            let step = match step {
                Step::Pipes => 0,
                Step::Fork => 1,
                Step::Execute => 2,
            };
            to.byte(8).byte(step).int(errno.cast_unsigned());
        }
        StartError::SupervisorLost => _ = to.byte(9),
        StartError::TokenInUse => _ = to.byte(10),
        StartError::NoUser { user } => _ = to.byte(11).text(user.as_bytes()),
        StartError::NoGroup { group } => _ = to.byte(12).text(group.as_bytes()),
        StartError::Bounds { doing, errno } => {
            to.byte(13).text(doing.as_bytes()).int(errno.cast_unsigned());
        }
        StartError::NoStdbuf => _ = to.byte(14),
    }
}

fn read_error(from: &mut Reader<'_>) -> Option<StartError> {
    Some(match from.byte()? {
        0 => StartError::NotFound { program: from.string()?, path: from.optional_string()? },
        1 => StartError::NotExecutable { file: from.string()? },
        2 => StartError::Directory { file: from.string()? },
        3 => StartError::NoInterpreter { file: from.string()?, interpreter: from.string()? },
        4 => StartError::NotAProgram { file: from.string()? },
        5 => StartError::WorkingDirectory {
            directory: from.string()?,
            errno: from.int()?.cast_signed(),
        },
        6 => StartError::Nul,
        7 => StartError::TooLong { bytes: usize::try_from(from.long()?).ok()? },
        8 => {
            let step = match from.byte()? {
                0 => Step::Pipes,
                1 => Step::Fork,
                2 => Step::Execute,
                _ => return None,
            };
            StartError::System { step, errno: from.int()?.cast_signed() }
        }
        9 => StartError::SupervisorLost,
        10 => StartError::TokenInUse,
        11 => StartError::NoUser { user: from.string()? },
        12 => StartError::NoGroup { group: from.string()? },
        13 => StartError::Bounds { doing: from.string()?, errno: from.int()?.cast_signed() },
        14 => StartError::NoStdbuf,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
