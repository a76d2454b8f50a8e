//! The steady loop allocates nothing. Alone in its binary, for it counts what the allocator gives.
#![allow(unsafe_code, reason = "an allocator can only be written with it")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use event::{
    Calls, DeadlineName, Direction, Epoll, Event, Kernel, Loop, LoopSettings, Owner, Poll, Select,
    StreamLimits,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise about the layout is the one that is asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the place came from the same allocator with the same layout.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Echoes, by a copy or by handing the block on, and puts a deadline off as a server does.
struct Echo {
    takes: bool,
}

impl Owner for Echo {
    type Mail = ();

    fn handle(&mut self, calls: &mut Calls<'_>, event: Event<'_, ()>) {
        if let Event::Data { stream, mut data } = event {
            let length = data.bytes().len();
            if self.takes {
                calls.send(stream, data.take(length));
            } else {
                calls.send_bytes(stream, data.bytes());
                data.consume(length);
            }
            let at = calls.now() + Duration::from_secs(30);
            calls.deadline(stream, DeadlineName(0), Some(at));
        }
    }
}

fn allocations_of_echo(kernel: impl Kernel, takes: bool, streams: usize, size: usize) -> u64 {
    let mut events: Loop<_, ()> = Loop::new(kernel, LoopSettings::default()).unwrap();
    let mut owner = Echo { takes };
    let mut far = Vec::new();
    for _ in 0..streams {
        let (near, peer) = UnixStream::pair().unwrap();
        let near = OwnedFd::from(near).into();
        events.calls().adopt(near, Direction::Both, StreamLimits::default());
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
        // As many at once as the thread's pool keeps blocks of their size.
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
