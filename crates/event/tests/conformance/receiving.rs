//! From the peer to the handler: offers, held bytes, pauses, ends.

use std::net::Shutdown;

use event::{Direction::Both, Kernel, LoopSettings, Reason, StreamLimits};

use crate::harness::{Bench, Seen, nothing, pattern, sockets, tcp, unix, write};

pub(crate) fn data_and_fin_in_one_report(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        write(&far, b"the last words");
        far.shutdown(Shutdown::Write).unwrap();
        let stream = bench.adopt(near, Both);
        bench.until_seen(&Seen::Eof(stream));
        assert_eq!(
            bench.take_seen(),
            [Seen::Data(stream, b"the last words".to_vec(), false), Seen::Eof(stream)]
        );
        bench.on_events_done();
        assert_eq!(bench.owner.seen, [], "the peer's end alone does not close");
        bench.context().send_bytes(stream, b"answer");
        bench.context().finish(stream, None);
        assert_eq!(bench.until_closed(stream), Reason::Clean);
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut &far, &mut answer).unwrap();
        assert_eq!(answer, "answer");
        bench.take_seen();
    }
}

pub(crate) fn fin_alone(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        let stream = bench.adopt(near, Both);
        bench.on_events_done();
        far.shutdown(Shutdown::Write).unwrap();
        bench.until_seen(&Seen::Eof(stream));
        assert_eq!(bench.take_seen(), [Seen::Eof(stream)]);
    }
}

pub(crate) fn single_bytes_come_together_into_lines(kernel: impl Kernel) {
    let settings = LoopSettings { read_budget: 1, ..LoopSettings::default() };
    let mut bench = Bench::with(kernel, settings);
    bench.eat(|_, data| {
        if let Some(end) = data.bytes().iter().position(|&byte| byte == b'\n') {
            data.consume(end + 1);
        }
    });
    let (near, far) = tcp();
    let stream = bench.adopt(near, Both);
    for byte in b"one\ntwo\n" {
        let before = bench.owner.seen.len();
        write(&far, &[*byte]);
        bench.until("an offer", |seen| seen.len() > before);
    }
    bench.on_events_done();
    let offers = bench.owner.seen.iter().map(|seen| match seen {
        Seen::Data(of, bytes, false) if *of == stream => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{other:?}"),
    });
    assert_eq!(offers.collect::<Vec<_>>(), ["o", "on", "one", "one\n", "t", "tw", "two", "two\n"]);
}

pub(crate) fn what_is_not_consumed_comes_again_with_the_next_bytes(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    bench.eat(|_, data| data.consume(data.bytes().len().min(2)));
    for (near, far) in sockets() {
        let stream = bench.adopt(near, Both);
        write(&far, b"abcde");
        bench.until("the first", |seen| seen.len() == 1);
        bench.on_events_done();
        assert_eq!(bench.owner.seen.len(), 1, "no new bytes, no new offer");
        write(&far, b"fg");
        bench.until("the second", |seen| seen.len() == 2);
        far.shutdown(Shutdown::Write).unwrap();
        bench.until_seen(&Seen::Eof(stream));
        assert_eq!(
            bench.take_seen(),
            [
                Seen::Data(stream, b"abcde".to_vec(), false),
                Seen::Data(stream, b"cdefg".to_vec(), false),
                Seen::Data(stream, b"efg".to_vec(), true),
                Seen::Eof(stream),
            ]
        );
    }
}

pub(crate) fn a_pause_keeps_data_and_eof_back(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    bench.eat(|_, data| data.consume(1));
    for (near, far) in sockets() {
        let stream = bench.adopt(near, Both);
        bench.react(|io, seen| {
            if let Seen::Data(stream, bytes, _) = seen
                && bytes.starts_with(b"a")
            {
                io.pause(*stream);
            }
        });
        write(&far, b"abc");
        bench.until("the first", |seen| seen.len() == 1);
        write(&far, b"def");
        far.shutdown(Shutdown::Write).unwrap();
        bench.on_events_done();
        bench.owner.seen.retain(|seen| *seen != Seen::EndAhead(stream));
        assert_eq!(bench.owner.seen.len(), 1, "paused");
        bench.context().resume(stream);
        bench.until_seen(&Seen::Eof(stream));
        assert_eq!(
            bench.take_seen(),
            [
                Seen::Data(stream, b"abc".to_vec(), false),
                Seen::Data(stream, b"bc".to_vec(), false),
                Seen::Data(stream, b"cdef".to_vec(), false),
                Seen::Data(stream, b"def".to_vec(), true),
                Seen::Eof(stream),
            ]
        );
    }
}

pub(crate) fn pausing_in_the_last_offer_keeps_it(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    bench.eat(nothing);
    let (near, far) = tcp();
    let stream = bench.adopt(near, Both);
    bench.react(|io, seen| {
        if let Seen::Data(stream, _, true) = seen {
            io.pause(*stream);
        }
    });
    write(&far, b"rest");
    far.shutdown(Shutdown::Write).unwrap();
    let last = Seen::Data(stream, b"rest".to_vec(), true);
    bench.until_seen(&last);
    bench.on_events_done();
    assert_eq!(bench.take_seen().last(), Some(&Seen::EndAhead(stream)));
    bench.react(|_, _| {});
    bench.context().resume(stream);
    bench.until_seen(&Seen::Eof(stream));
    assert_eq!(bench.take_seen(), [last, Seen::Eof(stream)]);
}

/// Whether the kernel reports an end behind unread bytes. Kernels that report unread bytes only once report an end only
/// if it had arrived by then.
fn reports_ends_behind_bytes<K: Kernel>() -> bool {
    std::any::type_name::<K>().contains("Epoll")
}

pub(crate) fn the_end_of_a_paused_peer_is_told_ahead<K: Kernel>(kernel: K) {
    let mut bench = Bench::new(kernel);
    bench.eat(|_, data| data.consume(1));
    let data = |stream| Seen::Data(stream, b"rest".to_vec(), false);
    for paused_before in [true, false] {
        for (near, far) in sockets() {
            let stream = bench.adopt(near, Both);
            if paused_before {
                bench.context().pause(stream);
            } else {
                bench.react(|io, seen| {
                    if let Seen::Data(stream, ..) = seen {
                        io.pause(*stream);
                    }
                });
            }
            write(&far, b"rest");
            bench.on_events_done();
            far.shutdown(Shutdown::Write).unwrap();
            bench.on_events_done();
            let told = if paused_before { None } else { Some(data(stream)) };
            let seen = bench.take_seen();
            if reports_ends_behind_bytes::<K>() {
                let expected: Vec<_> = told.into_iter().chain([Seen::EndAhead(stream)]).collect();
                assert_eq!(seen, expected);
            }
            bench.react(|_, _| {});
            bench.context().resume(stream);
            bench.until_seen(&Seen::Eof(stream));
            assert!(!bench.take_seen().contains(&Seen::EndAhead(stream)), "once");
            bench.context().close(stream);
            bench.owner.gone.insert(stream);
        }
    }
}

pub(crate) fn a_hang_up_is_told_while_paused(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (of_tcp, (near, far)) in [(true, tcp()), (false, unix())] {
        let stream = bench.adopt(near, Both);
        bench.context().pause(stream);
        write(&far, b"before");
        bench.on_events_done();
        assert_eq!(bench.owner.seen, []);
        if of_tcp {
            crate::harness::reset(far);
        } else {
            drop(far);
        }
        bench.until_seen(&Seen::Hangup(stream));
        bench.on_events_done();
        assert_eq!(bench.take_seen(), [Seen::Hangup(stream)], "once, and no data");
        bench.context().resume(stream);
        let data = Seen::Data(stream, b"before".to_vec(), false);
        bench.until_seen(&data);
        bench.on_events_done();
        let ending = if of_tcp { Seen::Closed(stream, Reason::Reset) } else { Seen::Eof(stream) };
        assert_eq!(bench.take_seen(), [data, ending]);
    }
}

pub(crate) fn a_hang_up_is_told_once(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    for (near, far) in sockets() {
        let stream = bench.adopt(near, Both);
        bench.context().pause(stream);
        write(&far, b"before");
        bench.on_events_done();
        crate::harness::reset(far);
        bench.until_seen(&Seen::Hangup(stream));
        // The failing write would report the same once more.
        bench.context().send_bytes(stream, b"anybody?");
        bench.on_events_done();
        assert_eq!(bench.take_seen(), [Seen::Hangup(stream), Seen::Broken(stream)]);
        bench.context().resume(stream);
        assert_eq!(bench.until_closed(stream), Reason::Reset);
        assert_eq!(bench.bytes_of(stream), b"before");
        assert!(!bench.take_seen().contains(&Seen::Eof(stream)), "it may not be all there was");
    }
}

pub(crate) fn resuming_in_every_callback_does_not_keep_the_loop(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    bench.eat(nothing);
    let (near, far) = tcp();
    let (other_near, other_far) = unix();
    let stream = bench.adopt(near, Both);
    let other = bench.adopt(other_near, Both);
    bench.react(move |io, seen| {
        if matches!(seen, Seen::Data(of, ..) if *of == stream) {
            io.resume(stream);
        }
    });
    write(&far, b"again and again");
    bench.until("an offer", |seen| seen.len() > 10);
    write(&other_far, b"me too");
    bench.until_seen(&Seen::Data(other, b"me too".to_vec(), false));
}

pub(crate) fn more_than_the_read_budget_comes_in_later_turns(kernel: impl Kernel) {
    let settings = LoopSettings { read_budget: 64 << 10, ..LoopSettings::default() };
    let mut bench = Bench::with(kernel, settings);
    let (near, far) = unix();
    rustix::net::sockopt::set_socket_send_buffer_size(&far, 1 << 20).unwrap();
    let sent = pattern(150_000);
    write(&far, &sent);
    let stream = bench.adopt(near, Both);
    let (mut before, mut turns) = (0, 0);
    while before < sent.len() {
        bench.events.turn(&mut bench.owner, None).unwrap();
        let now = bench.bytes_of(stream).len();
        assert!(now - before <= 2 * (64 << 10), "{} bytes in one turn", now - before);
        turns += usize::from(now > before);
        before = now;
    }
    assert!(turns > 1, "all came in one turn");
    assert_eq!(bench.bytes_of(stream), sent);
}

pub(crate) fn a_report_for_a_stream_that_has_more_reads_no_more(kernel: impl Kernel) {
    // Any number of bytes from one read uses up the budget.
    let settings = LoopSettings { read_budget: 1, ..LoopSettings::default() };
    let mut bench = Bench::with(kernel, settings);
    for (near, far) in sockets() {
        write(&far, &pattern(150_000));
        let stream = bench.adopt(near, Both);
        bench.until("the first", |seen| !seen.is_empty());
        for _ in 0..20 {
            // An edge, behind bytes that still wait to be read.
            write(&far, b"more");
            bench.take_seen();
            bench.events.turn(&mut bench.owner, None).unwrap();
            assert!(bench.owner.seen.len() <= 1, "{} bytes", bench.bytes_of(stream).len());
        }
        bench.take_seen();
        bench.owner.gone.insert(stream);
        bench.context().close(stream);
    }
}

pub(crate) fn a_full_hold_ends_the_stream(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    bench.eat(nothing);
    for recv_buffer_max in [10, 100_000] {
        let (near, far) = tcp();
        let limits = StreamLimits { recv_buffer_max, ..StreamLimits::default() };
        let stream = bench.adopt_with(near, Both, limits);
        write(&far, &pattern(recv_buffer_max - 1));
        bench.until("all but one", |seen| {
            matches!(seen.last(), Some(Seen::Data(_, bytes, _)) if bytes.len() == recv_buffer_max - 1)
        });
        write(&far, b"xyz");
        assert_eq!(bench.until_closed(stream), Reason::RecvBufferFull);
        let seen = bench.take_seen();
        let longest = seen.iter().filter_map(|seen| match seen {
            Seen::Data(_, bytes, _) => Some(bytes.len()),
            _ => None,
        });
        assert_eq!(longest.max(), Some(recv_buffer_max), "no more is held than may be");
    }
}

pub(crate) fn a_full_hold_waits_while_paused(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    bench.eat(nothing);
    let (near, far) = tcp();
    let limits = StreamLimits { recv_buffer_max: 8, ..StreamLimits::default() };
    let stream = bench.adopt_with(near, Both, limits);
    bench.react(|io, seen| {
        if let Seen::Data(stream, bytes, _) = seen
            && bytes.len() == 8
        {
            io.pause(*stream);
        }
    });
    write(&far, b"12345678and more");
    bench.until_seen(&Seen::Data(stream, b"12345678".to_vec(), false));
    bench.on_events_done();
    bench.eat(|_, data| data.consume(data.bytes().len()));
    bench.react(|_, _| {});
    bench.take_seen();
    bench.context().resume(stream);
    bench.until_seen(&Seen::Data(stream, b"and more".to_vec(), false));
    assert_eq!(bench.bytes_of(stream), b"12345678and more");
}

pub(crate) fn a_long_hold_grows_and_is_offered_whole(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let sent = pattern(700_000);
    let length = sent.len();
    bench.eat(move |_, data| {
        if data.bytes().len() == length {
            data.consume(length);
        }
    });
    let (near, far) = tcp();
    let stream = bench.adopt(near, Both);
    let writer = std::thread::spawn({
        let sent = sent.clone();
        move || {
            write(&far, &sent);
            far
        }
    });
    bench.until(
        "all of it",
        |seen| matches!(seen.last(), Some(Seen::Data(_, bytes, _)) if bytes.len() == length),
    );
    assert_eq!(bench.owner.seen.last(), Some(&Seen::Data(stream, sent, false)));
    drop(writer.join().unwrap());
    bench.until_seen(&Seen::Eof(stream));
}

pub(crate) fn taken_parts_stay_valid(kernel: impl Kernel) {
    use std::cell::RefCell;
    use std::rc::Rc;
    let mut bench = Bench::new(kernel);
    let kept = Rc::new(RefCell::new(Vec::new()));
    bench.eat({
        let kept = Rc::clone(&kept);
        move |_, data| {
            let length = data.bytes().len();
            kept.borrow_mut().push(data.take(length / 3));
            kept.borrow_mut().push(data.take(length - length / 3 - length / 5));
        }
    });
    let (near, far) = tcp();
    let stream = bench.adopt(near, Both);
    let sent = pattern(900_000);
    let writer = std::thread::spawn({
        let sent = sent.clone();
        move || write(&far, &sent)
    });
    bench.until_seen(&Seen::Eof(stream));
    writer.join().unwrap();
    let mut all: Vec<u8> = kept.borrow().iter().flat_map(|part| part.to_vec()).collect();
    // A fifth of the last offer is not consumed, and is dropped.
    assert!(all.len() > sent.len() / 2);
    all.truncate(sent.len());
    assert_eq!(all, sent[..all.len()]);
}
