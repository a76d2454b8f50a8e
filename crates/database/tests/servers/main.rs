//! One suite for every kind of database: real files, real servers.
//!
//! Results are checked with the client program of each database. The servers come from the Debian packages `postgresql`
//! and `mariadb-server`. If they are missing, the tests fail with a message.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../support/server.rs"]
mod server;

#[path = "../support/certificates.rs"]
mod certificates;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../support/proxy.rs"]
mod proxy;

mod calculated;
mod checked;
mod compared;
mod cut;
mod details;
mod dropped;
mod engines;
mod failed;
mod letter_tables;
mod letters;
mod login;
mod migrated;
mod mysql8;
mod outage;
mod packets;
mod place;
mod read;
mod refused;
mod row_faults;
mod settings;
mod stored;
mod types;
mod uncertain;
mod unnoticed;

/// Makes each of these functions a test of every kind of database.
macro_rules! suite {
    ($($name:ident),+ $(,)?) => {
        mod sqlite { $(#[test] fn $name() { super::$name(&$crate::place::Place::sqlite()); })+ }
        mod postgres { $(#[test] fn $name() { super::$name(&$crate::place::Place::postgres()); })+ }
        mod mariadb { $(#[test] fn $name() { super::$name(&$crate::place::Place::mariadb()); })+ }
    };
}
pub(crate) use suite;

/// Makes each of these functions a test of every database that is a server.
macro_rules! suite_of_servers {
    ($($name:ident),+ $(,)?) => {
        mod postgres { $(#[test] fn $name() { super::$name(&$crate::place::Place::postgres()); })+ }
        mod mariadb { $(#[test] fn $name() { super::$name(&$crate::place::Place::mariadb()); })+ }
    };
}
pub(crate) use suite_of_servers;
