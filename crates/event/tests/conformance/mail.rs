//! Mail from other threads.

use event::{Context, Event, EventHandler, Kernel, Loop, LoopSettings, Mailbox};

use crate::harness::{Bench, Seen};

pub(crate) fn mail_wakes_a_sleeping_loop(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    // Each message answers the one before, so the loop is about to sleep whenever one arrives: the other thread sends
    // at the worst moment again and again.
    const ROUNDS: u32 = 20_000;
    let mailbox = bench.events.mailbox();
    let (tell, hear) = std::sync::mpsc::channel();
    let sender = std::thread::spawn(move || {
        for round in 0..ROUNDS {
            mailbox.try_send(round).unwrap();
            assert_eq!(hear.recv(), Ok(round));
        }
    });
    bench.react(move |io, seen| {
        let Seen::Mail(round) = seen else { panic!("{seen:?}") };
        tell.send(*round).unwrap();
        if *round == ROUNDS - 1 {
            io.stop();
        }
    });
    bench.events.run(&mut bench.owner).unwrap();
    sender.join().unwrap();
    assert_eq!(bench.owner.seen.len(), ROUNDS as usize);
    bench.on_events_done();
    let before = bench.events.counts().reports;
    bench.on_events_done();
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
    bench.react(move |io, seen| {
        let Seen::Mail(mail) = seen else { panic!("{seen:?}") };
        let next_of_thread = &mut next[(mail / EACH) as usize];
        assert_eq!(mail, next_of_thread, "once, and in the order of its sender");
        *next_of_thread += 1;
        if next.iter().zip(1..).all(|(&next, thread)| next == thread * EACH) {
            io.stop();
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

/// Posts to its own loop in each `on_events_done`, `left` times.
struct Echoing {
    mailbox: Mailbox<u32>,
    left: u32,
    /// The delivered messages, and `None` for the end of a turn.
    seen: Vec<Option<u32>>,
}

impl EventHandler for Echoing {
    type Mail = u32;

    fn handle(&mut self, _: &mut Context<'_>, event: Event<'_, u32>) {
        let Event::Mail(mail) = event else { panic!("{event:?}") };
        self.seen.push(Some(mail));
    }

    fn on_events_done(&mut self, _: &mut Context<'_>) {
        if self.left > 0 {
            self.left -= 1;
            self.mailbox.post(self.left);
        }
    }

    fn on_iteration_end(&mut self, _: &mut Context<'_>) {
        self.seen.push(None);
    }
}

pub(crate) fn what_an_owner_posts_to_itself_comes_in_the_same_turn_but_once(kernel: impl Kernel) {
    let mut events = Loop::new(kernel, LoopSettings::default()).unwrap();
    let mut owner = Echoing { mailbox: events.mailbox(), left: 4, seen: Vec::new() };
    owner.mailbox.post(9);
    for _ in 0..3 {
        events.turn(&mut owner, Some(std::time::Duration::ZERO)).unwrap();
    }
    assert_eq!(
        owner.seen,
        [Some(9), Some(3), None, Some(2), Some(1), None, Some(0), None],
        "a turn ends whatever is posted in it"
    );
}
