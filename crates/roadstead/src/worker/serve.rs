//! Reads lines and writes answers.

use std::io::{self, Read, Write};

use wire::lines::{Lines, Piece};

/// The maximum length of a line in bytes.
pub const LINE_MAX: usize = 64 * 1024;

/// The size of one read in bytes. It is larger than a line and its end, so that there is always space to read into.
pub(super) const READ_SIZE: usize = 256 * 1024;

/// Appends the answer to one line, with its line end.
pub(super) type Answer = fn(&[u8], &mut Vec<u8>);

/// What to do after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Read the next line.
    Read,
    /// Write the pending answers first.
    Write,
    /// Write the pending answers, and end.
    End,
}

/// Passes every line of `input` to `answer` until either ends. After each read, the answers to its lines are written
/// immediately. A last line without a line end counts.
pub(super) fn serve(
    mut input: impl Read,
    mut output: impl Write,
    mut answer: impl FnMut(&[u8], &mut Vec<u8>) -> Next,
) -> io::Result<()> {
    let mut lines = Lines::new(LINE_MAX);
    let mut buffer = vec![0; READ_SIZE];
    let mut filled = 0;
    let mut answers = Vec::with_capacity(READ_SIZE);
    loop {
        let count = match input.read(&mut buffer[filled..]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        filled += count;
        let (bytes, mut from) = (&buffer[..filled], 0);
        let ended = count == 0;
        loop {
            let found = match lines.next(bytes, &mut from) {
                None if ended => lines.finish(&bytes[std::mem::replace(&mut from, filled)..]),
                found => found,
            };
            let Some(piece) = found else { break };
            let next = match piece {
                Piece::Line(place) => answer(&bytes[place], &mut answers),
                Piece::TooLong => {
                    answers.extend_from_slice(b"!toolong the line exceeds 65536 bytes\n");
                    Next::Read
                }
            };
            if next != Next::Read {
                write(&mut output, &mut answers)?;
            }
            if next == Next::End {
                return Ok(());
            }
        }
        write(&mut output, &mut answers)?;
        if ended {
            return Ok(());
        }
        let done = lines.consume(filled, from);
        buffer.copy_within(done..filled, 0);
        filled -= done;
    }
}

fn write(output: &mut impl Write, answers: &mut Vec<u8>) -> io::Result<()> {
    if !answers.is_empty() {
        output.write_all(answers)?;
        output.flush()?;
        answers.clear();
    }
    Ok(())
}
