//! Mutants: deliberate defects that show that the tests can fail.
//!
//! Without the feature `plants`, [`active`] is the constant `false`, and the defects are removed by the compiler. With
//! it, the environment variable `ROADSTEAD_PLANT` names the defect that is active in this process.

/// One deliberate defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The database handler answers before the commit.
    AckBeforeCommit,
    /// Ids are compared without their generation. Late replies reach the request that reuses the index.
    StaleId,
    /// A request is acknowledged as soon as it is dispatched.
    EarlyOk,
    /// Each reply of a worker is delivered to the following request.
    ShiftedReply,
    /// A program is given to another client without a check for surplus output.
    Unchecked,
    /// A connection with an incomplete reply is kept for the next request.
    KeptLink,
    /// A truncated reply is reported as complete.
    ShortBody,
    /// A request that may have taken effect is sent to a server again.
    AskedTwice,
    /// A request that could be retried on another server is not retried.
    GaveUp,
    /// Reading from a client continues although the server does not accept the client's data in a tunnel.
    NotHeld,
    /// A tunnel that was cut off ends like a tunnel that was closed normally.
    QuietCut,
    /// One of the bytes that were forwarded without parsing is not counted.
    Miscount,
    /// The last output of a program that serves HTTP is not read after the program exits.
    LastWords,
    /// A slot that was promised to a waiting request of another shard is not released.
    LostSlot,
    /// Data of one HTTP client in a reused object is visible to the next client.
    NotReset,
    /// Connections of a server that sent bytes without a request are reused immediately.
    Trusting,
    /// A change of a shared binding is applied although a newer one is known.
    ArrivalOrder,
    /// A daemon keeps its revisions although the bucket of shared bindings was wiped or restored.
    EpochIgnored,
    /// A daemon whose binding lost a conflict keeps it.
    LoserKeeps,
    /// The digest of shared bindings does not depend on their targets.
    DigestWithoutTargets,
    /// The expiry of a shared binding on the server removes a binding that is in use.
    MarkerDeletes,
    /// Shared bindings that the server no longer has are kept after a resync.
    NoSweep,
}

impl Mutant {
    /// All defects in the path to programs and databases.
    pub const ALL: &[Self] =
        &[Self::AckBeforeCommit, Self::StaleId, Self::EarlyOk, Self::ShiftedReply, Self::Unchecked];

    /// All defects in the path to servers.
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

    /// All defects in the supervision of programs that serve HTTP.
    pub const SPAWNED: &[Self] = &[Self::LastWords];

    /// All defects in the bindings that several daemons share.
    pub const CLUSTER: &[Self] = &[
        Self::ArrivalOrder,
        Self::EpochIgnored,
        Self::LoserKeeps,
        Self::DigestWithoutTargets,
        Self::MarkerDeletes,
        Self::NoSweep,
    ];

    /// The name of the defect in `ROADSTEAD_PLANT`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
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
            Self::ArrivalOrder => "arrival-order",
            Self::EpochIgnored => "epoch-ignored",
            Self::LoserKeeps => "loser-keeps",
            Self::DigestWithoutTargets => "digest-without-targets",
            Self::MarkerDeletes => "marker-deletes",
            Self::NoSweep => "no-sweep",
        }
    }
}

/// Whether this defect is active.
#[cfg(feature = "plants")]
#[must_use]
pub fn active(mutant: Mutant) -> bool {
    static ACTIVE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    ACTIVE.get_or_init(|| std::env::var("ROADSTEAD_PLANT").ok()).as_deref() == Some(mutant.as_str())
}

/// Whether this defect is active. Always `false` in this build.
#[cfg(not(feature = "plants"))]
#[must_use]
pub const fn active(_plant: Mutant) -> bool {
    false
}
