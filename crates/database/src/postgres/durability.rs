//! Checks whether a commit waits for the server's disk. The session sets what it may choose when it begins; the rest
//! are settings of the server.

use tokio_postgres::{Client, Error};

use super::fault::refused;
use super::schema::{table_sql, target};
use super::wire::Text;
use crate::server::doubt;
use crate::{Action, DatabaseError, Job, Sync};
use sql::Array;

/// The settings, as far as the server has them.
const SETTINGS: &str = "\
    select current_setting('fsync', true), current_setting('full_page_writes', true), \
           current_setting('synchronous_commit', true)";

/// The tables without a write-ahead log: those in $1 and their partitions.
const UNLOGGED: &str = "\
    with recursive tree(oid) as ( \
      select to_regclass(n)::oid from unnest($1::text[]) n \
      union select h.inhrelid from pg_inherits h join tree on h.inhparent = tree.oid) \
    select c.oid::regclass::text from pg_class c join tree on c.oid = tree.oid \
    where c.relpersistence = 'u' and c.relkind = 'r' order by 1";

/// Reads the settings of the server and of the tables of `job`. Returns one sentence for each one because of which a
/// power failure may lose committed rows or dead letters. The result is empty if the job allows such losses.
pub(super) async fn doubts(
    client: &Client,
    server: &str,
    job: &Job,
) -> Result<Vec<String>, DatabaseError> {
    if job.sync == Sync::Normal || matches!(job.action, Action::Query(_)) {
        return Ok(Vec::new());
    }
    let told = |error: Error| refused(server, &error);
    let rows = client.query(SETTINGS, &[]).await.map_err(told)?;
    let said = |at| rows.first()?.try_get::<usize, Option<&str>>(at).ok()?;
    let target = target(client, &job.action).await.map_err(told)?.map(|(table, _)| table);
    let tables: Vec<String> =
        target.into_iter().chain(job.dead.iter().map(|it| table_sql(it))).collect();
    let tables = Array::of(tables.iter().map(String::as_str));
    let unlogged = client.query(UNLOGGED, &[&Text(Some(&tables))]).await.map_err(told)?;
    let unlogged: Vec<&str> = unlogged.iter().map(|row| row.get(0)).collect();
    Ok(of([said(0), said(1), said(2)], &unlogged))
}

fn of(settings: [Option<&str>; 3], unlogged: &[&str]) -> Vec<String> {
    let names = ["fsync", "full_page_writes", "synchronous_commit"];
    let off = names.iter().zip(settings).filter(|(_, value)| *value == Some("off"));
    let mut doubts: Vec<String> = off.map(|(name, _)| doubt(name, "off", "on")).collect();
    doubts.extend(unlogged.iter().map(|table| {
        format!(
            "the table `{table}` is unlogged: a crash of the server empties it; `alter table \
             {table} set logged` there, or say `sync = \"normal\"` here if that may be"
        )
    }));
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_loses_rows_is_doubted() {
        assert_eq!(of([Some("on"), Some("on"), Some("remote_apply")], &[]), [""; 0]);
        assert_eq!(of([None; 3], &[]), [""; 0], "a server that has no such settings");
        for (settings, name) in [
            ([Some("off"), Some("on"), Some("on")], "`fsync = off`"),
            ([Some("on"), Some("off"), Some("on")], "`full_page_writes = off`"),
            ([Some("on"), Some("on"), Some("off")], "`synchronous_commit = off`"),
        ] {
            let doubts = of(settings, &[]);
            assert!(doubts.len() == 1 && doubts[0].contains(name), "{doubts:?}");
        }
        let doubts = of([Some("on"); 3], &["hits"]);
        assert!(doubts.len() == 1 && doubts[0].contains("`hits` is unlogged"), "{doubts:?}");
    }
}
