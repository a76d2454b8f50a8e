//! Classifies errors of PostgreSQL by their cause.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, ErrorPosition, Severity};

use crate::DatabaseError;
use crate::fault::{Blame, Fault};

/// Returns the fault of a query. A query may never write, so another server would not accept it either.
pub(super) fn of_query(error: &Error) -> Fault {
    match of(error) {
        fault if &*fault.code == "25006" => {
            Fault { blame: Blame::Statement, again: false, ..fault }
        }
        fault => fault,
    }
}

/// Returns the fault of an error before the commit.
pub(super) fn of(error: &Error) -> Fault {
    match error.as_db_error() {
        Some(said) if is_of_the_plan(said) => {
            let fault = Fault::new(Blame::Lost, said.message()).coded(said.code().code());
            fault.again().of_types(true).citing()
        }
        Some(said) if is_of_a_policy(said) => {
            let text = primary(said);
            let fault = Fault::new(Blame::Row, &text).coded(said.code().code());
            fault.detailed(&detail(said, &text)).answered(true).citing()
        }
        Some(said) => {
            // An error that ends more than the statement is not caused by a row.
            let severity = said.parsed_severity().unwrap_or(Severity::Error);
            let (state, living) = (said.code().code(), severity == Severity::Error);
            let text = primary(said);
            let fault = match of_state(state, living, &text) {
                fault if fault.again && living && is_of_others(said) => {
                    Fault { blame: Blame::Foreign, ..fault }
                }
                fault => fault,
            };
            let fault = fault.detailed(&detail(said, &text)).answered(living).citing();
            fault.of_types(may_be_of_types(state))
        }
        None => of_connection(error),
    }
}

/// Returns the fault of an error without an answer of the server: the connection is lost, or the value could not be
/// written on this side.
fn of_connection(error: &Error) -> Fault {
    let cause = error.source().map(ToString::to_string);
    let text = match cause {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    if !error.is_closed() && text.contains("too large") {
        return Fault::new(Blame::Row, &text);
    }
    Fault::new(Blame::Lost, &format!("the connection was lost: {text}")).again()
}

/// Returns the text for an operator who sets up a database.
fn text_of(said: &DbError) -> String {
    match said.detail() {
        Some(detail) => format!("{} ({detail})", said.message()),
        None => said.message().to_owned(),
    }
}

/// Returns the error for an operator whose connection fails.
pub(super) fn refused(server: &str, error: &Error) -> DatabaseError {
    unless_for_now(server, error, |text| DatabaseError::Denied(server.to_owned(), text.into()))
}

/// Returns `otherwise`, unless the error may go away by itself.
pub(super) fn unless_for_now(
    server: &str,
    error: &Error,
    otherwise: impl FnOnce(String) -> DatabaseError,
) -> DatabaseError {
    match error.as_db_error() {
        Some(said) => {
            let fault = of(error);
            let text = text_of(said);
            // A table that is locked for some time, for example by `vacuum full`, is treated like a server that cannot
            // be reached.
            let is_for_now = fault.again && fault.blame != Blame::Conflict;
            if is_for_now || fault.blame == Blame::Busy {
                return DatabaseError::Unreachable(server.to_owned(), text.into());
            }
            otherwise(text)
        }
        None => {
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            // An error of the certificate, of a server setting, or of a missing password does not go away by itself.
            let of_the_way = error.source().is_none_or(|it| it.is::<std::io::Error>());
            if !of_the_way || cause.contains("certificate") || cause.contains("TLS") {
                return DatabaseError::Denied(server.to_owned(), cause.into());
            }
            DatabaseError::Unreachable(server.to_owned(), cause.into())
        }
    }
}

/// Returns the text for clients: the primary message, and the column if the message does not name it, provided that the
/// message cannot cite a value that the client may not have sent. Otherwise a text of the daemon.
fn primary(said: &DbError) -> String {
    let (state, message) = (said.code().code(), said.message());
    let raised = said.routine() == Some("exec_stmt_raise");
    let in_text = matches!(said.position(), Some(ErrorPosition::Original(_)));
    if !raised && !sql::postgres_text_is_for_clients(state, message, said.where_(), in_text) {
        return sql::postgres_text_instead(state, said.where_()).to_owned();
    }
    match said.column() {
        Some(column) if !message.contains(column) => format!("{message}, column \"{column}\""),
        _ => message.to_owned(),
    }
}

/// Returns the additional text for the operator: the fields that may show other columns and other rows.
fn detail(said: &DbError, primary: &str) -> String {
    let message = Some(said.message()).filter(|message| !primary.starts_with(message));
    let fields = [
        ("", message),
        ("", said.detail()),
        ("hint: ", said.hint()),
        ("query: ", internal(said)),
        ("where: ", said.where_()),
    ];
    let fields = fields.iter().filter_map(|(name, text)| text.map(|text| format!("{name}{text}")));
    fields.collect::<Vec<_>>().join("; ")
}

/// Returns the failed statement of a function.
fn internal(said: &DbError) -> Option<&str> {
    match said.position() {
        Some(ErrorPosition::Internal { query, .. }) => Some(query),
        _ => None,
    }
}

/// What an error in answer to COMMIT proves about its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RolledBack {
    /// Nothing took effect.
    Everywhere,
    /// Nothing took effect on this server. Servers of foreign tables may have committed before.
    Here,
    /// It may have taken effect.
    Perhaps,
}

/// Returns what an error in answer to COMMIT proves. A session that is ended while it waits for its standbys has
/// committed already. The commit on the server of a foreign table is a part of this commit: an error of the connection
/// to that server does not show its outcome.
pub(super) fn rolled_back(error: &Error) -> RolledBack {
    let Some(said) = error.as_db_error() else { return RolledBack::Perhaps };
    if said.parsed_severity() != Some(Severity::Error) {
        return RolledBack::Perhaps;
    }
    match said.code().code() {
        _ if said.routine().is_some_and(is_deferred) => RolledBack::Everywhere,
        state if is_before_commit(state, said.where_().is_some()) => RolledBack::Here,
        _ => RolledBack::Perhaps,
    }
}

/// Whether this routine of the server reports a deferred constraint, or a trigger that raises an error. All of them run
/// before the first server of a foreign table commits.
fn is_deferred(routine: &str) -> bool {
    matches!(
        routine,
        "exec_stmt_raise"
            | "ri_ReportViolation"
            | "_bt_check_unique"
            | "check_exclusion_or_unique_constraint"
    )
}

/// Whether an error with this state is found before this server commits: by deferred constraints and triggers, checks
/// for conflicts, and the resources that these need. Every other state, also an unknown one, may conceal a commit.
fn is_before_commit(state: &str, within_a_function: bool) -> bool {
    match state {
        // "Statement completion unknown".
        "40003" => false,
        // Cancelled: in a trigger, or while another server commits.
        "57014" => within_a_function,
        _ => matches!(
            state.get(..2),
            Some(
                "0A" | "21"
                    | "22"
                    | "23"
                    | "24"
                    | "25"
                    | "27"
                    | "2F"
                    | "38"
                    | "39"
                    | "3B"
                    | "3D"
                    | "3F"
                    | "40"
                    | "42"
                    | "44"
                    | "53"
                    | "54"
                    | "55"
                    | "P0"
            )
        ),
    }
}

/// Whether the prepared statement no longer fits its table, so that it must be prepared again. The state is shared with
/// all unsupported features, and the text may be in any language. The routine of the server identifies the error. If a
/// proxy omits the routine, the text does.
fn is_of_the_plan(said: &DbError) -> bool {
    said.code().code() == "0A000"
        && (said.routine() == Some("RevalidateCachedQuery")
            || said.message().contains("cached plan must not change"))
}

/// Whether row-level security rejects this row. The state is that of a missing right.
fn is_of_a_policy(said: &DbError) -> bool {
    said.code().code() == "42501"
        && (said.routine() == Some("ExecWithCheckOptions")
            || said.message().starts_with("new row violates row-level security policy"))
}

/// Whether the error came from another server (`postgres_fdw`, `dblink`), or a trigger or function raised it. It does
/// not show that this server is read-only, or has no space or no connections left.
fn is_of_others(said: &DbError) -> bool {
    matches!(
        said.routine(),
        Some(
            "exec_stmt_raise"
                | "pgfdw_report_error"
                | "pgfdw_report_internal"
                | "connect_pg_server"
                | "dblink_res_error"
        )
    )
}

/// Whether a possible cause is that the columns have changed since the statement was prepared: a value that is out of
/// range or not of the type, a column that requires a value, a name, an object that is looked up by its number.
fn may_be_of_types(state: &str) -> bool {
    matches!(state.get(..2), Some("22" | "42")) || matches!(state, "0A000" | "23502" | "XX000")
}

/// Returns the fault of a state. `living`: the connection stays open after the error.
fn of_state(state: &str, living: bool, text: &str) -> Fault {
    let fault = |blame| Fault::new(blame, text).coded(state);
    match state {
        // A missing table, column, function or type, or a missing right: independent of the row.
        "42P01" | "42703" | "42501" | "42883" | "42704" | "3F000" => fault(Blame::Statement),
        // The server was switched to read-only, as a standby is: another connection may reach the primary.
        "25006" => fault(Blame::Lost).again(),
        "40001" | "40P01" => fault(Blame::Conflict).again(),
        "55P03" => fault(Blame::Busy),
        // Cancelled, by the daemon or by a limit of the server.
        "57014" => fault(Blame::Stopped),
        // The prepared statement no longer exists, as behind some poolers.
        "26000" => fault(Blame::Lost).again(),
        // The server behind a foreign table cannot be reached.
        "HV00N" => fault(Blame::Broken),
        // No connections left: this connection is still open, so the error concerns another server.
        "53300" | "53400" if living => fault(Blame::Foreign).again(),
        _ => match state.get(..2).unwrap_or_default() {
            "08" | "57" if living => fault(Blame::Foreign).again(),
            "08" | "57" => fault(Blame::Lost).again(),
            "53" => fault(Blame::Full).again(),
            // No state; transactions, authentication, conflicts, objects that are not ready, the system, and internal
            // errors of the server.
            "" | "25" | "28" | "40" | "55" | "58" | "XX" => fault(Blame::Broken),
            // Data, constraints, syntax, unsupported features, and all states that triggers and functions raise:
            // another row may still be accepted.
            _ if living => fault(Blame::Row),
            _ => fault(Blame::Broken),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_blame() {
        for (state, blame, again) in [
            ("22001", Blame::Row, false),
            ("22021", Blame::Row, false),
            ("22P02", Blame::Row, false),
            ("23505", Blame::Row, false),
            ("23503", Blame::Row, false),
            ("42804", Blame::Row, false),
            ("P0001", Blame::Row, false),
            ("42P01", Blame::Statement, false),
            ("42501", Blame::Statement, false),
            ("40001", Blame::Conflict, true),
            ("40P01", Blame::Conflict, true),
            ("55P03", Blame::Busy, false),
            ("57014", Blame::Stopped, false),
            ("57P01", Blame::Foreign, true),
            ("57P03", Blame::Foreign, true),
            ("08001", Blame::Foreign, true),
            ("08006", Blame::Foreign, true),
            ("53400", Blame::Foreign, true),
            ("25006", Blame::Lost, true),
            ("53100", Blame::Full, true),
            ("53200", Blame::Full, true),
            ("53300", Blame::Foreign, true),
            ("0A000", Blame::Row, false),
            ("20000", Blame::Row, false),
            ("24000", Blame::Row, false),
            ("MY001", Blame::Row, false),
            ("25P02", Blame::Broken, false),
            ("55000", Blame::Broken, false),
            ("58030", Blame::Broken, false),
            ("XX000", Blame::Broken, false),
            ("", Blame::Broken, false),
        ] {
            let fault = of_state(state, true, "text");
            assert_eq!((fault.blame, fault.again), (blame, again), "{state}");
            assert_eq!(&*fault.code, state);
        }
    }

    #[test]
    fn clients_get_messages_that_cite_no_value_but_their_own() {
        let cast = "invalid input syntax for type integer: \"hush\"";
        let parameter = Some("unnamed portal parameter $1");
        let in_function = "SQL function \"f\" statement 1\nunnamed portal parameter $1";
        for (state, message, context, in_text, expected) in [
            ("22P02", cast, parameter, false, true),
            ("22P02", cast, Some("unnamed portal parameter $1 = '{\"a\nb\"}'"), false, true),
            (
                "22P02",
                "json",
                Some("JSON data, line 1: {x\nunnamed portal parameter $2"),
                false,
                true,
            ),
            ("42P01", "relation \"mine\" does not exist", parameter, false, true),
            ("42703", "column \"x\" does not exist", None, true, true),
            ("22003", "integer out of range", None, false, true),
            ("22001", "value too long for type character varying(20)", None, false, true),
            ("42501", "permission denied for table t", None, false, true),
            ("44000", "new row violates check option for view \"v\"", None, false, true),
            ("23505", "duplicate key value", Some("SQL function \"f\" statement 1"), false, true),
            // From a rule, a view or a policy, or from a function.
            ("22P02", cast, None, false, false),
            ("22P02", cast, Some(in_function), false, false),
            ("22P02", cast, Some("SQL statement \"select 'parameter $1'\""), false, false),
            ("22P02", "json", Some("JSON data, line 1: hush\nSQL function \"f\""), false, false),
            ("22P02", "json", Some("JSON data, line 1: hush"), false, false),
            ("22003", "value \"77\" is out of range for type integer", None, false, false),
            ("42P01", "relation \"hush\" does not exist", None, false, false),
            ("42501", "permission denied", Some("SQL function \"f\" statement 1"), true, false),
            ("0A000", "unit \"hush\" not supported for type date", None, false, false),
            ("58P01", "could not open file \"hush\"", None, false, false),
            ("08003", "connection \"hush\" not available", None, false, false),
            ("99999", "hush", None, false, false),
        ] {
            let given = sql::postgres_text_is_for_clients(state, message, context, in_text);
            assert_eq!(given, expected, "{state} {message} {context:?}");
        }
    }

    #[test]
    fn what_may_hide_a_commit_proves_no_rollback() {
        for state in [
            "0A000", "22003", "23503", "23505", "23P01", "25P02", "40001", "40P01", "42P01",
            "44000", "53100", "53200", "55P03", "P0001",
        ] {
            assert!(is_before_commit(state, false), "{state}");
        }
        for state in [
            "08000", "08001", "08003", "08006", "08007", "08P01", "40003", "57P01", "57P02",
            "57P03", "58030", "HV000", "HV00N", "XX000", "MY001", "00000", "",
        ] {
            assert!(!is_before_commit(state, true), "{state}");
        }
        assert!(is_before_commit("57014", true));
        assert!(!is_before_commit("57014", false));
        assert!(is_deferred("ri_ReportViolation") && is_deferred("exec_stmt_raise"));
        for routine in ["pgfdw_report_error", "PreCommit_CheckForSerializationFailure", ""] {
            assert!(!is_deferred(routine), "{routine}");
        }
    }

    #[test]
    fn what_ends_the_connection_is_no_rows() {
        assert_eq!(of_state("MY001", false, "text").blame, Blame::Broken);
        for state in ["57P01", "57P03", "08006"] {
            assert_eq!(of_state(state, false, "text").blame, Blame::Lost, "{state}");
        }
        assert_eq!(of_state("53300", false, "text").blame, Blame::Full);
    }
}
