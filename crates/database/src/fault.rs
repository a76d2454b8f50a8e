//! Errors of a database by whose they are.
//!
//! Each driver sorts the errors of its database into these; what follows from them is decided once,
//! in [`crate::handler`].

use crate::text::one_line;

/// Whose an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The row's: this one is not accepted, others may be.
    Row,
    /// Another connection's, which holds a lock.
    Busy,
    /// Nobody's: two transactions met, and this one was undone.
    Conflict,
    /// Ours: nobody wants the answers any more.
    Stopped,
    /// The statement's: its table has changed under it, or it may not be used.
    Statement,
    /// A limit of the database's machine or of its configuration.
    Full,
    /// The database can no longer be written or opened.
    Access,
    /// The database or the machine is broken; the connection is not to be trusted.
    Broken,
    /// The connection is gone.
    Lost,
}

impl Blame {
    /// Whether the connection must be opened anew before it is used again.
    pub(crate) const fn spoils_connection(self) -> bool {
        matches!(self, Self::Access | Self::Broken | Self::Lost)
    }
}

/// An error with a text for a person, on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) blame: Blame,
    /// The rows are not stored, and to try again, on a new connection where this one is spoiled, may
    /// help.
    pub(crate) again: bool,
    /// What the database calls it; empty where we do.
    pub(crate) code: Box<str>,
    pub(crate) text: String,
    /// Which row it was, where the driver knows.
    pub(crate) row: Option<usize>,
}

impl Fault {
    pub(crate) fn new(blame: Blame, text: &str) -> Self {
        Self { blame, again: false, code: Box::default(), text: one_line(text), row: None }
    }

    /// To try again may help.
    pub(crate) fn again(mut self) -> Self {
        self.again = true;
        self
    }

    /// What the database calls it.
    pub(crate) fn coded(mut self, code: &str) -> Self {
        self.code = code.into();
        self
    }

    /// It was this row.
    pub(crate) fn at(mut self, row: usize) -> Self {
        self.row = Some(row);
        self
    }

    /// Stopped between two steps of ours.
    pub(crate) fn stopped() -> Self {
        Self::new(Blame::Stopped, "stopped before the commit")
    }
}
