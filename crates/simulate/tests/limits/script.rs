//! One shard of the gateway on a kernel that a test scripts: what each peer sends and takes, and the time.
//!
//! Unlike the worlds of the simulation nothing is drawn: a test says what happens, in its order, and the
//! clock moves only when it says so. Peers are numbered in the order in which they connected, clients and
//! servers alike.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use event::{
    Address, Fd, Happened, Interest, Kernel, Loop, LoopSettings, Medium, Readiness, Token, Wake,
};
use gateway::metrics::Metrics;
use gateway::{Access, Fleet, Mail, Parts, Shard, Threads, Workshop};
use settings::Source;

/// Turns in which nothing is reported after which nothing is left to be done.
const RESTS: u32 = 40;
/// The descriptor of the one listener.
const LISTENER: u32 = 0;

#[derive(Debug, Default)]
struct Peer {
    token: Option<Token>,
    /// What it has sent and the gateway has not received.
    sent: VecDeque<u8>,
    /// All that it has taken, and what the kernel has room for besides.
    taken: Vec<u8>,
    room: usize,
    ended: bool,
    closed: bool,
}

#[derive(Debug)]
struct Net {
    now: Instant,
    listener: Option<Token>,
    backlog: VecDeque<u32>,
    peers: BTreeMap<u32, Peer>,
    /// Peers that the gateway connected to.
    servers: Vec<u32>,
    /// Room of the kernel for output to each server.
    server_room: usize,
    reports: Vec<Happened>,
    /// How far the clock moves while the gateway waits.
    until: Instant,
}

impl Net {
    fn add(&mut self, room: usize) -> u32 {
        let number = u32::try_from(self.peers.len()).unwrap() + 1;
        self.peers.insert(number, Peer { room, ..Peer::default() });
        number
    }

    fn peer(&mut self, fd: &Fd) -> &mut Peer {
        let number = fd.simulated_number().unwrap();
        self.peers.get_mut(&number).unwrap()
    }

    fn report(&mut self, number: u32, readiness: Readiness) {
        if let Some(token) = self.peers[&number].token {
            self.reports.push(Happened { token, readiness });
        }
    }
}

#[derive(Clone, Debug)]
struct Scripted(Arc<Mutex<Net>>);

impl Scripted {
    fn lock(&self) -> MutexGuard<'_, Net> {
        self.0.lock().unwrap()
    }
}

#[derive(Debug)]
struct Nobody;

impl Wake for Nobody {
    fn wake(&self) {}
}

impl Workshop for Nobody {
    fn factory(&self, pool: &settings::Pool) -> Result<Arc<dyn exchange::Factory>, String> {
        Err(format!("pool {} has no handlers", pool.name))
    }
}

impl spawn::Spawn for Nobody {
    fn start(&mut self, _: u64, _: spawn::Command) {}

    fn stop(&mut self, _: u64, _: spawn::Stop) {}

    fn home(&mut self, _: spawn::Serves) -> io::Result<spawn::Home> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn resident(&self, _: u32) -> Option<u64> {
        None
    }
}

fn would_block<T>() -> io::Result<T> {
    Err(io::ErrorKind::WouldBlock.into())
}

impl Kernel for Scripted {
    fn now(&mut self) -> Instant {
        self.lock().now
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        _events_max: usize,
        happened: &mut Vec<Happened>,
    ) -> io::Result<()> {
        let mut net = self.lock();
        if net.reports.is_empty() {
            let rest = net.until - net.now;
            let moved = timeout.map_or(rest, |timeout| timeout.min(rest));
            net.now += moved;
        }
        happened.append(&mut net.reports);
        Ok(())
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::new(Nobody)
    }

    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()> {
        let mut net = self.lock();
        if interest == Interest::Listener {
            net.listener = Some(token);
            return Ok(());
        }
        let number = fd.simulated_number().unwrap();
        net.peer(fd).token = Some(token);
        net.report(number, Readiness::READ | Readiness::WRITE);
        Ok(())
    }

    fn unwatch(&mut self, fd: &Fd) -> io::Result<()> {
        if fd.simulated_number() != Some(LISTENER) {
            self.lock().peer(fd).token = None;
        }
        Ok(())
    }

    fn accept(&mut self, _: &Fd) -> io::Result<(Fd, event::Peer)> {
        match self.lock().backlog.pop_front() {
            Some(number) => Ok((Fd::simulated(number), event::Peer::Local)),
            None => would_block(),
        }
    }

    fn connect(&mut self, _: &Address) -> io::Result<Fd> {
        let mut net = self.lock();
        let room = net.server_room;
        let number = net.add(room);
        net.servers.push(number);
        Ok(Fd::simulated(number))
    }

    fn connected(&mut self, _: &Fd) -> io::Result<()> {
        Ok(())
    }

    fn prepare(&mut self, _: &Fd) -> io::Result<Medium> {
        Ok(Medium::Socket)
    }

    fn receive(&mut self, fd: &Fd, _: Medium, room: &mut [u8]) -> io::Result<usize> {
        let mut net = self.lock();
        let peer = net.peer(fd);
        if peer.sent.is_empty() {
            return if peer.ended { Ok(0) } else { would_block() };
        }
        let count = room.len().min(peer.sent.len());
        for (to, from) in room.iter_mut().zip(peer.sent.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }

    fn send(&mut self, fd: &Fd, _: Medium, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut net = self.lock();
        let peer = net.peer(fd);
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        let count = bytes.len().min(peer.room);
        if count == 0 {
            return would_block();
        }
        peer.room -= count;
        peer.taken.extend(&bytes[..count]);
        Ok(count)
    }

    fn shut(&mut self, fd: &Fd) -> io::Result<()> {
        self.lock().peer(fd).closed = true;
        Ok(())
    }

    fn reset_on_close(&mut self, _: &Fd) {}

    fn close(&mut self, fd: Fd) {
        if fd.simulated_number() != Some(LISTENER) {
            self.lock().peer(&fd).closed = true;
        }
    }
}

/// A shard whose listener `main` is served by a script.
pub(crate) struct Script {
    kernel: Scripted,
    turning: Loop<Scripted, Mail>,
    shard: Shard,
    metrics: Arc<Metrics>,
    _access: Access,
}

impl Script {
    pub(crate) fn new(text: &str) -> Self {
        let source = Source { name: "test".into(), text: text.into() };
        let configuration = settings::parse(&source, &|_| None).unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "a point to start from; only differences count"
        )]
        let now = Instant::now();
        let kernel = Scripted(Arc::new(Mutex::new(Net {
            now,
            listener: None,
            backlog: VecDeque::new(),
            peers: BTreeMap::new(),
            servers: Vec::new(),
            server_room: 1 << 30,
            reports: Vec::new(),
            until: now,
        })));
        let metrics = Arc::new(Metrics::new(&configuration));
        let mut turning = Loop::new(kernel.clone(), LoopSettings::default()).unwrap();
        let fleet = Fleet::new(vec![turning.mailbox()], &configuration);
        let mut shard = Shard::new(Parts {
            configuration,
            sockets: vec![("main".to_owned(), Fd::simulated(LISTENER))],
            workshop: Arc::new(Nobody),
            spawner: Box::new(Nobody),
            runner: Box::new(Threads),
            admission: None,
            access_log: None,
            fleet: Arc::clone(&fleet),
            shard: 0,
            metrics: Arc::clone(&metrics),
            started: (now, SystemTime::UNIX_EPOCH),
            seed: 1,
        })
        .unwrap();
        shard.start(&mut turning.calls());
        let access = Access::new(fleet, vec![Arc::clone(&metrics)]);
        let mut script = Self { kernel, turning, shard, metrics, _access: access };
        script.pass(Duration::ZERO);
        script
    }

    /// The gateway does what is to be done, and then this time passes.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.kernel.lock().now + time;
        self.kernel.lock().until = until;
        // What one turn leaves, because its budget is used up, is done in the next.
        let mut rests = 0;
        while rests < RESTS {
            let before = {
                let net = self.kernel.lock();
                rests += u32::from(net.reports.is_empty() && net.now == until);
                net.now
            };
            self.turning.turn(&mut self.shard, Some(until - before)).unwrap();
            self.shard.check();
        }
    }

    /// A client connects; the kernel takes so many bytes for it until it reads.
    pub(crate) fn connect(&mut self, room: usize) -> u32 {
        let mut net = self.kernel.lock();
        let number = net.add(room);
        net.backlog.push_back(number);
        let token = net.listener.unwrap();
        net.reports.push(Happened { token, readiness: Readiness::READ });
        drop(net);
        self.pass(Duration::ZERO);
        number
    }

    /// The kernel has room for so many bytes to each server that is connected to from now on.
    pub(crate) fn servers_take(&self, room: usize) {
        self.kernel.lock().server_room = room;
    }

    pub(crate) fn say(&mut self, peer: u32, bytes: &[u8]) {
        let mut net = self.kernel.lock();
        net.peers.get_mut(&peer).unwrap().sent.extend(bytes);
        net.report(peer, Readiness::READ);
        drop(net);
        self.pass(Duration::ZERO);
    }

    /// A peer reads so many bytes: the kernel has room for as many more.
    pub(crate) fn read(&mut self, peer: u32, bytes: usize) {
        let mut net = self.kernel.lock();
        net.peers.get_mut(&peer).unwrap().room += bytes;
        net.report(peer, Readiness::WRITE);
        drop(net);
        self.pass(Duration::ZERO);
    }

    /// What a peer was sent, as far as the kernel took it.
    pub(crate) fn taken(&self, peer: u32) -> String {
        String::from_utf8_lossy(&self.kernel.lock().peers[&peer].taken).into_owned()
    }

    /// Bytes that a peer has sent and the gateway has not received.
    pub(crate) fn unreceived(&self, peer: u32) -> usize {
        self.kernel.lock().peers[&peer].sent.len()
    }

    pub(crate) fn is_closed(&self, peer: u32) -> bool {
        self.kernel.lock().peers[&peer].closed
    }

    /// Connections to servers, in their order.
    pub(crate) fn servers(&self) -> Vec<u32> {
        self.kernel.lock().servers.clone()
    }

    /// The sum of the numbers of this name that have all of these labels.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> u64 {
        let page = self.metrics.render();
        let lines = page.lines().filter_map(|line| line.strip_prefix(name));
        lines
            .filter(|rest| rest.starts_with(['{', ' ']))
            .filter(|rest| labels.iter().all(|label| rest.contains(label)))
            .map(|rest| rest.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    }
}
