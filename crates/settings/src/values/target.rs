//! Which database, and where it is.

use std::net::IpAddr;
use std::path::PathBuf;

/// Which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An SQLite file, written `sqlite:PATH`.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, written `postgres://USER@HOST:PORT/DATABASE`.
    Postgres(ServerTarget),
    /// A database of MySQL or MariaDB, written `mysql://USER@HOST:PORT/DATABASE`.
    Mysql(ServerTarget),
}

/// A database on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTarget {
    /// Where the server is.
    pub host: DatabaseHost,
    /// Who we are there.
    pub user: String,
    /// Which of its databases.
    pub database: String,
}

/// Where a server of a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseHost {
    /// A name or an IP address, and a port.
    Internet(String, u16),
    /// A socket in the file system, written `?socket=/path`: for PostgreSQL the folder that it lies
    /// in, with the port that is a part of its name.
    Socket(PathBuf, u16),
}

impl DatabaseHost {
    /// Whether it is this machine, so that nobody else sees what is sent there.
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
