//! From the handler to the peer: order, marks, limits.

use std::io::{Read, Write};
use std::net::TcpStream;

use event::{Direction::Both, Kernel, Reason, StreamLimits};

use crate::harness::{Bench, Random, Seen, pattern, sockets, unix};

/// Reads all bytes in pieces of odd sizes, on its own thread.
fn reader(far: TcpStream, length: usize) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let (mut all, mut far, mut random) = (vec![0; length], far, Random(7));
        let mut at = 0;
        while at < length {
            let piece = (1 + random.below(20_000)).min(length - at);
            far.read_exact(&mut all[at..at + piece]).unwrap();
            at += piece;
        }
        all
    })
}

pub(crate) fn a_slow_reader_gets_everything_in_order(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        rustix::net::sockopt::set_socket_send_buffer_size(&near, 8192).unwrap();
        let sent = pattern(3_000_000);
        let stream = bench.adopt(near, Both);
        let (mut rest, mut random) = (&sent[..], Random(3));
        while !rest.is_empty() {
            let (part, after) = rest.split_at((1 + random.below(30_000)).min(rest.len()));
            match random.below(2) {
                0 => bench.context().send_bytes(stream, part),
                _ => bench.context().send(stream, part.into()),
            };
            rest = after;
        }
        assert_eq!(bench.context().queued(stream), sent.len());
        bench.on_events_done();
        assert!(bench.context().queued(stream) > 0, "nobody reads yet");
        let reader = reader(far, sent.len());
        bench.until_seen(&Seen::Drained(stream));
        while bench.context().queued(stream) > 0 {
            bench.events.turn(&mut bench.owner, None).unwrap();
        }
        assert!(reader.join().unwrap() == sent, "bytes were lost, doubled or moved");
    }
}

pub(crate) fn many_small_sends_leave_in_one_call(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, _far) = unix();
    let stream = bench.adopt(near, Both);
    bench.on_events_done();
    let before = bench.events.counts().sends;
    for _ in 0..200 {
        bench.context().send_bytes(stream, b"one of many small answers\n");
    }
    bench.on_events_done();
    assert_eq!(bench.context().queued(stream), 0);
    assert_eq!(bench.events.counts().sends, before + 1);
}

pub(crate) fn drained_comes_once_below_the_low_mark(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = unix();
    let limits = StreamLimits { send_high: 1000, send_low: 100, ..StreamLimits::default() };
    let stream = bench.adopt_with(near, Both, limits);
    bench.context().send_bytes(stream, &pattern(1000));
    bench.on_events_done();
    assert_eq!(bench.owner.seen, [], "it was never above");
    let sent = 2_000_000;
    bench.context().send_bytes(stream, &pattern(sent));
    bench.on_events_done();
    assert_eq!(bench.owner.seen, [], "it is still above");
    let tried = bench.events.counts().sends;
    bench.context().send_bytes(stream, &pattern(10));
    bench.on_events_done();
    assert_eq!(bench.events.counts().sends, tried, "it waits for room instead of trying");
    assert!(bench.context().queued(stream) > 1000);
    let reader = reader(far.try_clone().unwrap(), 1000 + sent + 10);
    bench.until_seen(&Seen::Drained(stream));
    assert!(bench.context().queued(stream) <= 100);
    while bench.context().queued(stream) > 0 {
        bench.events.turn(&mut bench.owner, None).unwrap();
    }
    reader.join().unwrap();
    bench.context().send_bytes(stream, b"a little more");
    bench.on_events_done();
    let drained = bench.owner.seen.iter().filter(|seen| matches!(seen, Seen::Drained(_)));
    assert_eq!(drained.count(), 1);
    drop(far);
}

pub(crate) fn too_much_output_ends_the_stream(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, _far) = unix();
    let limits = StreamLimits { send_max: 1_000_000, ..StreamLimits::default() };
    let stream = bench.adopt_with(near, Both, limits);
    assert_eq!(bench.context().send_bytes(stream, &pattern(1_000_000)), 1_000_000);
    bench.context().send_bytes(stream, b"x");
    assert_eq!(bench.context().send_bytes(stream, b"y"), 0, "it takes no more");
    assert_eq!(bench.owner.seen, [], "told later, not from within the call");
    assert_eq!(bench.until_closed(stream), Reason::SendBufferFull);
    assert_eq!(bench.context().streams(), 0);
}

/// The peer sends after the loop has waited for events, and before the loop sends.
pub(crate) fn what_expects_silence_is_sent_into_silence_alone(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for said in [None, Some(&b"unasked"[..]), Some(b"")] {
        for (near, far) in sockets() {
            let (other, mut trigger) = unix();
            let (stream, other) = (bench.adopt(near, Both), bench.adopt(other, Both));
            bench.on_events_done();
            let mut peer = far.try_clone().unwrap();
            bench.react(move |io, seen| {
                if !matches!(seen, Seen::Data(it, ..) if *it == other) {
                    return;
                }
                match said {
                    None => {}
                    Some(b"") => peer.shutdown(std::net::Shutdown::Write).unwrap(),
                    Some(said) => peer.write_all(said).unwrap(),
                }
                io.expect_silence(stream);
                io.send_bytes(stream, b"request");
            });
            trigger.write_all(b"now").unwrap();
            let mut far = far;
            match said {
                None => {
                    bench.on_events_done();
                    let mut got = [0; 7];
                    far.read_exact(&mut got).unwrap();
                    assert_eq!(&got, b"request");
                    // It applies to one send only.
                    far.write_all(b"reply").unwrap();
                    bench.until("the reply", |seen| {
                        seen.iter().any(|it| matches!(it, Seen::Data(id, ..) if *id == stream))
                    });
                }
                Some(said) => {
                    let reason = bench.until_closed(stream);
                    let expected = if said.is_empty() { Reason::Reset } else { Reason::NotSilent };
                    assert_eq!(reason, expected);
                    let mut got = Vec::new();
                    // Unread bytes may turn the end into a reset.
                    let _ = far.read_to_end(&mut got);
                    assert_eq!(got, b"", "nothing was sent");
                    assert!(!bench.owner.seen.iter().any(
                        |it| matches!(it, Seen::Data(id, ..) | Seen::Eof(id) if *id == stream)
                    ));
                }
            }
            bench.react(|_, _| {});
        }
    }
}
