//! The ledger: each line that a client sent, and its result.
//!
//! What it is: a file that a run of `load` writes, and the comparison of this file with the database. What it depends
//! on: ids, fates, and the recipe of the records. What it must never depend on: how the lines were sent.
//!
//! The file is binary, all numbers little-endian:
//!
//! ```text
//!   "roadstead ledger 1\n"  seed: u64  first id: u64
//!   kind: u8  number: u64                               any number of these
//!     's' id    sent: ids begin at the first and rise by one; again only after a refusal
//!     'a' 'r' 'f' 'u' 'm' id    its fate: acknowledged, refused, failed, unknown, misdirected
//!     'x' 0     an unsolicited reply
//!   '.'  ids sent: u64                                  the run has ended
//! ```
//!
//! A line is recorded before it is passed to the connection, and its fate when it is known. A file without its end
//! belongs to a run that did not end, and cannot be checked.

#[cfg(feature = "databases")]
mod check;
#[cfg(feature = "databases")]
mod cli;
mod format;
mod read;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

#[cfg(feature = "databases")]
pub use check::{CheckError, Finding, Verdict, check};
#[cfg(feature = "databases")]
pub use cli::{CheckArgs, LedgerCommand, main};
pub use format::Fate;
pub use read::{FormatError, Ledger, ReadError};

use format::{BUFFER_SIZE, END, MAGIC, RECORD_SIZE, SENT, UNASKED};

/// Writes a ledger.
#[derive(Debug)]
pub struct Writer {
    file: BufWriter<File>,
    sent: u64,
}

impl Writer {
    /// Creates the ledger of a run whose ids begin at `first` and whose records are generated from `seed`. An existing
    /// file is overwritten.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn create(path: &Path, seed: u64, first: u64) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(BUFFER_SIZE, File::create(path)?);
        file.write_all(MAGIC)?;
        file.write_all(&seed.to_le_bytes())?;
        file.write_all(&first.to_le_bytes())?;
        Ok(Self { file, sent: 0 })
    }

    /// Records that `id` is about to be sent for the first time. Ids begin at the first id and rise by one.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn sent(&mut self, id: u64) -> io::Result<()> {
        self.sent += 1;
        self.write(SENT, id)
    }

    /// Records that a refused `id` is about to be sent again.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn sent_again(&mut self, id: u64) -> io::Result<()> {
        self.write(SENT, id)
    }

    /// Records the fate of `id`.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn fate(&mut self, id: u64, fate: Fate) -> io::Result<()> {
        self.write(fate.kind(), id)
    }

    /// Records an unsolicited reply.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn unasked(&mut self) -> io::Result<()> {
        self.write(UNASKED, 0)
    }

    /// Writes the end of the ledger. Without it the ledger cannot be checked.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.write(END, self.sent)?;
        self.file.flush()
    }

    fn write(&mut self, kind: u8, number: u64) -> io::Result<()> {
        let mut record = [kind; RECORD_SIZE];
        record[1..].copy_from_slice(&number.to_le_bytes());
        self.file.write_all(&record)
    }
}
