//! A proxy to a database server that cuts the connection in a given phase of a transaction.
//!
//! It parses only as much of the unencrypted protocols as is needed to recognise the rows of a batch and a COMMIT. Each
//! connection has one thread per direction.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;

/// The phase of a transaction in which the connection is cut, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server does not receive the rows.
    BeforeRows,
    /// The server receives the rows, and its answer is lost.
    AfterRows,
    /// The server does not receive the COMMIT.
    BeforeCommit,
    /// The server receives one half of the COMMIT.
    WithinCommit,
    /// The server has committed, and its answer is lost.
    AfterCommit,
    /// The client loses its connection, and the server receives the COMMIT when it is [released](Proxy::release).
    LateCommit,
    /// As `AfterCommit`, for the commit of a PostgreSQL server on its foreign tables.
    AfterForeignCommit,
    /// The server has committed and its answer has arrived.
    AfterAnswer,
    /// The server does not receive a dead letter for the table `dead` (PostgreSQL).
    BeforeLetter,
    /// Nothing is cut: the server receives a BEGIN that it answers with an error.
    FailedBegin,
    /// As `FailedBegin`, and the answers to the BEGIN and to the rows are lost.
    LostFailedBegin,
    /// From the statement with this end on, nothing passes in either direction, without an error: as behind a firewall
    /// that has dropped the connection from its table.
    Dark(&'static str),
}

impl Cut {
    pub(crate) const ALL: [Self; 6] = [
        Self::BeforeRows,
        Self::AfterRows,
        Self::BeforeCommit,
        Self::WithinCommit,
        Self::AfterCommit,
        Self::AfterAnswer,
    ];

    /// Whether these bytes, sent to a server, trigger the cut.
    fn waits_for(self, bytes: &[u8]) -> bool {
        match self {
            Self::BeforeRows | Self::AfterRows => {
                // PostgreSQL: BEGIN is sent with the rows. MariaDB: COM_STMT_EXECUTE.
                place_of_begin(bytes).is_some() || bytes.get(4) == Some(&0x17)
            }
            Self::BeforeLetter => bytes.windows(18).any(|it| it == br#"insert into "dead""#),
            Self::FailedBegin | Self::LostFailedBegin => place_of_begin(bytes).is_some(),
            Self::BeforeCommit
            | Self::WithinCommit
            | Self::AfterCommit
            | Self::LateCommit
            | Self::AfterAnswer => without_end(bytes).ends_with(b"commit"),
            Self::AfterForeignCommit => without_end(bytes).ends_with(b"COMMIT TRANSACTION"),
            Self::Dark(statement) => without_end(bytes).ends_with(statement.as_bytes()),
        }
    }
}

/// Returns the position of the start of a PostgreSQL transaction.
fn place_of_begin(bytes: &[u8]) -> Option<usize> {
    bytes.windows(17).position(|it| it == b"begin read write;")
}

/// Removes the NUL that ends a PostgreSQL statement.
fn without_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\0").unwrap_or(bytes)
}

/// What happens to the next answer of a server on a connection.
const PASS: u8 = 0;
const DROP: u8 = 1;
const PASS_AND_CUT: u8 = 2;
const LOSE: u8 = 3;

/// A proxy to a server.
pub(crate) struct Proxy {
    port: u16,
    plan: Arc<Plan>,
}

#[derive(Default)]
struct Plan {
    armed: Mutex<Option<Cut>>,
    ways: Mutex<Vec<Weak<Way>>>,
    cuts: AtomicU32,
    /// New connections are closed immediately.
    closed: AtomicBool,
    /// The number of connections that were made.
    connections: AtomicU32,
    /// Data that is held back may be sent to the server.
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Proxy {
    /// Starts a proxy to a server on this machine. It runs until this process ends.
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(Plan::default());
        let shared = Arc::clone(&plan);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                if shared.closed.load(Ordering::SeqCst) {
                    continue;
                }
                // Without a server the client's connection is closed.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                Way { client, server, answer: AtomicU8::new(PASS) }.open(&shared);
            }
        });
        Self { port, plan }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the next connection on which this happens.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.plan.armed.lock().unwrap() = Some(cut);
    }

    /// Cuts all open connections immediately.
    pub(crate) fn cut_all(&self) {
        let ways = std::mem::take(&mut *self.plan.ways.lock().unwrap());
        for way in ways.iter().filter_map(Weak::upgrade) {
            self.plan.cuts.fetch_add(1, Ordering::SeqCst);
            way.close();
        }
    }

    /// Cuts all connections, and closes each new one immediately until [`open`](Self::open) is called.
    pub(crate) fn close(&self) {
        self.plan.closed.store(true, Ordering::SeqCst);
        self.cut_all();
    }

    /// Accepts new connections again.
    pub(crate) fn open(&self) {
        self.plan.closed.store(false, Ordering::SeqCst);
    }

    /// Sends a late COMMIT to its server.
    pub(crate) fn release(&self) {
        *self.plan.is_released.lock().unwrap() = true;
        self.plan.released.notify_all();
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> u32 {
        self.plan.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of cuts, including one that is about to happen.
    pub(crate) fn cuts(&self) -> u32 {
        self.plan.cuts.load(Ordering::SeqCst)
    }
}

impl Plan {
    /// Returns the cut that these bytes trigger.
    fn take(&self, bytes: &[u8]) -> Option<Cut> {
        let taken = self.armed.lock().unwrap().take_if(|cut| cut.waits_for(bytes));
        self.cuts.fetch_add(u32::from(taken.is_some()), Ordering::SeqCst);
        taken
    }
}

/// One connection.
struct Way {
    client: TcpStream,
    server: TcpStream,
    answer: AtomicU8,
}

impl Way {
    fn open(self, plan: &Arc<Plan>) {
        // No data is delayed.
        for side in [&self.client, &self.server] {
            let _ = side.set_nodelay(true);
        }
        let up = Arc::new(self);
        plan.ways.lock().unwrap().push(Arc::downgrade(&up));
        let back = Arc::clone(&up);
        let plan = Arc::clone(plan);
        thread::spawn(move || {
            up.towards_server(&plan);
            let _ = up.server.shutdown(Shutdown::Write);
        });
        thread::spawn(move || {
            back.towards_client();
            let _ = back.client.shutdown(Shutdown::Write);
        });
    }

    fn towards_server(&self, plan: &Plan) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = (&self.client).read(&mut bytes) {
            let taken = plan.take(&bytes[..count]);
            let fails = matches!(taken, Some(Cut::FailedBegin | Cut::LostFailedBegin));
            if let (true, Some(at)) = (fails, place_of_begin(&bytes[..count])) {
                bytes[at..at + 5].copy_from_slice(b"bogus");
            }
            let mut bytes = &bytes[..count];
            match taken {
                None | Some(Cut::FailedBegin) => {}
                Some(Cut::BeforeRows | Cut::BeforeCommit | Cut::BeforeLetter) => {
                    return self.close();
                }
                Some(Cut::LateCommit) => {
                    self.answer.store(LOSE, Ordering::SeqCst);
                    let _ = self.client.shutdown(Shutdown::Both);
                    let held = plan.is_released.lock().unwrap();
                    let mut held = plan.released.wait_while(held, |it| !*it).unwrap();
                    *held = false;
                    let _ = (&self.server).write_all(bytes);
                    return;
                }
                Some(Cut::WithinCommit) => {
                    bytes = &bytes[..count - 4];
                    let _ = (&self.server).write_all(bytes);
                    return self.close();
                }
                Some(
                    Cut::AfterRows
                    | Cut::AfterCommit
                    | Cut::AfterForeignCommit
                    | Cut::LostFailedBegin,
                ) => {
                    self.answer.store(DROP, Ordering::SeqCst);
                }
                Some(Cut::AfterAnswer) => self.answer.store(PASS_AND_CUT, Ordering::SeqCst),
                Some(Cut::Dark(_)) => self.answer.store(LOSE, Ordering::SeqCst),
            }
            if self.answer.load(Ordering::SeqCst) == LOSE {
                continue;
            }
            if (&self.server).write_all(bytes).is_err() {
                return;
            }
        }
    }

    fn towards_client(&self) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = (&self.server).read(&mut bytes) {
            let answer = self.answer.load(Ordering::SeqCst);
            if answer == DROP {
                return self.close();
            }
            if answer == LOSE {
                continue;
            }
            if (&self.client).write_all(&bytes[..count]).is_err() {
                return;
            }
            if answer == PASS_AND_CUT {
                return self.close();
            }
        }
    }

    fn close(&self) {
        for side in [&self.client, &self.server] {
            // It may be closed already.
            let _ = side.shutdown(Shutdown::Both);
        }
    }
}
