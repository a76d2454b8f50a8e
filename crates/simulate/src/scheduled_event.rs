//! The events of a world.

use std::time::Duration;

use crate::chance::Actor;
use crate::ids::{ConnectionId, DescriptorId, FlowId, Party};

/// The time since the beginning of the world.
pub(crate) type Moment = Duration;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScheduledEvent {
    /// Bytes or an end that are due in a flow arrive.
    Arrive(FlowId),
    /// A connection arrives at its listener.
    ReachListener(ConnectionId),
    /// A reset of a connection arrives at the gateway.
    ResetAtGateway(DescriptorId),
    /// A reset of a connection arrives at the other party.
    ResetAt(Party),
    /// A connection from the gateway arrives at a server, or at an address without one.
    Reach(ConnectionId),
    /// An HTTP party performs its next step.
    Speaker(usize),
    /// A datagram arrives at the socket of the gateway.
    Datagram(usize),
    /// A datagram of the gateway has left the send buffer.
    DatagramLeft,
    /// A server goes down or comes up.
    ServerTurns(usize),
    /// A flow that the gateway writes has room again.
    Room(DescriptorId),
    /// A client performs its next step.
    Client(usize),
    /// A check whether a client has waited too long.
    Patience(usize),
    /// The start of a program completes.
    ProgramStarts(usize),
    /// A program performs its next step.
    Program(usize),
    /// A signal arrives at a program.
    Signal(usize, spawn::Stop),
    /// The end of a program is reported.
    ProgramReported(usize),
    /// A child of a program that held the program's pipes open closes them.
    PipesReleased(usize),
    /// A request from within the process of the gateway.
    Ask(usize),
    /// The thread of a handler continues.
    Thread(usize),
    /// A loop runs an iteration, if it still has a reason.
    Turn(usize),
    /// The supervisor of the programs is lost.
    SupervisorLost,
    /// One randomly selected connection is cut.
    Cut,
    /// The gateway is ordered to drain.
    Drain,
}

impl ScheduledEvent {
    /// The actor that causes the event.
    pub(crate) const fn actor(self) -> Actor {
        match self {
            Self::Arrive(FlowId(number)) => Actor("arrival", number),
            Self::ReachListener(ConnectionId(number)) => Actor("knock", number),
            Self::ResetAtGateway(DescriptorId(number)) => Actor("reset of a descriptor", number),
            Self::ResetAt(party) => Actor("reset", party.number()),
            Self::Reach(ConnectionId(number)) => Actor("reach", number),
            Self::Speaker(number) => Actor("speaker", number),
            Self::Datagram(number) => Actor("datagram", number),
            Self::DatagramLeft => Actor("datagram left", 0),
            Self::ServerTurns(number) => Actor("server", number),
            Self::Room(DescriptorId(number)) => Actor("room", number),
            Self::Client(number) => Actor("client", number),
            Self::Patience(number) => Actor("patience", number),
            Self::ProgramStarts(number) => Actor("start of a program", number),
            Self::Program(number) => Actor("program", number),
            Self::Signal(number, _) => Actor("signal", number),
            Self::ProgramReported(number) => Actor("report of a program", number),
            Self::PipesReleased(number) => Actor("pipes of a program", number),
            Self::Ask(number) => Actor("ask", number),
            Self::Thread(number) => Actor("thread", number),
            Self::Turn(number) => Actor("turn", number),
            Self::SupervisorLost => Actor("supervisor", 0),
            Self::Cut => Actor("cut", 0),
            Self::Drain => Actor("drain", 0),
        }
    }
}
