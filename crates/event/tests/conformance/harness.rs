//! A loop with a handler that records events, checks their order, and executes the reactions of a test.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use event::{
    Context, Data, DeadlineName, Direction, Event, EventHandler, Fd, Kernel, ListenerId, Loop,
    LoopSettings, Origin, OwnerKey, Reason, Released, SocketId, StreamId, StreamLimits, TimerId,
};

/// A test fails if it waits longer than this. No test depends on its length.
const PATIENCE: Duration = Duration::from_secs(60);

/// An event without its borrowed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Accepted(ListenerId, StreamId),
    AcceptFailed(ListenerId),
    Connected(StreamId),
    Data(StreamId, Vec<u8>, IsLast),
    Eof(StreamId),
    Drained(StreamId),
    Hangup(StreamId),
    EndAhead(StreamId),
    Broken(StreamId),
    Closed(StreamId, Reason),
    Released(StreamId),
    Deadline(StreamId, DeadlineName),
    Timer(TimerId),
    Relayed(StreamId, u64, bool),
    Datagram(SocketId, Origin, Vec<u8>),
    DatagramsFailed(SocketId),
    Mail(u32),
}

pub(crate) type IsLast = bool;
/// Called after an event was recorded.
pub(crate) type React = Box<dyn FnMut(&mut Context<'_>, &Seen)>;
/// Called with all offered data; consumes as much as the test requires.
pub(crate) type Eat = Box<dyn FnMut(StreamId, &mut Data<'_>)>;

#[derive(Clone, Copy, Default)]
struct Told {
    eof: bool,
    hangup: bool,
    end_ahead: bool,
    broken: bool,
    closed: bool,
}

pub(crate) struct Recorder {
    pub(crate) seen: Vec<Seen>,
    pub(crate) react: React,
    pub(crate) eat: Eat,
    /// Streams that the test closed: no event of them may be delivered.
    pub(crate) gone: HashSet<StreamId>,
    /// What the loop has returned with `Released`.
    pub(crate) released: HashMap<StreamId, Box<Released>>,
    told: HashMap<StreamId, Told>,
    /// The most recent key of each stream; every event gives its stream another key.
    keys: HashMap<StreamId, OwnerKey>,
    /// The keys of timers that have one.
    pub(crate) timer_keys: HashMap<TimerId, OwnerKey>,
    pub(crate) turns: usize,
}

impl Recorder {
    /// All `Data` before the one `Eof` before the one `Closed` or `Released`, `Hangup` at most once.
    fn hold_the_law(&mut self, seen: &Seen) {
        let (&Seen::Connected(stream)
        | &Seen::Data(stream, ..)
        | &Seen::Eof(stream)
        | &Seen::Drained(stream)
        | &Seen::Hangup(stream)
        | &Seen::EndAhead(stream)
        | &Seen::Broken(stream)
        | &Seen::Relayed(stream, ..)
        | &Seen::Closed(stream, _)
        | &Seen::Released(stream)
        | &Seen::Deadline(stream, _)) = seen
        else {
            return;
        };
        assert!(!self.gone.contains(&stream), "{seen:?} after the owner closed it");
        let told = self.told.entry(stream).or_default();
        assert!(!told.closed, "{seen:?} after Closed");
        match seen {
            Seen::Data(..) | Seen::Relayed(..) => assert!(!told.eof, "{seen:?} after Eof"),
            Seen::Eof(_) => assert!(!std::mem::replace(&mut told.eof, true), "two ends"),
            Seen::Hangup(_) => assert!(!std::mem::replace(&mut told.hangup, true), "two hang-ups"),
            Seen::EndAhead(_) => {
                assert!(!std::mem::replace(&mut told.end_ahead, true), "an end ahead twice");
                assert!(!told.eof, "{seen:?} after Eof");
            }
            Seen::Broken(_) => assert!(!std::mem::replace(&mut told.broken, true), "broken twice"),
            Seen::Closed(..) | Seen::Released(_) => told.closed = true,
            _ => {}
        }
    }
}

impl Recorder {
    /// Each event carries the most recent key of its stream or timer.
    fn hold_keys(&mut self, io: &mut Context<'_>, event: &Event<'_, u32>) {
        let (stream, key) = match event {
            Event::Connected { stream, key }
            | Event::Data { stream, key, .. }
            | Event::Eof { stream, key }
            | Event::Drained { stream, key }
            | Event::Hangup { stream, key }
            | Event::EndAhead { stream, key }
            | Event::Broken { stream, key }
            | Event::Closed { stream, key, .. }
            | Event::Released { stream, key, .. }
            | Event::Deadline { stream, key, .. }
            | Event::Relayed { stream, key, .. } => (*stream, *key),
            Event::Timer { timer, key } => {
                let given = self.timer_keys.get(timer).copied();
                return assert_eq!(*key, given.unwrap_or(OwnerKey::NONE), "of {timer:?}");
            }
            _ => return,
        };
        let given = self.keys.remove(&stream).unwrap_or(OwnerKey::NONE);
        assert_eq!(key, given, "{event:?}");
        if !matches!(event, Event::Closed { .. } | Event::Released { .. }) {
            let next = OwnerKey([given.0[0] + 1, 7, u32::MAX, given.0[3] ^ 0x5555]);
            io.set_key(stream, next);
            self.keys.insert(stream, next);
        }
    }
}

impl EventHandler for Recorder {
    type Mail = u32;

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, u32>) {
        self.hold_keys(io, &event);
        let seen = match event {
            Event::Accepted { listener, stream, .. } => Seen::Accepted(listener, stream),
            Event::AcceptFailed { listener, .. } => Seen::AcceptFailed(listener),
            Event::Connected { stream, .. } => Seen::Connected(stream),
            Event::Data { stream, mut data, .. } => {
                let seen = Seen::Data(stream, data.bytes().to_vec(), data.is_last());
                (self.eat)(stream, &mut data);
                seen
            }
            Event::Eof { stream, .. } => Seen::Eof(stream),
            Event::Drained { stream, .. } => Seen::Drained(stream),
            Event::Hangup { stream, .. } => Seen::Hangup(stream),
            Event::EndAhead { stream, .. } => Seen::EndAhead(stream),
            Event::Broken { stream, .. } => Seen::Broken(stream),
            Event::Closed { stream, reason, .. } => Seen::Closed(stream, reason),
            Event::Released { stream, released, .. } => {
                self.released.insert(stream, released);
                Seen::Released(stream)
            }
            Event::Deadline { stream, name, .. } => Seen::Deadline(stream, name),
            Event::Timer { timer, .. } => Seen::Timer(timer),
            Event::Relayed { stream, count, done, .. } => Seen::Relayed(stream, count, done),
            Event::Datagram { socket, from, bytes } => {
                Seen::Datagram(socket, from.clone(), bytes.to_vec())
            }
            Event::DatagramsFailed { socket, .. } => Seen::DatagramsFailed(socket),
            Event::Mail(mail) => Seen::Mail(mail),
        };
        self.hold_the_law(&seen);
        (self.react)(io, &seen);
        self.seen.push(seen);
    }

    fn on_iteration_end(&mut self, _calls: &mut Context<'_>) {
        self.turns += 1;
    }
}

pub(crate) struct Bench<K: Kernel> {
    pub(crate) events: Loop<K, u32>,
    pub(crate) owner: Recorder,
}

impl<K: Kernel> Bench<K> {
    pub(crate) fn new(kernel: K) -> Self {
        Self::with(kernel, LoopSettings::default())
    }

    pub(crate) fn with(kernel: K, settings: LoopSettings) -> Self {
        let owner = Recorder {
            seen: Vec::new(),
            react: Box::new(|_, _| {}),
            eat: Box::new(|_, data| data.consume(data.bytes().len())),
            gone: HashSet::new(),
            released: HashMap::new(),
            told: HashMap::new(),
            keys: HashMap::new(),
            timer_keys: HashMap::new(),
            turns: 0,
        };
        Self { events: Loop::new(kernel, settings).unwrap(), owner }
    }

    pub(crate) fn context(&mut self) -> Context<'_> {
        self.events.context()
    }

    /// Sets the reaction to each event.
    pub(crate) fn react(&mut self, react: impl FnMut(&mut Context<'_>, &Seen) + 'static) {
        self.owner.react = Box::new(react);
    }

    /// Sets how offered data is consumed.
    pub(crate) fn eat(&mut self, eat: impl FnMut(StreamId, &mut Data<'_>) + 'static) {
        self.owner.eat = Box::new(eat);
    }

    pub(crate) fn adopt(&mut self, fd: impl Into<Fd>, direction: Direction) -> StreamId {
        self.adopt_with(fd, direction, StreamLimits::default())
    }

    pub(crate) fn adopt_with(
        &mut self,
        fd: impl Into<Fd>,
        direction: Direction,
        limits: StreamLimits,
    ) -> StreamId {
        self.context().adopt(fd, direction, limits)
    }

    /// Runs turns until the events so far satisfy `enough`.
    pub(crate) fn until(&mut self, what: &str, mut enough: impl FnMut(&[Seen]) -> bool) {
        let begun = Instant::now();
        while !enough(&self.owner.seen) {
            assert!(begun.elapsed() < PATIENCE, "no {what} in {:?}", self.owner.seen);
            self.events.turn(&mut self.owner, Some(Duration::from_millis(50))).unwrap();
        }
    }

    /// Runs turns until this event was recorded.
    pub(crate) fn until_seen(&mut self, wanted: &Seen) {
        self.until(&format!("{wanted:?}"), |seen| seen.contains(wanted));
    }

    /// Runs turns until `Closed` of the stream is delivered, and returns its reason.
    pub(crate) fn until_closed(&mut self, stream: StreamId) -> Reason {
        self.until("Closed", |seen| reason_of(seen, stream).is_some());
        reason_of(&self.owner.seen, stream).unwrap()
    }

    /// Runs turns until nothing happens without waiting.
    pub(crate) fn on_events_done(&mut self) {
        let mut quiet = 0;
        while quiet < 3 {
            let before = self.owner.seen.len();
            self.events.turn(&mut self.owner, Some(Duration::ZERO)).unwrap();
            quiet = if self.owner.seen.len() == before { quiet + 1 } else { 0 };
        }
    }

    /// Removes and returns the events so far.
    pub(crate) fn take_seen(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.owner.seen)
    }

    /// All data that the stream offered, if every offer was consumed completely.
    pub(crate) fn bytes_of(&self, stream: StreamId) -> Vec<u8> {
        let data = self.owner.seen.iter().filter_map(|seen| match seen {
            Seen::Data(of, bytes, _) if *of == stream => Some(bytes),
            _ => None,
        });
        data.flatten().copied().collect()
    }

    pub(crate) fn position(&self, wanted: &Seen) -> usize {
        let found = self.owner.seen.iter().position(|seen| seen == wanted);
        found.unwrap_or_else(|| panic!("no {wanted:?} in {:?}", self.owner.seen))
    }
}

fn reason_of(seen: &[Seen], stream: StreamId) -> Option<Reason> {
    seen.iter().find_map(|seen| match seen {
        Seen::Closed(of, reason) if *of == stream => Some(*reason),
        _ => None,
    })
}

/// Consumes nothing.
pub(crate) fn nothing(_: StreamId, _: &mut Data<'_>) {}

/// Two ends of one connection: ours, and the peer's, which blocks. A `TcpStream` reads, writes and shuts down any
/// socket, so the far end has one type for all kinds.
pub(crate) fn tcp() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    far.set_nodelay(true).unwrap();
    (listener.accept().unwrap().0.into(), far)
}

pub(crate) fn unix() -> (OwnedFd, TcpStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (near.into(), TcpStream::from(OwnedFd::from(far)))
}

/// One connection of each kind of socket.
pub(crate) fn sockets() -> [(OwnedFd, TcpStream); 2] {
    [tcp(), unix()]
}

/// Ends a TCP connection with a reset instead of a FIN.
pub(crate) fn reset(far: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&far, Some(Duration::ZERO)).unwrap();
    drop(far);
}

/// Keeps the kernel's buffers between two ends small; by default those of TCP grow to many MiB.
pub(crate) fn hold_little(near: &OwnedFd, far: &TcpStream) {
    const SMALL: usize = 64 << 10;
    rustix::net::sockopt::set_socket_send_buffer_size(near, SMALL).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(far, SMALL).unwrap();
}

/// Bytes from which their position can be recognized.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((at / 3 + at / 251) % 256).unwrap()).collect()
}

pub(crate) fn write(far: &TcpStream, bytes: &[u8]) {
    let mut far = far;
    far.write_all(bytes).unwrap();
}

/// A small random generator, so that a failing run can be repeated from its seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}
