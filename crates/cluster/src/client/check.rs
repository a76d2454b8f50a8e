//! The comparison of this daemon's tables with those of the other daemons, key by key.
//!
//! Tables change while they are compared. Shards with different digests are listed at both daemons, and again after a
//! pause; only keys that differ both times are reported.

use std::sync::Arc;
use std::time::Duration;

use super::session::Session;
use super::status::{CheckReport, CheckedKey};
use super::table::key_name;
use crate::digest::{Difference, Digest, differences};
use crate::digest_format::decode_list;
use crate::message::Origin;

/// Changes that are under way arrive within this time.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of keys in a report.
const KEYS_MAX: usize = 1000;

/// A table to compare, with the other daemons that share it.
pub(super) struct CheckedTable {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) others: Vec<(Origin, String)>,
}

pub(super) async fn check(session: Arc<Session>, tables: Vec<CheckedTable>) -> CheckReport {
    let mut report = CheckReport::default();
    for table in tables {
        for (origin, machine) in &table.others {
            match compare(&session, table.number, *origin).await {
                Ok(found) => {
                    report.compared += 1;
                    report.differing += found.len();
                    let room = KEYS_MAX.saturating_sub(report.keys.len());
                    let keys = found.into_iter().take(room);
                    report.keys.extend(keys.map(|it| checked(&table.name, machine, &it)));
                }
                Err(reason) => {
                    report.failed.push(format!("{}: {machine}: {reason}", table.name));
                }
            }
        }
    }
    report
}

fn checked(table: &str, machine: &str, difference: &Difference) -> CheckedKey {
    let Difference { key, ours, theirs } = difference;
    CheckedKey {
        table: table.to_owned(),
        machine: machine.to_owned(),
        key: key_name(key),
        here: ours.map(|it| (it.target.0, it.revision)),
        there: theirs.map(|it| (it.target.0, it.revision)),
    }
}

/// Compares one table with that of another daemon.
async fn compare(
    session: &Session,
    table: usize,
    origin: Origin,
) -> Result<Vec<Difference>, String> {
    let shards = differing_shards(session, table, origin).await?;
    let first = list(session, table, origin, &shards).await?;
    if first.is_empty() {
        return Ok(first);
    }
    tokio::time::sleep(PAUSE).await;
    let mut second = list(session, table, origin, &shards).await?;
    second.retain(|difference| first.iter().any(|it| it.key == difference.key));
    Ok(second)
}

async fn differing_shards(
    session: &Session,
    table: usize,
    origin: Origin,
) -> Result<Vec<u8>, String> {
    let theirs = session.ask(table, origin, Vec::new()).await?;
    let theirs = Digest::decode(&theirs).ok_or("its digest cannot be read")?;
    let ours = session.ask_digest(table).await.ok_or("this daemon is not in sync")?;
    Ok((0..=u8::MAX).filter(|&shard| ours.shard(shard) != theirs.shard(shard)).collect())
}

async fn list(
    session: &Session,
    table: usize,
    origin: Origin,
    shards: &[u8],
) -> Result<Vec<Difference>, String> {
    let mut found = Vec::new();
    for &shard in shards {
        let theirs = session.ask(table, origin, vec![shard]).await?;
        let theirs = decode_list(&theirs).ok_or("its list cannot be read")?;
        let ours = session.list(table, shard).await.ok_or("this daemon is not in sync")?;
        found.extend(differences(&ours, &theirs));
    }
    Ok(found)
}
