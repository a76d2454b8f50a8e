//! Programs that serve HTTP start, accept and end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spawn::{Command, ProgramAddress, ProgramSocket, Socket, SocketKind, Status};

use crate::http::hosts::{Host, START_MAX, server_at};
use crate::http::servers::{Fault, Mode, Server};
use crate::http::speakers::{FIRST_PORT, Role, State};
use crate::ids::ConnectionId;
use crate::net::Edge;
use crate::programs::Nature;
use crate::world::World;

/// The delay after which a host repeats a connection attempt that found a full backlog.
const SYN_AGAIN: Duration = Duration::from_millis(200);

/// The misbehaviours of programs that serve HTTP.
const FAULTY: &[Nature] = &[
    Nature::Slow,
    Nature::Quits,
    Nature::Quits,
    Nature::StopsAnswering,
    Nature::ClosesOutput,
    Nature::Stubborn,
    Nature::ExitsAtStart,
    Nature::LeavesChild,
];

fn host_of(servers: &mut [Server], server: usize) -> &mut Host {
    servers[server].host.as_mut().expect("only programs get here")
}

impl World {
    /// Creates the socket of a program that serves HTTP.
    pub(crate) fn make_program_socket(&mut self, how: SocketKind) -> io::Result<ProgramSocket> {
        if self.fault(5) {
            self.http.starved.push(self.time.now);
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let server = self.http.servers.len();
        let at = match how {
            SocketKind::Port => {
                let port = usize::from(FIRST_PORT) + server;
                ProgramAddress::Port(u16::try_from(port).expect("a world has few programs"))
            }
            SocketKind::Inherited | SocketKind::Path => {
                ProgramAddress::Path(PathBuf::from(format!("/s/{server}")))
            }
        };
        let socket = (how == SocketKind::Inherited).then(Socket::simulated);
        let keep = Arc::new(());
        self.http.servers.push(Server {
            mode: Mode::Refuses,
            steady: false,
            host: Some(Host {
                how,
                socket: socket.clone(),
                kept: Arc::downgrade(&keep),
                program: None,
                has_ended: false,
                backlog: self.http.host_history.backlog,
                waiting: Vec::new(),
            }),
            distrusted: None,
        });
        self.note("a home is made: server", server, 0);
        Ok(ProgramSocket::new(at, socket, Box::new(keep)))
    }

    /// Returns the server that a program becomes, according to its command.
    pub(crate) fn server_of(&mut self, program: usize, command: &Command) -> Option<usize> {
        let told = |name: &str| command.env.iter().find(|(it, _)| it == name).map(|(_, it)| it);
        let server = match (&command.socket, told("ROADSTEAD_SOCKET"), told("PORT")) {
            (Some(socket), ..) => {
                let mut hosts = self.http.servers.iter();
                hosts.position(|it| {
                    it.host.as_ref().is_some_and(|it| it.socket.as_ref() == Some(socket))
                })?
            }
            (None, Some(path), _) => server_at(Path::new(path)).ok()?,
            (None, None, Some(port)) => port.parse::<usize>().ok()? - usize::from(FIRST_PORT),
            (None, None, None) => return None,
        };
        self.http.host(server)?.program = Some(program);
        Some(server)
    }

    /// Draws the nature of the next program.
    pub(crate) fn host_nature(&mut self) -> Nature {
        let faulty = self.scenario.faulty_programs;
        if self.fault(faulty) { self.chance.pick(FAULTY) } else { Nature::Good }
    }

    /// Returns the time until a process listens; `None` if it never does.
    pub(crate) fn listens_after(&mut self, nature: Nature) -> Option<Duration> {
        match nature {
            Nature::StopsAnswering => None,
            Nature::ExitsAtStart if self.chance.in_1000(500) => None,
            Nature::Slow => Some(self.chance.time(START_MAX / 2, START_MAX * 2)),
            _ => {
                let longest =
                    self.chance.pick(&[Duration::from_millis(1), Duration::from_millis(300)]);
                Some(self.chance.time(Duration::from_micros(50), longest))
            }
        }
    }

    /// Makes a program listen and accept the waiting connections.
    pub(crate) fn host_serves(&mut self, server: usize) {
        self.note("a program listens: server", server, 0);
        self.http.servers[server].mode = Mode::Serves;
        let waiting = self.http.host(server).map(|host| host.waiting.clone());
        waiting.into_iter().flatten().for_each(|number| self.host_will_accept(number));
    }

    pub(super) fn host_will_accept(&mut self, number: usize) {
        let longest = self.chance.pick(&[Duration::from_micros(50), self.scenario.work_max]);
        let at = self.time.now + self.chance.time(Duration::from_micros(5), longest);
        self.link(number).accepted_at = Some(at);
        self.call_speaker(number, at);
    }

    /// Accepts a connection that waited.
    pub(super) fn host_accepts(&mut self, number: usize) {
        let server = self.link(number).server;
        self.note("is accepted: speaker, server", number, server);
        self.link(number).accepted_at = None;
        self.http.speakers[number].state = State::There;
        if let Some(host) = self.http.host(server) {
            host.waiting.retain(|it| *it != number);
        }
    }

    /// Handles a `connect` that arrives at the socket of a program, or at its future address.
    pub(super) fn reach_host(&mut self, id: ConnectionId, number: usize, server: usize) {
        let descriptor = self.net.connection(id).descriptor;
        let serves = self.http.servers[server].mode == Mode::Serves;
        let Some(host) = self.http.host(server) else { return };
        let refusal = match host.how {
            _ if host.has_ended => Some(io::ErrorKind::ConnectionRefused),
            SocketKind::Inherited => None,
            SocketKind::Path if !serves => Some(io::ErrorKind::NotFound),
            SocketKind::Port if !serves => Some(io::ErrorKind::ConnectionRefused),
            SocketKind::Path | SocketKind::Port => None,
        };
        let room = match &host.socket {
            Some(socket) if !socket.is_open() => 1,
            Some(_) => usize::MAX,
            None => host.backlog,
        };
        let full = host.waiting.len() >= room;
        let is_far = host.how == SocketKind::Port;
        if let Some(why) = refusal {
            self.note("refuses: server", server, 0);
            return self.refuse_connect(descriptor, why);
        }
        if full {
            self.note("has no room for a connection: server", server, 0);
            if is_far {
                return self.after(SYN_AGAIN, crate::scheduled_event::ScheduledEvent::Reach(id));
            }
            return self.refuse_connect(descriptor, io::ErrorKind::WouldBlock);
        }
        self.note("a connection waits: server, speaker", server, number);
        host_of(&mut self.http.servers, server).waiting.push(number);
        self.net.descriptor(descriptor).connecting = None;
        self.edge(descriptor, Edge::Write);
        if serves {
            self.host_will_accept(number);
        }
    }

    /// Whether the program ends at this request.
    pub(super) fn host_is_to_die(&mut self, server: usize) -> bool {
        let program = self.http.host(server).and_then(|host| host.program);
        program.is_some_and(|program| self.program_quits(program))
    }

    /// Ends the process of a speaker.
    pub(super) fn host_dies_of(&mut self, number: usize) {
        let server = self.link(number).server;
        if let Some(program) = self.http.host(server).and_then(|host| host.program) {
            self.exit(program, Status::Code(1));
        }
    }

    /// Handles the end of the process of a server, which ends all its connections.
    pub(crate) fn host_has_ended(&mut self, server: usize, status: Status) {
        let served = std::mem::replace(&mut self.http.servers[server].mode, Mode::Refuses);
        let ordered = matches!(status, Status::Signal(9 | 15)) && served == Mode::Serves;
        self.http.host_history.cut_short += u32::from(!ordered);
        let host = host_of(&mut self.http.servers, server);
        host.has_ended = true;
        let waiting = std::mem::take(&mut host.waiting);
        for number in 0..self.http.speakers.len() {
            let Speaks { is_of, state } = self.speaks(number, server);
            if is_of && (state == State::There || waiting.contains(&number)) {
                self.end_with_its_process(number, ordered);
            }
        }
    }

    fn speaks(&self, number: usize, server: usize) -> Speaks {
        let speaker = &self.http.speakers[number];
        let is_of = matches!(&speaker.role, Role::Server(link) if link.server == server);
        Speaks { is_of, state: speaker.state }
    }

    /// Ends a connection as the kernel does at the end of a process. `ordered`: the gateway ordered the end, so it is
    /// responsible for the requests that it had sent.
    pub(super) fn end_with_its_process(&mut self, number: usize, ordered: bool) {
        let connection = self.connection_of_speaker(number);
        let unread = self.net.flow(connection.down).ready() > 0;
        let arrived = self.net.flow(connection.up).has_arrived();
        let speaker = &self.http.speakers[number];
        let written = speaker.written == speaker.output.len();
        let link = self.link(number);
        // Bytes that the kernel accepted from it arrive, unless a reset destroys them.
        let said = written && (arrived || !(unread || link.until_close || link.works()));
        let is_part = !written || link.fault == Some(Fault::Within);
        let cut_off = link.until_close && is_part;
        if !ordered {
            link.blame(if said { Fault::Before } else { Fault::Cut });
        }
        // If the end of a reply is the end of its connection, only a reset shows that the reply is incomplete.
        if cut_off {
            self.speaker_resets(number);
        } else {
            self.speaker_closes(number);
        }
    }
}

/// The relation of a speaker to a server.
struct Speaks {
    is_of: bool,
    state: State,
}
