//! The faults of a world: lost connections, partitions, paused daemons, and a bucket that is wiped or restored.

use super::*;

impl World {
    pub(super) fn fault(&mut self) {
        if self.is_quiet() {
            return;
        }
        let number = self.chance.below(DAEMONS);
        let fault = self.chance.below(12);
        self.note(|| format!("fault {fault} at {number}"));
        match fault {
            0 | 1 => self.lose(number),
            2 => {
                let duration = self.chance.between(500, 50_000);
                self.cut(number, duration);
            }
            3 => self.pause(number),
            4 => self.copies.push(self.bucket.contents.clone()),
            5 if self.chance.in_1000(400) => self.replace(Contents::default()),
            6 => {
                if let Some(copy) = self.copies.pop() {
                    self.replace(copy);
                }
            }
            7 if self.chance.in_1000(300) => {
                self.is_replaced = true;
                self.bucket.jumped_ms += self.plan.settings.max_age_ms();
            }
            8 | 9 => {
                let target = Target(self.chance.next() % TARGETS);
                self.set_down(number, target, true);
                let at = self.now + self.chance.between(500, 20_000);
                self.schedule(at, Item::SetDown { daemon: number, target, is_down: false });
            }
            10 => self.unbind(),
            _ => (0..DAEMONS).for_each(|daemon| self.lose(daemon)),
        }
        let at = self.now + self.chance.between(500, 12_000);
        self.schedule(at, Item::Fault);
    }

    fn cut(&mut self, daemon: usize, duration: u64) {
        self.daemons[daemon].is_cut = true;
        self.lose(daemon);
        self.schedule(self.now + duration, Item::Rejoin { daemon });
    }

    fn pause(&mut self, daemon: usize) {
        if !self.daemons[daemon].is_paused {
            self.daemons[daemon].is_paused = true;
            self.daemons[daemon].paused_ms = self.now;
            let duration = if self.chance.in_1000(500) { 60_000 } else { 4000 };
            self.schedule(self.now + duration, Item::Wake { daemon });
        }
    }

    pub(super) fn wake(&mut self, number: usize) {
        let daemon = &mut self.daemons[number];
        if !std::mem::take(&mut daemon.is_paused) {
            return;
        }
        let is_long = self.now - daemon.paused_ms > 10_000;
        let held = std::mem::take(&mut daemon.held);
        if is_long {
            // The server has closed the connection.
            self.lose(number);
        }
        held.into_iter().for_each(|event| self.deliver(number, event));
        self.poll(number);
    }

    fn replace(&mut self, contents: Contents) {
        self.is_replaced = true;
        self.bucket.replace(contents);
        (0..DAEMONS).for_each(|daemon| self.lose(daemon));
    }

    pub(super) fn set_down(&mut self, daemon: usize, target: Target, is_down: bool) {
        if is_down {
            self.daemons[daemon].down.insert(target);
        } else {
            self.daemons[daemon].down.remove(&target);
        }
        // The table of a pool decides itself what to do with clients of a target that is down.
        if !self.plan.has_reader {
            self.daemons[daemon].replica.set_down(target, is_down);
        }
    }

    /// Unbinds a client while another daemon is away. Sometimes the marker is gone when it returns.
    fn unbind(&mut self) {
        let key = client(CLIENTS + self.chance.below(UNBOUND));
        let is_bound = self.daemons[0].replica.peek(self.clock(0), &key).is_some();
        if self.daemons[0].is_paused || self.unbound.contains(&key) || !is_bound {
            return;
        }
        if self.chance.in_1000(700) {
            let (away, duration) = (self.chance.between(1, 2), self.chance.between(4000, 40_000));
            self.cut(usize::try_from(away).unwrap(), duration);
        }
        let clock = self.clock(0);
        self.unbound.insert(key);
        self.daemons[0].replica.unbind(clock, &key);
        self.poll(0);
    }

    pub(super) fn heal(&mut self) {
        self.note(|| "heal".to_owned());
        self.bucket.compact();
        for daemon in 0..DAEMONS {
            self.daemons[daemon].is_cut = false;
            self.wake(daemon);
            for target in self.daemons[daemon].down.clone() {
                self.set_down(daemon, target, false);
            }
        }
    }
}
