//! Checks every interleaving of two shards and an owner shard with loom. The protocol has mutants, and the same proof
//! refutes each of them. This shows that the proof can fail.

use super::*;
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::collections::VecDeque;

enum Mail {
    Waiter,
    Token,
}

/// The deliberate defect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    Nothing,
    /// The owner shard looks first and closes the word afterwards: a token that was returned in between stays in a
    /// closed word.
    ClosesLate,
    /// A shard that finds the word closed adds its token to the word nevertheless.
    KeepsQuiet,
    /// The owner shard opens the word with its tokens, and serves a waiter with one of them.
    GivesTwice,
}

struct World {
    tokens: Tokens,
    mail: Mutex<VecDeque<Mail>>,
    /// Requests in flight to the worker; never more than it has slots.
    served: AtomicU64,
    done: AtomicU64,
    slots: u64,
    mutant: Mutant,
}

/// The state of the owner shard.
#[derive(Default)]
struct Home {
    waiting: u32,
    closed: bool,
    /// Waiters give up once, before they are served.
    impatient: bool,
    given_up: u64,
}

impl World {
    fn new(slots: u32, mutant: Mutant) -> Arc<Self> {
        Arc::new(Self {
            tokens: Tokens::new(slots),
            mail: Mutex::new(VecDeque::new()),
            served: AtomicU64::new(0),
            done: AtomicU64::new(0),
            slots: slots.into(),
            mutant,
        })
    }

    fn serve(&self) {
        let before = self.served.fetch_add(1, Ordering::AcqRel);
        assert!(before < self.slots, "more requests than slots");
        self.served.fetch_sub(1, Ordering::AcqRel);
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) {
        if self.tokens.release() == Released::SendToOwner {
            if self.mutant == Mutant::KeepsQuiet {
                return self.tokens.open(1);
            }
            self.mail.lock().unwrap().push_back(Mail::Token);
        }
    }

    fn shard(&self) {
        if self.tokens.take() {
            self.serve();
            self.release();
        } else {
            self.mail.lock().unwrap().push_back(Mail::Waiter);
        }
    }

    fn take_or_close(&self) -> bool {
        if self.mutant == Mutant::ClosesLate {
            return self.tokens.take() || {
                self.tokens.0.fetch_or(CLOSED, Ordering::AcqRel);
                false
            };
        }
        self.tokens.take_or_close()
    }

    /// Reads one message, and carries out the consequences.
    fn owner(&self, owner: &mut Home) -> bool {
        let letter = self.mail.lock().unwrap().pop_front();
        match letter {
            Some(Mail::Waiter) => {
                owner.waiting += 1;
                self.give(owner, 0);
            }
            Some(Mail::Token) => self.give(owner, 1),
            None => return false,
        }
        if owner.impatient && owner.waiting > 0 {
            // The request's time is over, or its client has disconnected.
            owner.impatient = false;
            owner.waiting -= 1;
            owner.given_up += 1;
            self.give(owner, 0);
        }
        true
    }

    /// Gives tokens to the waiters: `hand` tokens, and those of the word. When no waiter is left, the word is opened
    /// with the remaining tokens.
    fn give(&self, owner: &mut Home, mut hand: u32) {
        while owner.waiting > 0 {
            if hand == 0 {
                if owner.closed || !self.take_or_close() {
                    owner.closed = true;
                    return;
                }
                hand = 1;
            }
            owner.waiting -= 1;
            if self.mutant == Mutant::GivesTwice && owner.closed {
                owner.closed = false;
                self.tokens.open(hand);
            }
            self.serve();
            // While the word is closed, the owner shard keeps the tokens that it frees.
            if !owner.closed {
                hand -= 1;
                self.release();
            }
        }
        if owner.closed {
            owner.closed = false;
            self.tokens.open(hand);
        } else {
            (0..hand).for_each(|_| self.release());
        }
    }
}

fn prove(slots: u32, shards: u64, impatient: bool, mutant: Mutant) {
    loom::model(move || {
        let world = World::new(slots, mutant);
        let threads: Vec<_> = (0..shards)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || world.shard())
            })
            .collect();
        let mut owner = Home { impatient, ..Home::default() };
        world.owner(&mut owner);
        world.owner(&mut owner);
        for thread in threads {
            thread.join().unwrap();
        }
        while world.owner(&mut owner) {}
        assert_eq!(owner.waiting, 0, "a waiter was forgotten");
        assert_eq!(world.done.load(Ordering::Relaxed) + owner.given_up, shards);
        let word = world.tokens.look();
        assert_eq!(word, (false, slots), "not just the tokens that there were are free");
    });
}

#[test]
fn no_waiter_is_forgotten_and_no_slot_given_twice() {
    prove(1, 2, false, Mutant::Nothing);
}

#[test]
fn nor_with_two_slots() {
    prove(2, 2, false, Mutant::Nothing);
}

#[test]
fn nor_when_whoever_waits_gives_up() {
    prove(1, 2, true, Mutant::Nothing);
}

#[test]
#[should_panic(expected = "a waiter was forgotten")]
fn a_home_that_closes_late_is_refuted() {
    prove(1, 2, false, Mutant::ClosesLate);
}

#[test]
#[should_panic(expected = "a waiter was forgotten")]
fn a_shard_that_keeps_quiet_is_refuted() {
    prove(1, 2, false, Mutant::KeepsQuiet);
}

#[test]
#[should_panic(expected = "not just the tokens that there were are free")]
fn a_home_that_gives_twice_is_refuted() {
    prove(1, 2, false, Mutant::GivesTwice);
}
