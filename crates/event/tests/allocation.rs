//! Checks that a loop in steady state allocates nothing, and that the limits of a stream bound its memory. This test
//! has its own binary, because it counts all allocations of the process.
#![allow(unsafe_code, reason = "an allocator can only be written with it")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use event::{
    Context, DeadlineName, Direction, Epoll, Event, EventHandler, Kernel, Loop, LoopSettings, Poll,
    Reason, Select, StreamLimits,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which fulfills the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE.set(LIVE.get() + layout.size().cast_signed() as i64);
        // SAFETY: the caller guarantees for the layout exactly what is required here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size().cast_signed() as i64);
        // SAFETY: the pointer came from the same allocator with the same layout.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Echoes, by a copy or by passing on the block, and postpones a deadline as a server does.
struct Echo {
    takes: bool,
}

impl EventHandler for Echo {
    type Mail = ();

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ()>) {
        if let Event::Data { stream, mut data, .. } = event {
            let length = data.bytes().len();
            if self.takes {
                io.send(stream, data.take(length));
            } else {
                io.send_bytes(stream, data.bytes());
                data.consume(length);
            }
            let at = io.now() + Duration::from_secs(30);
            io.deadline(stream, DeadlineName(0), Some(at));
        }
    }
}

fn allocations_of_echo(kernel: impl Kernel, takes: bool, streams: usize, size: usize) -> u64 {
    let mut events: Loop<_, ()> = Loop::new(kernel, LoopSettings::default()).unwrap();
    let mut owner = Echo { takes };
    let mut far = Vec::new();
    for _ in 0..streams {
        let (near, peer) = UnixStream::pair().unwrap();
        let near = OwnedFd::from(near);
        events.context().adopt(near, Direction::Both, StreamLimits::default());
        peer.set_nonblocking(true).unwrap();
        far.push(peer);
    }
    let message = vec![7; size];
    let mut answer = vec![0; size];
    let mut rounds = |count: u32| {
        for _ in 0..count {
            for peer in &mut far {
                peer.write_all(&message).unwrap();
            }
            for peer in &mut far {
                let mut got = 0;
                while got < size {
                    match peer.read(&mut answer[got..]) {
                        Ok(count) => got += count,
                        Err(_) => assert!(events.turn(&mut owner, None).unwrap()),
                    }
                }
            }
        }
    };
    rounds(10);
    let before = ALLOCATIONS.get();
    rounds(200);
    ALLOCATIONS.get() - before
}

fn steady_echo_allocates_nothing<K: Kernel>(kernel: impl Fn() -> K) {
    for takes in [false, true] {
        // As many streams at the same time as the thread's pool keeps blocks of their size.
        for (streams, size) in [(100, 64), (12, 5000), (3, 40_000)] {
            let count = allocations_of_echo(kernel(), takes, streams, size);
            assert_eq!(count, 0, "{streams} streams, size {size}, taking {takes}");
        }
    }
}

#[test]
fn a_steady_echo_by_epoll_allocates_nothing() {
    steady_echo_allocates_nothing(|| Epoll::new().unwrap());
}

#[test]
fn a_steady_echo_by_poll_allocates_nothing() {
    steady_echo_allocates_nothing(|| Poll::new().unwrap());
}

#[test]
fn a_steady_echo_by_select_allocates_nothing() {
    steady_echo_allocates_nothing(|| Select::new().unwrap());
}

/// Memory that was allocated and not freed, without the blocks in this thread's pool.
fn memory_of(act: impl FnOnce()) -> i64 {
    let memory = || LIVE.get() - pooled();
    let before = memory();
    act();
    memory() - before
}

/// Bytes in this thread's pool: blocks that can be obtained without an allocation.
fn pooled() -> i64 {
    let mut blocks = Vec::with_capacity(1 << 16);
    let mut bytes = 0;
    for capacity in [64, 256, 1024, 4096, 16 << 10, 64 << 10] {
        loop {
            let before = ALLOCATIONS.get();
            blocks.push(block::Block::with_capacity(capacity));
            if ALLOCATIONS.get() > before {
                break;
            }
            // Including the counts before its bytes.
            bytes += i64::try_from(capacity).unwrap() + 16;
        }
    }
    bytes
}

/// Never consumes, and records the ends of streams.
#[derive(Default)]
struct Hoarder {
    ended: Vec<Reason>,
}

impl EventHandler for Hoarder {
    type Mail = ();

    fn handle(&mut self, _: &mut Context<'_>, event: Event<'_, ()>) {
        if let Event::Closed { reason, .. } = event {
            self.ended.push(reason);
        }
    }
}

/// The memory in bytes of the loop, its tables and a stream, in addition to the held bytes.
const BESIDE: i64 = 4096;
/// The number of bytes that are received before the measurement.
const BEFORE: u64 = 3;

#[test]
fn what_a_stream_holds_is_no_more_memory_than_its_limit() {
    // Longer than half a block, shorter than one, and longer than any pooled block.
    for recv_buffer_max in [300, 5000, 20_000, 40_000, 90_000] {
        let mut events: Loop<_, ()> =
            Loop::new(Epoll::new().unwrap(), LoopSettings::default()).unwrap();
        let mut owner = Hoarder::default();
        let (near, mut far) = UnixStream::pair().unwrap();
        let limits = StreamLimits { recv_buffer_max, ..StreamLimits::default() };
        let stream = events.context().adopt(OwnedFd::from(near), Direction::Both, limits);
        let (near, mut other) = UnixStream::pair().unwrap();
        events.context().adopt(OwnedFd::from(near), Direction::Both, limits);
        far.write_all(b"x").unwrap();
        other.write_all(b"x").unwrap();
        // Allocates the loop's own block and all its lists.
        while events.context().counts().received < 2 {
            events.turn(&mut owner, None).unwrap();
        }
        // The block gets its final size when bytes are received behind held ones.
        other.write_all(b"x").unwrap();
        while events.context().counts().received < BEFORE {
            events.turn(&mut owner, None).unwrap();
        }
        let held = memory_of(|| {
            let (mut rest, mut written) = (recv_buffer_max - 2, BEFORE);
            while rest > 0 {
                let count = rest.min(7000);
                far.write_all(&vec![7; count]).unwrap();
                written += count as u64;
                while events.context().counts().received < written {
                    events.turn(&mut owner, None).unwrap();
                }
                rest -= count;
            }
            // Afterwards the loop has its own block again.
            other.write_all(b"x").unwrap();
            while events.context().counts().received <= written {
                events.turn(&mut owner, None).unwrap();
            }
        });
        assert_eq!(owner.ended, [], "one byte less than the limit");
        let max = i64::try_from(recv_buffer_max).unwrap() + BESIDE;
        assert!(held <= max, "{held} bytes of memory for a limit of {recv_buffer_max}");
        events.context().close(stream);
    }
}

#[test]
fn what_waits_to_be_sent_is_no_more_memory_than_its_limit() {
    let send_max = 200_000;
    for (length, before) in [(34_000, 0), (34_000, 100), (5000, 700), (1, 0), (70_000, 1)] {
        let mut events: Loop<_, ()> =
            Loop::new(Epoll::new().unwrap(), LoopSettings::default()).unwrap();
        let (near, _far) = UnixStream::pair().unwrap();
        let limits = StreamLimits { send_max, ..StreamLimits::default() };
        // Nothing is sent before the first turn.
        let stream = events.context().adopt(OwnedFd::from(near), Direction::Both, limits);
        let mut queued = 0;
        let held = memory_of(|| {
            while queued + length + before < send_max * 7 / 8 {
                events.context().send_bytes(stream, &vec![7; before]);
                let mut block = block::Block::with_capacity(length);
                block.push(&vec![7; length]);
                queued = events.context().send(stream, block.freeze());
            }
        });
        let max = i64::try_from(send_max).unwrap() + BESIDE;
        assert!(held <= max, "{held} bytes of memory for a limit of {send_max}");
        let mut owner = Hoarder::default();
        events.turn(&mut owner, Some(Duration::ZERO)).unwrap();
        assert_eq!(owner.ended, [], "{queued} bytes are within the limit");
        events.context().send_bytes(stream, &vec![7; send_max + 1]);
        events.turn(&mut owner, Some(Duration::ZERO)).unwrap();
        assert_eq!(owner.ended, [Reason::SendBufferFull]);
    }
}
