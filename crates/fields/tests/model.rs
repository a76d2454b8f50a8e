//! A hundred thousand random operations, compared with a naive list. Every invariant is checked after each operation.
//!
//! Seed and step are in every message. The seeds are fixed, so a failure can be reproduced by running the test again.

use fields::{Case, Fields, http1, netstring};

#[path = "../../../fuzz/entries/random.rs"]
mod random;

use random::Random;

const STEPS: usize = 100_000;

type Model = Vec<(Vec<u8>, Option<Vec<u8>>)>;

impl Random {
    fn name(&mut self) -> Vec<u8> {
        const NAMES: [&str; 9] =
            ["Host", "host", "HOST", "a", "A", "x-trace", "X-Trace", "content-length", "via"];
        NAMES[self.below(NAMES.len())].into()
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let length = match self.below(20) {
            0 => return None,
            1 => 0,
            2 => self.below(700),
            _ => self.below(30),
        };
        let first = self.below(26);
        let letter = |index| b'a' + u8::try_from((first + index) % 26).expect("below 26");
        Some((0..length).map(letter).collect())
    }
}

struct Walk {
    random: Random,
    set: Fields,
    model: Model,
    case: Case,
    lines: bool,
}

impl Walk {
    fn same(&self, one: &[u8], other: &[u8]) -> bool {
        match self.case {
            Case::Exact => one == other,
            Case::Ignored => one.eq_ignore_ascii_case(other),
        }
    }

    fn first(&self, name: &[u8]) -> Option<usize> {
        self.model.iter().position(|(other, _)| self.same(other, name))
    }

    fn step(&mut self) -> &'static str {
        let (name, value) = (self.random.name(), self.random.value());
        let given = value.as_deref();
        let index = self.random.below(self.model.len() + 2);
        match self.random.below(40) {
            0..12 => {
                assert_eq!(self.set.append(&name, given), Ok(self.model.len()));
                self.model.push((name, value));
                "append"
            }
            12..17 => {
                let first = self.first(&name);
                let at = self.set.update(&name, given);
                assert_eq!(at, Ok(first.unwrap_or(self.model.len())));
                match first {
                    Some(first) => self.model[first] = (name, value),
                    None => self.model.push((name, value)),
                }
                "update"
            }
            17..19 => {
                let at = self.set.replace_all(&name, given);
                let first = self.first(&name);
                assert_eq!(at, Ok(first.unwrap_or(self.model.len())));
                match first {
                    None => self.model.push((name, value)),
                    Some(first) => {
                        let rest = self.model.split_off(first + 1);
                        let kept = rest.into_iter().filter(|(other, _)| !self.same(other, &name));
                        let kept: Vec<_> = kept.collect();
                        self.model[first] = (name, value);
                        self.model.extend(kept);
                    }
                }
                "replace_all"
            }
            19 => {
                let at = self.set.append_if_absent(&name, given);
                assert_eq!(at, Ok(self.first(&name).unwrap_or(self.model.len())));
                if at == Ok(self.model.len()) {
                    self.model.push((name, value));
                }
                "append_if_absent"
            }
            20..26 => {
                assert_eq!(self.set.set_value(index, given), Ok(index < self.model.len()));
                if let Some((_, old)) = self.model.get_mut(index) {
                    *old = value;
                }
                "set_value"
            }
            26..30 => {
                assert_eq!(self.set.remove_at(index), index < self.model.len());
                if index < self.model.len() {
                    self.model.remove(index);
                }
                "remove_at"
            }
            30..32 => {
                let first = self.first(&name);
                assert_eq!(self.set.remove_first(&name), first.is_some());
                first.map(|first| self.model.remove(first));
                "remove_first"
            }
            32 => {
                let before = self.model.len();
                let case = self.case;
                self.model.retain(|(other, _)| match case {
                    Case::Exact => *other != name,
                    Case::Ignored => !other.eq_ignore_ascii_case(&name),
                });
                assert_eq!(self.set.remove(&name), before - self.model.len());
                "remove"
            }
            other => self.rarely(other, index),
        }
    }

    fn rarely(&mut self, which: usize, index: usize) -> &'static str {
        match which {
            33 => {
                self.set.truncate(index);
                self.model.truncate(index);
                "truncate"
            }
            34 => {
                self.set.retain(|field| field.name.len() != 4);
                self.model.retain(|(name, _)| name.len() != 4);
                "retain"
            }
            35 => {
                self.set.clear_values();
                self.model.iter_mut().for_each(|(_, value)| *value = None);
                "clear_values"
            }
            36 if self.random.below(8) == 0 => {
                self.set.recycle(4, 100);
                self.model.clear();
                "recycle"
            }
            37 if self.lines => {
                self.adopt();
                "adopt"
            }
            37 => {
                self.adopt_record();
                "adopt a record"
            }
            38 => {
                let empty = self.empty();
                let mut other = std::mem::replace(&mut self.set, empty);
                let added = self.set.append("other", "x").expect("it is empty");
                self.set.append_all(&mut other).expect("a move is within the limits");
                assert!(self.set.remove_at(added) && other.is_empty());
                "append_all"
            }
            _ => {
                self.set = self.set.clone();
                "clone"
            }
        }
    }

    fn empty(&self) -> Fields {
        let set = if self.lines { Fields::headers() } else { Fields::new() };
        set.with_case(self.case).with_limits(fields::Limits::MAX)
    }

    /// Encodes the set as header lines with additional blanks, and adopts them.
    fn adopt(&mut self) {
        let mut lines = Vec::new();
        self.model.retain(|(_, value)| value.is_some());
        for (name, value) in &self.model {
            let blanks = [" ", "", "\t "][self.random.below(3)];
            let behind = ["", " \t"][self.random.below(2)];
            let value = value.as_deref().unwrap_or_default();
            for part in [&name[..], b":", blanks.as_bytes(), value, behind.as_bytes(), b"\r\n"] {
                lines.extend_from_slice(part);
            }
        }
        let mut block = block::Block::with_capacity(lines.len() * (1 + self.random.below(4)));
        block.push(&lines);
        http1::adopt(&mut self.set, block.freeze()).expect("lines are adopted");
        let mut sent = Vec::new();
        http1::encode(&self.set, &mut sent).expect("lines are sent");
        assert_eq!(sent, lines, "what was adopted is sent as it came");
    }

    /// Encodes the set as netstrings in a block of random size, and adopts it.
    fn adopt_record(&mut self) {
        self.model.retain(|(_, value)| value.is_some());
        self.set.retain(|field| !field.value.is_null());
        let mut record = Vec::new();
        netstring::encode(&self.set, &mut record).expect("without NULL all can be said");
        let spare = self.random.below(40_000);
        let mut block = block::Block::with_capacity(record.len() + spare);
        block.push(&record);
        netstring::adopt(&mut self.set, &block.freeze()).expect("a record is adopted");
    }

    fn sweep(&self) {
        let (set, model) = (&self.set, &self.model);
        set.check();
        assert_eq!(set.len(), model.len());
        for (field, (name, value)) in set.iter().zip(model) {
            assert_eq!((field.name, field.value.bytes()), (&name[..], value.as_deref()));
        }
        for name in ["Host", "a", "x-trace", "via", "absent"] {
            assert_eq!(set.position(name), self.first(name.as_bytes()), "{name}");
            let count = model.iter().filter(|(other, _)| self.same(other, name.as_bytes())).count();
            assert_eq!(set.get_all(name).count(), count);
        }
        let stats = set.stats();
        assert!(stats.bytes_used <= 2 * stats.bytes_live + 512, "{stats:?}");
    }
}

fn walk(seed: u64, case: Case, lines: bool) {
    let random = Random(seed);
    let mut walk = Walk { random, set: Fields::new(), model: Vec::new(), case, lines };
    walk.set = walk.empty();
    for step in 0..STEPS / 4 {
        let operation = walk.step();
        let sweep = std::panic::AssertUnwindSafe(|| walk.sweep());
        if let Err(fault) = std::panic::catch_unwind(sweep) {
            eprintln!("seed {seed}, step {step}, after {operation}: {:?}", walk.model);
            std::panic::resume_unwind(fault);
        }
        if walk.model.len() > 60 {
            walk.set.truncate(20);
            walk.model.truncate(20);
        }
    }
}

#[test]
fn packed_and_exact() {
    walk(0x5eed_0001, Case::Exact, false);
}

#[test]
fn packed_and_case_ignored() {
    walk(0x5eed_0002, Case::Ignored, false);
}

#[test]
fn lines_and_exact() {
    walk(0x5eed_0003, Case::Exact, true);
}

#[test]
fn lines_and_case_ignored() {
    walk(0x5eed_0004, Case::Ignored, true);
}
