//! Checks that connections to the port of a program are accepted by the program, not by another user who took the port.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Once;
use std::time::{Duration, Instant};

use listeners::{Acceptor, acceptor};

use crate::process::{children, users};

/// How long a socket of another user is remembered. During this time the processes of the program are not examined
/// again for that socket.
const OTHER_OWNER_TTL: Duration = Duration::from_secs(1);

/// The maximum number of processes of a program that are examined, because the event loop waits during the search.
const PROCESSES_MAX: usize = 10_000;

/// The owner of the process that accepts a connection to the port of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PortOwner {
    /// The program, one of its descendants, or root. Also reported if the kernel does not provide the information.
    Program,
    /// No process.
    Nobody,
    /// Another user, by user id.
    Other(u32),
}

/// A running program that serves on a port of 127.0.0.1, and the users as which its processes are known to run.
#[derive(Clone, Debug)]
pub struct PortProgram {
    port: u16,
    pid: u32,
    users: Vec<u32>,
    /// The last socket that was found to belong to another user, and the time of that check.
    other_owner: Option<(Acceptor, Instant)>,
}

impl PortProgram {
    /// A program with the process id `pid`. Its users are not examined yet.
    #[must_use]
    pub const fn new(port: u16, pid: u32) -> Self {
        Self { port, pid, users: Vec::new(), other_owner: None }
    }

    /// Returns the owner of the process that accepts, or has accepted, a connection from the address `own` to the port.
    pub fn owner_of(&mut self, own: SocketAddr) -> PortOwner {
        static UNAVAILABLE: Once = Once::new();
        let port = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        match acceptor(port, own) {
            Ok(None) => PortOwner::Nobody,
            Ok(Some(found)) if self.is_own(found) => PortOwner::Program,
            Ok(Some(found)) => PortOwner::Other(found.user),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                UNAVAILABLE.call_once(|| {
                    tracing::warn!(
                        "the kernel does not say who accepts a connection ({error}): another local user can take \
                         a port that is kept for a program"
                    );
                });
                PortOwner::Program
            }
            // It may say it the next time: there may be no descriptor or memory to ask with.
            Err(error) => {
                tracing::warn!("it is unknown who accepts connections to a program: {error}");
                PortOwner::Nobody
            }
        }
    }

    /// Whether a socket belongs to root, or to a user as which the program or one of its descendants runs. The
    /// processes are examined once for each of these users.
    fn is_own(&mut self, found: Acceptor) -> bool {
        let user = found.user;
        if user == 0 || self.users.contains(&user) {
            return true;
        }
        if self
            .other_owner
            .is_some_and(|(it, since)| it == found && since.elapsed() < OTHER_OWNER_TTL)
        {
            return false;
        }
        // Examined twice, because a process that starts or ends while the list is read may hide another.
        let is_own = runs_as(self.pid, user) || runs_as(self.pid, user);
        if is_own {
            self.users.push(user);
        } else {
            self.other_owner = Some((found, Instant::now()));
        }
        is_own
    }
}

/// Whether a process or one of its descendants runs as a user. Descendants are included because `runuser` and `su`
/// start a program as another user. A process that has ended has no user. Other processes are not examined, because
/// another user may have any number of them.
fn runs_as(pid: u32, user: u32) -> bool {
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
        // A user of the program stays in the list, even if none of its processes runs as that user at the moment.
        program.users.push(60_003);
        assert!(program.is_own(of(60_003, 1)));
    }

    #[test]
    fn a_socket_that_is_known_as_another_user_s_is_not_looked_up_at_once_again() {
        let user = rustix::process::geteuid().as_raw() + 1;
        let of = |socket| Acceptor { user, socket };
        let mut program = PortProgram::new(1, std::process::id());
        assert!(!program.is_own(of(1)));
        let (known, _) = program.other_owner.expect("it is remembered");
        assert_eq!(known, of(1));
        // An expiry later than the end of the test.
        let later = Instant::now() + Duration::from_secs(3600);
        program.other_owner = Some((of(1), later));
        assert!(!program.is_own(of(1)));
        assert_eq!(program.other_owner, Some((of(1), later)), "nobody looked");
        assert!(!program.is_own(of(2)));
        assert_eq!(
            program.other_owner.map(|it| it.0),
            Some(of(2)),
            "another socket is another question"
        );
    }

    #[test]
    fn a_process_stands_for_the_users_of_its_descendants() {
        let own = std::process::id();
        let user = rustix::process::geteuid().as_raw();
        assert!(runs_as(own, user));
        assert!(!runs_as(own, 60_003), "nothing runs as this user");
        if user != 0 {
            return;
        }
        use std::os::unix::process::CommandExt;
        let mut child = std::process::Command::new("/bin/cat");
        let child = child.uid(60_003).gid(60_003).stdin(std::process::Stdio::piped()).spawn();
        let mut child = child.unwrap();
        assert!(runs_as(own, 60_003));
        assert!(!runs_as(child.id(), 0), "not those of its ancestors");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!runs_as(child.id(), 60_003), "it has ended");
    }
}
