//! Pipes of programs, and descriptors that are shared with other processes.

use std::cell::Cell;
use std::io::{Read, Write, pipe};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::rc::Rc;

use event::{Direction, Fd, Kernel, Reason};

use crate::harness::{Bench, Seen, pattern};

pub(crate) fn a_pipe_ends_behind_its_last_byte(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (reader, mut writer) = pipe().unwrap();
    let stream = bench.adopt(reader, Direction::In);
    writer.write_all(b"first").unwrap();
    let first = Seen::Data(stream, b"first".to_vec(), false);
    bench.until_seen(&first);
    writer.write_all(b"last").unwrap();
    drop(writer);
    assert_eq!(bench.until_closed(stream), Reason::Clean);
    assert_eq!(
        bench.take_seen(),
        [
            first,
            Seen::Data(stream, b"last".to_vec(), false),
            Seen::Eof(stream),
            Seen::Closed(stream, Reason::Clean),
        ]
    );
}

pub(crate) fn a_paused_pipe_tells_of_its_end(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (reader, mut writer) = pipe().unwrap();
    let stream = bench.adopt(reader, Direction::In);
    bench.context().pause(stream);
    writer.write_all(b"unread").unwrap();
    bench.on_events_done();
    drop(writer);
    bench.until_seen(&Seen::Hangup(stream));
    bench.on_events_done();
    assert_eq!(bench.owner.seen, [Seen::Hangup(stream)]);
    bench.context().resume(stream);
    assert_eq!(bench.until_closed(stream), Reason::Clean);
    assert_eq!(bench.bytes_of(stream), b"unread");
}

pub(crate) fn a_pipe_without_a_reader_is_reset(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (reader, writer) = pipe().unwrap();
    let stream = bench.adopt(writer, Direction::Out);
    bench.on_events_done();
    drop(reader);
    assert_eq!(bench.until_closed(stream), Reason::Reset, "seen without a write");
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let stream = bench.adopt(writer, Direction::Out);
    bench.context().send_bytes(stream, b"nobody there");
    bench.context().finish(stream, None);
    assert_eq!(bench.until_closed(stream), Reason::Reset);
}

pub(crate) fn what_the_reader_of_a_pipe_left_unread_is_told_with_its_end(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let left = Rc::new(Cell::new(None));
    let told = Rc::clone(&left);
    bench.react(move |io, seen| {
        if let Seen::Closed(stream, _) = seen {
            told.set(Some(io.unread_by_peer(*stream)));
        }
    });
    for read in [0, 3, 9] {
        let (mut reader, writer) = pipe().unwrap();
        let stream = bench.adopt(writer, Direction::Out);
        bench.context().send_bytes(stream, b"a request");
        bench.on_events_done();
        reader.read_exact(&mut vec![0; read]).unwrap();
        let expected = if cfg!(target_os = "linux") { 9 - read as u64 } else { 0 };
        assert_eq!(bench.context().unread_by_peer(stream), expected, "before its end");
        drop(reader);
        bench.until_closed(stream);
        assert_eq!(left.take(), Some(expected));
    }
}

pub(crate) fn a_finished_pipe_is_flushed_first(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (mut reader, writer) = pipe().unwrap();
    let stream = bench.adopt(writer, Direction::Out);
    let sent = pattern(1_000_000);
    bench.context().send_bytes(stream, &sent);
    bench.context().finish(stream, None);
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        all
    });
    assert_eq!(bench.until_closed(stream), Reason::Clean);
    assert!(reading.join().unwrap() == sent);
}

pub(crate) fn a_slow_reader_of_a_pipe_gets_everything(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (mut reader, writer) = pipe().unwrap();
    let stream = bench.adopt(writer, Direction::Out);
    let sent = pattern(400_000);
    for part in sent.chunks(5000) {
        bench.context().send(stream, part.into());
    }
    bench.on_events_done();
    // Every read makes room, which must be reported to the loop.
    let mut got = vec![0; sent.len()];
    for piece in got.chunks_mut(4096 * 3 + 5) {
        while bench.context().queued(stream) > 0 && readable(&reader) < piece.len() {
            bench.events.turn(&mut bench.owner, None).unwrap();
        }
        reader.read_exact(piece).unwrap();
    }
    assert!(got == sent);
    assert_eq!(bench.context().queued(stream), 0);
}

fn readable(reader: &std::io::PipeReader) -> usize {
    usize::try_from(rustix::io::ioctl_fionread(reader).unwrap()).unwrap()
}

pub(crate) fn what_cannot_be_waited_for_is_refused(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let file = OwnedFd::from(tempfile::tempfile().unwrap());
    let stream = bench.adopt(file, Direction::Both);
    assert!(matches!(bench.until_closed(stream), Reason::Failed(_)));
}

pub(crate) fn a_shared_descriptor_stops_reporting_once_closed(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (reader, mut writer) = pipe().unwrap();
    // As if a child had inherited it: the open file outlives our descriptor.
    let shared = reader.try_clone().unwrap();
    let stream = bench.adopt(reader, Direction::In);
    bench.on_events_done();
    bench.context().close(stream);
    bench.owner.gone.insert(stream);
    bench.on_events_done();
    let before = bench.events.counts().reports;
    writer.write_all(b"for whoever has it now").unwrap();
    bench.on_events_done();
    assert_eq!(bench.events.counts().reports, before);
    drop(shared);
}

/// Every owner of the standard library converts to a descriptor of the loop, which is then non-blocking and not
/// inherited by programs.
pub(crate) fn a_foreign_descriptor_neither_blocks_nor_is_inherited(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, _far) = UnixStream::pair().unwrap();
    let (reader, _writer) = pipe().unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let local = UnixDatagram::unbound().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let numbers: Vec<RawFd> = vec![
        near.as_raw_fd(),
        reader.as_raw_fd(),
        udp.as_raw_fd(),
        local.as_raw_fd(),
        listener.as_raw_fd(),
    ];
    // The loop owns the descriptors, so the flags are read from proc(5).
    let flags = |fd: RawFd| {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        u32::from_str_radix(line.trim(), 8).unwrap()
    };
    rustix::io::fcntl_setfd(&near, rustix::io::FdFlags::empty()).unwrap();
    rustix::io::fcntl_setfd(&udp, rustix::io::FdFlags::empty()).unwrap();
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::empty()).unwrap();
    bench.adopt(near, Direction::Both);
    bench.adopt(reader, Direction::In);
    bench.context().datagram(udp);
    bench.context().datagram(local);
    bench.context().accept_from(listener);
    bench.on_events_done();
    let wanted = rustix::fs::OFlags::NONBLOCK.bits() | rustix::fs::OFlags::CLOEXEC.bits();
    for fd in numbers {
        assert_eq!(flags(fd) & wanted, wanted, "descriptor {fd}");
    }
}

pub(crate) fn the_end_of_a_child_is_the_end_of_its_stream(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let stream = bench.context().watch_process(Fd::of_child(&child).unwrap());
    bench.on_events_done();
    assert_eq!(bench.owner.seen, [], "it runs");
    drop(child.stdin.take());
    assert_eq!(bench.until_closed(stream), Reason::Clean);
    let clean = Seen::Closed(stream, Reason::Clean);
    assert_eq!(bench.take_seen(), [Seen::Eof(stream), clean]);
    assert!(child.try_wait().unwrap().unwrap().success());
    // A child that ended before it is watched, and one that is not watched any more.
    let mut ended = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    ended.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    let stream = bench.context().watch_process(Fd::of_child(&ended).unwrap());
    assert_eq!(bench.until_closed(stream), Reason::Clean);
    let mut ignored = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let stream = bench.context().watch_process(Fd::of_child(&ignored).unwrap());
    bench.on_events_done();
    bench.context().close(stream);
    bench.owner.gone.insert(stream);
    drop(ignored.stdin.take());
    assert!(ended.wait().unwrap().success() && ignored.wait().unwrap().success());
    bench.on_events_done();
    assert_eq!(bench.context().streams(), 0);
}
