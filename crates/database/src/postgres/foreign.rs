//! Servers of foreign tables, which commit within our COMMIT.
//!
//! A foreign data wrapper (`postgres_fdw` and most others) commits at its server before PostgreSQL
//! commits itself. Errors that come behind that, of the check for serialization conflicts, of NOTIFY or of
//! the next server, roll back what is here and nothing of what is there. PostgreSQL does not say which
//! servers a transaction has written to: where there is any, such an error proves no rollback.

use tokio_postgres::{Client, Error};

/// Whether the database knows a server of foreign tables.
pub(super) async fn is_there(client: &Client) -> Result<bool, Error> {
    let found = client.query("select exists (select from pg_foreign_server)", &[]).await?;
    Ok(found.first().is_none_or(|row| row.get(0)))
}
