//! Servers: what they do with a request, and their faults.

use crate::http::hosts::Host;
use crate::http::message;
use crate::http::message::Request;
use crate::http::tunnels::Tunnel;
use crate::scheduled_event::Moment;

/// How a server treats new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Serves,
    Refuses,
    Silent,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) mode: Mode,
    /// Whether it is always up.
    pub(crate) steady: bool,
    /// The program of the gateway that is this server, if any.
    pub(crate) host: Option<Host>,
    /// When the gateway last received unrequested bytes from this server.
    pub(crate) distrusted: Option<Moment>,
}

impl Server {
    pub(crate) const fn new(steady: bool) -> Self {
        Self { mode: Mode::Serves, steady, host: None, distrusted: None }
    }
}

/// A fault of a connection on the server's side or in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It occurred before any byte of the expected reply.
    Before,
    /// A part of the reply may have been sent, or the gateway had to close the connection.
    Within,
    /// The connection was cut: it is unknown how much of the last bytes arrived.
    Cut,
}

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerAction {
    Answer,
    /// It answers before the body is complete.
    AnswerEarly,
    CloseUnanswered,
    ResetUnanswered,
    /// It sends a part of the reply and closes.
    Truncate,
    /// It sends a part of the reply and resets the connection.
    ResetWithin,
    /// It sends a part of the reply, or nothing, and then nothing more.
    Stall,
    Garbage,
    /// It has answered and reads the rest of the body.
    ReadOn,
    /// It sends a part of the reply, or nothing, and its process ends.
    Die,
    /// It answers, and its process ends.
    AnswerAndDie,
    /// It has changed the protocol.
    Talk,
}

/// The request that it processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) action: ServerAction,
    pub(crate) at: Moment,
}

/// A connection of the gateway to a server.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) server: usize,
    /// All bytes that the kernel accepted from the gateway for it.
    pub(crate) given: Vec<u8>,
    /// The number of requests with a complete reply.
    pub(crate) answers: usize,
    pub(crate) fault: Option<Fault>,
    pub(crate) turn: Option<Turn>,
    /// Until then it waits in the backlog of a program.
    pub(crate) accepted_at: Option<Moment>,
    /// Whether its current request is a health check.
    pub(crate) is_check: bool,
    /// The start of the new protocol in `given`, and its request.
    pub(crate) tunnel: Option<Tunnel>,
    /// When it closes if it is idle.
    pub(crate) closes_at: Option<Moment>,
    /// Whether it sends nothing more.
    pub(crate) mute: bool,
    /// Whether the end of its last reply is the end of the connection.
    pub(crate) until_close: bool,
    /// The offsets at which the replies to its requests end in its output, and the number of bytes that the gateway has
    /// received.
    pub(crate) ends: Vec<usize>,
    pub(crate) heard: usize,
    /// The bytes that it sends once more, and when.
    pub(crate) again: Option<(Moment, Vec<u8>)>,
}

impl Link {
    pub(crate) const fn new(server: usize) -> Self {
        Self {
            server,
            given: Vec::new(),
            answers: 0,
            fault: None,
            turn: None,
            accepted_at: None,
            is_check: false,
            tunnel: None,
            closes_at: None,
            mute: false,
            until_close: false,
            ends: Vec::new(),
            heard: 0,
            again: None,
        }
    }

    /// Whether it processes a request.
    pub(crate) const fn works(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether all bytes that it was given are complete requests.
    pub(crate) fn is_between(&self) -> bool {
        let mut rest = &self.given[..];
        if self.tunnel.is_some() {
            return false;
        }
        while let Ok(Some(Request { whole: Some((_, used)), .. })) = message::request(rest) {
            rest = &rest[used..];
        }
        rest.is_empty()
    }

    /// Returns the number of complete requests among the bytes that it was given.
    pub(crate) fn requests(&self) -> usize {
        let (mut rest, mut count) = (&self.given[..], 0);
        while let Ok(Some(Request { whole: Some((_, used)), .. })) = message::request(rest) {
            (rest, count) = (&rest[used..], count + 1);
        }
        count
    }

    /// Records a fault. The first fault counts, unless the connection was cut.
    pub(crate) fn blame(&mut self, fault: Fault) {
        if self.fault.is_none() || fault == Fault::Cut {
            self.fault = Some(fault);
        }
    }
}
