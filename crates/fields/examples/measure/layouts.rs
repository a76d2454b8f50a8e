//! Possible layouts of an index, each in a minimal implementation that stores and looks up fields. The chosen layout is
//! compared with them.

use std::hint::black_box;

use fields::Tag;

use super::subjects::{self, Members};
use super::{Run, alternate, unit};

/// A list of names and values in one buffer.
trait Layout: Default + Clone + 'static {
    const NAME: &'static str;
    fn clear(&mut self);
    fn append(&mut self, name: &[u8], value: &[u8]);
    /// The value of the first field with this name, compared without case.
    fn get(&self, name: &[u8]) -> Option<&[u8]>;
}

fn part(bytes: &[u8], place: u32, length: u32) -> &[u8] {
    &bytes[place as usize..(place + length) as usize]
}

fn small(length: usize) -> u32 {
    u32::try_from(length).expect("what is measured is small")
}

/// The tag is a part of the 16-byte entry.
#[derive(Clone, Default)]
struct TagInEntry {
    bytes: Vec<u8>,
    entries: Vec<(u32, u32, u32, Tag)>,
}

impl Layout for TagInEntry {
    const NAME: &'static str = "A: entries of 16 bytes with the tag";

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn append(&mut self, name: &[u8], value: &[u8]) {
        let place = small(self.bytes.len());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push((place, place + small(name.len()), small(value.len()), Tag::of(name)));
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let tag = Tag::of(name);
        let named = |(place, value, ..): &(u32, u32, u32, Tag)| {
            part(&self.bytes, *place, value - place).eq_ignore_ascii_case(name)
        };
        let found = self.entries.iter().find(|entry| entry.3 == tag && named(entry))?;
        Some(part(&self.bytes, found.1, found.2))
    }
}

/// The tags are in a separate list.
#[derive(Clone, Default)]
struct TagsApart {
    bytes: Vec<u8>,
    entries: Vec<(u32, u32, u32)>,
    tags: Vec<Tag>,
}

impl Layout for TagsApart {
    const NAME: &'static str = "B: tags in a list of their own";

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.tags.clear();
    }

    fn append(&mut self, name: &[u8], value: &[u8]) {
        let place = small(self.bytes.len());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push((place, place + small(name.len()), small(value.len())));
        self.tags.push(Tag::of(name));
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let tag = Tag::of(name);
        let named = |&index: &usize| {
            let (place, value, _) = self.entries[index];
            part(&self.bytes, place, value - place).eq_ignore_ascii_case(name)
        };
        let tagged = self.tags.iter().enumerate().filter(|(_, other)| **other == tag);
        let (_, value, length) = self.entries[tagged.map(|(index, _)| index).find(named)?];
        Some(part(&self.bytes, value, length))
    }
}

/// One block: bytes grow from its start, entries grow from its end.
#[derive(Clone, Default)]
struct OneBlock {
    block: Vec<u8>,
    used: usize,
    count: usize,
}

/// The size of an entry, in bytes: positions of name and value, length of the value, hash of the name.
const ENTRY: usize = 16;

impl OneBlock {
    fn entry(&self, index: usize) -> [u32; 4] {
        let place = self.block.len() - ENTRY * (index + 1);
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(self.block[place..].chunks_exact(4)) {
            *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        }
        words
    }

    fn grow(&mut self, more: usize) {
        let (length, index) = (self.block.len(), self.count * ENTRY);
        let larger = (2 * length).max(length + more).max(1024);
        self.block.resize(larger, 0);
        self.block.copy_within(length - index..length, larger - index);
    }

    fn hash(name: &[u8]) -> u32 {
        // The bytes of a tag are private. A hash of two words of the name is an adequate replacement here.
        let word = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |word| u32::from_le_bytes(*word));
        let fold = 0x2020_2020;
        let both =
            (word(name.first_chunk()) | fold) ^ (word(name.last_chunk()) | fold).rotate_left(9);
        both.wrapping_mul(0x9e37_79b9) ^ small(name.len())
    }
}

impl Layout for OneBlock {
    const NAME: &'static str = "C: one block, entries from its end";

    fn clear(&mut self) {
        self.used = 0;
        self.count = 0;
    }

    fn append(&mut self, name: &[u8], value: &[u8]) {
        let more = name.len() + value.len() + ENTRY;
        if self.used + more + self.count * ENTRY > self.block.len() {
            self.grow(more);
        }
        let (place, middle) = (self.used, self.used + name.len());
        self.used = middle + value.len();
        self.block[place..middle].copy_from_slice(name);
        self.block[middle..self.used].copy_from_slice(value);
        let words = [small(place), small(middle), small(value.len()), Self::hash(name)];
        let entry = self.block.len() - ENTRY * (self.count + 1);
        for (bytes, word) in self.block[entry..].chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.count += 1;
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let hash = Self::hash(name);
        let found =
            (0..self.count).map(|index| self.entry(index)).find(|[place, value, _, other]| {
                *other == hash
                    && part(&self.block, *place, value - place).eq_ignore_ascii_case(name)
            });
        found.map(|[_, value, length, _]| part(&self.block, value, length))
    }
}

/// Offsets of 16 bits, so that entries have 12 bytes. The text is limited to 64 KiB.
#[derive(Clone, Default)]
struct Short {
    bytes: Vec<u8>,
    entries: Vec<(u16, u16, u16, Tag)>,
}

impl Layout for Short {
    const NAME: &'static str = "D: entries of 12 bytes, 64 KiB at most";

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn append(&mut self, name: &[u8], value: &[u8]) {
        let short = |length| u16::try_from(length).expect("what is measured is small");
        let place = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        let entry = (short(place), short(place + name.len()), short(value.len()), Tag::of(name));
        self.entries.push(entry);
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let tag = Tag::of(name);
        let named = |(place, value, ..): &(u16, u16, u16, Tag)| {
            part(&self.bytes, (*place).into(), (value - place).into()).eq_ignore_ascii_case(name)
        };
        let found = self.entries.iter().find(|entry| entry.3 == tag && named(entry))?;
        Some(part(&self.bytes, found.1.into(), found.2.into()))
    }
}

/// Like A, with an additional hash table for more than 64 fields.
#[derive(Clone, Default)]
struct WithTable {
    list: TagInEntry,
    table: Vec<u16>,
}

impl WithTable {
    const FROM: usize = 64;
    const SLOTS: usize = 512;

    fn slot(name: &[u8]) -> usize {
        OneBlock::hash(name) as usize % Self::SLOTS
    }

    fn enter(&mut self, index: usize) {
        let (place, value, ..) = self.list.entries[index];
        let mut slot = Self::slot(part(&self.list.bytes, place, value - place));
        while self.table[slot] != u16::MAX {
            slot = (slot + 1) % Self::SLOTS;
        }
        self.table[slot] = u16::try_from(index).expect("what is measured is small");
    }
}

impl Layout for WithTable {
    const NAME: &'static str = "E: as A, a hash table above 64 fields";

    fn clear(&mut self) {
        self.list.clear();
        self.table.clear();
    }

    fn append(&mut self, name: &[u8], value: &[u8]) {
        self.list.append(name, value);
        let count = self.list.entries.len();
        if count == Self::FROM + 1 {
            self.table.resize(Self::SLOTS, u16::MAX);
            (0..count).for_each(|index| self.enter(index));
        } else if count > Self::FROM {
            self.enter(count - 1);
        }
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        if self.table.is_empty() {
            return self.list.get(name);
        }
        let mut slot = Self::slot(name);
        while let Some((place, value, length, _)) = self.list.entries.get(self.table[slot] as usize)
        {
            if part(&self.list.bytes, *place, value - place).eq_ignore_ascii_case(name) {
                return Some(part(&self.list.bytes, *value, *length));
            }
            slot = (slot + 1) % Self::SLOTS;
        }
        None
    }
}

/// No tags: lengths are compared, then bytes. This is the most that lazy computation of tags could save.
#[derive(Clone, Default)]
struct NoTag {
    bytes: Vec<u8>,
    entries: Vec<(u32, u32, u32)>,
}

impl Layout for NoTag {
    const NAME: &'static str = "F: no tags, lengths and bytes are compared";

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn append(&mut self, name: &[u8], value: &[u8]) {
        let place = small(self.bytes.len());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push((place, place + small(name.len()), small(value.len())));
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let named = |(place, value, _): &&(u32, u32, u32)| {
            part(&self.bytes, *place, value - place).eq_ignore_ascii_case(name)
        };
        let found = self.entries.iter().find(named)?;
        Some(part(&self.bytes, found.1, found.2))
    }
}

fn filled<L: Layout>(members: &Members) -> L {
    let mut list = L::default();
    members.iter().for_each(|(name, value)| list.append(name, value));
    list
}

fn fill_again<L: Layout>(members: &Members) -> (&'static str, Run) {
    let members = members.clone();
    let list = std::cell::RefCell::new(filled::<L>(&members));
    let run = unit(move || {
        let mut list = list.borrow_mut();
        list.clear();
        members.iter().for_each(|(name, value)| list.append(name, value));
        black_box(&mut *list);
    });
    (L::NAME, run)
}

fn fill_new<L: Layout>(members: &Members) -> (&'static str, Run) {
    let members = members.clone();
    (L::NAME, unit(move || filled::<L>(&members)))
}

fn look_up<L: Layout>(members: &Members, name: &'static str) -> (&'static str, Run) {
    let list = filled::<L>(members);
    (L::NAME, unit(move || black_box(list.get(black_box(name.as_bytes()))).is_some()))
}

macro_rules! all {
    ($function:ident ( $($argument:expr),* )) => {
        vec![
            $function::<TagInEntry>($($argument),*),
            $function::<TagsApart>($($argument),*),
            $function::<OneBlock>($($argument),*),
            $function::<Short>($($argument),*),
            $function::<WithTable>($($argument),*),
            $function::<NoTag>($($argument),*),
        ]
    };
}

pub(crate) fn time(rounds: usize) {
    let (few, many) = (subjects::twenty(), subjects::hundred_tiny());
    alternate("layout, 20 fields into memory that is there", 1, rounds, all!(fill_again(&few)));
    alternate("layout, 20 fields into new memory", 1, rounds, all!(fill_new(&few)));
    alternate("layout, 100 fields into memory that is there", 1, rounds, all!(fill_again(&many)));
    let found = all!(look_up(&few, "content-length"));
    alternate("layout, the 12th of 20 looked up", 1, rounds, found);
    alternate("layout, an absent name among 20", 1, rounds, all!(look_up(&few, "upgrade-it")));
    alternate("layout, the 50th of 100 looked up", 1, rounds, all!(look_up(&many, "x-h-0049")));
    alternate("layout, an absent name among 100", 1, rounds, all!(look_up(&many, "x-h-0149")));
}
