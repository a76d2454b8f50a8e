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
    /// The last request was incomplete, or was not received in time.
    Incomplete "incomplete" Refused,
    /// The request breaks a rule of its protocol.
    Malformed "malformed" Refused,
    /// The listener has as many connections as its `connections_max`, or open files are short, and no connection is idle.
    Connections "connections" Refused,
    /// The listener does not accept clients with this address.
    Denied "denied" Refused,
    /// The client's address has reached its maximum number of connections.
    Crowded "crowded" Refused,
    /// The client's address exceeds its limit of connections or requests per second.
    Rate "rate" Refused,
    /// The pool's queue is full (requests or bytes).
    Full "full" Refused,
    /// The daemon has reached its `memory_max`.
    Memory "memory" Refused,
    /// The request waited in the queue longer than the pool's `queue.timeout`.
    Waited "waited" Refused,
    /// No worker of the pool can be started at the moment, or all workers are unhealthy.
    Down "down" Refused,
    /// The operator has put the pool in fallback mode.
    Fallback "fallback" Refused,
    /// The worker that the client is bound to is gone, and another worker must not be used.
    Gone "gone" Refused,
    /// The daemon is stopping and accepts no more requests.
    Draining "draining" Refused,
    /// The connection's own program has ended, and its state is lost.
    Lost "lost" Refused,
    /// No pool has this name.
    NoPool "nopool" Refused,
    /// No route of the listener matches the request.
    NoRoute "noroute" Refused,
    /// The program is shared, and this method is not available to clients that share a program.
    NoMethod "nomethod" Refused,
    /// The request has no valid credentials.
    Unauthorized "unauthorized" Refused,
    /// The request, or the record made from it, does not have the declared format.
    Record "record" Refused,
    /// A parameter of the row is missing, or the database rejected the row.
    Row "row" Refused,
    /// The database reported no error but did not store the row, for example because of a trigger or a rule.
    Ignored "ignored" Refused,
    /// The statement changed no row.
    NoRow "norow" Refused,
    /// The worker refused the request.
    Worker "worker" Refused,
    /// The database could not store the batch. No row of it was stored.
    Database "database" Failed,
    /// The query returned more rows or bytes than allowed, or text that the reply format cannot represent.
    Rows "rows" Failed,
    /// A connection to the worker could not be established.
    Unreached "unreached" Failed,
    /// The worker's reply violates a rule of its protocol.
    Garbled "garbled" Unknown,
    /// The worker's reply is larger than allowed.
    Reply "reply" Unknown,
    /// The worker ended while it served the request.
    Died "died" Unknown,
    /// The worker did not answer within the pool's `response_timeout`.
    Deadline "deadline" Unknown,
    /// The connection to the database was lost during the commit.
    Commit "commit" Unknown,
    /// The handler ended without an answer.
    Handler "handler" Unknown,
    /// The daemon stopped before the reply was complete.
    Stopped "stopped" Unknown,
    /// The client cancelled the request.
    Cancelled "cancelled" Left,
    /// The client disconnected before the reply was complete.
    Left "left" Left,
    /// The client stopped reading its replies.
    Stalled "stalled" Left,
    /// The client read its replies more slowly than the listener's `send_rate_min`.
    SlowReader "slowreader" Left,
    /// The connection was closed because the daemon held more memory than its `memory_max`.
    Shed "shed" Left,
    /// The tunnel was open for as long as the pool's `request_timeout` allows.
    Overtime "overtime" Left,
    /// Neither side of the tunnel sent data for the listener's `tunnel_timeout`.
    Idle "idle" Left,
}

/// The stage that a request had reached when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
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
