//! Memory outside of blocks that is counted like blocks.

use crate::class;

/// A number of bytes outside of blocks that count as in use until this value is dropped.
#[derive(Debug, Default)]
pub struct CountedBytes(usize);

impl CountedBytes {
    /// Counts `bytes` as in use.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        class::count_allocated(bytes);
        Self(bytes)
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        if self.0 > 0 {
            class::count_freed(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Account, publish, set_account};

    #[test]
    fn other_memory_is_counted_as_long_as_it_is_said_to_be_held() {
        let account = Account::separate();
        set_account(&account);
        let held = || {
            publish();
            account.held()
        };
        let mut counted = CountedBytes::new(1000);
        assert_eq!(held(), 1000);
        counted = {
            drop(counted);
            CountedBytes::new(300)
        };
        assert_eq!(held(), 300);
        drop((counted, CountedBytes::default()));
        assert_eq!(held(), 0);
    }
}
