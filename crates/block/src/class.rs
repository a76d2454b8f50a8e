//! Size classes and the pool of each thread.
//!
//! A class is a power of four from 64 bytes to 64 KiB; larger blocks have the next power of two
//! and are never pooled. Each thread keeps at most [`POOLED_BYTES_MAX`] of each class, so memory
//! that wandered to another thread ends in its allocator and not in an ever longer list.

use std::cell::{Cell, RefCell};

use crate::account::{Account, STEP};
use triomphe::{Arc, HeaderSlice, UniqueArc};

/// The smallest block there is, in bytes.
pub const CAPACITY_MIN: usize = 64;
/// The largest block that is kept for reuse, in bytes.
pub const CAPACITY_POOLED_MAX: usize = 64 * 1024;

const CLASSES: usize = 6;
/// What a thread keeps of one class at most, in bytes: sixteen of the largest, 16,384 of the
/// smallest. Enough for the output of as many streams as are busy in one turn.
const POOLED_BYTES_MAX: usize = 1024 * 1024;

/// The bytes of a block, behind what is counted of them.
pub(crate) type Memory = HeaderSlice<Counted, [u8]>;

/// Bytes that are counted as in use, for as long as their memory is: also when the last of several owners on
/// several threads lets it go.
pub(crate) struct Counted(usize);

impl Counted {
    fn begin(&mut self, bytes: usize) {
        with_local(|local| local.note(counted(bytes)));
        self.0 = bytes;
    }

    fn end(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        if bytes > 0 {
            with_local(|local| local.note(-counted(bytes)));
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.end();
    }
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            pool: RefCell::new([const { Vec::new() }; CLASSES]),
            unpublished: Cell::new(0),
            account: RefCell::new(Account::PROCESS),
        }
    };
}

/// What a thread has of its own.
pub(crate) struct Local {
    /// Blocks that wait for their next use, by class.
    pool: RefCell<[Vec<UniqueArc<Memory>>; CLASSES]>,
    /// Bytes of blocks that were made less those that were freed, since this was published.
    unpublished: Cell<i64>,
    pub(crate) account: RefCell<Account>,
}

impl Local {
    /// Blocks of so many bytes more, or fewer, are in use.
    #[inline]
    fn note(&self, bytes: i64) {
        let all = self.unpublished.get() + bytes;
        self.unpublished.set(all);
        if all.abs() >= STEP {
            self.publish();
        }
    }

    pub(crate) fn publish(&self) {
        let bytes = self.unpublished.replace(0);
        if bytes != 0 {
            self.account.borrow().add(bytes);
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.publish();
    }
}

/// What `act` makes of this thread's own; none when the thread is ending.
pub(crate) fn with_local<R>(act: impl FnOnce(&Local) -> R) -> Option<R> {
    LOCAL.try_with(act).ok()
}

impl Account {
    /// The account that this thread adds to: that of the process, unless another was chosen.
    #[must_use]
    pub fn of_thread() -> Self {
        with_local(|local| local.account.borrow().clone()).unwrap_or_default()
    }
}

/// From now on this thread adds to `account`.
pub fn account_to(account: &Account) {
    publish();
    with_local(|local| *local.account.borrow_mut() = account.clone());
}

/// Adds what this thread has made and freed to its account.
pub fn publish() {
    with_local(Local::publish);
}

/// So many bytes outside of blocks are in use.
pub(crate) fn note_made(bytes: usize) {
    with_local(|local| local.note(counted(bytes)));
}

/// They are no longer.
pub(crate) fn note_freed(bytes: usize) {
    with_local(|local| local.note(-counted(bytes)));
}

/// Bytes as they are counted. No block is as long as that they would not fit.
#[expect(clippy::cast_possible_wrap, reason = "no allocation is longer than isize::MAX")]
const fn counted(bytes: usize) -> i64 {
    bytes as i64
}

/// The class whose blocks hold `capacity` bytes, or none when that is too large to pool.
fn class_of(capacity: usize) -> Option<usize> {
    // Two bits more of the last place are one class more.
    let bits = usize::BITS - capacity.saturating_sub(1).leading_zeros();
    let class = bits.saturating_sub(CAPACITY_MIN.trailing_zeros()).div_ceil(2) as usize;
    (class < CLASSES).then_some(class)
}

const fn class_capacity(class: usize) -> usize {
    CAPACITY_MIN << (2 * class)
}

const _: () = assert!(class_capacity(CLASSES - 1) == CAPACITY_POOLED_MAX);

/// The capacity of a block made for `length` bytes.
pub(crate) fn capacity_for(length: usize) -> usize {
    class_of(length).map_or_else(|| length.next_power_of_two(), class_capacity)
}

/// Memory for at least `capacity` bytes.
pub(crate) fn obtain(capacity: usize) -> UniqueArc<Memory> {
    let Some(class) = class_of(capacity) else {
        return exactly(capacity.next_power_of_two());
    };
    let pooled = with_local(|local| local.pool.borrow_mut()[class].pop()).flatten();
    let Some(mut memory) = pooled else { return exactly(class_capacity(class)) };
    memory.header.begin(class_capacity(class));
    memory
}

/// Memory from the allocator, for exactly so many bytes.
pub(crate) fn exactly(capacity: usize) -> UniqueArc<Memory> {
    static ZEROES: [u8; CAPACITY_POOLED_MAX] = [0; CAPACITY_POOLED_MAX];
    // As much as a pooled block has comes at once; a vector has to be copied behind a count.
    let memory: Arc<Memory> = match ZEROES.get(..capacity) {
        Some(zeroes) => Arc::from_header_and_slice(Counted(0), zeroes),
        None => Arc::from_header_and_slice(Counted(0), &vec![0; capacity]),
    };
    let memory = Arc::try_unique(memory);
    let mut memory =
        memory.unwrap_or_else(|_| unreachable!("nobody else knows what was just made"));
    memory.header.begin(capacity);
    memory
}

/// Lets a part of shared memory go; the last owner gives it back.
pub(crate) fn let_go(memory: Arc<Memory>) {
    // Most slices share their block; whether this one does is only a load. Where two owners let go at the
    // same time, none of them may find itself alone: then the memory is freed.
    if let Ok(memory) = Arc::try_unique(memory) {
        give_back(memory);
    }
}

/// Keeps the memory for reuse.
pub(crate) fn give_back(mut memory: UniqueArc<Memory>) {
    let length = memory.slice.len();
    let Some(class) = class_of(length).filter(|&class| class_capacity(class) == length) else {
        return;
    };
    // A thread that is ending has no pool any more; its memory goes back to the allocator.
    with_local(|local| {
        let list = &mut local.pool.borrow_mut()[class];
        if list.len() < POOLED_BYTES_MAX >> length.trailing_zeros() {
            memory.header.end();
            list.push(memory);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_smallest_that_fits() {
        for capacity in 0..=CAPACITY_POOLED_MAX + 1 {
            let smallest = (0..CLASSES).find(|&class| capacity <= class_capacity(class));
            assert_eq!(class_of(capacity), smallest, "{capacity}");
        }
        assert_eq!(capacity_for(0), 64);
        assert_eq!(capacity_for(64), 64);
        assert_eq!(capacity_for(65), 256);
        assert_eq!(capacity_for(64 * 1024), 64 * 1024);
        assert_eq!(capacity_for(64 * 1024 + 1), 128 * 1024);
    }

    #[test]
    fn a_thread_keeps_no_more_than_its_share() {
        let many: Vec<_> = (0..100).map(|_| obtain(CAPACITY_POOLED_MAX)).collect();
        for bytes in many {
            give_back(bytes);
        }
        let kept = LOCAL.with(|local| local.pool.borrow()[CLASSES - 1].len());
        assert_eq!(kept, POOLED_BYTES_MAX / CAPACITY_POOLED_MAX);
    }
}
