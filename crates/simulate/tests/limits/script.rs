//! Shards of the gateway on a kernel that a test scripts: what each peer sends and reads, and the time.
//!
//! In contrast to the worlds of the simulation, nothing is random: a test determines the events and their order, and
//! the clock moves only when the test moves it. Peers are numbered in the order in which they connected, clients and
//! servers alike. All shards run one iteration after the other, except a shard that a test holds.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, Read};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use event::{
    Address, Completeness, Fd, FdKind, Interest, Kernel, Loop, LoopSettings, Readiness, ReadyEvent,
    Token, Wake,
};
use gateway::{Access, Fleet, HandlerRegistry, MemoryStatus, Parts, Shard, ShardMail, Threads};
use settings::Source;

use crate::programs::{Program, Spawner};

/// The number of iterations without reports after which all work is done.
const RESTS: u32 = 40;
/// The descriptor of the one listener.
const LISTENER: u32 = 0;

#[derive(Debug, Default)]
struct Peer {
    /// The shard that has its descriptor.
    shard: usize,
    token: Option<Token>,
    /// Bytes that it has sent and the gateway has not received.
    sent: VecDeque<u8>,
    /// All bytes that the kernel accepted for it, and the free space of the kernel.
    taken: Vec<u8>,
    room: usize,
    /// A send buffer that has room again after a third of it is free; replaces `room`.
    buffer: Option<Buffer>,
    ended: bool,
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    size: usize,
    unacknowledged: usize,
    /// It was full, and less than a third of it is free since.
    full: bool,
}

impl Buffer {
    fn room(&self) -> usize {
        if self.full { 0 } else { self.size - self.unacknowledged }
    }

    fn accept(&mut self, count: usize) {
        self.unacknowledged += count;
        self.full = self.unacknowledged == self.size;
    }

    fn acknowledge(&mut self, count: usize) {
        self.unacknowledged = self.unacknowledged.saturating_sub(count);
        self.full &= self.unacknowledged > self.size / 3 * 2;
    }
}

#[derive(Debug)]
pub(crate) struct Net {
    now: Instant,
    shards: Vec<AtShard>,
    peers: BTreeMap<u32, Peer>,
    /// The peers to which the gateway connected.
    servers: Vec<u32>,
    /// Programs, in the order of their starts, and the descriptors that represent the gateway's ends of their pipes.
    pub(crate) programs: Vec<Program>,
    pub(crate) stand_ins: BTreeMap<i32, u32>,
    /// The space of the kernel for output to each server.
    server_room: usize,
    /// The time to which the clock moves while the gateway waits.
    until: Instant,
}

/// The kernel state of one shard.
#[derive(Debug)]
struct AtShard {
    listener: Option<Token>,
    backlog: VecDeque<u32>,
    reports: Vec<ReadyEvent>,
    /// When its wait ends.
    wakes: Instant,
}

impl Net {
    pub(crate) fn add(&mut self, shard: usize, room: usize) -> u32 {
        let number = u32::try_from(self.peers.len()).unwrap() + 1;
        self.peers.insert(number, Peer { shard, room, ..Peer::default() });
        number
    }

    fn peer(&mut self, number: u32) -> &mut Peer {
        self.peers.get_mut(&number).unwrap()
    }

    fn report(&mut self, number: u32, readiness: Readiness) {
        let &Peer { shard, token, .. } = &self.peers[&number];
        if let Some(token) = token {
            self.shards[shard].reports.push(ReadyEvent { token, readiness });
        }
    }
}

/// The kernel, from the side of one shard.
#[derive(Clone, Debug)]
pub(crate) struct Scripted {
    pub(crate) net: Arc<Mutex<Net>>,
    shard: usize,
}

impl Scripted {
    fn lock(&self) -> MutexGuard<'_, Net> {
        self.net.lock().unwrap()
    }
}

#[derive(Debug)]
struct Nobody;

impl Wake for Nobody {
    fn wake(&self) {}
}

impl HandlerRegistry for Nobody {
    fn factory(
        &self,
        pool: &settings::Pool,
    ) -> Result<Arc<dyn exchange::Factory>, gateway::FactoryError> {
        Err(format!("pool {} has no handlers", pool.name).into())
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
        ready_events: &mut Vec<ReadyEvent>,
    ) -> io::Result<Completeness> {
        let mut net = self.lock();
        let wakes = timeout.map_or(net.until, |timeout| net.now + timeout);
        let here = &mut net.shards[self.shard];
        here.wakes = wakes;
        ready_events.append(&mut here.reports);
        Ok(Completeness::Complete)
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::new(Nobody)
    }

    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()> {
        if interest == Interest::Listener {
            self.lock().shards[self.shard].listener = Some(token);
            return Ok(());
        }
        let number = self.number(fd);
        let mut net = self.lock();
        net.peer(number).token = Some(token);
        net.report(number, Readiness::READ | Readiness::WRITE);
        Ok(())
    }

    fn unwatch(&mut self, fd: &Fd) -> io::Result<()> {
        if fd.simulated_number() != Some(LISTENER) {
            let number = self.number(fd);
            self.lock().peer(number).token = None;
        }
        Ok(())
    }

    fn accept(&mut self, _: &Fd) -> io::Result<(Fd, event::Peer)> {
        match self.lock().shards[self.shard].backlog.pop_front() {
            Some(number) => Ok((Fd::simulated(number), event::Peer::Local)),
            None => would_block(),
        }
    }

    fn connect(&mut self, _: &Address) -> io::Result<Fd> {
        let mut net = self.lock();
        let room = net.server_room;
        let number = net.add(self.shard, room);
        net.servers.push(number);
        Ok(Fd::simulated(number))
    }

    fn connected(&mut self, _: &Fd) -> io::Result<()> {
        Ok(())
    }

    fn prepare(&mut self, _: &Fd) -> io::Result<FdKind> {
        Ok(FdKind::Socket)
    }

    fn receive(&mut self, fd: &Fd, _: FdKind, room: &mut [u8]) -> io::Result<usize> {
        let number = self.number(fd);
        let mut net = self.lock();
        let peer = net.peer(number);
        if peer.sent.is_empty() {
            return if peer.ended { Ok(0) } else { would_block() };
        }
        let count = room.len().min(peer.sent.len());
        peer.sent.read_exact(&mut room[..count])?;
        Ok(count)
    }

    fn send(&mut self, fd: &Fd, _: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let number = self.number(fd);
        let mut net = self.lock();
        let peer = net.peer(number);
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        let room = peer.buffer.as_ref().map_or(peer.room, Buffer::room);
        let count = bytes.len().min(room);
        if count == 0 {
            return would_block();
        }
        match &mut peer.buffer {
            Some(buffer) => buffer.accept(count),
            None => peer.room -= count,
        }
        peer.taken.extend(&bytes[..count]);
        Ok(count)
    }

    fn unacknowledged(&mut self, fd: &Fd) -> io::Result<u64> {
        let number = self.number(fd);
        let buffer = self.lock().peer(number).buffer;
        let buffer = buffer.ok_or(io::ErrorKind::Unsupported)?;
        Ok(buffer.unacknowledged as u64)
    }

    fn shutdown_write(&mut self, fd: &Fd) -> io::Result<()> {
        let number = self.number(fd);
        self.lock().peer(number).closed = true;
        Ok(())
    }

    fn reset_on_close(&mut self, _: &Fd) {}

    fn close(&mut self, fd: Fd) {
        if fd.simulated_number() != Some(LISTENER) {
            let number = self.number(&fd);
            self.lock().peer(number).closed = true;
        }
    }
}

type Turning = (Loop<Scripted, ShardMail>, Shard);

/// Returns the shards that run.
fn active(shards: &mut [Turning], held: Option<usize>) -> impl Iterator<Item = &mut Turning> {
    let active = shards.iter_mut().enumerate().filter(move |(shard, _)| held != Some(*shard));
    active.map(|(_, turning)| turning)
}

/// Shards whose listener `main` is controlled by a script.
pub(crate) struct Script {
    net: Arc<Mutex<Net>>,
    shards: Vec<Turning>,
    /// The shard that does not run.
    held: Option<usize>,
    access: Access,
    fleet: Arc<Fleet>,
}

impl Script {
    pub(crate) fn new(text: &str) -> Self {
        Self::on_shards(text, 1)
    }

    pub(crate) fn on_shards(text: &str, count: usize) -> Self {
        let source = Source { name: "test".into(), text: text.into() };
        let configuration = settings::parse(&source, &|_| None).unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "a point to start from; only differences count"
        )]
        let now = Instant::now();
        let at_shard =
            || AtShard { listener: None, backlog: VecDeque::new(), reports: vec![], wakes: now };
        let net = Arc::new(Mutex::new(Net {
            now,
            shards: (0..count).map(|_| at_shard()).collect(),
            peers: BTreeMap::new(),
            servers: Vec::new(),
            programs: Vec::new(),
            stand_ins: BTreeMap::new(),
            server_room: 1 << 30,
            until: now,
        }));
        let turning: Vec<Loop<_, ShardMail>> = (0..count)
            .map(|shard| {
                let kernel = Scripted { net: Arc::clone(&net), shard };
                Loop::new(kernel, LoopSettings::default()).unwrap()
            })
            .collect();
        let fleet = Fleet::new(turning.iter().map(Loop::mailbox).collect(), &configuration);
        let (mut shards, mut metrics) = (Vec::new(), Vec::new());
        for (turning, shard) in turning.into_iter().zip(0..) {
            let numbers = Arc::new(gateway::metrics_for(&configuration));
            metrics.push(Arc::clone(&numbers));
            let spawner =
                Spawner { net: Arc::clone(&net), fleet: Arc::clone(&fleet), shard: shard as usize };
            let shard = Shard::new(Parts {
                configuration: configuration.clone(),
                sockets: vec![("main".to_owned(), Fd::simulated(LISTENER))],
                handler_registry: Arc::new(Nobody),
                spawner: Box::new(spawner),
                runner: Box::new(Threads),
                admission: None,
                access_log: None,
                fleet: Arc::clone(&fleet),
                shard,
                metrics: numbers,
                started: (now, SystemTime::UNIX_EPOCH),
                seed: 1,
            });
            shards.push((turning, shard.unwrap()));
        }
        for (turning, shard) in &mut shards {
            shard.start(&mut turning.context());
        }
        let access = Access::new(Arc::clone(&fleet), metrics);
        let mut script = Self { net, shards, held: None, access, fleet };
        script.pass(Duration::ZERO);
        script
    }

    fn net(&self) -> MutexGuard<'_, Net> {
        self.net.lock().unwrap()
    }

    /// Lets the gateway finish its work, and then lets this time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.net().now + time;
        self.net().until = until;
        // Work that exceeds the budget of one iteration is done in the next.
        let mut rests = 0;
        while rests < RESTS {
            let before = self.net().now;
            rests += u32::from(before == until && self.rests());
            for (turning, shard) in active(&mut self.shards, self.held) {
                turning.turn(shard, Some(until - before)).unwrap();
                shard.check();
            }
            if self.rests() {
                let mut net = self.net();
                let turned = net.shards.iter().zip(0..).filter(|(_, it)| self.held != Some(*it));
                let wakes = turned.map(|(shard, _)| shard.wakes).min().unwrap();
                net.now = wakes.clamp(before, until);
            }
        }
    }

    /// Whether no running shard has reports or mail.
    fn rests(&self) -> bool {
        let net = self.net();
        (0..self.shards.len()).filter(|shard| self.held != Some(*shard)).all(|shard| {
            let mailbox = self.fleet.mailbox(u32::try_from(shard).unwrap());
            net.shards[shard].reports.is_empty() && mailbox.waiting() == 0
        })
    }

    /// Holds a shard while `act` runs: the shard does not run.
    pub(crate) fn held<R>(&mut self, shard: usize, act: impl FnOnce(&mut Self) -> R) -> R {
        self.held = Some(shard);
        let result = act(self);
        self.held = None;
        self.pass(Duration::ZERO);
        result
    }

    /// Ends all shards immediately.
    pub(crate) fn end(&mut self) {
        self.shards.drain(..).for_each(|(_, mut shard)| {
            shard.end();
        });
    }

    /// Connects a client. The kernel accepts this number of bytes for it until it reads.
    pub(crate) fn connect(&mut self, room: usize) -> u32 {
        self.connect_to(0, room)
    }

    /// Does the same with one of several shards.
    pub(crate) fn connect_to(&mut self, shard: usize, room: usize) -> u32 {
        let mut net = self.net();
        let number = net.add(shard, room);
        let at = &mut net.shards[shard];
        at.backlog.push_back(number);
        let token = at.listener.unwrap();
        at.reports.push(ReadyEvent { token, readiness: Readiness::READ });
        drop(net);
        self.pass(Duration::ZERO);
        number
    }

    /// Connects a client for which the kernel has a send buffer of this size.
    pub(crate) fn connect_behind(&mut self, size: usize) -> u32 {
        let client = self.connect(0);
        let buffer = Buffer { size, unacknowledged: 0, full: false };
        self.net().peers.get_mut(&client).unwrap().buffer = Some(buffer);
        client
    }

    /// Sets the space of the kernel, in bytes, for each later connection to a server.
    pub(crate) fn servers_take(&self, room: usize) {
        self.net().server_room = room;
    }

    pub(crate) fn say(&mut self, peer: u32, bytes: &[u8]) {
        let mut net = self.net();
        net.peers.get_mut(&peer).unwrap().sent.extend(bytes);
        net.report(peer, Readiness::READ);
        drop(net);
        self.pass(Duration::ZERO);
    }

    /// Makes a peer read this number of bytes: the kernel has space for as many more, immediately or later.
    pub(crate) fn read(&mut self, number: u32, bytes: usize) {
        let mut net = self.net();
        let peer = net.peers.get_mut(&number).unwrap();
        match &mut peer.buffer {
            Some(buffer) => buffer.acknowledge(bytes),
            None => peer.room += bytes,
        }
        if peer.buffer.is_none_or(|buffer| !buffer.full) {
            net.report(number, Readiness::WRITE);
        }
        drop(net);
        self.pass(Duration::ZERO);
    }

    /// Returns the bytes for a peer that the kernel accepted.
    pub(crate) fn taken(&self, peer: u32) -> String {
        String::from_utf8_lossy(&self.net().peers[&peer].taken).into_owned()
    }

    /// Returns the number of bytes that a peer has sent and the gateway has not received.
    pub(crate) fn unreceived(&self, peer: u32) -> usize {
        self.net().peers[&peer].sent.len()
    }

    pub(crate) fn is_closed(&self, peer: u32) -> bool {
        self.net().peers[&peer].closed
    }

    /// Returns the connections to servers, in their order.
    pub(crate) fn servers(&self) -> Vec<u32> {
        self.net().servers.clone()
    }

    /// Returns the programs, in the order of their starts.
    pub(crate) fn programs(&self) -> Vec<Program> {
        self.net().programs.clone()
    }

    /// Returns the memory as `/status` shows it.
    pub(crate) fn memory(&mut self) -> MemoryStatus {
        let (tell, told) = std::sync::mpsc::channel();
        self.access.status(move |status| tell.send(status).unwrap());
        self.pass(Duration::ZERO);
        told.recv().unwrap().memory
    }

    /// Sets the limit on memory, as a reload does.
    pub(crate) fn set_memory_max(&mut self, max: usize) {
        self.fleet.set_memory_max(max);
        // An idle loop sleeps, which it does not do here.
        let shards = 0..u32::try_from(self.shards.len()).unwrap();
        let is_woken = |shard| self.fleet.mailbox(shard).waiting() > 0;
        assert!(shards.into_iter().all(is_woken), "each shard looks at the limit at once");
        self.pass(Duration::ZERO);
    }

    /// Returns the sum of the metrics with this name that have all of these labels.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> u64 {
        let page = self.access.render_metrics();
        let lines = page.lines().filter_map(|line| line.strip_prefix(name));
        lines
            .filter(|rest| rest.starts_with(['{', ' ']))
            .filter(|rest| labels.iter().all(|label| rest.contains(label)))
            .map(|rest| rest.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    }
}
