//! Encoding of replies as frames.
//!
//! If replies are rows of a query, every row is a frame, and [`END_OF_ROWS`] follows the last one. A reply that ends
//! with an error has another last frame.

use exchange::{Cause, Outcome, Phase, Slice};
use wire::{Marks, Unframable, encode, write_reply};

use super::{Ending, Frames, Input};
use crate::session::reply_queue::{Name, Ready};

/// The frame after the last row, as in PostgreSQL's `COPY`. No row is equal to it: JSON begins with a brace, and in
/// TSV other characters follow a backslash.
const END_OF_ROWS: &[u8] = b"\\.";

impl Frames {
    pub(super) fn write(&mut self, ready: Ready, out: &mut Vec<u8>) {
        if self.broken {
            self.broken = matches!(ready, Ready::Part(_));
            return;
        }
        if let Ready::End(_, Outcome::Ended(..)) = &ready
            && (self.ending != Ending::Clean || self.config.resets)
        {
            if self.ending == Ending::Clean {
                (self.input, self.ending) = (Input::Ended, Ending::Reset);
            }
            return;
        }
        let (framing, marks) = (self.config.framing, self.config.marks);
        let written = match &ready {
            Ready::Part(part) if self.rows => write_rows(framing, marks, part, out),
            Ready::End(name, Outcome::Reply(body)) if self.rows => {
                let end = Outcome::Reply(Slice::copy_of(END_OF_ROWS));
                write_rows(framing, marks, body, out)
                    .and_then(|()| write_reply(framing, marks, &end, name.asked(), out))
            }
            Ready::Part(part) => write_part(framing, marks, part, out),
            Ready::End(name, Outcome::Reply(body)) if is_one_line(framing, body) => {
                let line = Outcome::Reply(body.slice(0..body.len() - 1));
                write_reply(framing, marks, &line, name.asked(), out)
            }
            Ready::End(name, outcome) => write_reply(framing, marks, outcome, name.asked(), out),
        };
        if let Err(refused) = written {
            let name = match ready {
                Ready::End(name, _) => name,
                Ready::Part(_) => {
                    self.broken = self.rows;
                    Name::Unknown
                }
            };
            let outcome = Outcome::ended(Cause::Reply, Phase::Reply, refused.message());
            let refused = write_reply(framing, marks, &outcome, name.asked(), out);
            debug_assert!(refused.is_ok(), "an ending can always be carried");
        }
    }
}

/// Writes one frame of a reply in parts.
fn write_part(
    framing: wire::Framing,
    marks: Marks,
    part: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unframable> {
    if marks == Marks::Plain || framing.is_json() || framing == wire::Framing::Raw {
        return encode(framing, part, out);
    }
    let part = Outcome::Reply(Slice::copy_of(part));
    write_reply(framing, marks, &part, wire::ErrorId::Unknown, out)
}

/// Writes each line as a frame, without its line end.
fn write_rows(
    framing: wire::Framing,
    marks: Marks,
    lines: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unframable> {
    let mut lines = lines.split(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        // Nothing follows the last line end.
        if lines.peek().is_some() || !line.is_empty() {
            write_part(framing, marks, line, out)?;
        }
    }
    Ok(())
}

/// Whether a reply is one line with its line end, as the output of a program often is. On a listener of lines, that is
/// the end of the frame.
fn is_one_line(framing: wire::Framing, body: &[u8]) -> bool {
    framing == wire::Framing::Lines && body.ends_with(b"\n")
}
