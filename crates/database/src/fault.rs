//! Errors of a database, classified by their cause.
//!
//! Each driver classifies the errors of its database. The consequences are decided in one place, [`crate::handler`].

use exchange::Cause;

use crate::text::{one_line, shortened};

/// The maximum size of the details of an error that are kept, in bytes.
const DETAIL_BYTES_MAX: usize = 2000;

/// The cause of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The row: it is not accepted, but other rows may be.
    Row,
    /// Another connection, which holds a lock.
    Busy,
    /// A conflict of two transactions. This one was undone.
    Conflict,
    /// Another server, which the row needs (a foreign table), or a trigger that raises such an error. This server
    /// works, and may accept other rows.
    Foreign,
    /// The daemon: the answers are no longer needed.
    Stopped,
    /// The statement: its table has changed, or it may not be used.
    Statement,
    /// A resource limit of the database's machine or of its configuration.
    Full,
    /// The database can no longer be written or opened.
    Access,
    /// The database or the machine is broken. The connection cannot be relied on.
    Broken,
    /// The connection is lost.
    Lost,
}

impl Blame {
    /// Whether the connection must be opened again before the next use.
    pub(crate) const fn spoils_connection(self) -> bool {
        matches!(self, Self::Access | Self::Broken | Self::Lost)
    }
}

/// An error with a message on one line. The message may be sent to a client: it contains only values that the client
/// may have sent, as far as the database distinguishes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) blame: Blame,
    /// The rows are not stored, and a retry may succeed, on a new connection if this one is spoiled.
    pub(crate) again: bool,
    /// The error code of the database. It is empty for errors of the daemon.
    pub(crate) code: Box<str>,
    pub(crate) text: String,
    /// Further text of the database: values of other columns and rows, statements, functions. For the operator only.
    /// Empty if there is none.
    pub(crate) detail: Box<str>,
    /// The cause with which the request of the row ends.
    pub(crate) cause: Cause,
    /// The rows that caused the error, in their order, if the driver knows them.
    pub(crate) rows: Vec<usize>,
    /// The database answered a statement that stores rows with this error, and the connection is still open. So the
    /// error may concern one of the rows, even if its code does not say so.
    pub(crate) answered: bool,
    /// A possible cause is that the columns have changed since the statement was prepared.
    pub(crate) of_types: bool,
    /// The message is an answer of the database, or of a trigger in it, to rows. It may cite values of one of them, so
    /// it is only for a row that was tried alone. All other rows get [`Fault::for_others`].
    pub(crate) cites: bool,
    /// Written rows cannot be rolled back, because a table has no transactions. It is unknown which rows are stored,
    /// and none is sent again.
    pub(crate) kept: bool,
}

impl Fault {
    pub(crate) fn new(blame: Blame, text: &str) -> Self {
        Self {
            blame,
            again: false,
            code: Box::default(),
            text: one_line(text),
            detail: Box::default(),
            cause: Cause::Row,
            rows: Vec::new(),
            answered: false,
            of_types: false,
            cites: false,
            kept: false,
        }
    }

    /// Returns the fault of a row that was not stored although no error was reported.
    pub(crate) fn ignored() -> Self {
        let text = "the database did not store the row and reported no error";
        Self { cause: Cause::Ignored, ..Self::new(Blame::Row, text) }
    }

    /// Returns the fault of rows that could not be rolled back.
    pub(crate) fn kept(text: &str) -> Self {
        Self { kept: true, ..Self::new(Blame::Broken, text) }
    }

    /// Returns the fault of a statement that changed no row.
    pub(crate) fn no_row() -> Self {
        Self { cause: Cause::NoRow, ..Self::new(Blame::Row, "the statement changed no row") }
    }

    /// Adds further text of the database, for the operator only.
    pub(crate) fn detailed(mut self, detail: &str) -> Self {
        self.detail = shortened(detail, DETAIL_BYTES_MAX).into();
        self
    }

    /// Returns what a client receives: the message, and the code of the database if there is one.
    pub(crate) fn for_clients(&self) -> String {
        for_clients(&self.text, &self.code)
    }

    /// Returns the fault for rows that were not tried alone: its class and code in the daemon's words. The text of the
    /// database is moved to the details.
    pub(crate) fn for_others(&self) -> Self {
        if !self.cites {
            return self.clone();
        }
        let text = format!("the batch failed: {}", self.class());
        let detail = match &*self.detail {
            "" => self.text.clone(),
            detail => format!("{}; {detail}", self.text),
        };
        Self { text, cites: false, ..self.clone() }.detailed(&detail)
    }

    /// Returns the class of the error.
    fn class(&self) -> &'static str {
        match (self.blame, &*self.code) {
            // Codes of PostgreSQL; of MySQL and MariaDB.
            (_, "25006" | "1290" | "1836") => "the database is read-only",
            (Blame::Row, _) => "a row was rejected",
            // The server of a foreign table gave this answer during its commit.
            (Blame::Lost, code) if is_of_a_row(code) => "a row was rejected",
            (Blame::Busy, _) => "another connection holds a lock",
            (Blame::Conflict, _) => "a conflict with another transaction",
            (Blame::Foreign, _) => "another server or a trigger reported an error",
            (Blame::Stopped, _) => "the statement was cancelled or took too long",
            (Blame::Statement, _) => "the statement cannot be run",
            (Blame::Full, _) => "the database has no space, memory or other resource left",
            (Blame::Access, _) => "the database cannot be opened or written",
            (Blame::Broken, _) => "the database reported an internal error",
            (Blame::Lost, _) => "the connection to the database failed",
        }
    }

    /// Returns what an operator receives: the complete text of the database.
    pub(crate) fn for_operators(&self) -> String {
        for_operators(&self.text, &self.detail)
    }

    /// Marks that a retry may succeed.
    pub(crate) fn again(mut self) -> Self {
        self.again = true;
        self
    }

    /// Sets the error code of the database.
    pub(crate) fn coded(mut self, code: &str) -> Self {
        self.code = code.into();
        self
    }

    /// Sets this row as the cause.
    pub(crate) fn at(self, row: usize) -> Self {
        self.at_all(vec![row])
    }

    /// Sets these rows as the cause.
    pub(crate) fn at_all(mut self, rows: Vec<usize>) -> Self {
        self.rows = rows;
        self
    }

    /// Sets whether the database answered with this error and the connection is still open.
    pub(crate) fn answered(mut self, answered: bool) -> Self {
        self.answered = answered;
        self
    }

    /// Sets whether the columns may have changed since the statement was prepared.
    pub(crate) fn of_types(mut self, of_types: bool) -> Self {
        self.of_types = of_types;
        self
    }

    /// Converts the fault to that of a statement of the daemon. No row is the cause, whatever the server reports.
    #[cfg(feature = "server")]
    pub(crate) fn into_internal(self) -> Self {
        let blame = if self.again { self.blame } else { Blame::Broken };
        Self { blame, cites: false, answered: false, ..self }
    }

    /// Marks that the database answered rows with this error.
    pub(crate) fn citing(mut self) -> Self {
        self.cites = true;
        self
    }

    /// Returns the fault of a stop between two steps.
    pub(crate) fn stopped() -> Self {
        Self::new(Blame::Stopped, "stopped before the commit")
    }
}

/// Whether an SQLSTATE concerns values: data exceptions, constraints and check options.
fn is_of_a_row(code: &str) -> bool {
    code.len() == 5 && matches!(code.get(..2), Some("22" | "23" | "44"))
}

/// Returns what a client receives for an error with this text and code.
pub(crate) fn for_clients(text: &str, code: &str) -> String {
    if code.is_empty() { text.to_owned() } else { format!("{text} ({code})") }
}

/// Returns what an operator receives for an error with this text and these details.
pub(crate) fn for_operators(text: &str, detail: &str) -> String {
    if detail.is_empty() { text.to_owned() } else { format!("{text} ({detail})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_the_code_and_operators_the_details() {
        let fault = Fault::new(Blame::Row, "twice").coded("23505").detailed("Key (a)=(secret)\nx");
        assert_eq!(fault.for_clients(), "twice (23505)");
        assert_eq!(fault.for_operators(), "twice (Key (a)=(secret) x)");
        let other = fault.citing().for_others();
        assert_eq!(other.for_clients(), "the batch failed: a row was rejected (23505)");
        assert_eq!(&*other.detail, "twice; Key (a)=(secret) x");
        assert_eq!(other.for_others(), other);
        let at_commit = Fault::new(Blame::Lost, "secret").coded("23505").citing().for_others();
        assert_eq!(at_commit.text, "the batch failed: a row was rejected");
        let lost = Fault::new(Blame::Lost, "secret").coded("08006").citing().for_others();
        assert_eq!(lost.text, "the batch failed: the connection to the database failed");
        let own = Fault::stopped();
        assert_eq!(own.for_others(), own);
        assert_eq!(own.for_clients(), own.text);
        assert_eq!(own.for_operators(), own.text);
    }
}
