//! Classifies errors of MySQL and MariaDB by their cause.

use std::borrow::Cow;

use mysql_async::{DriverError, Error};

use crate::DatabaseError;
use crate::fault::{Blame, Fault};

/// A request that the server would not read. The server closes the connection that sends it.
pub(super) const TOO_LARGE: &str = "larger than the max_allowed_packet of the server";

/// Returns the fault of an error before the commit.
pub(super) fn of(error: &Error) -> Fault {
    match error {
        // If the error ends the connection, the next step notices that.
        Error::Server(said) => {
            of_code(said.code, &said.state, &said.message).answered(true).citing()
        }
        // A row alone may still fit.
        Error::Driver(DriverError::PacketTooLarge) => Fault::new(Blame::Row, TOO_LARGE),
        Error::Driver(DriverError::ConnectionClosed) | Error::Io(_) => {
            Fault::new(Blame::Lost, &format!("the connection was lost: {error}")).again()
        }
        Error::Driver(_) | Error::Other(_) | Error::Url(_) => {
            Fault::new(Blame::Broken, &error.to_string())
        }
    }
}

/// Whether an error in answer to COMMIT proves that nothing took effect.
pub(super) fn proves_rollback(error: &Error) -> bool {
    // A conflict in a cluster, a deadlock, and errors that are reported before the commit is tried. These include a
    // lock that a backup holds against all commits: the server waits for it before it begins (`ha_commit_trans`).
    matches!(error, Error::Server(said) if matches!(said.code, 1205 | 1213 | 1290 | 1792 | 1836))
}

/// Returns the error for an operator whose connection fails.
pub(super) fn refused(server: &str, error: &Error) -> DatabaseError {
    unless_for_now(server, error, |text| DatabaseError::Denied(server.to_owned(), text.into()))
}

/// Whether the error may go away by itself. A table that is locked for some time is treated like a server that cannot
/// be reached.
pub(super) fn is_for_now(fault: &Fault) -> bool {
    fault.again && fault.blame != Blame::Conflict || fault.blame == Blame::Busy
}

/// Returns `otherwise`, unless the error may go away by itself.
pub(super) fn unless_for_now(
    server: &str,
    error: &Error,
    otherwise: impl FnOnce(String) -> DatabaseError,
) -> DatabaseError {
    let fault = of(error);
    let text = match error {
        Error::Server(said) => said.message.clone(),
        other => other.to_string(),
    };
    if text.contains("TLS") || text.contains("certificate") {
        return DatabaseError::Denied(server.to_owned(), text.into());
    }
    if is_for_now(&fault) {
        return DatabaseError::Unreachable(server.to_owned(), text.into());
    }
    otherwise(text)
}

fn of_code(code: u16, state: &str, text: &str) -> Fault {
    let fault = of_own_code(code, state, text);
    // A trigger raises this code. For its own error the server has another state.
    let is_raised = state == RAISED && fault.again && fault.blame != Blame::Conflict;
    if is_raised { Fault { blame: Blame::Foreign, ..fault } } else { fault }
}

/// The state of errors that triggers raise (`SIGNAL`), by convention.
const RAISED: &str = "45000";

fn of_own_code(code: u16, state: &str, text: &str) -> Fault {
    let message = for_clients(code, state, text);
    let detail = if message == text { "" } else { text };
    let fault = |blame| Fault::new(blame, &message).coded(&code.to_string()).detailed(detail);
    match code {
        // A trigger raises its own state, which may look like any other; or the row is larger than the server accepts.
        1153 | 1643 | 1644 => fault(Blame::Row),
        // A missing table, column, index, procedure, user or right, or a query that would write.
        1036 | 1044 | 1046 | 1049 | 1054 | 1091 | 1136 | 1142 | 1143 | 1146 | 1176 | 1227
        | 1305 | 1356 | 1370 | 1449 | 1792 => fault(Blame::Statement),
        // Another transaction changed the row since this one read it, or a deadlock.
        1020 | 1213 => fault(Blame::Conflict).again(),
        // A lock of a row or of a backup.
        1205 | 1223 | 3572 => fault(Blame::Busy),
        // Ended by the daemon or by a limit of the server.
        1317 | 1969 | 3024 => fault(Blame::Stopped),
        // The server was switched to read-only, as a replica is: another connection may reach the primary.
        1290 | 1836 => fault(Blame::Lost).again(),
        // The prepared statement no longer exists, or no longer fits its table.
        1243 | 1412 | 1615 => fault(Blame::Lost).again(),
        // The server of a foreign table (FEDERATED, Spider) cannot be reached.
        1429 | 12701 => fault(Blame::Foreign).again(),
        // Connections, shutdown, a killed session.
        1040
        | 1053
        | 1077
        | 1079
        | 1080
        | 1152
        | 1158..=1161
        | 1184
        | 1203
        | 1226
        | 1927
        | 2006
        | 2013
        | 3032
        | 4031 => fault(Blame::Lost).again(),
        // Disk, table space, memory, locks, prepared statements, the log of a transaction.
        1021 | 1028 | 1030 | 1037 | 1038 | 1041 | 1114 | 1135 | 1197 | 1206 | 1461 => {
            fault(Blame::Full).again()
        }
        // Errors of a proxy between the daemon and the server (ProxySQL), and of servers with the same protocol (TiDB).
        2000..=2999 | 8000..=9999 => fault(Blame::Broken),
        // Files, tables and engines that are broken or missing.
        1004..=1019
        | 1023..=1027
        | 1029
        | 1031..=1035
        | 1039
        | 1105
        | 1126
        | 1127
        | 1180..=1183
        | 1194
        | 1195
        | 1286
        | 1296
        | 1297
        | 1436
        | 1548
        | 1598
        | 1712
        | 1812..=1816
        | 1877
        | 1878
        | 1932 => fault(Blame::Broken),
        _ => match state.get(..2).unwrap_or_default() {
            "08" => fault(Blame::Lost).again(),
            "40" => fault(Blame::Conflict).again(),
            // Authentication, no database, transactions of several servers.
            "25" | "28" | "3D" | "XA" => fault(Blame::Broken),
            // Data, constraints, syntax, errors that a trigger raises, and all errors without a specific state (no
            // partition for the row, truncated text): another row may still be accepted.
            _ => fault(Blame::Row),
        },
    }
}

/// What clients receive in place of a message that may cite values.
const WITHHELD: &str = "an error within the statement";

/// Returns the message of an error without the values that it cites: values of a key or a function may not be those
/// that the client sent. A message is withheld unless it is known to cite nothing else. The text that a trigger signals
/// is chosen by the operator.
fn for_clients<'t>(code: u16, state: &str, text: &'t str) -> Cow<'t, str> {
    if state == RAISED || matches!(code, 1643 | 1644) || is_plain(code) {
        return Cow::Borrowed(text);
    }
    without_values(code, text).unwrap_or(Cow::Borrowed(WITHHELD))
}

/// Whether the message with this code contains only names of tables, columns, constraints and users, and limits.
const fn is_plain(code: u16) -> bool {
    // Tables, columns, rights.
    let of_names = matches!(
        code,
        1036 | 1044
            | 1046
            | 1049
            | 1054
            | 1091
            | 1136
            | 1142
            | 1143
            | 1146
            | 1227
            | 1305
            | 1356
            | 1370
            | 1449
            | 1792
    );
    // Values that a column does not accept: NULL, out of range, truncated, too long, no default; generated columns;
    // checks, JSON; views and the values that they do not accept.
    let of_columns = matches!(
        code,
        1048 | 1264
            | 1265
            | 1288
            | 1348
            | 1364
            | 1369
            | 1406
            | 1416
            | 1423
            | 1471
            | 1906
            | 3105
            | 3140
            | 3819
            | 4025
    );
    // Subqueries of several rows or columns, a division by zero, triggers that would change their table or call
    // themselves, exhausted numbers, partitions, collations, arguments, sizes.
    let of_statements = matches!(
        code,
        1118 | 1153
            | 1210
            | 1241
            | 1242
            | 1267
            | 1270
            | 1271
            | 1301
            | 1365
            | 1424
            | 1436
            | 1442
            | 1467
            | 1748
    );
    // Locks, conflicts, time, read-only, statements to be prepared again, foreign tables.
    let of_transactions = matches!(
        code,
        1020 | 1205
            | 1213
            | 1223
            | 1243
            | 1290
            | 1317
            | 1412
            | 1429
            | 1615
            | 1836
            | 1969
            | 3024
            | 3572
            | 12701
    );
    // Connections and resources.
    let of_server = matches!(
        code,
        1021 | 1028
            | 1030
            | 1037
            | 1038
            | 1040
            | 1041
            | 1053
            | 1077
            | 1079
            | 1080
            | 1114
            | 1135
            | 1152
            | 1158
            ..=1161 | 1184 | 1197 | 1203 | 1206 | 1226 | 1461 | 1927 | 2006 | 2013 | 3032 | 4031
    );
    of_names || of_columns || of_statements || of_transactions || of_server
}

/// Returns a message that is known to cite values at one place, without this place. `None` if the place is not found,
/// for example because the message is in another language.
fn without_values(code: u16, text: &str) -> Option<Cow<'_, str>> {
    let before = |mark: &str| text.split_once(mark).map(|(before, _)| before);
    match code {
        // `Duplicate entry 'VALUE' for key 'KEY'`, `Incorrect integer value: 'VALUE' for column … at row 1`,
        // `Truncated incorrect DOUBLE value: 'VALUE'`, `Invalid utf8mb4 character string: 'VALUE'`,
        // `Got overflow when converting 'VALUE' to INT. …`.
        1062 | 1292 | 1300 | 1366 | 1367 | 1411 | 1525 | 1586 | 1916 | 1918 | 1977 | 3854 => {
            let before = before("'")?.trim_end_matches([' ', ':']);
            Some(Cow::Owned(format!("{before}{}", place(code, text))))
        }
        // `… value is out of range in 'EXPRESSION'`, with the values in it.
        1690 => before(" in '").map(Cow::Borrowed),
        // `Table has no partition for value VALUE`.
        1526 => before(" for value ").map(Cow::Borrowed),
        // `… a foreign key constraint fails (DEFINITION)`, which names other tables.
        1216 | 1217 | 1451 | 1452 => {
            let name = before(" (").unwrap_or(text);
            (!name.contains('`')).then_some(Cow::Borrowed(name))
        }
        _ => None,
    }
}

/// Returns the key, column or function that a message names after the value, with a blank before it. A message that
/// ends with the value ends with its quote, and may contain any text.
fn place(code: u16, text: &str) -> &str {
    let mark = match code {
        1062 | 1586 => "' for key '",
        1411 => "' for function ",
        _ if text.ends_with(|last: char| last.is_ascii_digit()) => "' for column `",
        _ => return "",
    };
    text.rfind(mark).map_or("", |at| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_for_clients_cites_no_values() {
        for (code, text, expected) in [
            (
                1062,
                "Duplicate entry '1-it's' for key 'PRIMARY'",
                "Duplicate entry for key 'PRIMARY'",
            ),
            (
                1366,
                "Incorrect integer value: 'a' for b' for column `d`.`t`.`c` at row 1",
                "Incorrect integer value for column `d`.`t`.`c` at row 1",
            ),
            (1292, "Truncated incorrect DOUBLE value: 'a'", "Truncated incorrect DOUBLE value"),
            (
                1300,
                "Invalid utf8mb4 character string: 'SEC\\xFFRET'",
                "Invalid utf8mb4 character string",
            ),
            (1690, "BIGINT value is out of range in '(1 - 2)'", "BIGINT value is out of range"),
            (1526, "Table has no partition for value 7", "Table has no partition"),
            (
                1452,
                "Cannot add or update a child row: a foreign key constraint fails (`d`.`t`, …)",
                "Cannot add or update a child row: a foreign key constraint fails",
            ),
            (1452, "a foreign key constraint fails", "a foreign key constraint fails"),
            (
                1916,
                "Got overflow when converting '77.50' to INT. Value truncated",
                "Got overflow when converting",
            ),
            (
                1292,
                "Truncated incorrect DOUBLE value: 'a' for column `b`'",
                "Truncated incorrect DOUBLE value",
            ),
            (
                1411,
                "Incorrect datetime value: 'a' for function str_to_date",
                "Incorrect datetime value for function str_to_date",
            ),
            (1644, "not 'this' for you", "not 'this' for you"),
            (1048, "Column 'path' cannot be null", "Column 'path' cannot be null"),
            // A message in another language, and unknown codes.
            (1062, "", WITHHELD),
            (1690, "BIGINT: (1 - 2)", WITHHELD),
            (1105, "Unknown 7", WITHHELD),
            (1139, "Got error 'hush' from regexp", WITHHELD),
            (1296, "Got error 10000 'Duplicate entry 7' from FEDERATED", WITHHELD),
            (1761, "Foreign key constraint for table 't', record '7' …", WITHHELD),
        ] {
            let fault = of_code(code, "23000", text);
            assert_eq!(fault.text, expected);
            assert_eq!(&*fault.detail, if text == expected { "" } else { text });
        }
    }

    #[test]
    fn each_code_has_its_blame() {
        for (code, state, blame, again) in [
            (1062, "23000", Blame::Row, false),
            (1048, "23000", Blame::Row, false),
            (1264, "22003", Blame::Row, false),
            (1406, "22001", Blame::Row, false),
            (1366, "HY000", Blame::Row, false),
            (1452, "23000", Blame::Row, false),
            (4025, "23000", Blame::Row, false),
            (1265, "01000", Blame::Row, false),
            (1526, "HY000", Blame::Row, false),
            (1153, "08S01", Blame::Row, false),
            (1644, "45000", Blame::Row, false),
            (1644, "MY001", Blame::Row, false),
            (1644, "08001", Blame::Row, false),
            (1643, "02000", Blame::Row, false),
            (1020, "HY000", Blame::Conflict, true),
            (1615, "HY000", Blame::Lost, true),
            (1206, "HY000", Blame::Full, true),
            (1194, "HY000", Blame::Broken, false),
            (9001, "HY000", Blame::Broken, false),
            (1399, "XAE07", Blame::Broken, false),
            (1146, "42S02", Blame::Statement, false),
            (1054, "42S22", Blame::Statement, false),
            (1205, "HY000", Blame::Busy, false),
            (1213, "40001", Blame::Conflict, true),
            (1317, "70100", Blame::Stopped, false),
            (1290, "HY000", Blame::Lost, true),
            (1040, "08004", Blame::Lost, true),
            (1053, "08S01", Blame::Lost, true),
            (1927, "70100", Blame::Lost, true),
            (1429, "HY000", Blame::Foreign, true),
            (1053, "45000", Blame::Foreign, true),
            (1021, "45000", Blame::Foreign, true),
            (1213, "45000", Blame::Conflict, true),
            (1114, "HY000", Blame::Full, true),
            (1021, "HY000", Blame::Full, true),
            (1033, "HY000", Blame::Broken, false),
        ] {
            let fault = of_code(code, state, "text");
            assert_eq!((fault.blame, fault.again), (blame, again), "{code}");
            assert_eq!(*fault.code, *code.to_string());
        }
    }
}
