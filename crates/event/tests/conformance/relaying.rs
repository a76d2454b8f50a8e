//! Bytes that pass from one stream to another without being delivered.

use std::io::{Read, Write, pipe};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;

use event::{Direction, Direction::Both, Kernel, StreamId};

use crate::harness::{
    Bench, Seen, hold_little, nothing, pattern, reset, sockets, tcp, unix, write,
};

fn relayed(seen: &[Seen]) -> u64 {
    let counts =
        seen.iter().map(|seen| if let Seen::Relayed(_, count, _) = seen { *count } else { 0 });
    counts.sum()
}

fn done(seen: &[Seen], stream: StreamId) -> bool {
    seen.iter().any(|seen| matches!(seen, Seen::Relayed(of, _, true) if *of == stream))
}

/// Reads until the end, on its own thread.
fn reader(far: TcpStream) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let (mut all, mut far) = (Vec::new(), far);
        far.read_to_end(&mut all).unwrap();
        all
    })
}

fn writer(far: TcpStream, bytes: Vec<u8>) -> std::thread::JoinHandle<TcpStream> {
    std::thread::spawn(move || {
        write(&far, &bytes);
        far.shutdown(Shutdown::Write).unwrap();
        far
    })
}

pub(crate) fn everything_passes_in_order_until_the_end(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for ((near, source), (out, sink)) in sockets().into_iter().zip(sockets()) {
        let from = bench.adopt(near, Both);
        let to = bench.adopt(out, Both);
        let sent = pattern(3_000_000);
        assert!(bench.context().relay(from, to, None));
        assert!(!bench.context().relay(from, to, None), "it relays already");
        let writer = writer(source, sent.clone());
        let reader = reader(sink);
        bench.until_seen(&Seen::Eof(from));
        assert!(done(&bench.owner.seen, from));
        assert_eq!(relayed(&bench.owner.seen), sent.len() as u64);
        assert_eq!(bench.bytes_of(from), b"", "nothing is offered");
        bench.context().finish_sending(to);
        bench.on_events_done();
        assert!(reader.join().unwrap() == sent);
        drop(writer.join());
        bench.context().close(from);
        bench.context().close(to);
        bench.owner.gone.extend([from, to]);
        bench.take_seen();
    }
}

pub(crate) fn a_limit_is_kept_and_the_rest_is_offered(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    bench.eat(nothing);
    let (near, source) = tcp();
    let (out, mut sink) = unix();
    let (from, to) = (bench.adopt(near, Both), bench.adopt(out, Both));
    write(&source, b"held first, ");
    bench.until("an offer", |seen| !seen.is_empty());
    bench.take_seen();
    bench.eat(|_, data| data.consume(data.bytes().len()));
    assert!(bench.context().relay(from, to, Some(17)));
    write(&source, b"then this and the rest");
    bench.until("the rest", |seen| seen.iter().any(|seen| matches!(seen, Seen::Data(..))));
    bench.on_events_done();
    assert!(done(&bench.owner.seen, from));
    assert_eq!(relayed(&bench.owner.seen), 17);
    assert_eq!(bench.bytes_of(from), b"this and the rest");
    let mut room = [0; 17];
    sink.read_exact(&mut room).unwrap();
    assert_eq!(&room, b"held first, then ");
}

pub(crate) fn a_slow_reader_holds_the_source_back(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, source) = tcp();
    let (out, sink) = unix();
    let (from, to) = (bench.adopt(near, Both), bench.adopt(out, Both));
    let sent = pattern(20_000_000);
    assert!(bench.context().relay(from, to, None));
    let writer = writer(source, sent.clone());
    bench.on_events_done();
    bench.on_events_done();
    assert_eq!(bench.context().queued(to), 0, "what is spliced is not copied");
    assert!(!writer.is_finished(), "the source was not held back");
    let reader = reader(sink);
    bench.until_seen(&Seen::Eof(from));
    bench.context().finish(to, None);
    bench.on_events_done();
    assert!(reader.join().unwrap() == sent);
    assert_eq!(relayed(&bench.owner.seen), sent.len() as u64);
}

pub(crate) fn a_target_that_leaves_ends_the_relay(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, source) = tcp();
    let (out, sink) = unix();
    let (from, to) = (bench.adopt(near, Both), bench.adopt(out, Both));
    assert!(bench.context().relay(from, to, None));
    bench.on_events_done();
    bench.context().close(to);
    bench.owner.gone.insert(to);
    bench.until("the end", |seen| done(seen, from));
    write(&source, b"to whom it may concern");
    bench.until_seen(&Seen::Data(from, b"to whom it may concern".to_vec(), false));
    drop(sink);
    // And a stream whose writes show that the peer is gone.
    let (out, sink) = unix();
    let to = bench.adopt(out, Both);
    bench.take_seen();
    assert!(bench.context().relay(from, to, None));
    drop(sink);
    write(&source, b"lost");
    bench.until("the end", |seen| done(seen, from));
    let _ = bench.until_closed(to);
}

/// The target is not read, so its `Closed` is not delivered and does not end the relay.
pub(crate) fn a_paused_target_that_breaks_ends_the_relay(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (out, sink) in sockets() {
        let (near, source) = unix();
        hold_little(&out, &sink);
        let (from, to) = (bench.adopt(near, Both), bench.adopt(out, Both));
        bench.context().pause(to);
        bench.context().send_bytes(to, &pattern(4 << 20));
        assert!(bench.context().relay(from, to, None));
        write(&source, b"this waits behind that");
        bench.on_events_done();
        assert!(bench.context().relay_waits(from));
        reset(sink);
        bench.until("the end", |seen| done(seen, from));
        bench.until_seen(&Seen::Broken(to));
    }
}

pub(crate) fn pipes_are_relayed_too(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, mut source) = pipe().unwrap();
    let (mut sink, out) = pipe().unwrap();
    let from = bench.adopt(OwnedFd::from(near), Direction::In);
    let to = bench.adopt(OwnedFd::from(out), Direction::Out);
    assert!(bench.context().relay(from, to, None));
    let sent = pattern(700_000);
    let writer = std::thread::spawn({
        let sent = sent.clone();
        move || source.write_all(&sent).unwrap()
    });
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        sink.read_to_end(&mut all).unwrap();
        all
    });
    bench.until_closed(from);
    bench.context().finish(to, None);
    bench.until_closed(to);
    writer.join().unwrap();
    assert!(reader.join().unwrap() == sent);
    assert_eq!(relayed(&bench.owner.seen), sent.len() as u64);
}

pub(crate) fn what_cannot_be_spliced_is_copied(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, source) = unix();
    let (master, mut slave) = crate::terminals::terminal();
    let (from, to) = (bench.adopt(near, Both), bench.adopt(master, Both));
    let sent = pattern(2_000_000);
    assert!(bench.context().relay(from, to, None));
    let writer = writer(source, sent.clone());
    while bench.context().queued(to) == 0 {
        bench.events.turn(&mut bench.owner, None).unwrap();
    }
    bench.on_events_done();
    assert!((1..512 << 10).contains(&bench.context().queued(to)), "{}", bench.context().queued(to));
    let length = sent.len();
    let reader = std::thread::spawn(move || {
        let mut all = vec![0; length];
        slave.read_exact(&mut all).unwrap();
        (all, slave)
    });
    bench.until_seen(&Seen::Eof(from));
    assert_eq!(relayed(&bench.owner.seen), sent.len() as u64);
    assert!(reader.join().unwrap().0 == sent);
    drop(writer.join());
}
