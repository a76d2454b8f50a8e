//! The cause and the phase in which a request ended. The words of the protocol, the log, the metrics and the
//! documentation come from one table.

/// What the end of a request means for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The request was answered.
    Answered,
    /// The request was refused before anything took effect. It may be sent again.
    Refused,
    /// The request was tried and did not take effect.
    Failed,
    /// The request may or may not have taken effect.
    Unknown,
    /// The client disconnected or cancelled the request, so there is no client to notify.
    Left,
}

impl Verdict {
    /// The word for this verdict in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Left => "left",
        }
    }
}

macro_rules! causes {
    ($($(#[doc = $meaning:literal])+ $name:ident $word:literal $verdict:ident),+ $(,)?) => {
        /// Why a request ended. The words are stable, because clients, alerts and dashboards match them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Cause {
            $($(#[doc = $meaning])+ $name),+
        }

        impl Cause {
            /// All causes, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word for this cause on the wire, in the log and in the metrics.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// What this cause means for the client of the request.
            #[must_use]
            pub const fn verdict(self) -> Verdict {
                match self { $(Self::$name => Verdict::$verdict),+ }
            }

            /// A description of the cause in one sentence, for clients and for the reference page.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($meaning),+).trim_ascii_start()),+ }
            }
        }
    };
}

causes! {
    /// A worker answered.
    Answered "ok" Answered,
    /// The request is longer than the listener's `frame_max`.
    TooLong "toolong" Refused,
    /// The last request did not come to its end, or not in time.
    Incomplete "incomplete" Refused,
    /// The request breaks a rule of its protocol.
    Malformed "malformed" Refused,
    /// The listener has as many connections as its `connections_max`, or open files are short, and no connection is idle.
    Connections "connections" Refused,
    /// The listener takes no clients of this address.
    Denied "denied" Refused,
    /// The client's address has as many connections as it may.
    Crowded "crowded" Refused,
    /// The client's address connects or asks more often than it may.
    Rate "rate" Refused,
    /// The pool's queue holds as many requests or bytes as it may.
    Full "full" Refused,
    /// The daemon holds as much memory as its `memory_max`.
    Memory "memory" Refused,
    /// The request waited as long as the pool's `queue.timeout` allows.
    Waited "waited" Refused,
    /// No worker can be started at the moment, or none is fit to answer.
    Down "down" Refused,
    /// The pool was told to say that it is sorry.
    Sorry "sorry" Refused,
    /// The worker that the client is bound to is gone, and it is to have no other.
    Gone "gone" Refused,
    /// The daemon is about to end and takes no more requests.
    Draining "draining" Refused,
    /// The program that was this connection's own has ended, and with it what it knew.
    Lost "lost" Refused,
    /// There is no pool of that name.
    NoPool "nopool" Refused,
    /// No route of the listener is for this request.
    NoRoute "noroute" Refused,
    /// Clients share the program, which does not serve this method to clients that share it.
    NoMethod "nomethod" Refused,
    /// The request has no credentials that are let through.
    Unauthorized "unauthorized" Refused,
    /// The request or the reply that it became is not a record of the declared kind.
    Record "record" Refused,
    /// The row lacks a parameter, or the database does not accept it.
    Row "row" Refused,
    /// The database reported no error and did not store the row, as a trigger or a rule may cause.
    Ignored "ignored" Refused,
    /// The statement changed no row.
    NoRow "norow" Refused,
    /// The worker itself refused.
    Worker "worker" Refused,
    /// The database could not take the batch; nothing of it was stored.
    Database "database" Failed,
    /// The query gave more rows or bytes than its reply may have, or text that its format cannot hold.
    Rows "rows" Failed,
    /// No connection to the worker could be made.
    Unreached "unreached" Failed,
    /// The worker's reply breaks a rule of its protocol.
    Garbled "garbled" Unknown,
    /// There was a reply, but it is larger than it may be.
    Reply "reply" Unknown,
    /// The worker ended with the request in its hands.
    Died "died" Unknown,
    /// The worker did not answer within the pool's `response_timeout`.
    Deadline "deadline" Unknown,
    /// The connection to the database was lost while it was about to commit.
    Commit "commit" Unknown,
    /// The handler ended without an answer.
    Handler "handler" Unknown,
    /// The daemon ended before the answer was there.
    Stopped "stopped" Unknown,
    /// The client took the request back.
    Cancelled "cancelled" Left,
    /// The client left before the answer was there.
    Left "left" Left,
    /// The client did not take its replies.
    Stalled "stalled" Left,
    /// The client took its replies more slowly than the listener's `send_rate_min`.
    SlowReader "slowreader" Left,
    /// The connection was closed because the daemon held more memory than its `memory_max`.
    Shed "shed" Left,
    /// A tunnel stood as long as the pool's `request_timeout` allows.
    Overtime "overtime" Left,
    /// Neither side of a tunnel said anything for the listener's `tunnel_timeout`.
    Idle "idle" Left,
}

/// The stage that a request had reached when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Phase {
    /// The request was being received.
    Receive,
    /// The request was waiting for a worker.
    Queue,
    /// A worker was serving the request.
    Work,
    /// The reply was being sent to the client.
    Reply,
}

impl Phase {
    /// All phases, in the order in which a request passes through them.
    pub const ALL: &[Self] = &[Self::Receive, Self::Queue, Self::Work, Self::Reply];

    /// The word for this phase in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Queue => "queue",
            Self::Work => "work",
            Self::Reply => "reply",
        }
    }
}

/// The cause and the phase in which a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// Why the request ended.
    pub cause: Cause,
    /// The stage that the request had reached.
    pub phase: Phase,
}

impl End {
    /// Creates an end of `cause` in `phase`.
    #[must_use]
    pub const fn new(cause: Cause, phase: Phase) -> Self {
        Self { cause, phase }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cause_has_a_word_of_its_own_and_a_meaning() {
        let words: BTreeSet<_> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
        assert_eq!(words.len(), Cause::ALL.len());
        for cause in Cause::ALL {
            assert!(cause.meaning().ends_with('.'), "{cause:?}");
            assert!(!cause.as_str().contains(' '));
        }
    }

    #[test]
    fn the_table_is_indexed_by_the_cause_itself() {
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, index);
        }
    }
}
