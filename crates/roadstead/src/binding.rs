//! Binds the sockets of a configuration's listeners.

use std::fmt;
use std::io;

use event::{BindSettings, BoundFile, Fd, Inherited, InheritedKind};
use settings::{Address, Configuration, Protocol};

/// Why a listener has no socket.
#[derive(Debug)]
pub enum BindError {
    /// The address cannot be used.
    Address {
        /// The name of the listener.
        listener: String,
        /// The configured address.
        address: Address,
        /// The error of the system.
        error: io::Error,
    },
    /// The inherited descriptors cannot be used.
    Inherited(io::Error),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { listener, address, error } => {
                write!(f, "listener `{listener}` cannot listen on {address}: {error}")?;
                hint(f, error)
            }
            Self::Inherited(error) => write!(f, "what was handed over cannot be taken: {error}"),
        }
    }
}

impl std::error::Error for BindError {}

/// Says how to find the process that listens on an address already.
pub(crate) fn hint(f: &mut fmt::Formatter<'_>, error: &io::Error) -> fmt::Result {
    match error.kind() {
        io::ErrorKind::AddrInUse => f.write_str("; `ss -lntp` shows the process that uses it"),
        _ => Ok(()),
    }
}

/// Returns the random seed of a daemon. It must not be guessable, because the keys of all hash tables and all random
/// choices are derived from the seed.
pub(crate) fn seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    event::fill_random(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Sockets and addresses, each with the name of its listener, and the files of the Unix sockets.
pub(crate) type Bound = (Vec<(String, Fd)>, Vec<(String, String)>, SocketFiles);

/// The files of the Unix sockets that were bound here. Dropping this value removes them, unless another process has
/// bound a socket at the path since.
#[derive(Debug, Default)]
pub(crate) struct SocketFiles(Vec<BoundFile>);

impl Drop for SocketFiles {
    fn drop(&mut self) {
        for file in &self.0 {
            if let Err(error) = file.remove() {
                tracing::warn!("the socket {} cannot be removed: {error}", file.path().display());
            }
        }
    }
}

/// Binds every listener, or takes the inherited socket of the same name. Returns the sockets and their addresses.
pub(crate) fn bind_all(configuration: &Configuration) -> Result<Bound, BindError> {
    let mut inherited = event::inherited().map_err(BindError::Inherited)?;
    let (mut sockets, mut addresses) = (Vec::new(), Vec::new());
    let mut files = SocketFiles::default();
    for listener in &configuration.listeners {
        let settings = BindSettings { backlog: listener.backlog, ..BindSettings::default() };
        let bind = |address: &event::Address| match listener.protocol {
            Protocol::Datagrams => event::bind_datagrams(address),
            Protocol::Frames(_) | Protocol::Connect | Protocol::Http => {
                event::bind(address, &settings)
            }
        };
        let was_inherited = inherited.len();
        let bound = match &listener.listen {
            // With this rule the same file works with a socket unit and without one.
            _ if inherited.iter().any(|one| one.name == listener.name) => {
                handed_over(&mut inherited, &listener.name, listener.protocol)
            }
            Address::Internet(address) => bind(&event::Address::Internet(*address)),
            Address::Unix(path) => bind(&event::Address::Unix(path.clone())),
            Address::Inherited(name) => handed_over(&mut inherited, name, listener.protocol),
            // Only the settings of servers contain host names.
            Address::Named(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        let (socket, bound) = bound.map_err(|error| {
            let address = listener.listen.clone();
            BindError::Address { listener: listener.name.clone(), address, error }
        })?;
        if let (Address::Unix(path), true) = (&listener.listen, inherited.len() == was_inherited) {
            files.0.extend(BoundFile::new(path));
        }
        if !listener.tcp_keepalive_interval.is_zero() && listener.protocol != Protocol::Datagrams {
            event::keep_alive(&socket, listener.tcp_keepalive_interval);
        }
        addresses.push((listener.name.clone(), bound.to_string()));
        sockets.push((listener.name.clone(), socket));
    }
    for unused in inherited {
        tracing::warn!(name = unused.name, "a descriptor was handed over that no listener uses");
    }
    Ok((sockets, addresses, files))
}

/// Takes the inherited socket of this name if it can serve the protocol. Each socket is taken only once.
fn handed_over(
    inherited: &mut Vec<Inherited>,
    name: &str,
    protocol: Protocol,
) -> io::Result<(Fd, event::Address)> {
    let Some(place) = inherited.iter().position(|one| one.name == name) else {
        let text = "no descriptor of this name was handed over (see LISTEN_FDNAMES)";
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    };
    let Inherited { fd, address, kind, .. } = inherited.remove(place);
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text);
    let for_datagrams = match protocol {
        Protocol::Datagrams => true,
        Protocol::Frames(_) | Protocol::Connect | Protocol::Http => false,
    };
    match kind {
        InheritedKind::Listener if !for_datagrams => {}
        InheritedKind::Datagrams if for_datagrams => {}
        InheritedKind::Listener => {
            return Err(wrong(
                "the descriptor of this name is a socket of streams, and the protocol is \
                 `datagrams` (systemd: ListenDatagram=)",
            ));
        }
        InheritedKind::Datagrams => {
            return Err(wrong(
                "the descriptor of this name is a socket of datagrams, and the protocol needs \
                 connections (systemd: ListenStream=)",
            ));
        }
        InheritedKind::Stream => {
            return Err(wrong(
                "the descriptor of this name is a socket that does not listen, perhaps a single \
                 connection (systemd: Accept=no)",
            ));
        }
        InheritedKind::Other => {
            return Err(wrong("the descriptor of this name is not a socket that listens"));
        }
    }
    let text = "the descriptor of this name has no address that is known here";
    Ok((fd, address.ok_or_else(|| wrong(text))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_was_handed_over_must_fit_the_protocol() {
        let take = |kind, protocol| {
            let address = event::Address::Internet(([127, 0, 0, 1], 7000).into());
            let (fd, _) = event::bind(
                &event::Address::Internet(([127, 0, 0, 1], 0).into()),
                &BindSettings::default(),
            )
            .unwrap();
            let one = Inherited { name: "web".to_owned(), fd, address: Some(address), kind };
            let found = handed_over(&mut vec![one], "web", protocol);
            found.map(drop).map_err(|error| error.to_string())
        };
        use InheritedKind::{Datagrams, Listener, Other, Stream};
        assert_eq!(take(Listener, Protocol::Http), Ok(()));
        assert_eq!(take(Datagrams, Protocol::Datagrams), Ok(()));
        for (kind, protocol, told) in [
            (Listener, Protocol::Datagrams, "socket of streams"),
            (Datagrams, Protocol::Connect, "socket of datagrams"),
            (Stream, Protocol::Http, "does not listen"),
            (Stream, Protocol::Datagrams, "does not listen"),
            (Other, Protocol::Http, "not a socket"),
        ] {
            let error = take(kind, protocol).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn no_two_daemons_have_the_same_seed() {
        let seeds: std::collections::BTreeSet<u64> = (0..100).map(|_| seed().unwrap()).collect();
        assert_eq!(seeds.len(), 100);
        // Both halves are random. With a clock, the upper halves would be equal.
        let upper: std::collections::BTreeSet<u64> = seeds.iter().map(|seed| seed >> 32).collect();
        assert!(upper.len() > 90);
    }
}
