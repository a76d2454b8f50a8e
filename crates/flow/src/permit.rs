//! Whether a client of a message protocol may send requests to its pool.
//!
//! ```text
//!   Free ──no room, or others wait──▶ Waiting ──its turn, and room──▶ Granted(n) ──n requests──▶ Free
//! ```
//!
//! The client keeps it, and changes it as the engine says.

/// Whether a client may send requests to its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permit {
    /// As long as there is room and nobody waits.
    #[default]
    Free,
    /// It waits, under this ticket.
    Waiting(u64),
    /// So many, although others wait.
    Granted(u32),
}

impl Permit {
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    /// A request was sent.
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
