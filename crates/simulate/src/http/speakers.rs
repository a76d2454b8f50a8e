//! Those who speak HTTP, whatever their role, and what became known of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::clients::End;
use crate::happening::Moment;
use crate::http::hosts::Host;
use crate::http::servers::{Link, Server};
use crate::http::visitors::Visitor;
use crate::http::{dues, hosts};
use crate::ids::ConnectionId;
use crate::net::Net;

/// The port of the first server; the others follow.
pub(crate) const FIRST_PORT: u16 = 9000;

/// All who speak HTTP, and what became known of them.
#[derive(Debug, Default)]
pub(crate) struct Http {
    pub(crate) speakers: Vec<Speaker>,
    pub(crate) servers: Vec<Server>,
    /// Requests that a server may have at once.
    pub(crate) slots: usize,
    /// The gateway looks whether servers are well while nobody asks them.
    pub(crate) is_checked: bool,
    /// A server at which requests or checks fail may be left out, the steady one as well.
    pub(crate) may_be_out: bool,
    /// Its pool may be over its limits, and then says that it is sorry.
    pub(crate) may_be_sorry: bool,
    /// No server ends a connection.
    pub(crate) is_gentle: bool,
    /// Who is to be given what.
    pub(crate) dues: dues::Dues,
    /// The gateway has one loop: each loop takes its own turns.
    pub(crate) is_alone: bool,
    /// Bodies of whole replies of servers, by the request.
    pub(crate) said: BTreeMap<u64, Vec<Vec<u8>>>,
    /// Lengths of the bodies that visitors sent, by the request.
    pub(crate) asked: BTreeMap<u64, usize>,
    /// Requests that were answered before they were whole.
    pub(crate) early: BTreeSet<u64>,
    /// Servers answer some requests twice. Until that is detected replies may be shifted; what is held
    /// then is that connections of such a server are not reused.
    pub(crate) answers_twice: bool,
    /// When the system had no descriptor, or could not watch one more: nobody is to blame then.
    pub(crate) starved: Vec<Moment>,
    /// Bytes that a body may have.
    pub(crate) body_max: usize,
    /// Lines of the access log.
    pub(crate) log: Option<gateway::LogSource>,
    /// The servers are programs of the gateway's own, and what became of them.
    pub(crate) is_hosts: bool,
    pub(crate) lives: hosts::Lives,
}

impl Http {
    /// Whether there is anybody.
    pub(crate) fn speaks(&self) -> bool {
        !self.speakers.is_empty()
    }

    /// Connections to servers that the gateway has open, of which some may be its own checks: these
    /// go with the daemon.
    pub(crate) fn may_be_checks(&self, net: &Net) -> usize {
        let servers = self.speakers.iter().filter(|it| matches!(it.role, Role::Server(_)));
        let open = |speaker: &&Speaker| {
            let place = net.connection(speaker.connection).descriptor;
            net.descriptors[place.0].open
        };
        if self.is_checked { servers.filter(open).count() } else { 0 }
    }

    /// Whether all who came to ask have gone.
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

/// What follows when all is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    /// It says no more, and listens on.
    Finish,
    Close,
    Reset,
    /// Its whole process ends.
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
    /// It cannot hold the gateway to its answers.
    pub(crate) excused: bool,
    pub(crate) called: Option<Moment>,
    /// All that it received, and how much of it was understood.
    pub(crate) input: Vec<u8>,
    pub(crate) read: usize,
    /// All that it has to say, and how much of it was sent.
    pub(crate) output: Vec<u8>,
    pub(crate) written: usize,
    /// Bytes that it sends, and receives, at once, and how long it rests between two of these.
    pub(crate) piece: usize,
    pub(crate) rests: Duration,
    pub(crate) reads_at: Moment,
    pub(crate) then: Then,
}

/// What is said in a request of this number, in its reply, or behind it: nobody else's begins so.
pub(crate) fn body_of(id: u64, length: usize) -> Vec<u8> {
    format!("{id},").into_bytes().into_iter().cycle().take(length).collect()
}

impl Http {
    /// Places to serve that the gateway has made and not left.
    pub(crate) fn homes(&self) -> usize {
        let hosts = self.servers.iter().filter_map(|server| server.host.as_ref());
        hosts.filter(|host| host.kept.strong_count() > 0).count()
    }

    pub(crate) fn host(&mut self, server: usize) -> Option<&mut Host> {
        self.servers.get_mut(server)?.host.as_mut()
    }
}

impl Http {
    /// The visitor who asks by this number.
    pub(crate) fn asker(&self, id: u64) -> usize {
        usize::try_from(id - 1_000_000).map_or(usize::MAX, |id| id / 1000)
    }

    /// Bytes that the gateway has received from the visitor in a tunnel and not passed on.
    pub(crate) fn held(&self, net: &mut Net, link: usize, id: u64) -> usize {
        let (visitor, link) = (&self.speakers[self.asker(id)], &self.speakers[link]);
        let up = net.connection(visitor.connection).up;
        let under_way = net.flow(up).waiting();
        let passed = match &link.role {
            Role::Server(link) => link.given.len(),
            Role::Visitor(_) => 0,
        };
        let asked = visitor.written.saturating_sub(under_way);
        // The heads of its requests count as held, and are few bytes.
        asked.saturating_sub(passed)
    }
}
