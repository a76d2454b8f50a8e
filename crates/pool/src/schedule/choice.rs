//! What a schedule has to know of a worker, and why it chose one.

/// What a schedule has to know of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eligibility {
    /// Slots in use.
    pub(crate) in_use: u32,
    /// Slots it has.
    pub(crate) slots: u32,
    /// Its weight, 1 to 256.
    pub(crate) weight: u32,
    /// Its weight in 256ths, less while it warms up; 1 to 65,536.
    pub(crate) share: u32,
    /// What it is known by for ever: keys of a hash follow it.
    pub(crate) identity: u64,
    /// Whether it is there only for when nobody else is.
    pub(crate) backup: bool,
    /// Whether other shards have the slots that are left.
    pub(crate) out: bool,
}

impl Eligibility {
    pub(crate) const fn is_free(&self) -> bool {
        self.in_use < self.slots && !self.out
    }
}

/// Why the worker that is next is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The schedule chose it among those with a free slot.
    Scheduled,
    /// The key belongs to it.
    Hashed,
    /// The key belongs to another that is full or has more than its bound.
    HashedOn,
    /// It is the one that the client is bound to.
    Bound,
    /// It is the one that is to be checked.
    Probed,
    /// It is kept for this client while its output is checked.
    Reserved,
}

impl Choice {
    /// The word in `why`.
    #[must_use]
    pub const fn word(self) -> &'static str {
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
