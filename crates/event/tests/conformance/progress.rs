//! How much of the waiting output a peer has accepted.

use std::io::{Read, pipe};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;

use event::{
    Context, DeadlineName, Direction, Direction::Both, Kernel, OutputWait, Reason, StreamId,
    StreamLimits,
};
use rustix::net::sockopt;

use crate::ahead::Ahead;
use crate::harness::{Bench, Seen, pattern, tcp, unix, write};

const LIMITS: StreamLimits = StreamLimits {
    recv_buffer_max: 1 << 20,
    send_high: 1 << 20,
    send_low: 1 << 18,
    send_max: usize::MAX,
    progress_after: Some(Duration::ZERO),
};
const LOOK: DeadlineName = DeadlineName(2);
const LONG: usize = 8 << 20;

/// The number of bytes that a peer reads. It is less than the free space that the kernel's buffer needs before the
/// kernel reports room again, and more than a peer acknowledges without reading.
const READ: usize = 400 << 10;
const TAKEN: u64 = 150 << 10;

/// A send buffer of 2 MiB and a receive buffer of the peer of 128 KiB; the kernel doubles both.
fn tcp_of_known_size() -> (OwnedFd, TcpStream) {
    let (near, far) = tcp();
    sockopt::set_socket_send_buffer_size(&near, 1 << 20).unwrap();
    sockopt::set_socket_recv_buffer_size(&far, 64 << 10).unwrap();
    (near, far)
}

fn read(mut far: &TcpStream, count: usize) {
    far.read_exact(&mut vec![0; count]).unwrap();
}

/// Returns the wait of a stream when a deadline is delivered.
fn look<K: Kernel>(bench: &mut Bench<K>, stream: StreamId) -> OutputWait {
    bench.context().deadline_in(stream, LOOK, Duration::from_millis(1));
    bench.until_seen(&Seen::Deadline(stream, LOOK));
    bench.owner.seen.retain(|seen| *seen != Seen::Deadline(stream, LOOK));
    bench.context().output_wait(stream).expect("it waits")
}

/// Waits until a peer that reads nothing accepts nothing more, and counts from there.
fn rest<K: Kernel>(bench: &mut Bench<K>, stream: StreamId) {
    // The last bytes are acknowledged after 40 ms.
    for _ in 0..100 {
        look(bench, stream);
    }
    bench.context().restart_output_wait(stream);
}

fn look_until_taken<K: Kernel>(bench: &mut Bench<K>, stream: StreamId, count: u64) {
    let begun = std::time::Instant::now();
    while look(bench, stream).taken < count {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not counted");
    }
}

pub(crate) fn what_a_peer_acknowledges_counts_though_the_kernel_accepts_nothing(
    kernel: impl Kernel,
) {
    let mut bench = Bench::new(kernel);
    // A Unix socket counts messages, of at most 36 KiB.
    for ((near, far), count, taken) in
        [(tcp_of_known_size(), READ, TAKEN), (unix(), 80 << 10, 30 << 10)]
    {
        let stream = bench.adopt_with(near, Both, LIMITS);
        bench.context().send_bytes(stream, &pattern(LONG));
        bench.on_events_done();
        rest(&mut bench, stream);
        let sent = bench.events.counts().sent;
        read(&far, count);
        look_until_taken(&mut bench, stream, taken);
        assert_eq!(bench.events.counts().sent, sent, "the kernel has accepted something");
        bench.context().restart_output_wait(stream);
        assert_eq!(bench.context().output_wait(stream).map(|wait| wait.taken), Some(0));
        bench.context().close(stream);
        bench.owner.gone.insert(stream);
    }
}

pub(crate) fn it_counts_of_relayed_bytes_as_well(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, source) = tcp();
    let (out, far) = tcp_of_known_size();
    let (from, to) = (bench.adopt(near, Both), bench.adopt_with(out, Both, LIMITS));
    assert!(bench.context().relay(from, to, None));
    let writer: JoinHandle<TcpStream> = std::thread::spawn(move || {
        write(&source, &pattern(LONG));
        source
    });
    let waits = |io: &mut Context<'_>| io.output_wait(to).is_some();
    while !waits(&mut bench.context()) {
        bench.events.turn(&mut bench.owner, Some(Duration::from_millis(1))).unwrap();
    }
    rest(&mut bench, to);
    let sent = bench.events.counts().sent;
    read(&far, READ);
    look_until_taken(&mut bench, to, TAKEN);
    assert_eq!(bench.events.counts().sent, sent, "the kernel has accepted something");
    let reader = std::thread::spawn(move || read(&far, LONG - READ));
    bench.until("all", |_| reader.is_finished());
    reader.join().unwrap();
    drop(writer.join().unwrap());
}

pub(crate) fn on_a_pipe_what_the_kernel_accepts_counts(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (mut reader, writer) = pipe().unwrap();
    let stream = bench.adopt_with(writer, Direction::Out, LIMITS);
    bench.context().send_bytes(stream, &pattern(LONG));
    bench.on_events_done();
    assert_eq!(look(&mut bench, stream).taken, 0);
    reader.read_exact(&mut vec![0; READ / 8]).unwrap();
    look_until_taken(&mut bench, stream, 4096);
}

pub(crate) fn a_peer_that_acknowledges_is_not_left(kernel: impl Kernel) {
    const MINUTE: Duration = Duration::from_secs(60);
    let (kernel, ahead) = Ahead::new(kernel);
    let mut bench = Bench::new(kernel);
    let (near, far) = tcp_of_known_size();
    let stream = bench.adopt_with(near, Both, LIMITS);
    bench.context().send_bytes(stream, &pattern(LONG));
    bench.on_events_done();
    rest(&mut bench, stream);
    bench.context().finish(stream, Some(60 * MINUTE));
    bench.on_events_done();
    let sent = bench.events.counts().sent;
    for _ in 0..2 {
        read(&far, READ / 2);
        look_until_taken(&mut bench, stream, 1);
        bench.context().restart_output_wait(stream);
        assert_eq!(bench.events.counts().sent, sent, "the kernel has accepted something");
        ahead.set(ahead.get() + 61 * MINUTE);
        bench.on_events_done();
        assert_eq!(bench.owner.seen, [], "it made progress within the hour");
    }
    // The peer reads no more, and the bytes that it acknowledges without reading end.
    while !bench.owner.seen.contains(&Seen::Closed(stream, Reason::Lingered)) {
        ahead.set(ahead.get() + 61 * MINUTE);
        bench.on_events_done();
    }
}
