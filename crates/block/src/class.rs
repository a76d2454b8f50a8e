//! Size classes and the pool of each thread.
//!
//! A class is a power of four from 64 bytes to 64 KiB. Larger blocks have the next power of two as their size and are
//! never pooled. Each thread keeps at most [`POOLED_BYTES_MAX`] bytes of each class. Blocks that are often dropped on
//! another thread than their own are therefore freed there, and the list of that thread does not grow without limit.

use std::cell::{Cell, RefCell};

use crate::account::{Account, STEP};
use triomphe::{Arc, HeaderSlice, UniqueArc};

/// The size of the smallest block, in bytes.
pub const CAPACITY_MIN: usize = 64;
/// The size of the largest block that is kept for reuse, in bytes.
pub const CAPACITY_POOLED_MAX: usize = 64 * 1024;

const CLASSES: usize = 6;
/// The maximum that a thread keeps of one class, in bytes: 16 blocks of the largest class, 16,384 of the smallest. This
/// is enough for the output of all streams that are busy in one turn.
const POOLED_BYTES_MAX: usize = 1024 * 1024;

/// The memory of a block: the number of counted bytes, then the bytes.
pub(crate) type Memory = HeaderSlice<CountedHeader, [u8]>;

/// Counts bytes as in use while their memory is allocated. This includes the case that the last of several owners on
/// several threads releases it.
pub(crate) struct CountedHeader(usize);

impl CountedHeader {
    fn begin(&mut self, bytes: usize) {
        with_local(|local| local.count(counted(bytes)));
        self.0 = bytes;
    }

    fn end(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        if bytes > 0 {
            with_local(|local| local.count(-counted(bytes)));
        }
    }
}

impl Drop for CountedHeader {
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

/// The thread-local pool and counts.
pub(crate) struct Local {
    /// Blocks that can be reused, by class.
    pool: RefCell<[Vec<UniqueArc<Memory>>; CLASSES]>,
    /// Bytes of allocated blocks minus bytes of freed blocks, since the last [`Self::publish`].
    unpublished: Cell<i64>,
    pub(crate) account: RefCell<Account>,
}

impl Local {
    /// Adds `bytes` (negative when freed) to the bytes in use.
    #[inline]
    fn count(&self, bytes: i64) {
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

/// Calls `act` with the thread-local data and returns its result; returns `None` while the thread is ending.
pub(crate) fn with_local<R>(act: impl FnOnce(&Local) -> R) -> Option<R> {
    LOCAL.try_with(act).ok()
}

impl Account {
    /// The account that this thread adds to: the account of the process, unless another was chosen.
    #[must_use]
    pub fn current() -> Self {
        with_local(|local| local.account.borrow().clone()).unwrap_or_default()
    }
}

/// Sets the account that this thread adds to from now on.
pub fn set_account(account: &Account) {
    publish();
    with_local(|local| *local.account.borrow_mut() = account.clone());
}

/// Adds the bytes that this thread has allocated and freed to its account.
pub fn publish() {
    with_local(Local::publish);
}

/// Counts `bytes` outside of blocks as in use.
pub(crate) fn count_allocated(bytes: usize) {
    with_local(|local| local.count(counted(bytes)));
}

/// Counts `bytes` outside of blocks as no longer in use.
pub(crate) fn count_freed(bytes: usize) {
    with_local(|local| local.count(-counted(bytes)));
}

/// Converts a number of bytes to the type of the counts. This cannot overflow, because no block is that long.
#[expect(clippy::cast_possible_wrap, reason = "no allocation is longer than isize::MAX")]
const fn counted(bytes: usize) -> i64 {
    bytes as i64
}

/// The class whose blocks hold `capacity` bytes; `None` if that is too large for the pool.
fn class_of(capacity: usize) -> Option<usize> {
    // Each class is four times (two bits) larger than the class before it.
    let bits = usize::BITS - capacity.saturating_sub(1).leading_zeros();
    let class = bits.saturating_sub(CAPACITY_MIN.trailing_zeros()).div_ceil(2) as usize;
    (class < CLASSES).then_some(class)
}

const fn class_capacity(class: usize) -> usize {
    CAPACITY_MIN << (2 * class)
}

const _: () = assert!(class_capacity(CLASSES - 1) == CAPACITY_POOLED_MAX);

/// The capacity of a block that is allocated for `length` bytes.
pub(crate) fn capacity_for(length: usize) -> usize {
    class_of(length).map_or_else(|| length.next_power_of_two(), class_capacity)
}

/// Returns memory for at least `capacity` bytes, from the pool if possible.
pub(crate) fn obtain(capacity: usize) -> UniqueArc<Memory> {
    let Some(class) = class_of(capacity) else {
        return allocate(capacity.next_power_of_two());
    };
    let pooled = with_local(|local| local.pool.borrow_mut()[class].pop()).flatten();
    let Some(mut memory) = pooled else { return allocate(class_capacity(class)) };
    memory.header.begin(class_capacity(class));
    memory
}

/// Allocates memory for exactly `capacity` bytes.
pub(crate) fn allocate(capacity: usize) -> UniqueArc<Memory> {
    static ZEROES: [u8; CAPACITY_POOLED_MAX] = [0; CAPACITY_POOLED_MAX];
    // Sizes up to the largest pooled block are created directly from the zeroes. A larger size needs a vector, which is
    // copied once behind the count.
    let memory: Arc<Memory> = match ZEROES.get(..capacity) {
        Some(zeroes) => Arc::from_header_and_slice(CountedHeader(0), zeroes),
        None => Arc::from_header_and_slice(CountedHeader(0), &vec![0; capacity]),
    };
    let memory = Arc::try_unique(memory);
    let mut memory =
        memory.unwrap_or_else(|_| unreachable!("nobody else knows what was just made"));
    memory.header.begin(capacity);
    memory
}

/// Releases one reference to shared memory; the last owner returns the memory to the pool.
pub(crate) fn release(memory: Arc<Memory>) {
    // Most slices share their block, and checking this costs one atomic load. If two owners release at the same time,
    // it is possible that neither sees itself as the only owner. The memory is then freed instead of pooled.
    if let Ok(memory) = Arc::try_unique(memory) {
        recycle(memory);
    }
}

/// Keeps the memory for reuse, if its size is that of a class and the pool is not full.
pub(crate) fn recycle(mut memory: UniqueArc<Memory>) {
    let length = memory.slice.len();
    let Some(class) = class_of(length).filter(|&class| class_capacity(class) == length) else {
        return;
    };
    // A thread that is ending has no pool any more; its memory is freed.
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
            recycle(bytes);
        }
        let kept = LOCAL.with(|local| local.pool.borrow()[CLASSES - 1].len());
        assert_eq!(kept, POOLED_BYTES_MAX / CAPACITY_POOLED_MAX);
    }
}
