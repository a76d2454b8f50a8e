//! Whether a commit waits for the server's disk. What a session may choose is chosen when it begins;
//! the rest is the server's.

use tokio_postgres::Client;

use super::fault::refused;
use super::schema::table_sql;
use super::wire::Text;
use crate::DatabaseError;
use crate::server::doubt;

/// The settings, as far as the server has them, and whether this table is kept in no log.
const SETTINGS: &str = "\
    select current_setting('fsync', true), current_setting('full_page_writes', true), \
           current_setting('synchronous_commit', true), \
           (select relpersistence::text from pg_class where oid = to_regclass($1::text))";

/// Asks for the settings of the server and of the table that let a power failure take rows which are
/// committed; empty where there are none of them.
pub(super) async fn doubts(
    client: &Client,
    server: &str,
    table: Option<&str>,
) -> Result<Vec<String>, DatabaseError> {
    let named = table.map(table_sql);
    let named = Text(named.as_deref().map(str::as_bytes));
    let rows = client.query(SETTINGS, &[&named]).await.map_err(|error| refused(server, &error))?;
    let said = |at| rows.first()?.try_get::<usize, Option<&str>>(at).ok()?;
    Ok(of([said(0), said(1), said(2)], table.filter(|_| said(3) == Some("u"))))
}

fn of(settings: [Option<&str>; 3], unlogged: Option<&str>) -> Vec<String> {
    let names = ["fsync", "full_page_writes", "synchronous_commit"];
    let off = names.iter().zip(settings).filter(|(_, value)| *value == Some("off"));
    let mut doubts: Vec<String> = off.map(|(name, _)| doubt(name, "off", "on")).collect();
    doubts.extend(unlogged.map(|table| {
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
        assert_eq!(of([Some("on"), Some("on"), Some("remote_apply")], None), [""; 0]);
        assert_eq!(of([None; 3], None), [""; 0], "a server that has no such settings");
        for (settings, name) in [
            ([Some("off"), Some("on"), Some("on")], "`fsync = off`"),
            ([Some("on"), Some("off"), Some("on")], "`full_page_writes = off`"),
            ([Some("on"), Some("on"), Some("off")], "`synchronous_commit = off`"),
        ] {
            let doubts = of(settings, None);
            assert!(doubts.len() == 1 && doubts[0].contains(name), "{doubts:?}");
        }
        let doubts = of([Some("on"); 3], Some("hits"));
        assert!(doubts.len() == 1 && doubts[0].contains("`hits` is unlogged"), "{doubts:?}");
    }
}
