//! Size classes and the pool of each thread.
//!
//! A class is a power of four from 64 bytes to 64 KiB; larger blocks have the next power of two
//! and are never pooled. Each thread keeps at most [`POOLED_BYTES_MAX`] of each class, so memory
//! that wandered to another thread ends in its allocator and not in an ever longer list.

use std::cell::RefCell;

use triomphe::{Arc, UniqueArc};

/// The smallest block there is, in bytes.
pub const CAPACITY_MIN: usize = 64;
/// The largest block that is kept for reuse, in bytes.
pub const CAPACITY_POOLED_MAX: usize = 64 * 1024;

const CLASSES: usize = 6;
/// What a thread keeps of one class at most, in bytes: sixteen of the largest, 16,384 of the
/// smallest. Enough for the output of as many streams as are busy in one turn.
const POOLED_BYTES_MAX: usize = 1024 * 1024;

thread_local! {
    static POOL: RefCell<[Vec<UniqueArc<[u8]>>; CLASSES]> = const { RefCell::new([const { Vec::new() }; CLASSES]) };
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
pub(crate) fn obtain(capacity: usize) -> UniqueArc<[u8]> {
    let Some(class) = class_of(capacity) else {
        return exactly(capacity.next_power_of_two());
    };
    POOL.try_with(|pool| pool.borrow_mut()[class].pop())
        .ok()
        .flatten()
        .unwrap_or_else(|| exactly(class_capacity(class)))
}

/// Memory of its own. A small one comes at once; a vector would have to be copied behind a count.
pub(crate) fn exactly(capacity: usize) -> UniqueArc<[u8]> {
    static ZEROES: [u8; 1024] = [0; 1024];
    let bytes: Arc<[u8]> =
        ZEROES.get(..capacity).map_or_else(|| Arc::from(vec![0; capacity]), Arc::from);
    Arc::try_unique(bytes).unwrap_or_else(|_| unreachable!("nobody else knows what was just made"))
}

/// Lets a part of shared memory go; the last owner gives it back.
pub(crate) fn let_go(bytes: Arc<[u8]>) {
    // Most slices share their block; whether this one does is only a load.
    if let Ok(bytes) = Arc::try_unique(bytes) {
        give_back(bytes);
    }
}

/// Keeps the memory for reuse.
pub(crate) fn give_back(bytes: UniqueArc<[u8]>) {
    let length = bytes.len();
    let Some(class) = class_of(length).filter(|&class| class_capacity(class) == length) else {
        return;
    };
    // A thread that is ending has no pool any more; its memory goes back to the allocator.
    let _ = POOL.try_with(|pool| {
        let list = &mut pool.borrow_mut()[class];
        if list.len() < POOLED_BYTES_MAX >> length.trailing_zeros() {
            list.push(bytes);
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
        let kept = POOL.with(|pool| pool.borrow()[CLASSES - 1].len());
        assert_eq!(kept, POOLED_BYTES_MAX / CAPACITY_POOLED_MAX);
    }
}
