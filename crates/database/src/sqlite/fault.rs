//! Errors of SQLite by whose they are.

use rusqlite::{Error, ErrorCode};

use crate::text::one_line;

/// Whose an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The row's: this one is not accepted, others may be.
    Row,
    /// Another connection's, which holds a lock.
    Busy,
    /// Ours: nobody wants the answers any more.
    Stopped,
    /// The statement's: its table has changed under it.
    Statement,
    /// The disk has no room.
    Full,
    /// The file can no longer be written or opened.
    Access,
    /// The file or the machine is broken; the connection is not to be trusted.
    Broken,
}

impl Blame {
    /// Whether the connection must be opened anew before it is used again.
    pub(super) const fn spoils_connection(self) -> bool {
        matches!(self, Self::Access | Self::Broken)
    }

    /// Whether a COMMIT that reports this has not taken effect and never will. After an I/O error
    /// its record may lie in the log, and recovery would then bring it back.
    pub(super) const fn proves_rollback(self) -> bool {
        match self {
            Self::Row | Self::Busy | Self::Stopped | Self::Statement => true,
            // The log's last frame makes a commit. There was no room for it, so it is not there.
            Self::Full => true,
            // Refused before the first byte was written.
            Self::Access => true,
            Self::Broken => false,
        }
    }
}

/// An error with a text for a person, on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) blame: Blame,
    pub(super) text: String,
}

impl Fault {
    pub(super) fn new(blame: Blame, text: &str) -> Self {
        Self { blame, text: one_line(text) }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let blame = code_of(&error).map_or(Blame::Broken, blame_of);
        match blame {
            Blame::Stopped => Self::new(blame, "stopped while a statement ran"),
            _ => Self::new(blame, &text_of(&error)),
        }
    }
}

/// What SQLite says, without what rusqlite adds.
pub(super) fn text_of(error: &Error) -> String {
    match error {
        Error::SqliteFailure(_, Some(text)) | Error::SqlInputError { msg: text, .. } => {
            text.clone()
        }
        other => other.to_string(),
    }
}

pub(super) const fn code_of(error: &Error) -> Option<ErrorCode> {
    match error {
        Error::SqliteFailure(error, _) | Error::SqlInputError { error, .. } => Some(error.code),
        _ => None,
    }
}

const fn blame_of(code: ErrorCode) -> Blame {
    match code {
        // `Unknown` is SQLITE_ERROR: a function that refuses its argument, integer overflow, a
        // column that went away. Which of them it was is found out by preparing anew.
        ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        | ErrorCode::TooBig
        | ErrorCode::ParameterOutOfRange
        | ErrorCode::Unknown => Blame::Row,
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed => Blame::Busy,
        ErrorCode::OperationInterrupted => Blame::Stopped,
        ErrorCode::SchemaChanged => Blame::Statement,
        ErrorCode::DiskFull => Blame::Full,
        ErrorCode::ReadOnly
        | ErrorCode::CannotOpen
        | ErrorCode::PermissionDenied
        | ErrorCode::AuthorizationForStatementDenied => Blame::Access,
        _ => Blame::Broken,
    }
}

/// Whether `error` does not tell the row's fault from the statement's.
pub(super) fn is_ambiguous(error: &Error) -> bool {
    matches!(code_of(error), Some(ErrorCode::Unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn blame(code: i32) -> Blame {
        Fault::from(Error::SqliteFailure(ffi::Error::new(code), None)).blame
    }

    #[test]
    fn each_code_has_its_blame_and_the_extended_ones_follow() {
        for (code, expected) in [
            (ffi::SQLITE_CONSTRAINT_UNIQUE, Blame::Row),
            (ffi::SQLITE_CONSTRAINT_TRIGGER, Blame::Row),
            (ffi::SQLITE_MISMATCH, Blame::Row),
            (ffi::SQLITE_TOOBIG, Blame::Row),
            (ffi::SQLITE_ERROR, Blame::Row),
            (ffi::SQLITE_BUSY, Blame::Busy),
            (ffi::SQLITE_BUSY_SNAPSHOT, Blame::Busy),
            (ffi::SQLITE_LOCKED, Blame::Busy),
            (ffi::SQLITE_INTERRUPT, Blame::Stopped),
            (ffi::SQLITE_SCHEMA, Blame::Statement),
            (ffi::SQLITE_FULL, Blame::Full),
            (ffi::SQLITE_READONLY, Blame::Access),
            (ffi::SQLITE_READONLY_DBMOVED, Blame::Access),
            (ffi::SQLITE_CANTOPEN, Blame::Access),
            (ffi::SQLITE_IOERR_FSYNC, Blame::Broken),
            (ffi::SQLITE_IOERR_WRITE, Blame::Broken),
            (ffi::SQLITE_NOMEM, Blame::Broken),
            (ffi::SQLITE_CORRUPT, Blame::Broken),
            (ffi::SQLITE_NOTADB, Blame::Broken),
            (ffi::SQLITE_MISUSE, Blame::Broken),
            (ffi::SQLITE_INTERNAL, Blame::Broken),
        ] {
            assert_eq!(blame(code), expected, "{code}");
        }
    }

    #[test]
    fn only_an_unbroken_machine_proves_that_a_commit_did_not_happen() {
        assert!(blame(ffi::SQLITE_FULL).proves_rollback());
        assert!(blame(ffi::SQLITE_BUSY).proves_rollback());
        assert!(!blame(ffi::SQLITE_IOERR_FSYNC).proves_rollback());
        assert!(!blame(ffi::SQLITE_IOERR_WRITE).proves_rollback());
        assert!(!blame(ffi::SQLITE_NOMEM).proves_rollback());
    }
}
