//! The messages to the loop of the client.

use tokio::sync::oneshot;

use super::config::CommandReply;
use super::hints::Hint;
use super::limits::LimitReport;
use super::machines::Heard;
use super::status::CheckReport;
use crate::digest::{Digest, Listed};
use crate::message::Event;
use crate::operator::{CommandRequest, OperatorEvent};

/// A message of a task of the connection.
pub(super) enum Message {
    /// The connection was opened: the session is in its channel.
    Opened,
    /// The connection, a watch or a fetch was lost, or was never opened. The reason is for people.
    Lost(String),
    /// The server has reported an error that did not end the connection.
    Trouble(String),
    /// An event for the replica of a table.
    Event(usize, Event),
    /// The number of changes that the server has not yet delivered to a watch.
    Behind(usize, u64),
    /// A message of another daemon.
    Heard(usize, Heard),
    /// An event for the replica of the settings of operators.
    Operator(OperatorEvent),
    /// The bucket with the settings of operators cannot be opened. The reason is for people.
    OperatorTrouble(String),
    /// Another daemon has found that a server is up or down.
    Hint(Hint),
    /// Another daemon has reported what addresses used.
    Limits(LimitReport),
    /// A question about a table.
    Ask(usize, Question),
}

/// A question about a table of this daemon.
pub(super) enum Question {
    /// The entries of a shard.
    Listing(u8, oneshot::Sender<Vec<Listed>>),
    /// The digest at this moment.
    Digest(oneshot::Sender<Option<Digest>>),
}

/// A message of another thread.
pub(super) enum Order {
    /// Sends to the channel once all tables are in sync.
    WhenInSync(std::sync::mpsc::Sender<()>),
    /// Compares all tables with those of the other daemons.
    Check(Box<dyn FnOnce(CheckReport) + Send>),
    /// Stores a command of an operator.
    Command(CommandRequest, CommandReply),
    /// Ends the thread.
    End,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::WhenInSync(_) => "WhenInSync",
            Self::Check(_) => "Check",
            Self::Command(..) => "Command",
            Self::End => "End",
        })
    }
}
