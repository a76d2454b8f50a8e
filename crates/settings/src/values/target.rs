//! Databases and their locations.

use std::net::IpAddr;
use std::path::PathBuf;

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An SQLite file, written `sqlite:PATH`.
    Sqlite(PathBuf),
    /// A PostgreSQL database, written `postgres://USER@HOST:PORT/DATABASE`.
    Postgres(ServerTarget),
    /// A MySQL or MariaDB database, written `mysql://USER@HOST:PORT/DATABASE`.
    Mysql(ServerTarget),
}

/// A database on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTarget {
    /// The location of the server.
    pub host: DatabaseHost,
    /// The user name of the daemon on the server.
    pub user: String,
    /// The name of the database.
    pub database: String,
}

/// The location of a database server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseHost {
    /// A name or an IP address, and a port.
    Internet(String, u16),
    /// A Unix socket, written `?socket=/path`. For PostgreSQL the path is the directory of the socket, and the port is
    /// a part of its file name.
    Socket(PathBuf, u16),
}

impl DatabaseHost {
    /// Whether it is this machine, so that no other machine sees the traffic.
    #[must_use]
    pub fn is_here(&self) -> bool {
        match self {
            Self::Internet(host, _) => {
                host == "localhost"
                    || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            Self::Socket(..) => true,
        }
    }
}
