//! Formats a line of the access log, without side effects.
//!
//! Values from peers are escaped, so that they can break neither the line nor its structure. JSON has its own escapes.
//! In other formats `"`, `\` and all bytes except visible ASCII are written as `\xHH`.

use std::time::Instant;

use exchange::{
    Cause, End, LogFormat, LogPiece, LogValue, Peer, RequestId, Stamps, Verdict, is_hidden,
};

use super::config::AccessLogConfig;
use super::digits::{self, Dated, put};
use super::entry::AccessEntry;

/// A finished request.
#[derive(Debug)]
pub struct Line<'a> {
    /// The id; `None`: the request was rejected before it got one.
    pub id: Option<RequestId>,
    /// The time of receipt, in microseconds since the Unix epoch.
    pub at_us: i64,
    /// The address of the client.
    pub peer: Peer,
    /// The name of the pool; empty: none.
    pub pool: &'a str,
    /// The name of the last worker; empty: none.
    pub worker: &'a str,
    /// The times of its steps, on the monotonic clock.
    pub stamps: Stamps,
    /// The cause and the phase in which it ended.
    pub end: End,
    /// The values that the frontend collected.
    pub log_entry: &'a AccessEntry,
}

/// A value of a line, before it is formatted.
enum Shown<'a> {
    Nothing,
    Word(&'a str),
    Number(u64),
    /// A text of a peer or an operator, which is escaped.
    Bytes(&'a [u8]),
    /// A formatted second, and the microseconds.
    At(&'a [u8], u32),
    Peer(Peer),
    /// An id. It is a string in JSON, because it may exceed the integers that JSON readers represent exactly.
    Id(RequestId),
}

impl Line<'_> {
    /// Appends the line to `out`, with its line end.
    pub(super) fn write(&self, config: &AccessLogConfig, dated: &mut Dated, out: &mut Vec<u8>) {
        dated.turn_to(self.at_us);
        match &config.format {
            LogFormat::Json => self.json(&config.fields, dated, out),
            LogFormat::Combined => self.combined(dated, out),
            LogFormat::Template(pieces) => {
                for piece in pieces {
                    match piece {
                        LogPiece::Text(text) => out.extend_from_slice(text.as_bytes()),
                        LogPiece::Value(value) => text(&self.value(*value, dated), out),
                        LogPiece::Field(place) => text(&bytes(self.log_entry.kept(place + 1)), out),
                    }
                }
            }
        }
        out.push(b'\n');
    }

    fn json(&self, fields: &[String], dated: &Dated, out: &mut Vec<u8>) {
        let begin = out.len();
        for value in LogValue::ALL {
            out.extend_from_slice(value.json_key().as_bytes());
            json(&self.value(*value, dated), out);
        }
        // Each key was written with a comma before it.
        out[begin] = b'{';
        if !fields.is_empty() && !self.log_entry.ends.is_empty() {
            for (place, name) in fields.iter().enumerate() {
                out.extend_from_slice(if place == 0 { b",\"fields\":{" } else { b"," });
                json(&Shown::Bytes(name.as_bytes()), out);
                out.push(b':');
                json(&bytes(self.log_entry.kept(place + 1)), out);
            }
            out.push(b'}');
        }
        out.push(b'}');
    }

    fn combined(&self, dated: &Dated, out: &mut Vec<u8>) {
        digits::peer(self.peer, false, out);
        out.extend_from_slice(b" - - [");
        out.extend_from_slice(dated.combined());
        out.extend_from_slice(b"] \"");
        text(&self.value(LogValue::Request, dated), out);
        out.extend_from_slice(b"\" ");
        text(&self.value(LogValue::Status, dated), out);
        out.push(b' ');
        digits::number(self.log_entry.bytes_out, out);
        out.extend_from_slice(b" \"");
        text(&bytes(self.log_entry.kept(1)), out);
        out.extend_from_slice(b"\" \"");
        text(&bytes(self.log_entry.kept(2)), out);
        out.push(b'"');
    }

    fn value<'a>(&'a self, value: LogValue, dated: &'a Dated) -> Shown<'a> {
        let stamps = &self.stamps;
        match value {
            LogValue::At => {
                let us = u32::try_from(self.at_us.rem_euclid(1_000_000)).unwrap_or(0);
                Shown::At(dated.standard(), us)
            }
            LogValue::Id => self.id.map_or(Shown::Nothing, Shown::Id),
            LogValue::Listener => match &self.log_entry.listener {
                Some(listener) => Shown::Word(&listener.name),
                None => Shown::Nothing,
            },
            LogValue::Client => Shown::Peer(self.peer),
            LogValue::Pool => Shown::Word(self.pool),
            LogValue::Worker if self.worker.is_empty() => Shown::Nothing,
            LogValue::Worker => Shown::Bytes(self.worker.as_bytes()),
            LogValue::Request => bytes(self.log_entry.kept(0)),
            LogValue::Status if self.log_entry.status == 0 => Shown::Nothing,
            LogValue::Status => Shown::Number(u64::from(self.log_entry.status)),
            LogValue::In => Shown::Number(self.log_entry.bytes_in),
            LogValue::Out => Shown::Number(self.log_entry.bytes_out),
            LogValue::Queue => passed(stamps.admitted, stamps.dispatched.or(stamps.done)),
            LogValue::Connect => passed(stamps.dispatched, self.log_entry.connected),
            LogValue::First => passed(Some(stamps.received), stamps.first_byte),
            LogValue::Total => passed(Some(stamps.received), stamps.done.or(Some(stamps.received))),
            LogValue::Retries => Shown::Number(u64::from(self.log_entry.retries)),
            LogValue::Verdict => Shown::Word(self.end.cause.verdict().as_str()),
            LogValue::Cause => Shown::Word(self.end.cause.as_str()),
            LogValue::Reason if self.log_entry.reason.is_empty() => Shown::Nothing,
            LogValue::Reason => Shown::Word(self.log_entry.reason),
            LogValue::Phase => Shown::Word(self.end.phase.as_str()),
            LogValue::ClientEnd => Shown::Word(self.sides().0),
            LogValue::WorkerEnd => Shown::Word(self.sides().1),
        }
    }

    /// Returns how the request ended for the client and for the worker. The side that ended it has the cause. The other
    /// side has `told` (the error was sent to it), `cut` (it was interrupted) or `none` (no worker received the
    /// request).
    fn sides(&self) -> (&'static str, &'static str) {
        let cause = self.end.cause;
        let had = if self.stamps.dispatched.is_some() { "cut" } else { "none" };
        match cause {
            Cause::Answered => ("ok", "ok"),
            Cause::TooLong | Cause::Incomplete | Cause::Malformed => (cause.as_str(), had),
            _ if cause.verdict() == Verdict::Left => (cause.as_str(), had),
            Cause::Worker
            | Cause::Record
            | Cause::Row
            | Cause::Ignored
            | Cause::NoRow
            | Cause::Database
            | Cause::Rows
            | Cause::Unreached
            | Cause::Garbled
            | Cause::Reply
            | Cause::Died
            | Cause::Deadline
            | Cause::Commit
            | Cause::Handler
            | Cause::Lost => ("told", cause.as_str()),
            _ => ("told", had),
        }
    }
}

/// Returns the microseconds between two times, if both are known.
fn passed<'a>(from: Option<Instant>, to: Option<Instant>) -> Shown<'a> {
    let (Some(from), Some(to)) = (from, to) else { return Shown::Nothing };
    let time = to.saturating_duration_since(from);
    let seconds = time.as_secs().saturating_mul(1_000_000);
    Shown::Number(seconds.saturating_add(u64::from(time.subsec_micros())))
}

/// Appends the line that states how many lines were dropped.
pub(super) fn write_dropped(format: &LogFormat, lines: u64, out: &mut Vec<u8>) {
    match format {
        LogFormat::Json => put(out, format_args!("{{\"dropped\":{lines}}}\n")),
        _ => put(out, format_args!("# {lines} lines were dropped\n")),
    }
}

fn bytes(bytes: &[u8]) -> Shown<'_> {
    if bytes.is_empty() { Shown::Nothing } else { Shown::Bytes(bytes) }
}

fn json(shown: &Shown<'_>, out: &mut Vec<u8>) {
    match shown {
        Shown::Nothing => out.extend_from_slice(b"null"),
        Shown::Number(number) => digits::number(*number, out),
        Shown::Bytes(bytes) => {
            out.push(b'"');
            let (plain, rest) = bytes.split_at(plain_length(bytes));
            out.extend_from_slice(plain);
            for chunk in rest.utf8_chunks() {
                for character in chunk.valid().chars() {
                    json_character(character, out);
                }
                if !chunk.invalid().is_empty() {
                    out.extend_from_slice(b"\\ufffd");
                }
            }
            out.push(b'"');
        }
        shown => {
            out.push(b'"');
            text(shown, out);
            out.push(b'"');
        }
    }
}

/// Whether a byte needs no escape in any format.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Returns the length of the prefix that needs no escape in any format. In most lines this is the whole text.
fn plain_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is_plain(*byte)).unwrap_or(bytes.len())
}

fn json_character(character: char, out: &mut Vec<u8>) {
    match character {
        '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
        // Some readers treat two of these characters as line ends, and terminals interpret others.
        _ if is_hidden(character) => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                put(out, format_args!("\\u{unit:04x}"));
            }
        }
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn text(shown: &Shown<'_>, out: &mut Vec<u8>) {
    match shown {
        Shown::Nothing => out.push(b'-'),
        Shown::Word(word) => out.extend_from_slice(word.as_bytes()),
        Shown::Number(number) => digits::number(*number, out),
        Shown::Peer(peer) => digits::peer(*peer, true, out),
        Shown::Id(id) => digits::number(id.as_u64(), out),
        Shown::At(second, us) => {
            out.extend_from_slice(second);
            digits::six(*us, out);
            out.push(b'Z');
        }
        Shown::Bytes(bytes) => {
            let (plain, rest) = bytes.split_at(plain_length(bytes));
            out.extend_from_slice(plain);
            for byte in rest {
                if is_plain(*byte) {
                    out.push(*byte);
                } else {
                    put(out, format_args!("\\x{byte:02x}"));
                }
            }
        }
    }
}
