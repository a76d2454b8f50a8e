//! Mail from other threads.

use event::{Kernel, LoopSettings};

use crate::harness::{Bench, Seen};

pub(crate) fn mail_wakes_a_sleeping_loop(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    // Each message answers the one before, so the loop is about to sleep whenever one comes: the
    // other thread sends at the worst moment again and again.
    const ROUNDS: u32 = 20_000;
    let mailbox = bench.events.mailbox();
    let (tell, hear) = std::sync::mpsc::channel();
    let sender = std::thread::spawn(move || {
        for round in 0..ROUNDS {
            mailbox.try_send(round).unwrap();
            assert_eq!(hear.recv(), Ok(round));
        }
    });
    bench.react(move |calls, seen| {
        let Seen::Mail(round) = seen else { panic!("{seen:?}") };
        tell.send(*round).unwrap();
        if *round == ROUNDS - 1 {
            calls.stop();
        }
    });
    bench.events.run(&mut bench.owner).unwrap();
    sender.join().unwrap();
    assert_eq!(bench.owner.seen.len(), ROUNDS as usize);
    bench.settle();
    let before = bench.events.counts().reports;
    bench.settle();
    assert_eq!(bench.events.counts().reports, before, "mail that was read keeps the loop awake");
}

pub(crate) fn all_mail_of_many_threads_comes_in_order(kernel: impl Kernel) {
    const THREADS: u32 = 4;
    const EACH: u32 = 50_000;
    let settings = LoopSettings { mail_max: 100, ..LoopSettings::default() };
    let mut bench = Bench::with(kernel, settings);
    let senders: Vec<_> = (0..THREADS)
        .map(|thread| {
            let mailbox = bench.events.mailbox();
            std::thread::spawn(move || {
                for number in 0..EACH {
                    let mut mail = thread * EACH + number;
                    while let Err(back) = mailbox.try_send(mail) {
                        assert_eq!(back, mail, "what is refused comes back");
                        mail = back;
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut next: Vec<_> = (0..THREADS).map(|thread| thread * EACH).collect();
    bench.react(move |calls, seen| {
        let Seen::Mail(mail) = seen else { panic!("{seen:?}") };
        let next_of_thread = &mut next[(mail / EACH) as usize];
        assert_eq!(mail, next_of_thread, "once, and in the order of its sender");
        *next_of_thread += 1;
        if next.iter().zip(1..).all(|(&next, thread)| next == thread * EACH) {
            calls.stop();
        }
    });
    bench.events.run(&mut bench.owner).unwrap();
    for sender in senders {
        sender.join().unwrap();
    }
}

pub(crate) fn more_than_the_mail_budget_comes_in_later_turns(kernel: impl Kernel) {
    let settings = LoopSettings { mail_budget: 10, ..LoopSettings::default() };
    let mut bench = Bench::with(kernel, settings);
    let mailbox = bench.events.mailbox();
    for number in 0..25 {
        mailbox.post(number);
    }
    for expected in [10, 20, 25] {
        bench.events.turn(&mut bench.owner, None).unwrap();
        assert_eq!(bench.owner.seen.len(), expected);
    }
}
