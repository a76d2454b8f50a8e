//! Why a link is of no use any more.

use std::io;

use exchange::Cause;
use wire::http1::Refusal;

/// Why a link is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No connection could be made.
    Connect(io::ErrorKind),
    /// The daemon has no descriptor for one.
    NoDescriptor,
    /// None was made in time.
    ConnectLate,
    /// Its server has another address, before a connection was made.
    Moved,
    /// Somebody else took the connection, or nobody.
    Taken,
    /// It ended with a reply owed.
    Ended,
    /// The reply, or more of it, did not come in time.
    Late,
    /// The request took too long in all, and its server owed nothing.
    Overtime(Cause),
    /// What came is no reply.
    Broken(Refusal),
}

/// Which ends of links become which causes.
impl Fault {
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Connect(_) | Self::ConnectLate | Self::Moved | Self::Taken => Cause::Unreached,
            Self::NoDescriptor => Cause::Down,
            Self::Ended => Cause::Died,
            Self::Late => Cause::Deadline,
            Self::Overtime(cause) => *cause,
            Self::Broken(_) => Cause::Garbled,
        }
    }

    pub(super) fn text(&self, address: &str) -> String {
        match self {
            Self::Connect(why) => format!("no connection to {address}: {why}"),
            Self::NoDescriptor => {
                format!("no connection to {address}: as many files are open as the daemon may open")
            }
            Self::ConnectLate => format!("{address} did not take the connection in time"),
            Self::Moved => format!("{address} has moved before it took the connection"),
            Self::Taken => format!("{address} does not listen on its port any more"),
            Self::Ended => format!("{address} ended the connection before its reply was whole"),
            Self::Late => format!("{address} did not answer in time"),
            Self::Overtime(_) => {
                format!("`total` has passed, and what {address} waited for was its client")
            }
            Self::Broken(refusal) => format!("{address} answers against the rules: {refusal}"),
        }
    }
}
