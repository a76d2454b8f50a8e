//! The sockets of programs: their creation, their announcement to the program, and their removal.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use event::Address;
use exchange::{ByWorker, WorkerId};
use settings::HttpSocket;
use spawn::{ProgramAddress, ProgramSocket, SocketKind, Spawn};

use crate::programs::LaunchOptions;

/// The sockets of the programs of one pool.
pub(super) struct ProgramSockets {
    socket: HttpSocket,
    arguments: Vec<String>,
    kept: ByWorker<Option<ProgramSocket>>,
}

impl ProgramSockets {
    pub(super) fn new(socket: HttpSocket, arguments: Vec<String>) -> Self {
        Self { socket, arguments, kept: ByWorker::default() }
    }

    /// Applies new settings, for programs that are started from now on.
    pub(super) fn handle_config(&mut self, socket: HttpSocket, arguments: Vec<String>) {
        (self.socket, self.arguments) = (socket, arguments);
    }

    /// Creates the socket of a program, which is kept until the program ends. Returns its address and the launch
    /// options.
    ///
    /// # Errors
    /// The operating system cannot create the socket: no directory, descriptor or port is available.
    pub(super) fn make(
        &mut self,
        worker: WorkerId,
        spawner: &mut dyn Spawn,
    ) -> io::Result<(Address, LaunchOptions)> {
        let mut program_socket = spawner.program_socket(match self.socket {
            HttpSocket::Inherited => SocketKind::Inherited,
            HttpSocket::Path => SocketKind::Path,
            HttpSocket::Port => SocketKind::Port,
        })?;
        let mut options =
            LaunchOptions { socket: program_socket.socket.take(), ..LaunchOptions::default() };
        let address = match &program_socket.at {
            ProgramAddress::Path(path) => {
                if options.socket.is_none() {
                    let text = program_socket.path.as_ref().unwrap_or(path).display().to_string();
                    self.add_to_launch(&mut options, "{socket}", "ROADSTEAD_SOCKET", text);
                }
                Address::Unix(path.clone())
            }
            ProgramAddress::Port(port) => {
                self.add_to_launch(&mut options, "{port}", "PORT", port.to_string());
                Address::Internet(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))
            }
        };
        *self.kept.at(worker) = Some(program_socket);
        Ok((address, options))
    }

    fn add_to_launch(
        &self,
        options: &mut LaunchOptions,
        word: &str,
        variable: &str,
        value: String,
    ) {
        let written = self.arguments.iter().map(|argument| argument.replace(word, &value));
        options.arguments = Some(written.collect());
        options.env.push((variable.to_owned(), value));
    }

    pub(super) fn leave(&mut self, worker: WorkerId) {
        if let Some(kept) = self.kept.get_mut(worker) {
            *kept = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use spawn::{Command, Socket, Stop};

    use super::*;

    /// A spawner that returns these sockets.
    struct Given;

    impl Spawn for Given {
        fn start(&mut self, _: u64, _: Command) {}
        fn stop(&mut self, _: u64, _: Stop) {}
        fn program_socket(&mut self, how: SocketKind) -> io::Result<ProgramSocket> {
            let at = if how == SocketKind::Port {
                ProgramAddress::Port(80)
            } else {
                ProgramAddress::Path("/r/1".into())
            };
            let socket = (how == SocketKind::Inherited).then(Socket::simulated);
            Ok(ProgramSocket::new(at, socket, Box::new(())))
        }
        fn resident(&self, _: u32) -> Option<u64> {
            None
        }
    }

    const fn worker(index: u32) -> WorkerId {
        WorkerId::new(index, 1)
    }

    #[test]
    fn a_program_is_told_of_its_home_by_words_and_variables() {
        let arguments = vec!["-b".to_owned(), "unix:{socket}".to_owned(), "{port}".to_owned()];
        let mut sockets = ProgramSockets::new(HttpSocket::Path, arguments.clone());
        let (address, options) = sockets.make(worker(3), &mut Given).unwrap();
        assert_eq!(address, Address::Unix(PathBuf::from("/r/1")));
        assert_eq!(options.env, [("ROADSTEAD_SOCKET".to_owned(), "/r/1".to_owned())]);
        assert_eq!(options.arguments.unwrap()[1..], ["unix:/r/1", "{port}"]);

        sockets.handle_config(HttpSocket::Port, arguments);
        let (address, options) = sockets.make(worker(0), &mut Given).unwrap();
        assert_eq!(address, Address::Internet(([127, 0, 0, 1], 80).into()));
        assert_eq!(options.env, [("PORT".to_owned(), "80".to_owned())]);
        assert_eq!(options.arguments.unwrap()[1..], ["unix:{socket}", "80"]);

        sockets.handle_config(HttpSocket::Inherited, Vec::new());
        let (_, options) = sockets.make(worker(0), &mut Given).unwrap();
        assert!(options.socket.is_some() && options.arguments.is_none() && options.env.is_empty());
        assert_eq!(sockets.kept.values().flatten().count(), 2);
        sockets.leave(worker(0));
        sockets.leave(worker(9));
        assert_eq!(sockets.kept.values().flatten().count(), 1);
    }
}
