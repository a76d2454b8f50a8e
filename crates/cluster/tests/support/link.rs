//! A link to a server on the loopback, on which a test can hold the bytes of one direction or of both.
//!
//! A network that drops packets looks like this to both ends: nothing arrives, and no error is reported until a
//! timeout of their own. When the link heals, everything that was sent arrives. Each connection has one thread per
//! direction.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// The directions in which bytes are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) to_server: bool,
    pub(crate) to_client: bool,
}

impl Held {
    pub(crate) const NONE: Self = Self { to_server: false, to_client: false };
    pub(crate) const BOTH: Self = Self { to_server: true, to_client: true };
    pub(crate) const TO_SERVER: Self = Self { to_server: true, to_client: false };
    pub(crate) const TO_CLIENT: Self = Self { to_server: false, to_client: true };
}

/// A link to one server.
#[derive(Debug)]
pub(crate) struct Link {
    port: u16,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    held: Mutex<Held>,
    changed: Condvar,
}

impl Gate {
    /// Waits while bytes of a direction are held.
    fn wait(&self, is_held: impl Fn(Held) -> bool) {
        let held = self.held.lock().unwrap();
        drop(self.changed.wait_while(held, |held| is_held(*held)).unwrap());
    }
}

impl Link {
    /// Opens a link to a server on this machine. It exists until this process ends.
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Arc::new(Gate::default());
        let shared = Arc::clone(&gate);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Without a server the client's connection is closed.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                open(client, server, &shared);
            }
        });
        Self { port, gate }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Holds the bytes of these directions, and sends those of the others.
    pub(crate) fn hold(&self, held: Held) {
        *self.gate.held.lock().unwrap() = held;
        self.gate.changed.notify_all();
    }
}

fn open(client: TcpStream, server: TcpStream, gate: &Arc<Gate>) {
    for side in [&client, &server] {
        let _ = side.set_nodelay(true);
    }
    let (client, server) = (Arc::new(client), Arc::new(server));
    let (from, to) = (Arc::clone(&client), Arc::clone(&server));
    let gate_to_server = Arc::clone(gate);
    thread::spawn(move || copy(&from, &to, || gate_to_server.wait(|held| held.to_server)));
    let gate_to_client = Arc::clone(gate);
    thread::spawn(move || copy(&server, &client, || gate_to_client.wait(|held| held.to_client)));
}

/// Copies bytes, and the end of the connection, after `wait` has returned.
fn copy(mut from: &TcpStream, mut to: &TcpStream, wait: impl Fn()) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        wait();
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for side in [from, to] {
        // It may be closed already.
        let _ = side.shutdown(Shutdown::Both);
    }
}
