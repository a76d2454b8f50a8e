//! Faults of connections to servers.

use std::io;

use exchange::Cause;
use wire::http1::Refusal;

/// Why a connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection failed.
    Connect(io::ErrorKind),
    /// The daemon has no file descriptor for a connection.
    NoDescriptor,
    /// The connection was not established in time.
    ConnectLate,
    /// The address of the server changed before the connection was established.
    Moved,
    /// The connection was accepted by another process, or by no process.
    Taken,
    /// The connection ended before the reply was complete.
    Ended,
    /// The reply, or the next part of it, did not arrive in time.
    Late,
    /// The total time was exceeded while the server was not expected to act.
    Overtime(Cause),
    /// The reply is malformed.
    Broken(Refusal),
}

/// Returns the cause of the outcome for each fault.
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
                format!(
                    "`request_timeout` has passed, and what {address} waited for was its client"
                )
            }
            Self::Broken(refusal) => format!("{address} answers against the rules: {refusal}"),
        }
    }
}
