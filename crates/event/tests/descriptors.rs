//! A process that runs out of descriptors. This test has its own binary, because it changes the limit of the process.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use event::{
    Address, BindSettings, Context, Epoll, Event, EventHandler, Fd, Kernel, KernelError,
    ListenerId, Loop, LoopSettings, Poll, Reason, Select, StreamId, StreamLimits, bind,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[derive(Default)]
struct Counter {
    accepted: usize,
    received: usize,
    failed: Vec<KernelError>,
    closed: Vec<(StreamId, Reason)>,
}

impl EventHandler for Counter {
    type Mail = ();

    fn handle(&mut self, _calls: &mut Context<'_>, event: Event<'_, ()>) {
        match event {
            Event::Accepted { .. } => self.accepted += 1,
            Event::Data { mut data, .. } => {
                self.received += data.bytes().len();
                data.consume(data.bytes().len());
            }
            Event::AcceptFailed { error, .. } => self.failed.push(error),
            Event::Closed { stream, reason, .. } => self.closed.push((stream, reason)),
            _ => {}
        }
    }
}

fn listen<K: Kernel>(events: &mut Loop<K, ()>) -> (ListenerId, SocketAddr) {
    let any = Address::Internet(([127, 0, 0, 1], 0).into());
    let (fd, bound): (Fd, _) = bind(&any, &BindSettings::default()).unwrap();
    let Address::Internet(bound) = bound else { panic!("bound to {bound}") };
    (events.context().accept_from(fd), bound)
}

/// The checks run one after the other, because the limit applies to the whole process.
#[test]
fn without_descriptors_accepting_rests_and_recovers_by_itself() {
    many_descriptors_are_watched_by_select();
    rests_and_recovers_by_itself(Epoll::new().unwrap());
    rests_and_recovers_by_itself(Poll::new().unwrap());
    rests_and_recovers_by_itself(Select::new().unwrap());
}

/// Descriptors beyond the 1024 of the C library's sets, up to the limit at the start, but not beyond it.
fn many_descriptors_are_watched_by_select() {
    let limit = |current| Rlimit { current: Some(current), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit(3000)).unwrap();
    let kernel = Select::new().unwrap();
    setrlimit(Resource::Nofile, limit(3500)).unwrap();
    let mut events: Loop<_, ()> = Loop::new(kernel, LoopSettings::default()).unwrap();
    let mut owner = Counter::default();
    let (_, address) = listen(&mut events);
    let hoard: Vec<_> = (0..2500).map(|_| File::open("/dev/null").unwrap()).collect();
    let far = TcpStream::connect(address).unwrap();
    while owner.accepted == 0 {
        events.turn(&mut owner, None).unwrap();
    }
    (&far).write_all(b"beyond the old end").unwrap();
    while owner.received == 0 {
        events.turn(&mut owner, None).unwrap();
    }
    let more: Vec<_> = (0..500).map(|_| File::open("/dev/null").unwrap()).collect();
    let _far = TcpStream::connect(address).unwrap();
    while owner.failed.is_empty() {
        events.turn(&mut owner, None).unwrap();
    }
    assert_eq!(
        owner.failed,
        [std::io::ErrorKind::QuotaExceeded.into()],
        "told, not written beside the set"
    );
    drop((hoard, more));
}

fn rests_and_recovers_by_itself(kernel: impl Kernel) {
    let mut events: Loop<_, ()> = Loop::new(kernel, LoopSettings::default()).unwrap();
    let mut owner = Counter::default();
    let (_, address) = listen(&mut events);
    let limit = Rlimit { current: Some(256), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let far = TcpStream::connect(address).unwrap();
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    while owner.failed.is_empty() {
        events.turn(&mut owner, None).unwrap();
    }
    let none_left = KernelError::from(&std::io::Error::from(Errno::MFILE));
    assert_eq!(none_left.kind(), std::io::ErrorKind::QuotaExceeded);
    assert_eq!(owner.failed, [none_left]);
    assert_eq!(owner.accepted, 0);
    // A connection needs a descriptor, too.
    let closed = events.context().connect(&Address::Internet(address), StreamLimits::default());
    while owner.closed.is_empty() {
        events.turn(&mut owner, Some(Duration::from_micros(100))).unwrap();
    }
    let reason = Reason::ConnectFailed(none_left);
    assert_eq!(owner.closed, [(closed, reason)]);
    // The listener is paused and tried again ten times per second, without success, and each failure is reported. A
    // busy loop over the listener, which is still readable, would have a report in every turn.
    let (begun, before) = (Instant::now(), events.counts().reports);
    let mut turns = 0;
    while turns < 1000 || events.counts().reports < before + 3 {
        events.turn(&mut owner, Some(Duration::from_micros(100))).unwrap();
        turns += 1;
    }
    let tenths = begun.elapsed().as_millis() / 100;
    let tries = u128::from(events.counts().reports - before);
    assert!(tries <= tenths + 1, "{tries} tries in {tenths} tenths of a second");
    assert!(owner.failed.len() as u128 >= tries, "told {} times", owner.failed.len());
    drop(hoard);
    while owner.accepted == 0 {
        events.turn(&mut owner, None).unwrap();
    }
    assert!(far.peer_addr().is_ok());
}
