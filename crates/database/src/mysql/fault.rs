//! Errors of MySQL and MariaDB by whose they are.

use mysql_async::{DriverError, Error};

use crate::fault::{Blame, Fault};

/// The fault that an error is, before the commit.
pub(super) fn of(error: &Error) -> Fault {
    match error {
        Error::Server(said) => of_code(said.code, &said.state, &said.message),
        // A row alone may still fit.
        Error::Driver(DriverError::PacketTooLarge) => Fault::new(Blame::Row, "too large"),
        Error::Driver(DriverError::ConnectionClosed) | Error::Io(_) => {
            Fault::new(Blame::Lost, &format!("the connection was lost: {error}")).again()
        }
        Error::Driver(_) | Error::Other(_) | Error::Url(_) => {
            Fault::new(Blame::Broken, &error.to_string())
        }
    }
}

/// Whether the answer to a COMMIT that was an error proves that nothing took effect.
pub(super) fn proves_rollback(error: &Error) -> bool {
    // A conflict of a cluster, a deadlock, and what is refused before it is tried.
    matches!(error, Error::Server(said) if matches!(said.code, 1213 | 1290 | 1792 | 1836))
}

fn of_code(code: u16, state: &str, text: &str) -> Fault {
    let fault = |blame| Fault::new(blame, text).coded(&code.to_string());
    match code {
        // No such table, column, procedure, no right to them, or a query that would write.
        1044 | 1049 | 1054 | 1091 | 1136 | 1142 | 1143 | 1146 | 1305 | 1370 | 1792 => {
            fault(Blame::Statement)
        }
        1213 => fault(Blame::Conflict).again(),
        1205 => fault(Blame::Busy),
        // Ended by us or by a limit of the server's.
        1317 | 1969 | 3024 => fault(Blame::Stopped),
        // Switched to read-only, as a replica is: another connection may find the primary.
        1290 | 1836 => fault(Blame::Lost).again(),
        // Connections, shutdown, a session that was ended.
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
        | 4031 => fault(Blame::Lost).again(),
        // Disk, table space, memory.
        1021 | 1028 | 1037 | 1038 | 1041 | 1114 | 1030 | 1135 => fault(Blame::Full).again(),
        // Larger than the server takes.
        1153 => fault(Blame::Row),
        // Wrong value, text in another character set, no default, failed check, JSON.
        1364 | 1366 | 1367 | 1411 | 1525 | 3140 | 3819 | 4025 | 4038 => fault(Blame::Row),
        _ => match state.get(..2).unwrap_or_default() {
            // Data, constraints, raised by a trigger; checks of views.
            "21" | "22" | "23" | "44" | "45" => fault(Blame::Row),
            "08" => fault(Blame::Lost).again(),
            "40" => fault(Blame::Conflict).again(),
            "42" => fault(Blame::Row),
            _ => fault(Blame::Broken),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (1644, "45000", Blame::Row, false),
            (1146, "42S02", Blame::Statement, false),
            (1054, "42S22", Blame::Statement, false),
            (1205, "HY000", Blame::Busy, false),
            (1213, "40001", Blame::Conflict, true),
            (1317, "70100", Blame::Stopped, false),
            (1290, "HY000", Blame::Lost, true),
            (1040, "08004", Blame::Lost, true),
            (1053, "08S01", Blame::Lost, true),
            (1927, "70100", Blame::Lost, true),
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
