//! How a request ended: a cause and a phase. One table makes the words of the protocol, the log,
//! the metrics and the documentation.

/// What an ending means for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It was answered.
    Answered,
    /// Decided before anything took effect: it may be sent again.
    Refused,
    /// It was tried and did not take effect.
    Failed,
    /// It may or may not have taken effect.
    Unknown,
    /// Nobody was left to tell.
    Left,
}

impl Verdict {
    /// The word in metrics and logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
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
        /// Why a request ended. The words are stable: clients, alerts and dashboards match them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Cause {
            $($(#[doc = $meaning])+ $name),+
        }

        impl Cause {
            /// All causes, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word on the wire, in the log and in the metrics.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// What it means for whoever asked.
            #[must_use]
            pub const fn verdict(self) -> Verdict {
                match self { $(Self::$name => Verdict::$verdict),+ }
            }

            /// One sentence for the reference page.
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
    /// The request waited as long as the pool's `queue.wait` allows.
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
    /// The worker did not answer within the pool's `deadline`.
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
    /// A tunnel stood as long as the pool's `total` allows.
    Overtime "overtime" Left,
    /// Neither side of a tunnel said anything for the listener's `tunnel_idle`.
    Idle "idle" Left,
}

/// How far a request had come when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Phase {
    /// While it was being received.
    Receive,
    /// While it waited for a worker.
    Queue,
    /// While a worker had it.
    Work,
    /// While its reply was on the way.
    Reply,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: &[Self] = &[Self::Receive, Self::Queue, Self::Work, Self::Reply];

    /// The word in metrics and logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Queue => "queue",
            Self::Work => "work",
            Self::Reply => "reply",
        }
    }
}

/// Cause and phase in which a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// Why it ended.
    pub cause: Cause,
    /// How far it had come.
    pub phase: Phase,
}

impl End {
    /// An end of `cause` in `phase`.
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
        let words: BTreeSet<_> = Cause::ALL.iter().map(|cause| cause.word()).collect();
        assert_eq!(words.len(), Cause::ALL.len());
        for cause in Cause::ALL {
            assert!(cause.meaning().ends_with('.'), "{cause:?}");
            assert!(!cause.word().contains(' '));
        }
    }

    #[test]
    fn the_table_is_indexed_by_the_cause_itself() {
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, index);
        }
    }
}
