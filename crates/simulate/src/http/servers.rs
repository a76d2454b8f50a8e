//! Servers: what they make of a request, and what goes wrong with them.

use crate::happening::Moment;
use crate::http::hosts::Host;
use crate::http::message;
use crate::http::message::Request;
use crate::http::tunnels::Tunnel;

/// What a server makes of those who connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Serves,
    Refuses,
    Silent,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) mode: Mode,
    /// It is never but there.
    pub(crate) steady: bool,
    /// It is a program of the gateway's own.
    pub(crate) host: Option<Host>,
    /// When the gateway last received bytes of it that no request asked for.
    pub(crate) distrusted: Option<Moment>,
}

impl Server {
    pub(crate) const fn new(steady: bool) -> Self {
        Self { mode: Mode::Serves, steady, host: None, distrusted: None }
    }
}

/// What went wrong with a link on its server's side, or between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Before a byte of the reply that was owed.
    Before,
    /// A byte of the reply may have come, or the gateway had to give it up.
    Within,
    /// The connection was cut: of what was said last nobody knows how far it came.
    Cut,
}

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Answer,
    /// It answers without the body that is still to come.
    AnswerEarly,
    CloseUnanswered,
    ResetUnanswered,
    /// It says a part of the reply and ends.
    Truncate,
    /// It says a part of the reply and resets the connection.
    ResetWithin,
    /// It says a part of the reply, or nothing, and no more ever.
    Stall,
    Garbage,
    /// It has answered; the rest of the body is to come.
    ReadOn,
    /// It says a part of the reply, or nothing of it, and its process ends.
    Die,
    /// It answers, and its process ends.
    AnswerAndDie,
    /// It has changed the protocol.
    Talk,
}

/// The request that it works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) deed: Deed,
    pub(crate) at: Moment,
}

/// One connection of the gateway to a server.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) server: usize,
    /// All that the gateway's kernel took for it.
    pub(crate) given: Vec<u8>,
    /// Requests that were answered whole.
    pub(crate) answers: usize,
    pub(crate) fault: Option<Fault>,
    pub(crate) turn: Option<Turn>,
    /// It waits in the backlog of a program, to be accepted then.
    pub(crate) accepted_at: Option<Moment>,
    /// The request that it works on is the gateway's own.
    pub(crate) is_check: bool,
    /// Where in what it was given another protocol begins, and for which request.
    pub(crate) tunnel: Option<Tunnel>,
    /// With nothing to do, it closes then.
    pub(crate) closes_at: Option<Moment>,
    /// It will say nothing any more.
    pub(crate) mute: bool,
    /// Its last reply ends with the connection.
    pub(crate) until_close: bool,
    /// Where the replies to its requests end in what it says, and how much of that the gateway has
    /// received.
    pub(crate) ends: Vec<usize>,
    pub(crate) heard: usize,
    /// It says this once more then.
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

    /// Whether it has a request in its hands.
    pub(crate) const fn works(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether all that it was given are whole requests.
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

    /// Whole requests among what it was given.
    pub(crate) fn requests(&self) -> usize {
        let (mut rest, mut count) = (&self.given[..], 0);
        while let Ok(Some(Request { whole: Some((_, used)), .. })) = message::request(rest) {
            (rest, count) = (&rest[used..], count + 1);
        }
        count
    }

    /// Something went wrong; what went wrong first counts, unless it was cut.
    pub(crate) fn blame(&mut self, fault: Fault) {
        if self.fault.is_none() || fault == Fault::Cut {
            self.fault = Some(fault);
        }
    }
}
