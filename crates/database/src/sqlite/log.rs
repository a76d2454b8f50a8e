//! Checks that the write-ahead log still has the frames that its index counts.
//!
//! SQLite keeps the end of the log in its index. It does not notice that another program truncated the log: it writes
//! after the hole, and the next process that opens the file finds no valid frame before it and discards all frames. So
//! the frames that the index counts are read back after a commit, from the last one that was verified before. A hole
//! always contains the end of that frame, or comes after it.
//!
//! SQLite holds no locks on the log, so another descriptor of it can be opened and closed.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use crate::fault::Fault;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The first bytes of a log. The last bit is the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// The number of attempts before a difference counts: a checkpoint may empty the log, or a writer may restart it, while
/// it is read.
const ATTEMPTS: u32 = 8;

/// The number of attempts while another connection writes the header of the index, and the pause between them.
const BUSY_ATTEMPTS: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// How much of the log is compared with the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The header, the length and the last verified frame: sufficient before a batch or a query.
    Length,
    /// Also each frame since then.
    Frames,
}

/// The log of an open connection.
#[derive(Debug)]
pub(super) struct Log {
    file: fs::File,
    verified: Option<Mark>,
    frame: Vec<u8>,
}

/// The running checksum of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum(u32, u32);

/// The header of a log. The salts change each time that the log is restarted.
#[derive(Clone, Copy, Debug)]
struct Header {
    page_bytes: usize,
    is_big_endian: bool,
    salts: [u8; 8],
    sum: Sum,
}

/// The last verified frame, counted from 1.
#[derive(Clone, Copy, Debug)]
struct Mark {
    salts: [u8; 8],
    frame: u32,
    /// The checksum before this frame.
    before: Sum,
}

impl Log {
    /// Opens the log at `path`, which a connection has open.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: fs::File::open(path)?, verified: None, frame: Vec::new() })
    }

    /// Returns the metadata of the file.
    pub(super) fn metadata(&self) -> io::Result<fs::Metadata> {
        self.file.metadata()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Checks that the log has the frames that the index counts, and returns their number; `None` if it has not.
    /// `connection` must have no open transaction.
    pub(super) fn frames(
        &mut self,
        connection: &Connection,
        depth: Depth,
    ) -> Result<Option<u32>, Fault> {
        let (mut attempts, mut busy) = (0, 0);
        while attempts < ATTEMPTS && busy < BUSY_ATTEMPTS {
            let Some(frames) = counted(connection)? else {
                busy += 1;
                thread::park_timeout(BUSY_PAUSE);
                continue;
            };
            // An error here means that the file is too short.
            if frames == 0 || self.has(frames, depth).unwrap_or(false) {
                return Ok(Some(frames));
            }
            attempts += 1;
        }
        Ok(None)
    }

    fn has(&mut self, frames: u32, depth: Depth) -> io::Result<bool> {
        let Some(header) = self.header()? else { return Ok(false) };
        if self.bytes() < header.offset(frames + 1) {
            return Ok(false);
        }
        let mark = self.verified.filter(|mark| mark.salts == header.salts);
        let (first, before) = mark.map_or((1, header.sum), |mark| (mark.frame, mark.before));
        if first > frames {
            return Ok(false);
        }
        let last = if mark.is_some() && depth == Depth::Length { first } else { frames };
        let mut sum = before;
        for frame in first..=last {
            let Some(after) = self.sum_after(&header, frame, sum)? else { return Ok(false) };
            self.verified = Some(Mark { salts: header.salts, frame, before: sum });
            sum = after;
        }
        Ok(true)
    }

    /// Returns the header, if it is valid.
    fn header(&self) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER_BYTES];
        self.file.read_exact_at(&mut bytes, 0)?;
        let magic = word(&bytes, 0, true);
        let page_bytes = word(&bytes, 8, true);
        if magic & !1 != MAGIC || !page_bytes.is_power_of_two() || page_bytes > 1 << 16 {
            return Ok(None);
        }
        let is_big_endian = magic & 1 == 1;
        let sum = Sum(0, 0).with(&bytes[..24], is_big_endian);
        let mut salts = [0; 8];
        salts.copy_from_slice(&bytes[16..24]);
        let is_valid = sum == Sum(word(&bytes, 24, true), word(&bytes, 28, true));
        let header = Header { page_bytes: page_bytes as usize, is_big_endian, salts, sum };
        Ok(is_valid.then_some(header))
    }

    /// Returns the checksum after `frame`, if the frame is valid.
    fn sum_after(&mut self, header: &Header, frame: u32, before: Sum) -> io::Result<Option<Sum>> {
        self.frame.resize(FRAME_HEADER_BYTES + header.page_bytes, 0);
        self.file.read_exact_at(&mut self.frame, header.offset(frame))?;
        let (of_frame, page) = self.frame.split_at(FRAME_HEADER_BYTES);
        let sum = before.with(&of_frame[..8], header.is_big_endian);
        let sum = sum.with(page, header.is_big_endian);
        let is_valid = of_frame[8..16] == header.salts
            && sum == Sum(word(of_frame, 16, true), word(of_frame, 20, true));
        Ok(is_valid.then_some(sum))
    }
}

impl Header {
    /// Returns the position of `frame` in the file.
    fn offset(&self, frame: u32) -> u64 {
        let frame_bytes = (FRAME_HEADER_BYTES + self.page_bytes) as u64;
        HEADER_BYTES as u64 + u64::from(frame - 1) * frame_bytes
    }
}

impl Sum {
    /// Returns the checksum including `bytes`, whose length is a multiple of 8.
    fn with(self, bytes: &[u8], is_big_endian: bool) -> Self {
        bytes.chunks_exact(8).fold(self, |Self(one, two), chunk| {
            let one = one.wrapping_add(word(chunk, 0, is_big_endian)).wrapping_add(two);
            Self(one, two.wrapping_add(word(chunk, 4, is_big_endian)).wrapping_add(one))
        })
    }
}

fn word(bytes: &[u8], at: usize, is_big_endian: bool) -> u32 {
    let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// Returns the number of frames that the index counts; `None` while another connection writes it.
fn counted(connection: &Connection) -> Result<Option<u32>, Fault> {
    let mut statement = connection.prepare_cached("pragma wal_checkpoint(noop)")?;
    let (busy, frames): (i64, i64) =
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(u32::try_from(frames).ok().filter(|_| busy == 0))
}
