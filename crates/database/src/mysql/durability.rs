//! Checks whether a commit waits for the server's disk. This is a setting of the whole server, which no session can
//! choose.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Row};

use super::fault::refused;
use crate::DatabaseError;
use crate::server::doubt;

/// The settings of one server. `None` if a value is not a number.
type Settings = [Option<u64>; 3];

/// Reads the settings of the server. Returns one sentence for each setting because of which a power failure may lose
/// committed rows.
pub(super) async fn doubts(
    connection: &mut Conn,
    server: &str,
) -> Result<Vec<String>, DatabaseError> {
    let sql = "select @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog";
    let said: Option<Row> = match connection.query_first(sql).await {
        Ok(said) => said,
        // The server has no such settings.
        Err(Error::Server(_)) => None,
        Err(error) => return Err(refused(server, &error)),
    };
    let number = |at| said.as_ref()?.get_opt::<u64, usize>(at)?.ok();
    Ok(of([number(0), number(1), number(2)]))
}

fn of([flush, log, sync_log]: Settings) -> Vec<String> {
    let mut doubts = Vec::new();
    match flush {
        // 3 is 1 in the implementation of MariaDB 5.5.
        Some(1 | 3) => {}
        Some(flush) => doubts.push(doubt("innodb_flush_log_at_trx_commit", flush, "1")),
        None => doubts.push(doubt("innodb_flush_log_at_trx_commit", "unknown", "1")),
    }
    // With a binary log, InnoDB discards after a crash the transactions that are not in the log.
    match sync_log {
        Some(sync_log) if log == Some(1) && sync_log != 1 => {
            doubts.push(doubt("sync_binlog", sync_log, "1"));
        }
        _ => {}
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_loses_rows_is_doubted() {
        for (settings, doubted) in [
            ([Some(1), Some(0), Some(0)], ""),
            ([Some(3), Some(1), Some(1)], ""),
            ([Some(1), None, None], ""),
            ([Some(0), Some(0), Some(0)], "innodb_flush_log_at_trx_commit = 0"),
            ([Some(2), Some(0), Some(0)], "innodb_flush_log_at_trx_commit = 2"),
            ([Some(1), Some(1), Some(0)], "sync_binlog = 0"),
            ([Some(1), Some(1), Some(1000)], "sync_binlog = 1000"),
            ([None, None, None], "innodb_flush_log_at_trx_commit = unknown"),
        ] {
            let doubts = of(settings);
            assert_eq!(doubts.len(), usize::from(!doubted.is_empty()), "{settings:?}");
            assert!(doubts.iter().all(|it| it.contains(doubted)), "{settings:?}: {doubts:?}");
        }
        assert_eq!(of([Some(2), Some(1), Some(0)]).len(), 2);
    }
}
