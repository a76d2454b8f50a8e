//! What can happen in a world.

use std::time::Duration;

use crate::chance::Actor;
use crate::ids::{ConnectionId, DescriptorId, FlowId, Party};

/// A moment: time since the beginning of the world.
pub(crate) type Moment = Duration;

/// Something that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// What is due in a flow arrives.
    Arrive(FlowId),
    /// A connection reaches its listener.
    Knock(ConnectionId),
    /// The gateway learns that a connection was reset.
    ResetAtGateway(DescriptorId),
    /// Somebody learns that the connection was reset.
    ResetAt(Party),
    /// A connection that the gateway makes reaches a server, or nobody.
    Reach(ConnectionId),
    /// One who speaks HTTP does what it does next.
    Speaker(usize),
    /// A datagram comes to the gateway's socket.
    Letter(usize),
    /// One of the gateway's has left its buffer.
    LetterLeft,
    /// A server goes down, or comes up again.
    ServerTurns(usize),
    /// There is room again in a flow that the gateway writes.
    Room(DescriptorId),
    /// A client does what it does next.
    Client(usize),
    /// Somebody looks whether a client is still waiting.
    Patience(usize),
    /// A program's start is done.
    ProgramStarts(usize),
    /// A program does what it does next.
    Program(usize),
    /// A signal reaches a program.
    Signal(usize, spawn::Stop),
    /// The end of a program is reported.
    ProgramReported(usize),
    /// Somebody else who held a program's pipes open lets go of them.
    PipesReleased(usize),
    /// Somebody in the gateway's own process asks.
    Ask(usize),
    /// A handler's thread goes on.
    Thread(usize),
    /// A loop has its turn, if there still is a reason for it.
    Turn(usize),
    /// The keeper of the programs is lost.
    KeeperLost,
    /// A plug is pulled: a connection is cut, whoever's it is.
    Cut,
    /// Somebody orders the gateway to end in good order.
    Drain,
}

impl Happening {
    /// Whose doing it is.
    pub(crate) const fn actor(self) -> Actor {
        match self {
            Self::Arrive(FlowId(number)) => Actor("arrival", number),
            Self::Knock(ConnectionId(number)) => Actor("knock", number),
            Self::ResetAtGateway(DescriptorId(number)) => Actor("reset of a descriptor", number),
            Self::ResetAt(party) => Actor("reset", party.number()),
            Self::Reach(ConnectionId(number)) => Actor("reach", number),
            Self::Speaker(number) => Actor("speaker", number),
            Self::Letter(number) => Actor("datagram", number),
            Self::LetterLeft => Actor("datagram left", 0),
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
            Self::KeeperLost => Actor("keeper", 0),
            Self::Cut => Actor("cut", 0),
            Self::Drain => Actor("drain", 0),
        }
    }
}
