//! Reads a ledger.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::format::{BUFFER_SIZE, END, Fate, MAGIC, RECORD_SIZE, SENT, UNASKED};

/// The content of a ledger: the fate of each line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// The seed from which the contents of the records are generated.
    pub seed: u64,
    /// The id of the first line.
    pub first: u64,
    /// The fate of each line, in the order of their ids.
    pub fates: Vec<Fate>,
    /// The number of unsolicited replies.
    pub unasked: u64,
}

/// Why a ledger could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The system could not open or read the file.
    System(PathBuf, io::Error),
    /// The file is not a complete ledger.
    Format(PathBuf, FormatError),
}

/// The error in a file that should be a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The file does not begin as a ledger does.
    NoLedger,
    /// The file has no end: the run was cut off, or is still running.
    Unfinished,
    /// The file continues after its end, or the end contradicts the records before it.
    End,
    /// The record with this number, counted from 1, is of an unknown kind.
    Kind(u64),
    /// The record with this number sends an id that is not the next one.
    Sent(u64),
    /// The record with this number has the fate of a line that was not in flight.
    Fate(u64),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLedger => f.write_str("this is not a ledger"),
            Self::Unfinished => f.write_str("the ledger has no end: its run was cut or goes on"),
            Self::End => f.write_str("the end of the ledger disagrees with what came before it"),
            Self::Kind(number) => write!(f, "record {number} is of an unknown kind"),
            Self::Sent(number) => write!(f, "record {number} sends an id out of its turn"),
            Self::Fate(number) => {
                write!(f, "record {number} tells the fate of a line that was not on its way")
            }
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Format(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ReadError {}

impl Ledger {
    /// Reads the ledger at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not the complete ledger of a finished run.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let system = |error| ReadError::System(path.to_owned(), error);
        let format = |error| ReadError::Format(path.to_owned(), error);
        let mut file = BufReader::with_capacity(BUFFER_SIZE, File::open(path).map_err(system)?);
        let mut head = [0; MAGIC.len() + 16];
        if !filled(&mut file, &mut head).map_err(system)? || !head.starts_with(MAGIC) {
            return Err(format(FormatError::NoLedger));
        }
        let numbers = &head[MAGIC.len()..];
        let mut reading = Reading::new(number(&numbers[..8]), number(&numbers[8..]));
        let mut record = [0; RECORD_SIZE];
        while filled(&mut file, &mut record).map_err(system)? {
            reading.record(record[0], number(&record[1..])).map_err(format)?;
        }
        reading.finish().map_err(format)
    }

    /// Returns the number of lines with this fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> u64 {
        self.fates.iter().filter(|&&other| other == fate).count() as u64
    }
}

/// Fills `buffer`. Returns `false` if the file ends before.
fn filled(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a number has eight bytes"))
}

/// The state while a ledger is read.
struct Reading {
    seed: u64,
    first: u64,
    /// `None` while a line is in flight.
    fates: Vec<Option<Fate>>,
    unasked: u64,
    records: u64,
    ended: bool,
}

impl Reading {
    fn new(seed: u64, first: u64) -> Self {
        Self { seed, first, fates: Vec::new(), unasked: 0, records: 0, ended: false }
    }

    fn record(&mut self, kind: u8, number: u64) -> Result<(), FormatError> {
        if self.ended {
            return Err(FormatError::End);
        }
        self.records += 1;
        match kind {
            SENT => self.sent(number).ok_or(FormatError::Sent(self.records)),
            UNASKED => {
                self.unasked += 1;
                Ok(())
            }
            END => {
                self.ended = true;
                if self.fates.len() as u64 == number { Ok(()) } else { Err(FormatError::End) }
            }
            _ => {
                let fate = Fate::ALL.into_iter().find(|fate| fate.kind() == kind);
                let fate = fate.ok_or(FormatError::Kind(self.records))?;
                self.fate(number, fate).ok_or(FormatError::Fate(self.records))
            }
        }
    }

    fn place(&self, id: u64) -> Option<usize> {
        usize::try_from(id.checked_sub(self.first)?).ok()
    }

    fn sent(&mut self, id: u64) -> Option<()> {
        let place = self.place(id)?;
        if place == self.fates.len() {
            self.fates.push(None);
            return Some(());
        }
        let fate = self.fates.get_mut(place)?;
        (fate.take()? == Fate::Refused).then_some(())
    }

    fn fate(&mut self, id: u64, fate: Fate) -> Option<()> {
        let place = self.place(id)?;
        self.fates.get_mut(place)?.replace(fate).is_none().then_some(())
    }

    fn finish(self) -> Result<Ledger, FormatError> {
        if !self.ended {
            return Err(FormatError::Unfinished);
        }
        // A finished run has recorded the fate of every line.
        let fates: Option<Vec<Fate>> = self.fates.into_iter().collect();
        let fates = fates.ok_or(FormatError::End)?;
        Ok(Ledger { seed: self.seed, first: self.first, fates, unasked: self.unasked })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Writer;
    use super::*;
    use proptest::prelude::*;

    fn read_bytes(bytes: &[u8]) -> Result<Ledger, FormatError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        std::fs::write(&path, bytes).unwrap();
        Ledger::read(&path).map_err(|error| match error {
            ReadError::Format(_, error) => error,
            ReadError::System(..) => panic!("{error}"),
        })
    }

    fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut writer = Writer::create(&path, 5, 100).unwrap();
        write(&mut writer);
        writer.finish().unwrap();
        std::fs::read(&path).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(fates in proptest::collection::vec(0..5_usize, 0..200), unasked in 0..3_u64) {
            let fates: Vec<_> = fates.into_iter().map(|index| Fate::ALL[index]).collect();
            let bytes = written(|writer| {
                for id in 100..100 + fates.len() as u64 {
                    writer.sent(id).unwrap();
                }
                for (fate, id) in fates.iter().zip(100..).collect::<Vec<_>>().into_iter().rev() {
                    writer.fate(id, *fate).unwrap();
                }
                for _ in 0..unasked {
                    writer.unasked().unwrap();
                }
            });
            prop_assert_eq!(read_bytes(&bytes), Ok(Ledger { seed: 5, first: 100, fates, unasked }));
        }
    }

    #[test]
    fn a_refused_line_may_be_sent_again_and_the_last_fate_counts() {
        let bytes = written(|writer| {
            writer.sent(100).unwrap();
            writer.fate(100, Fate::Refused).unwrap();
            writer.sent_again(100).unwrap();
            writer.fate(100, Fate::Acknowledged).unwrap();
        });
        assert_eq!(read_bytes(&bytes).unwrap().fates, [Fate::Acknowledged]);
    }

    #[test]
    fn a_ledger_that_was_cut_anywhere_is_not_taken_for_a_whole_one() {
        let bytes = written(|writer| {
            writer.sent(100).unwrap();
            writer.fate(100, Fate::Unknown).unwrap();
        });
        for end in 0..bytes.len() {
            let error = read_bytes(&bytes[..end]).unwrap_err();
            let head = MAGIC.len() + 16;
            let expected = if end < head { FormatError::NoLedger } else { FormatError::Unfinished };
            assert_eq!(error, expected, "{end}");
        }
    }

    #[test]
    fn a_ledger_that_cannot_be_is_refused() {
        type Case = (fn(&mut Writer), FormatError);
        let cases: [Case; 6] = [
            (|writer| writer.sent(101).unwrap(), FormatError::Sent(1)),
            (|writer| writer.fate(100, Fate::Refused).unwrap(), FormatError::Fate(1)),
            (|writer| writer.sent(100).unwrap(), FormatError::End),
            (
                |writer| {
                    writer.sent(100).unwrap();
                    writer.sent_again(100).unwrap();
                },
                FormatError::Sent(2),
            ),
            (
                |writer| {
                    writer.sent(100).unwrap();
                    writer.fate(100, Fate::Unknown).unwrap();
                    writer.sent_again(100).unwrap();
                },
                FormatError::Sent(3),
            ),
            (
                |writer| {
                    writer.sent(100).unwrap();
                    writer.fate(100, Fate::Acknowledged).unwrap();
                    writer.fate(100, Fate::Acknowledged).unwrap();
                },
                FormatError::Fate(3),
            ),
        ];
        for (write, error) in cases {
            assert_eq!(read_bytes(&written(write)), Err(error));
        }
        let mut strange = written(|_| {});
        let end = strange.len() - RECORD_SIZE;
        strange[end] = b'?';
        assert_eq!(read_bytes(&strange), Err(FormatError::Kind(1)));
        assert_eq!(
            read_bytes(b"something else, long enough to be read"),
            Err(FormatError::NoLedger)
        );
    }
}
