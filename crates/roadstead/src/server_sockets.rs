//! Reports servers whose Unix sockets the daemon will refuse, because another user can have chosen them.

use std::io::ErrorKind;

use settings::{Address, Configuration, Remark};

/// Returns the reasons why connections to Unix sockets would be refused, each at the address of the server. A socket that
/// does not exist yet is not reported. A socket that may have been moved is found only if this `connects` to it. The
/// rules depend on the user of this process.
#[must_use]
pub fn refused(configuration: &Configuration, connects: bool) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for pool in &configuration.pools {
        let servers = pool.servers().map(|servers| servers.servers.as_slice()).unwrap_or_default();
        for (index, server) in servers.iter().enumerate() {
            let Address::Unix(path) = &server.address else { continue };
            let opened = paths::SocketFile::open(path);
            let examined = opened.and_then(|file| if connects { file.examine() } else { Ok(()) });
            let Err(error) = examined else { continue };
            // An error of the system has a number.
            if error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
                let index = index.to_string();
                let place = ["pool", &pool.name, "servers", &index, "address"];
                let message = format!(
                    "the daemon will not connect to the server `{}` of pool `{}`: {error}",
                    server.address, pool.name
                );
                remarks.push(Remark { path: place.map(str::to_owned).to_vec(), message });
            }
        }
    }
    remarks
}
