//! Datagrams: one received datagram is one event, one call sends one datagram.

use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use event::{Address, Kernel, LoopSettings, Origin, SocketId, bind_datagrams};

use crate::harness::{Bench, Seen, pattern};
use crate::untested::untested_without_root;

fn udp<K: Kernel>(bench: &mut Bench<K>) -> (SocketId, UdpSocket) {
    let any = Address::Internet(([127, 0, 0, 1], 0).into());
    let (fd, bound) = bind_datagrams(&any).unwrap();
    let Address::Internet(bound) = bound else { panic!("bound to {bound}") };
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.connect(bound).unwrap();
    (bench.context().datagram(fd), far)
}

/// Sends each datagram back to its sender.
fn echo<K: Kernel>(bench: &mut Bench<K>) {
    bench.react(|io, seen| {
        if let Seen::Datagram(socket, from, bytes) = seen {
            assert!(io.send_datagram(*socket, from, bytes));
        }
    });
}

fn datagrams(seen: &[Seen]) -> Vec<&[u8]> {
    let bytes = seen.iter().filter_map(|seen| match seen {
        Seen::Datagram(_, _, bytes) => Some(&bytes[..]),
        _ => None,
    });
    bytes.collect()
}

pub(crate) fn each_datagram_is_one_event_and_its_answer_goes_to_its_sender(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (_, one) = udp(&mut bench);
    let two = UdpSocket::bind("127.0.0.1:0").unwrap();
    two.connect(one.peer_addr().unwrap()).unwrap();
    echo(&mut bench);
    // An empty datagram counts, too.
    for part in [&b"first"[..], b"", b"third"] {
        one.send(part).unwrap();
    }
    two.send(b"of another").unwrap();
    bench.until("four", |seen| datagrams(seen).len() == 4);
    assert_eq!(datagrams(&bench.owner.seen), [&b"first"[..], b"", b"third", b"of another"]);
    bench.on_events_done();
    let mut room = [0; 100];
    for part in [&b"first"[..], b"", b"third"] {
        let length = one.recv(&mut room).unwrap();
        assert_eq!(&room[..length], part);
    }
    let length = two.recv(&mut room).unwrap();
    assert_eq!(&room[..length], b"of another");
    // And again, after the socket was found empty.
    one.send(b"later").unwrap();
    bench.until("five", |seen| datagrams(seen).len() == 5);
}

pub(crate) fn the_longest_datagram_passes_whole(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (_, far) = udp(&mut bench);
    echo(&mut bench);
    let sent = pattern(65_507);
    far.send(&sent).unwrap();
    bench.until("it", |seen| !seen.is_empty());
    assert!(datagrams(&bench.owner.seen) == [&sent[..]]);
    bench.on_events_done();
    let mut room = vec![0; 70_000];
    let length = far.recv(&mut room).unwrap();
    assert!(room[..length] == sent[..]);
}

pub(crate) fn unix_datagrams_are_answered_by_name(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours");
    let (fd, _) = bind_datagrams(&Address::Unix(path.clone())).unwrap();
    let socket = bench.context().datagram(fd);
    echo(&mut bench);
    let theirs = folder.path().join("theirs");
    let far = UnixDatagram::bind(&theirs).unwrap();
    far.send_to(b"who am I", &path).unwrap();
    bench.until("it", |seen| !seen.is_empty());
    let seen = bench.take_seen();
    let [Seen::Datagram(at, from, bytes)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((*at, from.path(), &bytes[..]), (socket, Some(&*theirs), &b"who am I"[..]));
    bench.on_events_done();
    let mut room = [0; 100];
    let length = far.recv(&mut room).unwrap();
    assert_eq!(&room[..length], b"who am I");
    // A socket without a name can send, and cannot receive replies.
    bench.react(|io, seen| {
        if let Seen::Datagram(socket, from, bytes) = seen {
            assert!(!io.send_datagram(*socket, from, bytes));
        }
    });
    UnixDatagram::unbound().unwrap().send_to(b"nobody", &path).unwrap();
    let nobody = Seen::Datagram(socket, Origin::NOWHERE, b"nobody".to_vec());
    bench.until_seen(&nobody);
}

/// A client with a socket at `theirs`, which was received from, and a socket that it may not reach, in one folder.
struct Forger<K: Kernel> {
    bench: Bench<K>,
    socket: SocketId,
    folder: tempfile::TempDir,
    from: Origin,
    victim: UnixDatagram,
}

impl<K: Kernel> Forger<K> {
    fn new(kernel: K, theirs: impl FnOnce(&Path) -> PathBuf) -> Self {
        let mut bench = Bench::new(kernel);
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("ours");
        let (fd, _) = bind_datagrams(&Address::Unix(ours.clone())).unwrap();
        let socket = bench.context().datagram(fd);
        let victim = UnixDatagram::bind(folder.path().join("victim")).unwrap();
        victim.set_nonblocking(true).unwrap();
        let client = UnixDatagram::bind(theirs(folder.path())).unwrap();
        client.send_to(b"to forge", &ours).unwrap();
        bench.until("it", |seen| !seen.is_empty());
        let seen = bench.take_seen();
        let [Seen::Datagram(_, from, _)] = &seen[..] else { panic!("{seen:?}") };
        let from = from.clone();
        Self { bench, socket, folder, from, victim }
    }

    /// Replies, and asserts that the reply reaches nobody.
    fn is_refused(&mut self) {
        let before = self.bench.events.counts().datagrams_lost;
        if self.bench.context().send_datagram(self.socket, &self.from, b"forged") {
            self.bench.on_events_done();
            assert_eq!(self.bench.events.counts().datagrams_lost, before + 1);
        }
        self.bench.events.turn(&mut self.bench.owner, Some(Duration::ZERO)).unwrap();
        assert_eq!(self.bench.owner.seen, [], "it answers itself");
        let error = self.victim.recv(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

pub(crate) fn a_reply_does_not_follow_a_link_that_replaced_its_sender(kernel: impl Kernel) {
    let mut forger = Forger::new(kernel, |folder| folder.join("theirs"));
    let theirs = forger.folder.path().join("theirs");
    for target in ["victim", "ours"] {
        std::fs::remove_file(&theirs).unwrap();
        std::os::unix::fs::symlink(forger.folder.path().join(target), &theirs).unwrap();
        forger.is_refused();
    }
    std::fs::remove_file(&theirs).unwrap();
    std::fs::hard_link(forger.folder.path().join("ours"), &theirs).unwrap();
    forger.is_refused();
    std::fs::remove_file(&theirs).unwrap();
    std::fs::write(&theirs, "no socket").unwrap();
    forger.is_refused();
    assert_eq!(std::fs::read(&theirs).unwrap(), b"no socket");
}

pub(crate) fn a_sender_with_a_relative_name_gets_no_reply(kernel: impl Kernel) {
    let mut forger = Forger::new(kernel, |folder| {
        let depth = std::env::current_dir().unwrap().components().count() - 1;
        let root: PathBuf = std::iter::repeat_n("..", depth).collect();
        root.join(folder.strip_prefix("/").unwrap()).join("theirs")
    });
    assert_eq!(forger.from, Origin::NOWHERE);
    forger.is_refused();
}

pub(crate) fn a_reply_does_not_pass_through_the_root_of_a_process(kernel: impl Kernel) {
    let mut forger = Forger::new(kernel, |folder| {
        Path::new("/proc/self/root").join(folder.strip_prefix("/").unwrap()).join("theirs")
    });
    forger.is_refused();
}

pub(crate) fn a_reply_goes_only_to_a_socket_of_the_user_who_sent(kernel: impl Kernel) {
    let mut forger = Forger::new(kernel, |folder| folder.join("theirs"));
    let theirs = forger.folder.path().join("theirs");
    std::fs::rename(forger.folder.path().join("victim"), &theirs).unwrap();
    match std::os::unix::fs::chown(&theirs, Some(1), None) {
        Ok(()) => forger.is_refused(),
        Err(error) => {
            untested_without_root("replies to Unix sockets of other users", &error.to_string());
        }
    }
}

pub(crate) fn what_finds_nobody_is_lost_and_the_rest_goes_on(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours");
    let (fd, _) = bind_datagrams(&Address::Unix(path)).unwrap();
    let socket = bench.context().datagram(fd);
    let [gone, full, good] = ["gone", "full", "good"].map(|name| folder.path().join(name));
    let _full = UnixDatagram::bind(&full).unwrap();
    let far = UnixDatagram::bind(&good).unwrap();
    let [gone, full, good] =
        [gone, full, good].map(|path| Origin::of(&Address::Unix(path)).unwrap());
    assert!(bench.context().send_datagram(socket, &gone, b"nobody is there"));
    for _ in 0..1000 {
        assert!(bench.context().send_datagram(socket, &full, &[7; 1000]));
    }
    assert!(bench.context().send_datagram(socket, &good, b"still heard"));
    bench.on_events_done();
    bench.on_events_done();
    let mut room = [0; 100];
    let length = far.recv(&mut room).unwrap();
    assert_eq!(&room[..length], b"still heard");
    let lost = bench.events.counts().datagrams_lost;
    assert!((2..1000).contains(&lost), "{lost} lost");
}

pub(crate) fn more_datagrams_than_the_budget_come_in_later_turns(kernel: impl Kernel) {
    let settings = LoopSettings { read_budget: 1000, ..LoopSettings::default() };
    let mut bench = Bench::with(kernel, settings);
    let (_, far) = udp(&mut bench);
    for number in 0..20_u8 {
        far.send(&[number; 10]).unwrap();
    }
    let mut before = 0;
    while before < 20 {
        bench.events.turn(&mut bench.owner, None).unwrap();
        let now = datagrams(&bench.owner.seen).len();
        assert!(now - before <= 2 * 2, "{} in one turn", now - before);
        before = now;
    }
    let all: Vec<u8> = datagrams(&bench.owner.seen).iter().map(|bytes| bytes[0]).collect();
    assert_eq!(all, (0..20).collect::<Vec<u8>>());
}

pub(crate) fn a_closed_socket_is_silent_and_refuses(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (socket, far) = udp(&mut bench);
    bench.react(|io, seen| {
        if let Seen::Datagram(socket, ..) = seen {
            io.close_datagrams(*socket);
        }
    });
    far.send(b"one").unwrap();
    far.send(b"two").unwrap();
    bench.until("the first", |seen| !seen.is_empty());
    bench.on_events_done();
    assert_eq!(bench.owner.seen.len(), 1);
    let to = Origin::from(far.local_addr().unwrap());
    assert!(!bench.context().send_datagram(socket, &to, b"late"));
    // A descriptor that is not a datagram socket is reported and removed.
    let (reader, _writer) = std::io::pipe().unwrap();
    let pipe = bench.context().datagram(reader);
    bench.until_seen(&Seen::DatagramsFailed(pipe));
    let (stream, _) = crate::harness::unix();
    let stream = bench.context().datagram(stream);
    bench.until_seen(&Seen::DatagramsFailed(stream));
}

pub(crate) fn no_more_wait_than_may(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (socket, far) = udp(&mut bench);
    let to = Origin::from(far.local_addr().unwrap());
    let taken = (0..2000).filter(|_| bench.context().send_datagram(socket, &to, b"x")).count();
    assert_eq!(taken, 1024);
    bench.on_events_done();
    bench.on_events_done();
    bench.on_events_done();
    assert!(bench.context().send_datagram(socket, &to, b"there is room again"));
}
