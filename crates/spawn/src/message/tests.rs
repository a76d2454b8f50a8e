use super::*;

fn orders() -> Vec<Order> {
    let full = Start {
        program: b"perl".to_vec(),
        arguments: vec![b"parse.pl".to_vec(), b"".to_vec(), b"a b\n".to_vec()],
        cwd: Some(b"/srv/\xff".to_vec()),
        env: vec![(b"A".to_vec(), b"=".to_vec()), (b"B".to_vec(), b"".to_vec())],
        env_clear: true,
        withheld: vec![b"TOKEN".to_vec(), b"".to_vec()],
        three_four: false,
        stdbuf: true,
        serves: true,
        bounds: Bounds {
            user: Some("nobody".into()),
            group: None,
            no_new_privs: true,
            limits: Limits { files: Some(0), stack: Some(u64::MAX), ..Limits::default() },
            cpus: vec![0, 63],
            nice: -3,
            cgroup: Cgroup::Under("/sys/fs/cgroup/x".into()),
        },
    };
    let fenceless = Start {
        three_four: true,
        bounds: Bounds { cgroup: Cgroup::Off, ..Bounds::default() },
        ..Start::default()
    };
    vec![
        Order::Hello {
            grace: Duration::from_secs(1),
            term: Duration::from_micros(7),
            descriptors: Some(1024),
        },
        Order::Hello { grace: Duration::ZERO, term: Duration::ZERO, descriptors: None },
        Order::Start { token: u64::MAX, start: Box::new(full) },
        Order::Start { token: 0, start: Box::default() },
        Order::Start { token: 0, start: Box::new(fenceless) },
        Order::Ping,
        Order::Stop { token: 3, how: Stop::Term },
        Order::Stop { token: 3, how: Stop::Kill },
    ]
}

fn notices() -> Vec<Notice> {
    let text = || "naïve".to_owned();
    let exit = |status| Exit {
        status,
        core: true,
        user: Duration::from_micros(1),
        system: Duration::from_secs(9),
        rss_max: 1 << 40,
    };
    let mut all = vec![
        Notice::Hello { pid: 1 },
        Notice::Started { token: 2, pid: u32::MAX },
        Notice::Exited { token: 1, exit: exit(Status::Code(255)) },
        Notice::Exited { token: 1, exit: exit(Status::Signal(9)) },
        Notice::Exited { token: 1, exit: Exit::LOST },
        Notice::Pong,
    ];
    let errors = [
        StartError::NotFound { program: text(), path: None },
        StartError::NotFound { program: text(), path: Some(String::new()) },
        StartError::NotExecutable { file: text() },
        StartError::Directory { file: text() },
        StartError::NoInterpreter { file: text(), interpreter: text() },
        StartError::NotAProgram { file: text() },
        StartError::WorkingDirectory { directory: text(), errno: 2 },
        StartError::Nul,
        StartError::TooLong { bytes: 0 },
        StartError::System { step: Step::Pipes, errno: -1 },
        StartError::System { step: Step::Fork, errno: 11 },
        StartError::System { step: Step::Execute, errno: 12 },
        StartError::SupervisorLost,
        StartError::TokenInUse,
        StartError::NoUser { user: text() },
        StartError::NoGroup { group: text() },
        StartError::Bounds { doing: text(), errno: 1 },
        StartError::NoStdbuf,
    ];
    all.extend(errors.map(|error| Notice::StartFailed { token: 5, error }));
    all
}

#[test]
fn every_message_comes_back_as_it_went() {
    for order in orders() {
        assert_eq!(Order::decode(&order.encode()).as_ref(), Some(&order));
    }
    for notice in notices() {
        assert_eq!(Notice::decode(&notice.encode()).as_ref(), Some(&notice));
    }
}

#[test]
fn a_message_cut_short_or_with_a_tail_is_refused() {
    let orders = orders().into_iter().map(|order| order.encode());
    let notices = notices().into_iter().map(|notice| notice.encode());
    for (bytes, is_order) in orders.map(|b| (b, true)).chain(notices.map(|b| (b, false))) {
        let read = |bytes: &[u8]| match is_order {
            true => Order::decode(bytes).is_some(),
            false => Notice::decode(bytes).is_some(),
        };
        for length in 0..bytes.len() {
            assert!(!read(&bytes[..length]), "{bytes:?} cut to {length}");
        }
        assert!(!read(&[&bytes[..], &[0]].concat()), "{bytes:?} with a tail");
    }
}

/// Returns the result of `act`, and the size of the largest allocation on this thread during `act`.
fn largest_allocation<T>(act: impl FnOnce() -> T) -> (T, usize) {
    allocator::LARGEST.set(0);
    let made = act();
    (made, allocator::LARGEST.get())
}

#[expect(unsafe_code, reason = "an allocator can only be written with it")]
mod allocator {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    thread_local! {
        pub(super) static LARGEST: Cell<usize> = const { Cell::new(0) };
    }

    struct Watched;

    // SAFETY: every call is passed unchanged to the allocator of the system, which fulfils the contract.
    unsafe impl GlobalAlloc for Watched {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            LARGEST.set(LARGEST.get().max(layout.size()));
            // SAFETY: the caller's guarantee about the layout is the one that is required here.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
            // SAFETY: the block came from the same allocator with the same layout.
            unsafe { System.dealloc(place, layout) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Watched = Watched;
}

#[test]
fn a_claimed_length_beyond_the_message_reserves_nothing() {
    // Proves that an allocation is detected, so this test can fail.
    assert_eq!(largest_allocation(|| Vec::<u8>::with_capacity(1 << 20)).1, 1 << 20);
    let orders = orders().into_iter().map(|order| (order.encode(), true));
    let notices = notices().into_iter().map(|notice| (notice.encode(), false));
    let mut refused = 0;
    for (message, is_order) in orders.chain(notices) {
        // Every position, because each may be a length or a count.
        for place in 0..message.len().saturating_sub(3) {
            for claimed in [u32::MAX, i32::MAX.cast_unsigned(), 1 << 24] {
                let mut bytes = message.clone();
                bytes[place..place + 4].copy_from_slice(&claimed.to_le_bytes());
                let (is_refused, largest) = largest_allocation(|| match is_order {
                    true => Order::decode(&bytes).is_none(),
                    false => Notice::decode(&bytes).is_none(),
                });
                refused += u32::from(is_refused);
                assert!(largest <= 4096, "{largest} bytes for {claimed} at {place} of {message:?}");
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
