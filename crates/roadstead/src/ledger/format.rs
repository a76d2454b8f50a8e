//! The file format of a ledger.

pub(super) const MAGIC: &[u8; 19] = b"roadstead ledger 1\n";
pub(super) const RECORD_SIZE: usize = 9;
pub(super) const BUFFER_SIZE: usize = 256 * 1024;
pub(super) const SENT: u8 = b's';
pub(super) const UNASKED: u8 = b'x';
pub(super) const END: u8 = b'.';

/// The outcome of a sent line, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The line took effect.
    Acknowledged,
    /// The line was rejected before it could take effect.
    Refused,
    /// The line was attempted and did not take effect.
    Failed,
    /// The line may or may not have taken effect.
    Unknown,
    /// The reply was for another line. The outcome is unknown, and replies were mixed up.
    Misdirected,
}

impl Fate {
    pub(super) const ALL: [Self; 5] =
        [Self::Acknowledged, Self::Refused, Self::Failed, Self::Unknown, Self::Misdirected];

    pub(super) const fn kind(self) -> u8 {
        match self {
            Self::Acknowledged => b'a',
            Self::Refused => b'r',
            Self::Failed => b'f',
            Self::Unknown => b'u',
            Self::Misdirected => b'm',
        }
    }
}
