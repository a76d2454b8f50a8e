//! How streams end: resets, finish, close, and outdated ids.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use event::{DeadlineName, Direction::Both, Kernel, Reason, Released, StreamId};

use crate::ahead::Ahead;
use crate::harness::{
    Bench, Seen, hold_little, nothing, pattern, reset, sockets, tcp, unix, write,
};

pub(crate) fn a_reset_after_data_still_offers_the_data(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = tcp();
    write(&far, b"and gone");
    reset(far);
    let stream = bench.adopt(near, Both);
    assert_eq!(bench.until_closed(stream), Reason::Reset);
    let data = bench.position(&Seen::Data(stream, b"and gone".to_vec(), false));
    assert!(data < bench.position(&Seen::Closed(stream, Reason::Reset)));
    assert!(!bench.owner.seen.contains(&Seen::Eof(stream)), "a reset is not an end");
}

pub(crate) fn a_reset_after_eof_ends_the_stream(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = tcp();
    let stream = bench.adopt(near, Both);
    far.shutdown(Shutdown::Write).unwrap();
    bench.until_seen(&Seen::Eof(stream));
    bench.on_events_done();
    reset(far);
    assert_eq!(bench.until_closed(stream), Reason::Reset);
}

pub(crate) fn a_peer_that_left_is_seen_by_writing(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        let stream = bench.adopt(near, Both);
        bench.on_events_done();
        drop(far);
        bench.until_seen(&Seen::Eof(stream));
        // The first write over TCP makes the peer answer with a reset; a later write fails.
        bench.react(move |io, seen| {
            if matches!(seen, Seen::Timer(_)) {
                io.send_bytes(stream, b"anybody?");
                let now = io.now();
                io.timer(now);
            }
        });
        let now = bench.context().now();
        bench.context().timer(now);
        assert_eq!(bench.until_closed(stream), Reason::Reset);
        bench.take_seen();
    }
}

pub(crate) fn a_failed_write_still_offers_what_came(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = unix();
    // The peer reads no more, but still sends.
    far.shutdown(Shutdown::Read).unwrap();
    write(&far, b"I speak");
    let stream = bench.adopt(near, Both);
    bench.context().pause(stream);
    bench.context().send_bytes(stream, b"you do not listen");
    bench.until_seen(&Seen::Broken(stream));
    bench.on_events_done();
    assert_eq!(bench.take_seen(), [Seen::Hangup(stream), Seen::Broken(stream)]);
    bench.context().resume(stream);
    assert_eq!(bench.until_closed(stream), Reason::Reset);
    assert_eq!(
        bench.take_seen(),
        [Seen::Data(stream, b"I speak".to_vec(), false), Seen::Closed(stream, Reason::Reset)]
    );
}

/// More bytes than the kernel accepts in one call, and more than `send_high`.
const MUCH: usize = 4 << 20;

pub(crate) fn a_paused_stream_whose_send_fails_is_told_broken(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for queued in [1, MUCH] {
        for (near, far) in sockets() {
            let stream = bench.adopt(near, Both);
            bench.context().pause(stream);
            write(&far, b"unread");
            bench.on_events_done();
            reset(far);
            bench.until_seen(&Seen::Hangup(stream));
            assert!(!bench.context().is_broken(stream), "nothing was sent yet");
            bench.context().send_bytes(stream, &pattern(queued));
            bench.until_seen(&Seen::Broken(stream));
            bench.on_events_done();
            assert_eq!(bench.take_seen(), [Seen::Hangup(stream), Seen::Broken(stream)]);
            assert!(bench.context().is_broken(stream));
            assert_eq!(bench.context().send_bytes(stream, b"more"), 0);
            bench.context().resume(stream);
            assert_eq!(bench.until_closed(stream), Reason::Reset);
            assert_eq!(bench.bytes_of(stream), b"unread");
            bench.take_seen();
        }
    }
}

pub(crate) fn a_paused_stream_that_waits_for_room_is_told_broken(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        hold_little(&near, &far);
        let stream = bench.adopt(near, Both);
        bench.context().pause(stream);
        bench.context().send_bytes(stream, &pattern(MUCH));
        bench.on_events_done();
        assert!(bench.context().queued(stream) > MUCH / 2, "nobody reads");
        reset(far);
        bench.until_seen(&Seen::Broken(stream));
        assert!(!bench.owner.seen.contains(&Seen::Drained(stream)), "its output is lost");
        bench.context().resume(stream);
        assert_eq!(bench.until_closed(stream), Reason::Reset);
        bench.take_seen();
    }
}

pub(crate) fn a_broken_stream_that_is_paused_later_is_told_so(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    bench.eat(nothing);
    bench.react(|io, seen| match seen {
        Seen::Data(stream, ..) => io.pause(*stream),
        Seen::Broken(stream) => io.resume(*stream),
        _ => {}
    });
    let (near, far) = unix();
    write(&far, b"unread");
    far.shutdown(Shutdown::Read).unwrap();
    let stream = bench.adopt(near, Both);
    bench.context().send_bytes(stream, b"you do not listen");
    let broken = Seen::Broken(stream);
    bench.until_seen(&broken);
    bench.on_events_done();
    // Once only: if the handler pauses the stream again, it is responsible for resuming it.
    let told = bench.owner.seen.iter().filter(|seen| **seen == broken).count();
    assert_eq!(told, 1);
    bench.react(|_, _| {});
    bench.context().resume(stream);
    assert_eq!(bench.until_closed(stream), Reason::Reset);
}

pub(crate) fn what_was_not_sent_is_told_with_the_end(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = unix();
    far.shutdown(Shutdown::Read).unwrap();
    let stream = bench.adopt(near, Both);
    let told = Rc::new(Cell::new(0));
    let tells = Rc::clone(&told);
    bench.react(move |io, seen| {
        if let Seen::Closed(stream, _) = seen {
            tells.set(io.queued(*stream));
        }
    });
    bench.context().send_bytes(stream, b"you do not listen");
    drop(far);
    assert_eq!(bench.until_closed(stream), Reason::Reset);
    assert_eq!(told.get(), 17, "none of it was taken");
}

pub(crate) fn finishing_discards_until_the_peer_ends(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, mut far) in sockets() {
        let stream = bench.adopt(near, Both);
        bench.on_events_done();
        write(&far, b"a request that is too long");
        bench.context().send_bytes(stream, b"refused");
        bench.context().finish(stream, None);
        assert_eq!(bench.context().send_bytes(stream, b"more"), 0);
        bench.on_events_done();
        write(&far, b", and it goes on");
        let mut answer = String::new();
        far.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "refused", "no reset destroys the refusal");
        bench.on_events_done();
        assert_eq!(bench.owner.seen, [], "nothing is offered, and it is not over");
        far.shutdown(Shutdown::Write).unwrap();
        assert_eq!(bench.until_closed(stream), Reason::Clean);
        assert_eq!(bench.take_seen().len(), 1);
    }
}

pub(crate) fn finishing_after_eof_ends_at_once(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        let stream = bench.adopt(near, Both);
        far.shutdown(Shutdown::Write).unwrap();
        bench.react(|io, seen| {
            if let Seen::Eof(stream) = seen {
                io.send_bytes(*stream, b"bye");
                io.finish(*stream, None);
            }
        });
        assert_eq!(bench.until_closed(stream), Reason::Clean);
        let mut answer = String::new();
        (&far).read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "bye");
    }
}

pub(crate) fn a_peer_that_lingers_is_left(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = tcp();
    let stream = bench.adopt(near, Both);
    bench.context().send_bytes(stream, b"bye");
    bench.context().finish(stream, Some(Duration::from_millis(5)));
    assert_eq!(bench.until_closed(stream), Reason::Lingered);
    drop(far);
}

pub(crate) fn a_peer_that_never_reads_is_left(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = unix();
    let stream = bench.adopt(near, Both);
    bench.context().send_bytes(stream, &pattern(4 << 20));
    bench.on_events_done();
    assert!(bench.context().queued(stream) > 0, "the kernel took it all");
    bench.context().finish(stream, Some(Duration::from_millis(5)));
    assert_eq!(bench.until_closed(stream), Reason::Lingered);
    drop(far);
}

pub(crate) fn a_peer_that_goes_on_reading_is_not_left(kernel: impl Kernel) {
    const MINUTE: Duration = Duration::from_secs(60);
    let (kernel, ahead) = Ahead::new(kernel);
    let mut bench = Bench::new(kernel);
    let (near, far) = unix();
    let stream = bench.adopt(near, Both);
    let length = 4 << 20;
    bench.context().send_bytes(stream, &pattern(length));
    bench.context().finish(stream, Some(60 * MINUTE));
    bench.on_events_done();
    let (mut got, mut hours) = (0, 0);
    while bench.context().queued(stream) > 0 {
        ahead.set(ahead.get() + 50 * MINUTE);
        hours += 1;
        let mut piece = vec![0; length - got - bench.context().queued(stream)];
        (&far).read_exact(&mut piece).unwrap();
        got += piece.len();
        bench.on_events_done();
    }
    assert!(hours > 2, "it was sent too fast to tell");
    ahead.set(ahead.get() + 50 * MINUTE);
    bench.on_events_done();
    assert_eq!(bench.owner.seen, [], "it made progress in each hour");
    ahead.set(ahead.get() + 11 * MINUTE);
    assert_eq!(bench.until_closed(stream), Reason::Lingered);
    drop(far);
}

pub(crate) fn closing_is_silent(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, mut far) in sockets() {
        let stream = bench.adopt(near, Both);
        write(&far, b"hello");
        bench.react(|io, seen| {
            if let Seen::Data(stream, ..) = seen {
                io.send_bytes(*stream, b"discarded");
                io.close(*stream);
                io.close(*stream);
                io.resume(*stream);
                assert_eq!(io.queued(*stream), 0);
            }
        });
        bench.until("data", |seen| !seen.is_empty());
        bench.owner.gone.insert(stream);
        bench.on_events_done();
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
        assert_eq!(bench.take_seen().len(), 1);
        assert_eq!(bench.context().streams(), 0);
    }
}

pub(crate) fn resetting_is_no_end_for_the_peer(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, mut far) = tcp();
    let stream = bench.adopt(near, Both);
    bench.context().send_bytes(stream, b"a part of it");
    bench.on_events_done();
    bench.context().send_bytes(stream, b"discarded");
    bench.context().reset(stream);
    bench.context().reset(stream);
    assert_eq!(bench.until_closed(stream), Reason::Reset);
    assert_eq!(bench.take_seen().len(), 1, "nothing else is told");
    let mut rest = Vec::new();
    let end = far.read_to_end(&mut rest).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
    assert!(b"a part of it".starts_with(&rest[..]));
    // A Unix socket has no reset; it ends nevertheless.
    let (near, mut far) = unix();
    let stream = bench.adopt(near, Both);
    bench.on_events_done();
    bench.context().reset(stream);
    assert_eq!(bench.until_closed(stream), Reason::Reset);
    assert_eq!(far.read_to_end(&mut rest).unwrap(), 0);
    assert_eq!(bench.context().streams(), 0);
}

pub(crate) fn what_a_peer_was_not_sent_in_time_it_misses(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, mut far) = tcp();
    let stream = bench.adopt(near, Both);
    bench.context().send_bytes(stream, &vec![7; 12 << 20]);
    bench.context().finish(stream, Some(Duration::from_millis(50)));
    assert_eq!(bench.until_closed(stream), Reason::Lingered);
    bench.on_events_done();
    let end = far.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
}

pub(crate) fn closing_a_sibling_reported_in_the_same_batch(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (pairs, far): (Vec<_>, Vec<_>) = (0..2).map(|_| unix()).unzip();
    let streams: Vec<_> = pairs.into_iter().map(|near| bench.adopt(near, Both)).collect();
    bench.on_events_done();
    for far in &far {
        write(far, b"both at once");
    }
    let (heir_near, heir_far) = unix();
    let (mut heir_near, siblings) = (Some(heir_near), streams);
    bench.react(move |io, seen| {
        if let (Seen::Data(first, ..), Some(near)) = (seen, heir_near.take()) {
            let other = siblings.iter().find(|id| *id != first).unwrap();
            io.close(*other);
            let heir = io.adopt(near, Both, event::StreamLimits::default());
            assert_eq!(heir.index(), other.index(), "it takes the very place");
            assert_ne!(heir.generation(), other.generation());
        }
    });
    bench.until("data", |seen| !seen.is_empty());
    bench.on_events_done();
    assert_eq!(bench.owner.seen.len(), 1, "{:?}", bench.owner.seen);
    assert!(bench.events.counts().stale >= 1, "the late report was dropped and counted");
    write(&heir_far, b"mine");
    bench.until(
        "the heir's own",
        |seen| matches!(seen.last(), Some(Seen::Data(_, bytes, _)) if bytes == b"mine"),
    );
}

pub(crate) fn an_old_id_never_reaches_its_successor(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, _far) = unix();
    let old = bench.adopt(near, Both);
    let now = bench.context().now();
    bench.context().deadline(old, DeadlineName(0), Some(now));
    bench.context().close(old);
    bench.owner.gone.insert(old);
    let (near, mut far) = unix();
    let new = bench.adopt(near, Both);
    assert_eq!((old.index(), old.generation() + 1), (new.index(), new.generation()));
    let mut io = bench.context();
    assert_eq!(io.send_bytes(old, b"for somebody else"), 0);
    assert_eq!(io.send(old, b"for somebody else".as_slice().into()), 0);
    io.pause(old);
    io.deadline(old, DeadlineName(0), Some(now));
    io.finish(old, None);
    io.limits(old, event::StreamLimits { recv_buffer_max: 1, ..Default::default() });
    io.close(old);
    write(&far, b"heard");
    bench.until_seen(&Seen::Data(new, b"heard".to_vec(), false));
    bench.on_events_done();
    assert_eq!(bench.owner.seen.len(), 1);
    far.set_nonblocking(true).unwrap();
    assert_eq!(far.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(bench.events.counts().stale, 7);
}

pub(crate) fn stopping_sends_what_was_queued(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, mut far) = unix();
    let stream = bench.adopt(near, Both);
    write(&far, b"stop");
    bench.react(move |io, seen| {
        if matches!(seen, Seen::Data(..)) {
            io.send_bytes(stream, b"stopping");
            io.stop();
        }
    });
    bench.events.run(&mut bench.owner).unwrap();
    let mut answer = [0; 8];
    far.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"stopping");
}

pub(crate) fn our_direction_ends_while_the_peers_goes_on(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, mut far) in sockets() {
        let stream = bench.adopt(near, Both);
        bench.context().send_bytes(stream, b"all I have to say");
        bench.context().finish_sending(stream);
        assert_eq!(bench.context().send_bytes(stream, b"more"), 0);
        bench.on_events_done();
        let mut said = String::new();
        far.read_to_string(&mut said).unwrap();
        assert_eq!(said, "all I have to say");
        for part in ["go", "on"] {
            write(&far, part.as_bytes());
            bench.until_seen(&Seen::Data(stream, part.into(), false));
        }
        far.shutdown(Shutdown::Write).unwrap();
        assert_eq!(bench.until_closed(stream), Reason::Clean);
        let ending = [Seen::Eof(stream), Seen::Closed(stream, Reason::Clean)];
        assert_eq!(bench.take_seen()[2..], ending);
    }
}

pub(crate) fn both_directions_end_in_either_order(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, mut far) in sockets() {
        let stream = bench.adopt(near, Both);
        far.shutdown(Shutdown::Write).unwrap();
        bench.until_seen(&Seen::Eof(stream));
        let sent = pattern(600_000);
        bench.context().send_bytes(stream, &sent);
        bench.context().finish_sending(stream);
        bench.context().finish_sending(stream);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).unwrap();
            all
        });
        assert_eq!(bench.until_closed(stream), Reason::Clean);
        assert!(reader.join().unwrap() == sent);
    }
}

pub(crate) fn finishing_after_our_direction_ended_discards_the_rest(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        let stream = bench.adopt(near, Both);
        bench.context().finish_sending(stream);
        bench.on_events_done();
        bench.context().finish(stream, None);
        write(&far, b"nobody wants it");
        bench.on_events_done();
        assert_eq!(bench.owner.seen, []);
        drop(far);
        assert_eq!(bench.until_closed(stream), Reason::Clean);
        bench.take_seen();
    }
}

/// With the longest possible linger.
pub(crate) fn a_stream_may_linger_for_ever(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = tcp();
    let stream = bench.adopt(near, Both);
    bench.context().send_bytes(stream, b"bye");
    bench.context().finish(stream, Some(Duration::MAX));
    bench.on_events_done();
    drop(far);
    let reason = bench.until_closed(stream);
    assert!(matches!(reason, Reason::Clean | Reason::Reset), "{reason:?}");
}

/// Releases the stream and returns what the loop gives back, with the bytes that the peer had received by then.
fn released(bench: &mut Bench<impl Kernel>, stream: StreamId) -> Box<Released> {
    bench.until("Released", |seen| seen.contains(&Seen::Released(stream)));
    bench.owner.released.remove(&stream).unwrap()
}

pub(crate) fn a_released_stream_loses_no_byte(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, mut far) in sockets() {
        hold_little(&near, &far);
        let stream = bench.adopt(near, Both);
        // The handler takes four bytes and releases the stream in the same event.
        bench.eat(|_, data| data.consume(4));
        let sent = pattern(3_000_000);
        let output = sent.clone();
        bench.react(move |io, seen| {
            if let Seen::Data(stream, ..) = seen {
                io.send(*stream, (&output[..]).into());
                io.deadline(*stream, DeadlineName(0), Some(io.now()));
                assert!(io.release(*stream));
                assert!(!io.release(*stream), "once only");
                assert_eq!(io.send_bytes(*stream, b"after it"), 0);
                io.finish(*stream, None);
                io.reset(*stream);
            }
        });
        write(&far, b"headunread");
        let Released { fd, unread, unsent } = *released(&mut bench, stream);
        assert!(!bench.take_seen().contains(&Seen::Deadline(stream, DeadlineName(0))));
        assert_eq!(&unread[..], b"unread");
        assert!(!unsent.is_empty() && unsent.len() < sent.len(), "{} are left", unsent.len());
        // Whatever follows stays in the descriptor, and is not reported any more.
        write(&far, b"kernel");
        let before = bench.events.counts().reports;
        bench.on_events_done();
        assert_eq!(bench.events.counts().reports, before);
        assert_eq!(bench.context().streams(), 0);
        let near = TcpStream::from(OwnedFd::try_from(fd).unwrap());
        near.set_nonblocking(false).unwrap();
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).unwrap();
            all
        });
        let mut rest = [0; 6];
        (&near).read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"kernel");
        (&near).write_all(&unsent).unwrap();
        drop(near);
        assert!(reading.join().unwrap() == sent);
    }
}

pub(crate) fn a_released_descriptor_can_be_adopted_again(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        let stream = bench.adopt(near, Both);
        bench.eat(nothing);
        write(&far, b"first");
        bench.until_seen(&Seen::Data(stream, b"first".to_vec(), false));
        assert!(bench.context().release(stream));
        let Released { fd, unread, unsent } = *released(&mut bench, stream);
        assert_eq!((&unread[..], &unsent[..]), (&b"first"[..], &b""[..]));
        write(&far, b"second");
        let again = bench.adopt(fd, Both);
        bench.until_seen(&Seen::Data(again, b"second".to_vec(), false));
        assert!(bench.context().release(again));
        // Closing is silent, also between the call and its event.
        bench.context().close(again);
        bench.owner.gone.insert(again);
        bench.on_events_done();
        assert_eq!(bench.context().streams(), 0);
    }
}

pub(crate) fn what_cannot_be_released_stays(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, far) = unix();
    let (other, _other_far) = unix();
    let (stream, other) = (bench.adopt(near, Both), bench.adopt(other, Both));
    bench.on_events_done();
    assert!(bench.context().relay(stream, other, None));
    assert!(!bench.context().release(stream), "it has a relay");
    assert!(!bench.context().release(other), "it is the target of a relay");
    drop(far);
    bench.until_seen(&Seen::Eof(stream));
    bench.context().finish(stream, None);
    assert!(!bench.context().release(stream), "it ends");
    assert_eq!(bench.until_closed(stream), Reason::Clean);
    assert!(!bench.context().release(stream), "it is gone");
    bench.context().finish(other, None);
    assert!(!bench.context().release(other), "it ends");
}
