//! Tests toys on a real loop, with real clients.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use backend::handler_threads::HandlerThreadsConfig;
use backend::workers::WorkersConfig;
use event::{Epoll, Loop, LoopSettings};
use exchange::{Batch, Factory, Handler, HandlerError, Outbox, Outcome, Slice, Stop};
use flow::request_shape::RequestShape;
use frontend::protocol::ProtocolConfig;
use gateway::{Access, ShardMail};
use toys::build::{Toy, ToyError, toy};
use toys::shard::shard;

/// A shard on a separate thread, until it is drained.
struct Served {
    address: SocketAddr,
    access: Access,
    thread: JoinHandle<()>,
}

impl Served {
    /// Serves finger with these options. `answer` answers each line, on one of two threads.
    fn start(options: &str, answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let factory = Arc::new(Answers(Arc::new(answer)));
        let (deadline, shape) = (Duration::from_secs(30), RequestShape::Messages);
        let workers = WorkersConfig::Handlers(HandlerThreadsConfig { factory, deadline, shape });
        Self::with(finger(options), workers)
    }

    /// Serves this protocol with two of these workers.
    fn with(protocol: Arc<dyn ProtocolConfig>, workers: WorkersConfig) -> Self {
        let any = event::Address::Internet("127.0.0.1:0".parse().unwrap());
        let (socket, bound) = event::bind(&any, &event::BindSettings::default()).unwrap();
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            let mut turning: Loop<Epoll, ShardMail> =
                Loop::new(Epoll::new().unwrap(), LoopSettings::default()).unwrap();
            let (mut shard, access) = shard(turning.mailbox(), socket, protocol, (workers, 2));
            shard.start(&mut turning.context());
            tell.send(access).unwrap();
            turning.run(&mut shard).unwrap();
            assert_eq!(shard.end().cut, 0, "no request was cut off");
        });
        let access = told.recv().unwrap();
        Self { address: bound.to_string().parse().unwrap(), access, thread }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Returns everything that a client receives for one line.
    fn ask(&self, line: &str) -> String {
        let mut client = self.connect();
        client.write_all(line.as_bytes()).unwrap();
        rest(client)
    }

    fn connections(&self) -> u32 {
        let (tell, told) = channel();
        self.access.status(move |status| tell.send(status.listeners[0].connections).unwrap());
        told.recv().unwrap()
    }

    /// Returns once `count` clients are connected. Each check is a turn of the loop.
    fn wait_for_connections(&self, count: u32) {
        let seen = (0..1_000_000).find(|_| self.connections() == count);
        assert!(seen.is_some(), "{} connections, {count} expected", self.connections());
    }

    /// Returns the number of requests that the workers have answered.
    fn answered(&self) -> u64 {
        let (tell, told) = channel();
        self.access.status(move |status| tell.send(status.pools).unwrap());
        let pools = told.recv().unwrap();
        pools.iter().flat_map(|pool| &pool.workers).map(|worker| worker.served).sum()
    }

    fn drain(self) {
        self.access.drain();
        self.thread.join().unwrap();
    }
}

/// Returns the text up to the end of the connection.
fn rest(mut client: TcpStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

fn finger(options: &str) -> Arc<dyn ProtocolConfig> {
    match toy("finger", options).unwrap() {
        Toy::Protocol(protocol) => protocol,
        Toy::Workers(_) => panic!("finger is a protocol"),
    }
}

/// Handlers that answer each line.
struct Answers(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl Factory for Answers {
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        Ok(Box::new(Self(Arc::clone(&self.0))))
    }
}

impl Handler for Answers {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, _stop: &Stop) {
        for (index, request) in batch.requests.iter().enumerate() {
            let text = (self.0)(std::str::from_utf8(&request.body).unwrap());
            outbox.answer(index, Outcome::Reply(Slice::from(text.as_str())));
        }
    }
}

fn login(name: &str) -> String {
    format!("Login: {name}\nNo plan.")
}

#[test]
fn two_clients_at_once_get_their_own_answers() {
    let both = Barrier::new(2);
    let served = Served::start("", move |name| {
        // Neither request is answered before both have arrived.
        both.wait();
        login(name)
    });
    let (mut one, mut two) = (served.connect(), served.connect());
    one.write_all(b"alice\r\n").unwrap();
    // A line may arrive in parts.
    two.write_all(b"b").unwrap();
    two.write_all(b"ob\r\n").unwrap();
    assert_eq!(rest(two), "Login: bob\r\nNo plan.\r\n");
    assert_eq!(rest(one), "Login: alice\r\nNo plan.\r\n");
    served.drain();
}

#[test]
fn a_client_that_leaves_early_disturbs_nobody() {
    let (begun, has_begun): (Sender<()>, Receiver<()>) = channel();
    let (go, may_go): (Sender<()>, Receiver<()>) = channel();
    let (begun, may_go) = (Mutex::new(begun), Mutex::new(may_go));
    let served = Served::start("", move |name| {
        if name == "early" {
            begun.lock().unwrap().send(()).unwrap();
            may_go.lock().unwrap().recv().unwrap();
        }
        login(name)
    });
    let mut early = served.connect();
    early.write_all(b"early\r\n").unwrap();
    has_begun.recv().unwrap();
    drop(early);
    served.wait_for_connections(0);
    go.send(()).unwrap();
    assert_eq!(served.ask("late\r\n"), "Login: late\r\nNo plan.\r\n");
    served.drain();
}

#[test]
fn lines_that_are_too_long_or_forwarded_are_refused() {
    let served = Served::start("line_max = 5", login);
    assert_eq!(served.ask("alice\r\n"), "Login: alice\r\nNo plan.\r\n");
    let refused = "!toolong a line has at most 5 bytes\r\n";
    assert_eq!(served.ask("alice2\r\n"), refused);
    assert_eq!(served.ask("a line without an end"), refused);
    assert_eq!(served.ask("a@b\r\n"), "!record queries are not forwarded\r\n");
    served.drain();
}

#[test]
fn a_drain_answers_what_was_asked_and_refuses_others() {
    let (begun, has_begun): (Sender<()>, Receiver<()>) = channel();
    let (go, may_go): (Sender<()>, Receiver<()>) = channel();
    let (begun, may_go) = (Mutex::new(begun), Mutex::new(may_go));
    let served = Served::start("", move |name| {
        begun.lock().unwrap().send(()).unwrap();
        may_go.lock().unwrap().recv().unwrap();
        login(name)
    });
    let (mut asking, silent) = (served.connect(), served.connect());
    asking.write_all(b"alice\r\n").unwrap();
    has_begun.recv().unwrap();
    served.wait_for_connections(2);
    served.access.drain();
    assert_eq!(rest(silent), "!draining the daemon is about to end\r\n");
    go.send(()).unwrap();
    assert_eq!(rest(asking), "Login: alice\r\nNo plan.\r\n");
    served.thread.join().unwrap();
}

#[test]
fn one_toy_answers_for_another() {
    let Toy::Workers(workers) = toy("echo", "times = 2\nshout = true").unwrap() else {
        panic!("an echo is a worker");
    };
    let served = Served::with(finger(""), workers);
    let (mut one, mut two) = (served.connect(), served.connect());
    one.write_all(b"alice\r\n").unwrap();
    two.write_all(b"bob\r\n").unwrap();
    assert_eq!(rest(two), "BOB BOB\r\n");
    assert_eq!(rest(one), "ALICE ALICE\r\n");
    assert_eq!(served.answered(), 2);
    served.drain();
}

#[test]
fn toys_and_options_that_do_not_exist_are_errors() {
    assert_eq!(toy("gopher", "").unwrap_err(), ToyError::Unknown("gopher".to_owned()));
    let error = toy("finger", "line_min = 1").unwrap_err().to_string();
    assert_eq!(error, "unknown option `line_min`; the options are: line_max, read_timeout_ms");
}
