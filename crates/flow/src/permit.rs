//! Admission of a client of a message protocol to its pool.
//!
//! ```text
//!   Free ──no room, or others wait──▶ Waiting ──its turn, and room──▶ Granted(n) ──n requests──▶ Free
//! ```
//!
//! The session owns the permit; the engine changes it.

/// Whether a client may send requests to its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permit {
    /// The client may send while the pool has room and no other client waits.
    #[default]
    Free,
    /// The client waits, under this ticket.
    Waiting(u64),
    /// The client may send this many requests, even if others wait.
    Granted(u32),
}

impl Permit {
    /// Whether the client waits for room in the pool.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    /// Counts one request that was sent.
    pub const fn spend(&mut self) {
        if let Self::Granted(left) = self {
            *self = match left.saturating_sub(1) {
                0 => Self::Free,
                left => Self::Granted(left),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_used_up_by_its_requests() {
        let mut permit = Permit::Granted(2);
        permit.spend();
        assert_eq!(permit, Permit::Granted(1));
        permit.spend();
        assert_eq!(permit, Permit::Free);
        permit.spend();
        assert_eq!(permit, Permit::Free);
    }
}
