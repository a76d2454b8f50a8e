//! Whether a program itself accepts the connections to the port that it was given, or somebody else who took the
//! port.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Once;
use std::time::{Duration, Instant};

use listeners::{Acceptor, acceptor};

use crate::process::children;

/// For how long a socket of another user is taken for that without another look at the processes of the program.
const STRANGE: Duration = Duration::from_secs(1);

/// When so many processes of a program are known, no more are looked for: the loop waits meanwhile.
const PROCESSES_MAX: usize = 10_000;

/// Who accepts a connection to the port of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PortOwner {
    /// The program, a process that it started, or root; also where the kernel does not tell.
    Program,
    /// Nobody.
    Nobody,
    /// Another user.
    Other(u32),
}

/// A running program that serves on a port of 127.0.0.1, with the users that were found to be its own.
#[derive(Clone, Debug)]
pub struct PortProgram {
    port: u16,
    pid: u32,
    users: Vec<u32>,
    /// The socket that was found last to be somebody else's, and when.
    stranger: Option<(Acceptor, Instant)>,
}

impl PortProgram {
    /// The program `pid`, of which nothing is known yet.
    #[must_use]
    pub const fn new(port: u16, pid: u32) -> Self {
        Self { port, pid, users: Vec::new(), stranger: None }
    }

    /// Who accepts, or has accepted, a connection that was made to the port from the address `own`.
    pub fn owner_of(&mut self, own: SocketAddr) -> PortOwner {
        static UNAVAILABLE: Once = Once::new();
        let port = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        match acceptor(port, own) {
            Ok(None) => PortOwner::Nobody,
            Ok(Some(found)) if self.is_own(found) => PortOwner::Program,
            Ok(Some(found)) => PortOwner::Other(found.user),
            Err(error) if is_exhausted(&error) => {
                tracing::warn!("it is unknown who accepts connections to a program: {error}");
                PortOwner::Nobody
            }
            Err(error) => {
                UNAVAILABLE.call_once(|| {
                    tracing::warn!(
                        "the kernel does not say who accepts a connection ({error}): another local user can take \
                         a port that is kept for a program"
                    );
                });
                PortOwner::Program
            }
        }
    }

    /// Whether a socket is of a user whom the program, a process that it started, or root runs as. The processes
    /// are looked at once for each of its own users.
    fn is_own(&mut self, found: Acceptor) -> bool {
        let user = found.user;
        if user == 0 || self.users.contains(&user) {
            return true;
        }
        if self.stranger.is_some_and(|(it, since)| it == found && since.elapsed() < STRANGE) {
            return false;
        }
        // A process that comes or goes while the list is read may hide another.
        let is_own = is_of(self.pid, user) || is_of(self.pid, user);
        if is_own {
            self.users.push(user);
        } else {
            self.stranger = Some((found, Instant::now()));
        }
        is_own
    }
}

/// Whether there is no descriptor or memory to ask the kernel with: it may say it the next time.
fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|errno| exhausted.contains(&errno))
}

/// Whether a process, or one that descends from it, runs as a user: `runuser` and `su` start a program as
/// somebody else. A process that has ended runs as nobody. No other processes are looked at: another user may
/// have any number of them.
fn is_of(pid: u32, user: u32) -> bool {
    let mut family = vec![pid.cast_signed()];
    let mut next = 0;
    while let Some(&pid) = family.get(next) {
        if users(pid).is_some_and(|users| users.contains(&user)) {
            return true;
        }
        if family.len() < PROCESSES_MAX {
            family.extend(children(pid));
        }
        next += 1;
    }
    false
}

/// The real, effective, saved and file system user of a process.
fn users(pid: i32) -> Option<Vec<u32>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    numbers.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_on_another_address_accepts_nothing() {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        assert_eq!(acceptor(server, SocketAddr::from(([127, 0, 0, 1], 1))).unwrap(), None);
        let mut program = PortProgram::new(port, std::process::id());
        assert_eq!(program.owner_of(server), PortOwner::Nobody);
    }

    #[test]
    fn a_port_belongs_to_root_and_to_the_users_of_its_program() {
        let mut program = PortProgram::new(1, std::process::id());
        let own = rustix::process::geteuid().as_raw();
        let of = |user, socket| Acceptor { user, socket };
        assert!(program.is_own(of(0, 1)) && program.is_own(of(own, 1)));
        assert!(!program.is_own(of(60_003, 1)), "nothing runs as this user");
        // What was its own stays so, also when no process of it runs at the moment.
        program.users.push(60_003);
        assert!(program.is_own(of(60_003, 1)));
    }

    #[test]
    fn a_socket_that_is_known_as_another_user_s_is_not_looked_up_at_once_again() {
        let user = rustix::process::geteuid().as_raw() + 1;
        let of = |socket| Acceptor { user, socket };
        let mut program = PortProgram::new(1, std::process::id());
        assert!(!program.is_own(of(1)));
        let (known, _) = program.stranger.expect("it is remembered");
        assert_eq!(known, of(1));
        // Later than any test takes.
        let later = Instant::now() + Duration::from_secs(3600);
        program.stranger = Some((of(1), later));
        assert!(!program.is_own(of(1)));
        assert_eq!(program.stranger, Some((of(1), later)), "nobody looked");
        assert!(!program.is_own(of(2)));
        assert_eq!(
            program.stranger.map(|it| it.0),
            Some(of(2)),
            "another socket is another question"
        );
    }

    #[test]
    fn a_process_stands_for_the_users_of_its_descendants() {
        let own = std::process::id();
        let user = rustix::process::geteuid().as_raw();
        assert!(is_of(own, user));
        assert!(!is_of(own, 60_003), "nothing runs as this user");
        if user != 0 {
            return;
        }
        use std::os::unix::process::CommandExt;
        let mut child = std::process::Command::new("/bin/cat");
        let child = child.uid(60_003).gid(60_003).stdin(std::process::Stdio::piped()).spawn();
        let mut child = child.unwrap();
        assert!(is_of(own, 60_003));
        assert!(!is_of(child.id(), 0), "not those of its ancestors");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_of(child.id(), 60_003), "it has ended");
    }
}
