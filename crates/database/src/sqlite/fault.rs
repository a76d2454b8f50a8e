//! Classifies errors of SQLite by their cause.

use rusqlite::{Error, ErrorCode};

use crate::fault::{Blame, Fault};
use crate::text::one_line;

/// Whether a COMMIT that reports this error has not taken effect and never will. After an I/O error its record may be
/// in the log, and recovery would then restore it.
pub(super) const fn proves_rollback(blame: Blame) -> bool {
    match blame {
        Blame::Row | Blame::Busy | Blame::Stopped | Blame::Statement | Blame::Conflict => true,
        // There are no other servers.
        Blame::Foreign => true,
        // The last frame of the log completes a commit. There was no space for it, so it was not written.
        Blame::Full => true,
        // Rejected before the first byte was written.
        Blame::Access => true,
        Blame::Broken | Blame::Lost => false,
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let blame = code_of(&error).map_or(Blame::Broken, blame_of);
        let fault = match blame {
            Blame::Stopped => Self::new(blame, "stopped while a statement ran"),
            _ => {
                let text = text_of(&error);
                match plain_text(&error) {
                    Some(plain) if plain != text => Self::new(blame, plain).detailed(&text),
                    Some(plain) => Self::new(blame, plain),
                    None => Self::new(blame, &text).citing(),
                }
            }
        };
        match error.sqlite_error() {
            Some(error) => fault.coded(&error.extended_code.to_string()),
            None => fault,
        }
    }
}

/// Returns the fault of a statement that fails when it is prepared, before it is used with any value: its text contains
/// only names of tables, columns and functions.
pub(super) fn of_preparing(error: Error) -> Fault {
    let text = text_of(&error);
    let fault = Fault::from(error);
    if fault.blame == Blame::Stopped {
        return fault;
    }
    Fault { detail: Box::default(), text: one_line(&text), cites: false, ..fault }
}

/// Returns the text of the code alone, if the text of the error may quote stored values or those of another client. The
/// texts of constraints name columns, or are those of a trigger.
const fn plain_text(error: &Error) -> Option<&'static str> {
    let Some(code) = code_of(error) else { return None };
    Some(match code {
        ErrorCode::ConstraintViolation => return None,
        ErrorCode::TypeMismatch => "datatype mismatch",
        ErrorCode::TooBig => "string or blob too big",
        ErrorCode::ParameterOutOfRange => "column index out of range",
        ErrorCode::DatabaseBusy => "database is locked",
        ErrorCode::DatabaseLocked => "database table is locked",
        ErrorCode::FileLockingProtocolFailed => "locking protocol",
        ErrorCode::SchemaChanged => "database schema has changed",
        ErrorCode::DiskFull => "database or disk is full",
        ErrorCode::ReadOnly => "attempt to write a readonly database",
        ErrorCode::CannotOpen => "unable to open database file",
        ErrorCode::PermissionDenied => "access permission denied",
        ErrorCode::AuthorizationForStatementDenied => "authorization denied",
        ErrorCode::SystemIoFailure => "disk I/O error",
        ErrorCode::DatabaseCorrupt => "database disk image is malformed",
        ErrorCode::NotADatabase => "file is not a database",
        ErrorCode::OutOfMemory => "out of memory",
        ErrorCode::Unknown => "SQL logic error",
        _ => "an error of the database",
    })
}

/// Returns the text of SQLite, without the additions of rusqlite.
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
        // `Unknown` is SQLITE_ERROR: a function that rejects its argument, an integer overflow, a column that was
        // dropped. Preparing again shows which one it was.
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

/// Whether `error` may be caused by the row or by the statement.
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
        let proves_rollback = |code| proves_rollback(blame(code));
        assert!(proves_rollback(ffi::SQLITE_FULL));
        assert!(proves_rollback(ffi::SQLITE_BUSY));
        assert!(!proves_rollback(ffi::SQLITE_IOERR_FSYNC));
        assert!(!proves_rollback(ffi::SQLITE_IOERR_WRITE));
        assert!(!proves_rollback(ffi::SQLITE_NOMEM));
    }
}
