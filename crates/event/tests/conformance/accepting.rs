//! Listeners and connects.

use std::cell::RefCell;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::rc::Rc;

use event::{
    Address, BindSettings, Kernel, KernelError, ListenerId, LoopSettings, Reason, StreamId,
    StreamLimits, bind,
};

use rustix::io::Errno;

use crate::harness::{Bench, Seen, write};

fn listen<K: Kernel>(bench: &mut Bench<K>) -> (ListenerId, SocketAddr) {
    let any = Address::Internet(([127, 0, 0, 1], 0).into());
    let (fd, bound) = bind(&any, &BindSettings::default()).unwrap();
    let Address::Internet(bound) = bound else { panic!("bound to {bound}") };
    (bench.context().accept_from(fd), bound)
}

fn accepted(seen: &[Seen]) -> Vec<StreamId> {
    let streams = seen.iter().filter_map(|seen| match seen {
        Seen::Accepted(_, stream) => Some(*stream),
        _ => None,
    });
    streams.collect()
}

pub(crate) fn accepted_streams_speak_and_a_closed_listener_refuses(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (listener, address) = listen(&mut bench);
    bench.react(|io, seen| {
        if let Seen::Data(stream, bytes, _) = seen {
            io.send_bytes(*stream, bytes);
        }
    });
    let mut far = TcpStream::connect(address).unwrap();
    write(&far, b"hello");
    bench.until("data", |seen| seen.iter().any(|seen| matches!(seen, Seen::Data(..))));
    let mut echo = [0; 5];
    far.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"hello");
    bench.context().close_listener(listener);
    bench.on_events_done();
    let refused = TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    write(&far, b"still here");
    bench.until("the rest", |seen| {
        seen.iter().any(|seen| matches!(seen, Seen::Data(_, bytes, _) if bytes == b"still here"))
    });
}

pub(crate) fn a_paused_listener_accepts_later(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (listener, address) = listen(&mut bench);
    bench.on_events_done();
    bench.context().pause_listener(listener);
    let _far = TcpStream::connect(address).unwrap();
    bench.on_events_done();
    assert_eq!(bench.owner.seen, []);
    bench.context().resume_listener(listener);
    bench.until("an accept", |seen| accepted(seen).len() == 1);
    // Pausing and resuming in one turn has no effect.
    bench.context().pause_listener(listener);
    bench.context().resume_listener(listener);
    let _second = TcpStream::connect(address).unwrap();
    bench.until("a second accept", |seen| accepted(seen).len() == 2);
}

pub(crate) fn more_than_the_accept_budget_come_in_later_turns(kernel: impl Kernel) {
    let settings = LoopSettings { accept_budget: 3, ..LoopSettings::default() };
    let mut bench = Bench::with(kernel, settings);
    let (_, address) = listen(&mut bench);
    let far: Vec<_> = (0..10).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut before = 0;
    while before < far.len() {
        bench.events.turn(&mut bench.owner, None).unwrap();
        let now = accepted(&bench.owner.seen).len();
        assert!(now - before <= 3, "{} accepted in one turn", now - before);
        before = now;
    }
}

pub(crate) fn a_listener_that_cannot_be_watched_is_told_and_tried_again(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    // A regular file cannot be watched.
    let file = tempfile::tempfile().unwrap();
    let listener = bench.context().accept_from(std::os::fd::OwnedFd::from(file));
    bench.until_seen(&Seen::AcceptFailed(listener));
    bench.context().close_listener(listener);
    bench.take_seen();
    bench.on_events_done();
    assert_eq!(bench.owner.seen, []);
}

pub(crate) fn connecting_sends_what_was_queued_before(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Internet(listener.local_addr().unwrap());
    let stream = bench.context().connect(&address, StreamLimits::default());
    assert_eq!(bench.context().send_bytes(stream, b"early"), 5);
    assert_eq!(bench.context().queued(stream), 5);
    bench.until_seen(&Seen::Connected(stream));
    bench.on_events_done();
    let (mut far, _) = listener.accept().unwrap();
    let mut early = [0; 5];
    far.read_exact(&mut early).unwrap();
    assert_eq!(&early, b"early");
    assert_eq!(bench.context().queued(stream), 0);
    assert!(far.nodelay().is_ok());
    write(&far, b"answer");
    bench.until_seen(&Seen::Data(stream, b"answer".to_vec(), false));
}

/// The end of a connection attempt with this error of the system.
fn failed(error: Errno) -> Reason {
    let error = KernelError::from(&std::io::Error::from(error));
    assert!(error.raw_os_error().is_some());
    Reason::ConnectFailed(error)
}

pub(crate) fn connecting_to_nobody_ends_with_the_reason(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Address::Internet(listener.local_addr().unwrap())
    };
    let refused = bench.context().connect(&nobody, StreamLimits::default());
    bench.context().send_bytes(refused, b"never");
    let nowhere = Address::Unix("/nonexistent/socket".into());
    let missing = bench.context().connect(&nowhere, StreamLimits::default());
    let closed = bench.context().connect(&nobody, StreamLimits::default());
    bench.context().close(closed);
    bench.owner.gone.insert(closed);
    let reason = bench.until_closed(refused);
    assert_eq!(reason, failed(Errno::CONNREFUSED));
    assert_eq!(bench.until_closed(missing), failed(Errno::NOENT));
    assert_eq!(bench.owner.seen.len(), 2, "{:?}", bench.owner.seen);
    assert_eq!(bench.context().streams(), 0);
}

pub(crate) fn finishing_before_connected_still_sends(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Internet(listener.local_addr().unwrap());
    let stream = bench.context().connect(&address, StreamLimits::default());
    bench.context().send_bytes(stream, b"all there is");
    bench.context().finish(stream, None);
    assert_eq!(bench.context().send_bytes(stream, b"too late"), 0);
    bench.until_seen(&Seen::Connected(stream));
    bench.on_events_done();
    let (mut far, _) = listener.accept().unwrap();
    let mut all = Vec::new();
    far.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"all there is");
    far.shutdown(Shutdown::Both).unwrap();
    assert_eq!(bench.until_closed(stream), Reason::Clean);
}

pub(crate) fn unix_sockets_accept_and_connect(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let address = Address::Unix(path.clone());
    let (fd, _) = bind(&address, &BindSettings::default()).unwrap();
    bench.context().accept_from(fd);
    let stream = bench.context().connect(&address, StreamLimits::default());
    let far = UnixStream::connect(&path).unwrap();
    bench.until("two accepts", |seen| accepted(seen).len() == 2);
    bench.until_seen(&Seen::Connected(stream));
    drop(far);
    let second = accepted(&bench.owner.seen);
    bench.until("an end", |seen| second.iter().any(|of| seen.contains(&Seen::Eof(*of))));
}

/// Another user can replace a socket by a link to a socket that only this process may open.
pub(crate) fn connecting_follows_no_link_of_another_user(kernel: impl Kernel) {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let mut bench = Bench::new(kernel);
    let folder = tempfile::tempdir().unwrap();
    let (app, secret) = (folder.path().join("app"), folder.path().join("secret"));
    std::fs::create_dir(&app).unwrap();
    let listener = UnixListener::bind(&secret).unwrap();
    listener.set_nonblocking(true).unwrap();
    symlink(&secret, app.join("link")).unwrap();
    std::fs::set_permissions(&app, std::fs::Permissions::from_mode(0o777)).unwrap();
    let through = Path::new("/proc/self/root").join(secret.strip_prefix("/").unwrap());
    for path in [app.join("link"), through] {
        let stream = bench.context().connect(&Address::Unix(path), StreamLimits::default());
        let denied = KernelError::from(ErrorKind::PermissionDenied);
        assert_eq!(bench.until_closed(stream), Reason::ConnectFailed(denied));
    }
    let error = listener.accept().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

pub(crate) fn connecting_can_be_given_up_by_a_deadline(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    // With a backlog of zero the system accepts one connection and does not answer the others.
    let settings = BindSettings { backlog: 0, ..BindSettings::default() };
    let (_listener, bound) =
        bind(&Address::Internet(([127, 0, 0, 1], 0).into()), &settings).unwrap();
    let streams: Vec<_> =
        (0..4).map(|_| bench.context().connect(&bound, StreamLimits::default())).collect();
    let at = bench.context().now() + std::time::Duration::from_millis(20);
    for &stream in &streams {
        bench.context().deadline(stream, GIVE_UP, Some(at));
    }
    let connected = Rc::new(RefCell::new(Vec::new()));
    bench.react({
        let connected = Rc::clone(&connected);
        move |io, seen| match seen {
            Seen::Connected(stream) => {
                connected.borrow_mut().push(*stream);
                io.deadline(*stream, GIVE_UP, None);
            }
            Seen::Deadline(stream, _) => io.close(*stream),
            _ => {}
        }
    });
    let ended = |seen: &[Seen]| {
        let given_up = seen.iter().filter(|seen| matches!(seen, Seen::Deadline(..))).count();
        given_up + connected.borrow().len() == streams.len()
    };
    bench.until("all answers", ended);
    assert!(connected.borrow().len() < streams.len(), "the backlog took them all");
    assert_eq!(bench.context().streams(), connected.borrow().len(), "the others are gone");
}

const GIVE_UP: event::DeadlineName = event::DeadlineName(0);

pub(crate) fn our_direction_can_end_before_connected(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Internet(listener.local_addr().unwrap());
    let stream = bench.context().connect(&address, StreamLimits::default());
    bench.context().finish_sending(stream);
    bench.until_seen(&Seen::Connected(stream));
    bench.on_events_done();
    let (mut far, _) = listener.accept().unwrap();
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
    write(&far, b"heard all the same");
    bench.until_seen(&Seen::Data(stream, b"heard all the same".to_vec(), false));
    drop(far);
    assert_eq!(bench.until_closed(stream), Reason::Clean);
}

pub(crate) fn a_listener_of_the_standard_library_does_not_block_the_loop(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let same = socket.try_clone().unwrap();
    bench.context().accept_from(socket);
    // A flag that is set on one descriptor applies to the whole socket. Without it the loop would block in accept(2)
    // for a second connection after the first.
    let flags = rustix::fs::fcntl_getfl(&same).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::NONBLOCK), "{flags:?}");
    let _client = TcpStream::connect(same.local_addr().unwrap()).unwrap();
    bench.until("a connection", |seen| matches!(seen, [Seen::Accepted(..)]));
}
