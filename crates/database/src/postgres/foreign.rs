//! Servers of foreign tables, which commit within the COMMIT of PostgreSQL.
//!
//! A foreign data wrapper (`postgres_fdw` and most others) commits on its server before PostgreSQL commits. Errors
//! after that, from the check for serialization conflicts, from NOTIFY or from the next server, roll back the changes
//! on this server but not those on the foreign server. PostgreSQL does not report which servers a transaction has
//! written to: if there is any foreign server, such an error does not prove a rollback.

use tokio_postgres::{Client, Error};

/// Whether the database has a server of foreign tables.
pub(super) async fn is_there(client: &Client) -> Result<bool, Error> {
    let found = client.query("select exists (select from pg_foreign_server)", &[]).await?;
    Ok(found.first().is_none_or(|row| row.get(0)))
}
