//! Errors of PostgreSQL by whose they are.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, ErrorPosition, Severity};

use crate::DatabaseError;
use crate::fault::{Blame, Fault};

/// The fault of a query. It may never write, so that another server would not accept it either.
pub(super) fn of_query(error: &Error) -> Fault {
    match of(error) {
        fault if &*fault.code == "25006" => {
            Fault { blame: Blame::Statement, again: false, ..fault }
        }
        fault => fault,
    }
}

/// The fault that an error is, before the commit.
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
            // Whatever ends more than the statement is no row's.
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

/// The server did not answer: the way to it is gone, or our own side could not write the value.
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

/// What is said to an operator who sets a database up.
fn text_of(said: &DbError) -> String {
    match said.detail() {
        Some(detail) => format!("{} ({detail})", said.message()),
        None => said.message().to_owned(),
    }
}

/// What an error says to an operator who wants in.
pub(super) fn refused(server: &str, error: &Error) -> DatabaseError {
    unless_for_now(server, error, |text| DatabaseError::Denied(server.to_owned(), text.into()))
}

/// `otherwise`, unless time may mend it.
pub(super) fn unless_for_now(
    server: &str,
    error: &Error,
    otherwise: impl FnOnce(String) -> DatabaseError,
) -> DatabaseError {
    match error.as_db_error() {
        Some(said) => {
            let fault = of(error);
            let text = text_of(said);
            // A table that is locked for a while, as by `vacuum full`, is waited for like a server.
            let is_for_now = fault.again && fault.blame != Blame::Conflict;
            if is_for_now || fault.blame == Blame::Busy {
                return DatabaseError::Unreachable(server.to_owned(), text.into());
            }
            otherwise(text)
        }
        None => {
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            // Of the certificate, of what the server is set to, or of a password that is not there:
            // time does not mend it.
            let of_the_way = error.source().is_none_or(|it| it.is::<std::io::Error>());
            if !of_the_way || cause.contains("certificate") || cause.contains("TLS") {
                return DatabaseError::Denied(server.to_owned(), cause.into());
            }
            DatabaseError::Unreachable(server.to_owned(), cause.into())
        }
    }
}

/// What is said to clients: the primary message, and the column where that does not name it, if the
/// message cannot cite a value that the client need not have sent. Otherwise the text is ours.
fn primary(said: &DbError) -> String {
    let (state, message) = (said.code().code(), said.message());
    let raised = said.routine() == Some("exec_stmt_raise");
    let in_text = matches!(said.position(), Some(ErrorPosition::Original(_)));
    if !raised && !is_for_clients(state, message, said.where_(), in_text) {
        return instead_of(state, said.where_()).to_owned();
    }
    match said.column() {
        Some(column) if !message.contains(column) => format!("{message}, column \"{column}\""),
        _ => message.to_owned(),
    }
}

/// Whether a message has no value in it but those that the client sent. Anything else may cite values
/// of other rows and tables, which functions, rules, views and policies read. `in_text`: the error is at a
/// place in the text of the statement. What a function raises by itself is the operator's choice of words
/// and not judged here.
fn is_for_clients(state: &str, message: &str, context: Option<&str>, in_text: bool) -> bool {
    if is_plain(state) {
        return true;
    }
    match context {
        Some(context) => is_of_a_parameter(context),
        None => in_text || cites_nothing(state, message),
    }
}

/// Whether the server was reading a parameter. That is before it runs the statement, so that it had seen
/// no other value. The innermost context comes first: a function that a domain calls stands before it.
/// A server that writes its messages in another language than English gives no proof.
fn is_of_a_parameter(context: &str) -> bool {
    let outer = match context.split_once('\n') {
        Some((inner, outer)) if inner.starts_with("JSON data, line ") => outer,
        _ => context,
    };
    outer.starts_with("unnamed portal parameter $")
}

/// Whether the messages of this state name no more than tables, columns and constraints, also those
/// from within a function: connections, constraints, transactions, conflicts, check options, resources,
/// limits of the server, locks, cancellation, and what a function raises.
fn is_plain(state: &str) -> bool {
    // `dblink` cites the name of a connection, which may be any value.
    let is_of_class = matches!(
        state.get(..2),
        Some("08" | "23" | "25" | "40" | "44" | "53" | "54" | "55" | "57" | "P0")
    );
    is_of_class && state != "08003"
}

/// Whether the message outside a function has no value in it, in any language: text that is too long
/// for its type, NULL, a division by zero, a number out of the range of a type, a subquery of several
/// rows, and a right to a table that is missing.
fn cites_nothing(state: &str, message: &str) -> bool {
    matches!(state, "21000" | "22001" | "22004" | "22012" | "42501")
        || state == "22003"
            && !message.contains(|letter: char| letter.is_ascii_digit() || letter == '"')
}

/// What clients get in place of a message that may cite values.
fn instead_of(state: &str, context: Option<&str>) -> &'static str {
    match (state.starts_with("22"), context) {
        (true, None) => "invalid data within the statement",
        (true, Some(_)) => "invalid data within a function of the database",
        (false, None) => "an error within the statement",
        (false, Some(_)) => "an error within a function of the database",
    }
}

/// What is said to the operator besides: the fields that may show other columns and other rows.
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

/// The statement of a function that failed.
fn internal(said: &DbError) -> Option<&str> {
    match said.position() {
        Some(ErrorPosition::Internal { query, .. }) => Some(query),
        _ => None,
    }
}

/// What the answer to a COMMIT that was an error says of what took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RolledBack {
    /// Nothing did.
    Everywhere,
    /// Nothing did here. Servers of foreign tables may have committed before.
    Here,
    /// It may have taken effect.
    Perhaps,
}

/// What an error in answer to a COMMIT proves. A session that is ended while it waits for its standbys
/// has committed already. The commit of a foreign table's server runs within ours: an error of the
/// way to it does not say what it did.
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

/// Whether this place in the server is that of a deferred constraint or of a trigger that raises an
/// error. All of them run before the first server of a foreign table commits.
fn is_deferred(routine: &str) -> bool {
    matches!(
        routine,
        "exec_stmt_raise"
            | "ri_ReportViolation"
            | "_bt_check_unique"
            | "check_exclusion_or_unique_constraint"
    )
}

/// Whether an error with this state is found before this server commits: by deferred constraints and
/// triggers, checks for conflicts, and what these need. Everything else, also a state that we do not
/// know, may hide a commit.
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

/// Whether our statement no longer fits its table, so that it must be prepared again. The state is
/// shared with all that is not supported, and the text may be in any language: its place in the
/// server says it, and the text where something between us leaves that out.
fn is_of_the_plan(said: &DbError) -> bool {
    said.code().code() == "0A000"
        && (said.routine() == Some("RevalidateCachedQuery")
            || said.message().contains("cached plan must not change"))
}

/// Whether row-level security rejects this row. The state is that of a right that is missing.
fn is_of_a_policy(said: &DbError) -> bool {
    said.code().code() == "42501"
        && (said.routine() == Some("ExecWithCheckOptions")
            || said.message().starts_with("new row violates row-level security policy"))
}

/// Whether the error came from another server (`postgres_fdw`, `dblink`), or a trigger or function
/// raised it: it does not say that this server is read-only, has no room or has no connections.
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

/// Whether this may come of a statement that was prepared for columns that have changed since: of a
/// value that is out of range or not of the type, a column that must have a value, a name, an object
/// that is looked up by its number.
fn may_be_of_types(state: &str) -> bool {
    matches!(state.get(..2), Some("22" | "42")) || matches!(state, "0A000" | "23502" | "XX000")
}

/// `living`: the connection goes on behind it.
fn of_state(state: &str, living: bool, text: &str) -> Fault {
    let fault = |blame| Fault::new(blame, text).coded(state);
    match state {
        // No such table, column, function, type, or no right to them: no row can mend that.
        "42P01" | "42703" | "42501" | "42883" | "42704" | "3F000" => fault(Blame::Statement),
        // Switched to read-only, as a standby is: another connection may find the primary.
        "25006" => fault(Blame::Lost).again(),
        "40001" | "40P01" => fault(Blame::Conflict).again(),
        "55P03" => fault(Blame::Busy),
        // Cancelled, by us or by a limit of the server's.
        "57014" => fault(Blame::Stopped),
        // Our statement is not there any more, as behind some poolers.
        "26000" => fault(Blame::Lost).again(),
        // The server behind a foreign table cannot be reached.
        "HV00N" => fault(Blame::Broken),
        // Connections: this one goes on, so that it is the way to another server.
        "53300" | "53400" if living => fault(Blame::Foreign).again(),
        _ => match state.get(..2).unwrap_or_default() {
            "08" | "57" if living => fault(Blame::Foreign).again(),
            "08" | "57" => fault(Blame::Lost).again(),
            "53" => fault(Blame::Full).again(),
            // No state; transactions, who we are, conflicts, objects that are not ready, the system,
            // and errors of the server itself.
            "" | "25" | "28" | "40" | "55" | "58" | "XX" => fault(Blame::Broken),
            // Data, constraints, syntax, what is not supported, and whatever states the triggers and
            // functions of others raise: another row may still be accepted.
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
            // Of a rule, a view or a policy, or from a function.
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
            let given = is_for_clients(state, message, context, in_text);
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
