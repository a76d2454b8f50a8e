//! The parties that speak HTTP, of every role, and what is known about them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::clients::End;
use crate::http::hosts::Host;
use crate::http::servers::{Link, Server};
use crate::http::visitors::Visitor;
use crate::http::{distribution, hosts};
use crate::ids::ConnectionId;
use crate::net::Net;
use crate::scheduled_event::Moment;

/// The port of the first server; the others follow.
pub(crate) const FIRST_PORT: u16 = 9000;

/// All parties that speak HTTP, and what is known about them.
#[derive(Debug, Default)]
pub(crate) struct Http {
    pub(crate) speakers: Vec<Speaker>,
    pub(crate) servers: Vec<Server>,
    /// The maximum number of concurrent requests of a server.
    pub(crate) slots: usize,
    /// Whether the gateway performs active health checks.
    pub(crate) is_checked: bool,
    /// Whether a server may be marked unhealthy after failed requests or checks, even one that is always up.
    pub(crate) may_be_out: bool,
    /// Whether the pool may be over its limits and then sends the fallback response.
    pub(crate) may_fall_back: bool,
    /// Whether no server ends a connection.
    pub(crate) is_gentle: bool,
    /// The required distribution of requests.
    pub(crate) distribution: distribution::Distribution,
    /// Whether the gateway has one loop. With several, each loop distributes requests separately.
    pub(crate) is_alone: bool,
    /// The bodies of complete replies of servers, by request.
    pub(crate) said: BTreeMap<u64, Vec<Vec<u8>>>,
    /// The lengths of the bodies that visitors sent, by request.
    pub(crate) asked: BTreeMap<u64, usize>,
    /// Requests that were answered before they were complete.
    pub(crate) early: BTreeSet<u64>,
    /// Whether servers answer some requests twice. Replies may be shifted until that is detected. In such a world the
    /// only check is that connections of such a server are not reused.
    pub(crate) answers_twice: bool,
    /// The times at which the system had no descriptor, or could not watch another one. Failures at these times are not
    /// the fault of the gateway.
    pub(crate) starved: Vec<Moment>,
    /// The maximum size of a body, in bytes.
    pub(crate) body_max: usize,
    /// The lines of the access log.
    pub(crate) log: Option<gateway::LogSource>,
    /// Whether the servers are programs of the gateway, and the history of these programs.
    pub(crate) is_hosts: bool,
    pub(crate) host_history: hosts::HostHistory,
}

impl Http {
    /// Whether the world has any such party.
    pub(crate) fn speaks(&self) -> bool {
        !self.speakers.is_empty()
    }

    /// Returns the number of open connections to servers if some of them may be health checks: these end with the
    /// daemon.
    pub(crate) fn may_be_checks(&self, net: &Net) -> usize {
        let servers = self.speakers.iter().filter(|it| matches!(it.role, Role::Server(_)));
        let open = |speaker: &&Speaker| {
            let place = net.connection(speaker.connection).descriptor;
            net.descriptors[place.0].open
        };
        if self.is_checked { servers.filter(open).count() } else { 0 }
    }

    /// Whether all visitors are done.
    pub(crate) fn visitors_are_done(&self) -> bool {
        let mut visitors = self.speakers.iter().filter(|it| matches!(it.role, Role::Visitor(_)));
        visitors.all(|visitor| visitor.state == State::Done)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Away,
    There,
    Done,
}

/// What a speaker does when all its output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    /// It half-closes and continues to read.
    Finish,
    Close,
    Reset,
    /// Its process ends.
    Die,
}

#[derive(Debug)]
pub(crate) enum Role {
    Visitor(Visitor),
    Server(Link),
}

#[derive(Debug)]
pub(crate) struct Speaker {
    pub(crate) role: Role,
    pub(crate) connection: ConnectionId,
    pub(crate) state: State,
    pub(crate) end: Option<End>,
    /// Whether it cannot expect all its replies.
    pub(crate) excused: bool,
    pub(crate) called: Option<Moment>,
    /// All bytes that it received, and the number of bytes parsed.
    pub(crate) input: Vec<u8>,
    pub(crate) read: usize,
    /// All bytes of its output, and the number of bytes sent.
    pub(crate) output: Vec<u8>,
    pub(crate) written: usize,
    /// The maximum number of bytes of one send or receive, and the maximum pause between two receives.
    pub(crate) piece: usize,
    pub(crate) rests: Duration,
    pub(crate) reads_at: Moment,
    pub(crate) then: Then,
}

/// Returns the body of the request with this id, of its reply, or of its tunnel. No other id has a body with the same
/// beginning.
pub(crate) fn body_of(id: u64, length: usize) -> Vec<u8> {
    format!("{id},").into_bytes().into_iter().cycle().take(length).collect()
}

impl Http {
    /// Returns the number of sockets that the gateway has created for programs and not dropped.
    pub(crate) fn program_sockets(&self) -> usize {
        let hosts = self.servers.iter().filter_map(|server| server.host.as_ref());
        hosts.filter(|host| host.kept.strong_count() > 0).count()
    }

    pub(crate) fn host(&mut self, server: usize) -> Option<&mut Host> {
        self.servers.get_mut(server)?.host.as_mut()
    }
}

impl Http {
    /// Returns the speaker number of the visitor that sent the request with this id.
    pub(crate) fn asker(&self, id: u64) -> usize {
        usize::try_from(id - 1_000_000).map_or(usize::MAX, |id| id / 1000)
    }

    /// Returns the number of bytes that the gateway has received from the visitor in a tunnel and not forwarded.
    pub(crate) fn held(&self, net: &mut Net, link: usize, id: u64) -> usize {
        let (visitor, link) = (&self.speakers[self.asker(id)], &self.speakers[link]);
        let up = net.connection(visitor.connection).up;
        let under_way = net.flow(up).waiting();
        let passed = match &link.role {
            Role::Server(link) => link.given.len(),
            Role::Visitor(_) => 0,
        };
        let asked = visitor.written.saturating_sub(under_way);
        // The heads of its requests are counted as held, but they are only few bytes.
        asked.saturating_sub(passed)
    }
}
