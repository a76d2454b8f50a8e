//! Tags as they are written. From some written tags, neither the next one nor those of another client can be derived.
//!
//! A client may learn its own tags, for example from a program that repeats its requests, and it may cause a program to
//! use any number as an id. Therefore the tags of a program are counted, and written as a keyed permutation of all
//! tags: four rounds of a Feistel network over 32 bits, repeated while the result is greater than the maximum tag.

use std::hash::{BuildHasher, RandomState};

use wire::jsonrpc::Tag;

const ROUNDS: u8 = 4;

/// The keys of one program.
#[derive(Debug)]
pub(super) struct Keys(Option<RandomState>);

impl Keys {
    pub(super) fn random() -> Self {
        Self(Some(RandomState::new()))
    }

    /// Writes tags as they are counted.
    #[cfg(test)]
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// Returns the tag as it is written.
    pub(super) fn written(&self, tag: Tag) -> Tag {
        self.walk(tag, |keys, number| {
            (0..ROUNDS).fold(number, |number, round| {
                let (left, right) = halves(number);
                joined(right, left ^ mixed(keys, round, right))
            })
        })
    }

    /// Returns the counted tag that is written as `written`.
    pub(super) fn counted(&self, written: Tag) -> Tag {
        self.walk(written, |keys, number| {
            (0..ROUNDS).rev().fold(number, |number, round| {
                let (left, right) = halves(number);
                joined(right ^ mixed(keys, round, left), left)
            })
        })
    }

    fn walk(&self, tag: Tag, permuted: impl Fn(&RandomState, u32) -> u32) -> Tag {
        let Some(keys) = &self.0 else { return tag };
        let mut number = tag.number();
        loop {
            number = permuted(keys, number);
            if let Some(tag) = Tag::new(number) {
                return tag;
            }
        }
    }
}

fn halves(number: u32) -> (u16, u16) {
    let [a, b, c, d] = number.to_be_bytes();
    (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

fn joined(left: u16, right: u16) -> u32 {
    u32::from(left) << 16 | u32::from(right)
}

fn mixed(keys: &RandomState, round: u8, half: u16) -> u16 {
    let [first, second, ..] = keys.hash_one((round, half)).to_ne_bytes();
    u16::from_ne_bytes([first, second])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tag_is_written_as_another_and_found_again() {
        let keys = Keys::random();
        let tags = (0..2000).chain(Tag::MAX.number() - 2000..=Tag::MAX.number());
        let mut written: Vec<_> = tags
            .map(|number| {
                let tag = Tag::new(number).unwrap();
                let written = keys.written(tag);
                assert_eq!(keys.counted(written), tag);
                written.number()
            })
            .collect();
        // A difference between two consecutive tags occurs a second time only by chance.
        let mut steps: Vec<_> = written.windows(2).map(|two| two[1].wrapping_sub(two[0])).collect();
        written.sort_unstable();
        written.dedup();
        assert_eq!(written.len(), 4001);
        steps.sort_unstable();
        steps.dedup();
        assert!(steps.len() > 3900, "{}", steps.len());
        // They are spread over all numbers: no sixteenth of the range contains twice the mean.
        for part in 0..16 {
            let within = written.iter().filter(|number| **number >> 27 == part).count();
            assert!(within < 500, "{within}");
        }
    }

    #[test]
    fn no_two_programs_write_them_alike() {
        let (one, other) = (Keys::random(), Keys::random());
        let alike = |number: &u32| {
            let tag = Tag::new(*number).unwrap();
            one.written(tag) == other.written(tag)
        };
        assert!((0..1000).filter(alike).count() < 10);
    }
}
