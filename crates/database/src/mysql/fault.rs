//! Classifies errors of MySQL and MariaDB by their cause.

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
    let is_raised = state == sql::MYSQL_RAISED && fault.again && fault.blame != Blame::Conflict;
    if is_raised { Fault { blame: Blame::Foreign, ..fault } } else { fault }
}

fn of_own_code(code: u16, state: &str, text: &str) -> Fault {
    let message = sql::mysql_text_for_clients(code, state, text);
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
            (1062, "", sql::WITHHELD),
            (1690, "BIGINT: (1 - 2)", sql::WITHHELD),
            (1105, "Unknown 7", sql::WITHHELD),
            (1139, "Got error 'hush' from regexp", sql::WITHHELD),
            (1296, "Got error 10000 'Duplicate entry 7' from FEDERATED", sql::WITHHELD),
            (1761, "Foreign key constraint for table 't', record '7' …", sql::WITHHELD),
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
