//! The descriptors of the gateway, and their connections and pipes.
//!
//! Readiness of a descriptor is reported exactly as the [`event::Kernel`] trait guarantees: a report comes when
//! something happens to an *armed* direction, and a direction is armed again only when a receive or a send has found no
//! more. Some worlds are *eager* and report each arrival, as epoll does. An end or a reset is always reported.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use event::{Interest, Readiness, Token};

use crate::flow::Flow;
use crate::ids::{ConnectionId, DescriptorId, FlowId, Party, PortId};
use crate::scheduled_event::Moment;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    /// The port on which it arrives. `None` if the gateway connects.
    pub(crate) listener: Option<PortId>,
    /// The party at the other end.
    pub(crate) far: Party,
    /// The gateway's end.
    pub(crate) descriptor: DescriptorId,
    /// The flow from the other end to the gateway, and the flow back.
    pub(crate) up: FlowId,
    pub(crate) down: FlowId,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Listener(PortId),
    Socket(ConnectionId),
    /// A pipe that the gateway reads.
    PipeIn(FlowId),
    /// A pipe that the gateway writes.
    PipeOut(FlowId),
    /// The socket of [`crate::datagrams`].
    Datagrams,
}

#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) kind: Kind,
    pub(crate) open: bool,
    /// Whether the gateway has had this descriptor.
    pub(crate) owned: bool,
    /// The shard of the loop that has it.
    pub(crate) shard: usize,
    pub(crate) watch: Option<(Token, Interest)>,
    pub(crate) read_armed: bool,
    pub(crate) write_armed: bool,
    /// Whether a send has found no room, and no room was reported since.
    pub(crate) blocked: bool,
    /// Whether it is in the list of descriptors to be reported.
    pub(crate) queued: bool,
    /// Whether the end of the peer was reported.
    pub(crate) end_told: bool,
    /// Whether the connection was reset.
    pub(crate) broken: bool,
    /// Whether its close is a reset.
    pub(crate) resets: bool,
    /// The error of the reset, until the gateway receives it.
    pub(crate) error: Option<io::ErrorKind>,
    /// The state of a connection attempt of the gateway.
    pub(crate) connecting: Option<Connecting>,
}

/// The state of a `connect` of the gateway that has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connecting {
    Waits,
    Failed(io::ErrorKind),
}

/// The reason for a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Read,
    Write,
    End,
}

#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) flows: Vec<Flow>,
    /// Connections that were not accepted, by port.
    pub(crate) backlogs: Vec<VecDeque<ConnectionId>>,
    pub(crate) listeners: Vec<DescriptorId>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) descriptors: Vec<Descriptor>,
    /// The real descriptors that represent simulated ones, by number.
    pub(crate) placeholders: BTreeMap<i32, DescriptorId>,
    pub(crate) reports: Vec<DescriptorId>,
    /// Reports about descriptors that are no longer watched, under their old tokens, with the loop that had them.
    pub(crate) stale: Vec<(usize, Token)>,
    /// Until when no descriptor is available, and how often one was requested meanwhile.
    pub(crate) shortage: (Moment, usize),
}

impl Net {
    pub(crate) const fn new() -> Self {
        Self {
            flows: Vec::new(),
            backlogs: Vec::new(),
            listeners: Vec::new(),
            connections: Vec::new(),
            descriptors: Vec::new(),
            placeholders: BTreeMap::new(),
            reports: Vec::new(),
            stale: Vec::new(),
            shortage: (Moment::ZERO, 0),
        }
    }

    pub(crate) fn flow(&mut self, id: FlowId) -> &mut Flow {
        &mut self.flows[id.0]
    }

    pub(crate) fn add_flow(&mut self, writer: Party, reader: Party, capacity: usize) -> FlowId {
        self.flows.push(Flow::new(writer, reader, capacity));
        FlowId(self.flows.len() - 1)
    }

    pub(crate) fn descriptor(&mut self, id: DescriptorId) -> &mut Descriptor {
        &mut self.descriptors[id.0]
    }

    pub(crate) fn add_descriptor(&mut self, kind: Kind) -> DescriptorId {
        self.descriptors.push(Descriptor {
            kind,
            open: true,
            owned: false,
            shard: 0,
            watch: None,
            read_armed: true,
            write_armed: true,
            blocked: false,
            queued: false,
            end_told: false,
            broken: false,
            resets: false,
            error: None,
            connecting: None,
        });
        DescriptorId(self.descriptors.len() - 1)
    }

    /// Adds a late report for a token that a loop no longer watches.
    pub(crate) fn add_stale(&mut self, shard: usize, token: Token) {
        self.stale.push((shard, token));
    }

    /// Adds a port, with a descriptor for each of this number of loops.
    pub(crate) fn add_port(&mut self, loops: usize) -> Vec<DescriptorId> {
        let port = PortId(self.backlogs.len());
        self.backlogs.push(VecDeque::new());
        let descriptors = (0..loops).map(|shard| {
            let id = self.add_descriptor(Kind::Listener(port));
            let descriptor = self.descriptor(id);
            (descriptor.owned, descriptor.shard) = (true, shard);
            self.listeners.push(id);
            id
        });
        descriptors.collect()
    }

    /// Returns the next connection that waits at a port.
    pub(crate) fn take_from_backlog(&mut self, port: PortId) -> Option<ConnectionId> {
        self.backlogs[port.0].pop_front()
    }

    /// Whether a port has a listener.
    pub(crate) fn has_listener(&self, port: PortId) -> bool {
        self.listeners.iter().any(|id| {
            let descriptor = &self.descriptors[id.0];
            descriptor.open && matches!(descriptor.kind, Kind::Listener(it) if it == port)
        })
    }

    /// Whether a listener of this loop has a connection to accept.
    pub(crate) fn has_pending_connection(&self, shard: usize) -> bool {
        self.listeners.iter().any(|id| {
            let descriptor = &self.descriptors[id.0];
            let mine = descriptor.watch.is_some() && descriptor.shard == shard;
            mine && self.readiness(*id) != Readiness::NONE
        })
    }

    pub(crate) fn connection(&self, id: ConnectionId) -> Connection {
        self.connections[id.0]
    }

    /// Returns the flows that the gateway reads and writes through a descriptor.
    pub(crate) fn flows_of(&self, id: DescriptorId) -> (Option<FlowId>, Option<FlowId>) {
        match self.descriptors[id.0].kind {
            Kind::Listener(_) | Kind::Datagrams => (None, None),
            Kind::Socket(connection) => {
                let connection = self.connections[connection.0];
                (Some(connection.up), Some(connection.down))
            }
            Kind::PipeIn(flow) => (Some(flow), None),
            Kind::PipeOut(flow) => (None, Some(flow)),
        }
    }

    /// Arms a direction of the datagram socket after a receive or a send found no more.
    pub(crate) fn arm_datagrams(&mut self, id: DescriptorId, edge: Edge) {
        let descriptor = self.descriptor(id);
        match edge {
            Edge::Read => descriptor.read_armed = true,
            Edge::Write | Edge::End => descriptor.write_armed = true,
        }
    }

    /// Returns the readiness that poll(2) would report.
    pub(crate) fn readiness(&self, id: DescriptorId) -> Readiness {
        let descriptor = &self.descriptors[id.0];
        let mut ready = Readiness::NONE;
        match descriptor.connecting {
            None => {}
            Some(Connecting::Waits) => return ready,
            Some(Connecting::Failed(_)) => {
                return Readiness::READ | Readiness::WRITE | Readiness::HANGUP | Readiness::ERROR;
            }
        }
        let (input, output) = self.flows_of(id);
        let socket = matches!(descriptor.kind, Kind::Socket(_));
        let input = input.map(|flow| &self.flows[flow.0]);
        let output = output.map(|flow| &self.flows[flow.0]);
        if let Kind::Listener(port) = descriptor.kind
            && !self.backlogs[port.0].is_empty()
        {
            ready |= Readiness::READ;
        }
        if let Some(input) = input {
            if input.ready() > 0 || (input.ended && socket) {
                ready |= Readiness::READ;
            }
            if input.ended {
                ready |= if socket { Readiness::READ_END } else { Readiness::HANGUP };
            }
        }
        if let Some(output) = output {
            if output.space() > 0 {
                ready |= Readiness::WRITE;
            }
            if output.deaf && !socket {
                ready |= Readiness::ERROR;
            }
            if output.end_sent && input.is_some_and(|input| input.ended) {
                ready |= Readiness::HANGUP;
            }
        }
        if descriptor.broken {
            ready |= Readiness::READ | Readiness::READ_END | Readiness::HANGUP | Readiness::WRITE;
            if descriptor.error.is_some() {
                ready |= Readiness::ERROR;
            }
        }
        ready
    }

    /// Returns the descriptors that a loop has opened and not closed.
    pub(crate) fn open_at(&self, shard: usize) -> Vec<DescriptorId> {
        let descriptors = self.descriptors.iter().enumerate();
        let open = descriptors.filter(|(_, it)| it.open && it.owned && it.shard == shard);
        open.map(|(place, _)| DescriptorId(place)).collect()
    }
}
