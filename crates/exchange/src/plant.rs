//! Planted bugs: deliberate defects that prove that the tests can fail.
//!
//! Without the `plants` feature [`active`] is a constant `false` and the defects are compiled
//! away. With it, `ROADSTEAD_PLANT` names the one that is active in this process.

/// One deliberate defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The database answers before it commits.
    AckBeforeCommit,
    /// Ids are compared without their generation: late replies reach whoever has the place now.
    StaleId,
    /// A request is acknowledged as soon as it is dispatched.
    EarlyOk,
    /// Each reply of a worker goes to the request after its own.
    ShiftedReply,
    /// A program is given to another client without a look at what else it says.
    Unchecked,
    /// A link whose reply was broken off is kept for the next request.
    KeptLink,
    /// A reply that was cut off is told as whole.
    ShortBody,
    /// A request that may have an effect is given to a server again.
    AskedTwice,
    /// A request that could be given to another server is not.
    GaveUp,
    /// A client is read on though its server does not take what it says in a tunnel.
    NotHeld,
    /// A tunnel that was cut ends like one that came to its end.
    QuietCut,
    /// Of the bytes that went on without being looked at one is forgotten.
    Miscount,
    /// What a program that serves HTTP said before it ended is not read.
    LastWords,
    /// A slot that another shard's waiter is to have is not given back.
    LostSlot,
    /// What one client of HTTP left in an object that is reused is there for the next client.
    NotReset,
    /// Connections of a server that sent bytes that no request asked for are reused at once.
    Trusting,
}

impl Plant {
    /// All defects of what stands before programs and databases.
    pub const ALL: &[Self] =
        &[Self::AckBeforeCommit, Self::StaleId, Self::EarlyOk, Self::ShiftedReply, Self::Unchecked];

    /// All defects of what stands before servers.
    pub const SERVERS: &[Self] = &[
        Self::KeptLink,
        Self::ShortBody,
        Self::AskedTwice,
        Self::GaveUp,
        Self::NotHeld,
        Self::QuietCut,
        Self::Miscount,
        Self::NotReset,
        Self::Trusting,
    ];

    /// All defects of what keeps programs that serve HTTP.
    pub const HOSTED: &[Self] = &[Self::LastWords];

    /// The name in `ROADSTEAD_PLANT`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::AckBeforeCommit => "ack-before-commit",
            Self::StaleId => "stale-id",
            Self::EarlyOk => "early-ok",
            Self::ShiftedReply => "shifted-reply",
            Self::Unchecked => "unchecked",
            Self::KeptLink => "kept-link",
            Self::ShortBody => "short-body",
            Self::AskedTwice => "asked-twice",
            Self::GaveUp => "gave-up",
            Self::NotHeld => "not-held",
            Self::QuietCut => "quiet-cut",
            Self::Miscount => "miscount",
            Self::LastWords => "last-words",
            Self::LostSlot => "lost-slot",
            Self::NotReset => "not-reset",
            Self::Trusting => "trusting",
        }
    }
}

/// Whether this defect is active.
#[cfg(feature = "plants")]
#[must_use]
pub fn active(plant: Plant) -> bool {
    static ACTIVE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    ACTIVE.get_or_init(|| std::env::var("ROADSTEAD_PLANT").ok()).as_deref() == Some(plant.word())
}

/// Whether this defect is active: never in this build.
#[cfg(not(feature = "plants"))]
#[must_use]
pub const fn active(_plant: Plant) -> bool {
    false
}
