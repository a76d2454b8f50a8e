//! Memory outside of blocks that is counted like blocks.

use crate::class;

/// A number of bytes outside of blocks that count as in use until this value is dropped.
#[derive(Debug, Default)]
pub struct Counted(usize);

impl Counted {
    /// Counts `bytes` as in use.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        class::note_made(bytes);
        Self(bytes)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0 > 0 {
            class::note_freed(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Account, account_to, publish};

    #[test]
    fn other_memory_is_counted_as_long_as_it_is_said_to_be_held() {
        let account = Account::separate();
        account_to(&account);
        let held = || {
            publish();
            account.held()
        };
        let mut counted = Counted::new(1000);
        assert_eq!(held(), 1000);
        counted = {
            drop(counted);
            Counted::new(300)
        };
        assert_eq!(held(), 300);
        drop((counted, Counted::default()));
        assert_eq!(held(), 0);
    }
}
