//! Errors of a database by whose they are.
//!
//! Each driver sorts the errors of its database into these; what follows from them is decided once,
//! in [`crate::handler`].

use exchange::Cause;

use crate::text::{one_line, shortened};

/// Bytes of the details of an error that are kept at most.
const DETAIL_BYTES_MAX: usize = 2000;

/// Whose an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The row's: this one is not accepted, others may be.
    Row,
    /// Another connection's, which holds a lock.
    Busy,
    /// Nobody's: two transactions met, and this one was undone.
    Conflict,
    /// Another server's, which the row needs (a foreign table), or a trigger's that raises such an
    /// error. This server works, and may accept other rows.
    Foreign,
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
    /// Whether the connection must be opened again before it is used again.
    pub(crate) const fn spoils_connection(self) -> bool {
        matches!(self, Self::Access | Self::Broken | Self::Lost)
    }
}

/// An error with a text for a person, on one line. The text may go to a client: it has no values but
/// those that the client may have sent, as far as the database tells them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) blame: Blame,
    /// The rows are not stored, and to try again, on a new connection where this one is spoiled, may
    /// help.
    pub(crate) again: bool,
    /// What the database calls it; empty where we do.
    pub(crate) code: Box<str>,
    pub(crate) text: String,
    /// What else the database says: values of other columns and rows, statements, functions. For the
    /// operator alone. Empty where there is no more.
    pub(crate) detail: Box<str>,
    /// How the request of the row ends.
    pub(crate) cause: Cause,
    /// Which rows it was, in their order, where the driver knows.
    pub(crate) rows: Vec<usize>,
    /// The database gave it in answer to a statement that stores rows, and the connection goes on: the
    /// error may be about one of the rows, whatever its code says.
    pub(crate) answered: bool,
    /// Its cause may be that the statement was prepared for columns that have changed since.
    pub(crate) of_types: bool,
    /// The text is what the database, or a trigger in it, answered to rows. It may cite values of one of
    /// them, so it is for a row that was tried alone; all others get [`Fault::for_others`].
    pub(crate) cites: bool,
    /// What was written cannot be rolled back, as a table has no transactions. Nobody knows which rows
    /// are stored, and none is sent again.
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

    /// A row was not stored, without an error.
    pub(crate) fn ignored() -> Self {
        let text = "the database did not store the row and reported no error";
        Self { cause: Cause::Ignored, ..Self::new(Blame::Row, text) }
    }

    /// Rows could not be rolled back.
    pub(crate) fn kept(text: &str) -> Self {
        Self { kept: true, ..Self::new(Blame::Broken, text) }
    }

    /// A statement changed no row.
    pub(crate) fn no_row() -> Self {
        Self { cause: Cause::NoRow, ..Self::new(Blame::Row, "the statement changed no row") }
    }

    /// What else the database says, for the operator alone.
    pub(crate) fn detailed(mut self, detail: &str) -> Self {
        self.detail = shortened(detail, DETAIL_BYTES_MAX).into();
        self
    }

    /// What a client gets: the text, and the code of the database where there is one.
    pub(crate) fn for_clients(&self) -> String {
        for_clients(&self.text, &self.code)
    }

    /// The fault for rows that were not tried alone: its class and code in our words. What the database
    /// said goes to the details.
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

    /// What kind of error it is.
    fn class(&self) -> &'static str {
        match (self.blame, &*self.code) {
            // Of PostgreSQL; of MySQL and MariaDB.
            (_, "25006" | "1290" | "1836") => "the database is read-only",
            (Blame::Row, _) => "a row was rejected",
            // The server of a foreign table answered so when it committed.
            (Blame::Lost, code) if is_of_a_row(code) => "a row was rejected",
            (Blame::Busy, _) => "another connection holds a lock",
            (Blame::Conflict, _) => "a conflict with another transaction",
            (Blame::Foreign, _) => "another server or a trigger reported an error",
            (Blame::Stopped, _) => "the statement was cancelled or took too long",
            (Blame::Statement, _) => "the statement cannot be run",
            (Blame::Full, _) => "the database has no space, memory or other resource left",
            (Blame::Access, _) => "the database cannot be opened or written",
            (Blame::Broken, _) => "the database reported an error of its own",
            (Blame::Lost, _) => "the connection to the database failed",
        }
    }

    /// What an operator gets: all that the database said.
    pub(crate) fn for_operators(&self) -> String {
        for_operators(&self.text, &self.detail)
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
    pub(crate) fn at(self, row: usize) -> Self {
        self.at_all(vec![row])
    }

    /// It was these rows.
    pub(crate) fn at_all(mut self, rows: Vec<usize>) -> Self {
        self.rows = rows;
        self
    }

    /// The database answered so, and the connection goes on.
    pub(crate) fn answered(mut self, answered: bool) -> Self {
        self.answered = answered;
        self
    }

    /// The columns may have changed since the statement was prepared.
    pub(crate) fn of_types(mut self, of_types: bool) -> Self {
        self.of_types = of_types;
        self
    }

    /// As the fault of a statement of our own. No row has to do with it, whatever the server says.
    #[cfg(feature = "server")]
    pub(crate) fn of_our_own(self) -> Self {
        let blame = if self.again { self.blame } else { Blame::Broken };
        Self { blame, cites: false, answered: false, ..self }
    }

    /// The database said it in answer to rows.
    pub(crate) fn citing(mut self) -> Self {
        self.cites = true;
        self
    }

    /// Stopped between two steps of ours.
    pub(crate) fn stopped() -> Self {
        Self::new(Blame::Stopped, "stopped before the commit")
    }
}

/// Whether an SQLSTATE is about values: data exceptions, constraints and check options.
fn is_of_a_row(code: &str) -> bool {
    code.len() == 5 && matches!(code.get(..2), Some("22" | "23" | "44"))
}

/// What a client gets of an error with this text and code.
pub(crate) fn for_clients(text: &str, code: &str) -> String {
    if code.is_empty() { text.to_owned() } else { format!("{text} ({code})") }
}

/// What an operator gets of an error with this text and these details.
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
