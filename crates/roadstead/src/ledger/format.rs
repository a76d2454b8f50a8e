//! How a ledger lies in its file.

pub(super) const MAGIC: &[u8; 19] = b"roadstead ledger 1\n";
pub(super) const RECORD_SIZE: usize = 9;
pub(super) const BUFFER_SIZE: usize = 256 * 1024;
pub(super) const SENT: u8 = b's';
pub(super) const UNASKED: u8 = b'x';
pub(super) const END: u8 = b'.';

/// What a client knows of a line that it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It took effect.
    Acknowledged,
    /// It was decided before anything took effect that it would not.
    Refused,
    /// It was tried and did not take effect.
    Failed,
    /// It may or may not have taken effect.
    Unknown,
    /// Its reply was for another line, so nothing is known of it but that ids were mixed.
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
