//! The input of a schedule about a worker, and the reason for a choice.

/// The properties of a worker that a schedule needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eligibility {
    /// Slots in use.
    pub(crate) in_use: u32,
    /// The number of slots.
    pub(crate) slots: u32,
    /// The weight, 1 to 256.
    pub(crate) weight: u32,
    /// The weight in 256ths, less during slow start; 1 to 65,536.
    pub(crate) share: u32,
    /// The permanent identity of the worker. The assignment of hash keys depends on it.
    pub(crate) identity: u64,
    /// Whether the worker serves only while no other worker is available.
    pub(crate) backup: bool,
    /// Whether the remaining slots are unavailable: other shards have them, or the worker is reserved for a client.
    pub(crate) out: bool,
}

impl Eligibility {
    pub(crate) const fn is_free(&self) -> bool {
        self.in_use < self.slots && !self.out
    }
}

/// Why a worker was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Choice {
    /// The schedule chose it among the workers with a free slot.
    Scheduled,
    /// The key hashes to it.
    Hashed,
    /// The key hashes to another worker, which is full or over its load bound.
    HashedOn,
    /// The client is bound to it.
    Bound,
    /// The request tests it.
    Probed,
    /// It is reserved for this client while its output is checked.
    Reserved,
}

impl Choice {
    /// The name in `why`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Hashed => "hashed",
            Self::HashedOn => "hashed-on",
            Self::Bound => "bound",
            Self::Probed => "probed",
            Self::Reserved => "kept",
        }
    }
}
