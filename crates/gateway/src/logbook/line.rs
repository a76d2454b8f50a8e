//! A line of the access log. Pure: a request that has ended becomes bytes.
//!
//! Whatever a peer says stands in it escaped, so that it is one line whoever wrote it, and none of
//! its values can be taken for another. JSON has its own escapes; elsewhere everything but visible
//! ASCII, and `"` and `\`, is written as `\xHH`.

use std::io::Write;

use exchange::{Cause, End, Outcome, Peer, RequestId, Stamps, Verdict};
use settings::{AccessLog, LogFormat, LogPiece, LogValue};

use super::Trail;

/// A request that has ended.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) id: Option<RequestId>,
    pub(crate) at_us: i64,
    pub(crate) peer: Peer,
    pub(crate) pool: &'a str,
    pub(crate) worker: &'a str,
    pub(crate) stamps: Stamps,
    pub(crate) end: End,
    pub(crate) trail: &'a Trail,
}

/// What a value of a line is made of.
enum Shown<'a> {
    Nothing,
    Word(&'a str),
    Number(u64),
    /// What a peer or an operator wrote.
    Bytes(&'a [u8]),
    At(i64),
    Peer(Peer),
    Id(RequestId),
}

impl Line<'_> {
    /// Writes it behind `out`, with its end.
    pub(super) fn write(&self, plan: &AccessLog, out: &mut Vec<u8>) {
        match &plan.format {
            LogFormat::Json => self.json(&plan.fields, out),
            LogFormat::Combined => self.combined(out),
            LogFormat::Template(pieces) => {
                for piece in pieces {
                    match piece {
                        LogPiece::Text(text) => out.extend_from_slice(text.as_bytes()),
                        LogPiece::Value(value) => text(&self.value(*value), out),
                        LogPiece::Field(place) => text(&bytes(self.trail.kept(place + 1)), out),
                    }
                }
            }
        }
        out.push(b'\n');
    }

    fn json(&self, fields: &[String], out: &mut Vec<u8>) {
        for (place, value) in LogValue::ALL.iter().enumerate() {
            out.extend_from_slice(if place == 0 { b"{\"" } else { b",\"" });
            out.extend_from_slice(value.word().as_bytes());
            out.extend_from_slice(b"\":");
            json(&self.value(*value), out);
        }
        if !fields.is_empty() && !self.trail.ends.is_empty() {
            for (place, name) in fields.iter().enumerate() {
                out.extend_from_slice(if place == 0 { b",\"fields\":{" } else { b"," });
                json(&Shown::Bytes(name.as_bytes()), out);
                out.push(b':');
                json(&bytes(self.trail.kept(place + 1)), out);
            }
            out.push(b'}');
        }
        out.push(b'}');
    }

    fn combined(&self, out: &mut Vec<u8>) {
        match self.peer {
            Peer::Internet(address) => put(out, format_args!("{}", address.ip())),
            peer => put(out, format_args!("{peer}")),
        }
        out.extend_from_slice(b" - - [");
        let (year, month, day, second) = calendar(self.at_us);
        let name = MONTHS[usize::from(month - 1)];
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        put(
            out,
            format_args!("{day:02}/{name}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000] \""),
        );
        text(&self.value(LogValue::Request), out);
        out.extend_from_slice(b"\" ");
        text(&self.value(LogValue::Status), out);
        put(out, format_args!(" {} \"", self.trail.bytes_out));
        text(&bytes(self.trail.kept(1)), out);
        out.extend_from_slice(b"\" \"");
        text(&bytes(self.trail.kept(2)), out);
        out.push(b'"');
    }

    fn value(&self, value: LogValue) -> Shown<'_> {
        let stamps = &self.stamps;
        let done = stamps.done.unwrap_or(stamps.received);
        let us = |from: Option<std::time::Instant>, to: Option<std::time::Instant>| {
            let passed = to.zip(from).map(|(to, from)| to.saturating_duration_since(from));
            passed.map_or(Shown::Nothing, |it| {
                Shown::Number(u64::try_from(it.as_micros()).unwrap_or(u64::MAX))
            })
        };
        let (client_end, worker_end) = self.sides();
        match value {
            LogValue::At => Shown::At(self.at_us),
            LogValue::Id => self.id.map_or(Shown::Nothing, Shown::Id),
            LogValue::Listener => match &self.trail.listener {
                Some(listener) => Shown::Word(&listener.name),
                None => Shown::Nothing,
            },
            LogValue::Client => Shown::Peer(self.peer),
            LogValue::Pool => Shown::Word(self.pool),
            LogValue::Worker if self.worker.is_empty() => Shown::Nothing,
            LogValue::Worker => Shown::Bytes(self.worker.as_bytes()),
            LogValue::Request => bytes(self.trail.kept(0)),
            LogValue::Status if self.trail.status == 0 => Shown::Nothing,
            LogValue::Status => Shown::Number(u64::from(self.trail.status)),
            LogValue::In => Shown::Number(self.trail.bytes_in),
            LogValue::Out => Shown::Number(self.trail.bytes_out),
            LogValue::Queue => us(stamps.admitted, stamps.dispatched.or(stamps.done)),
            LogValue::Connect => us(stamps.dispatched, self.trail.connected),
            LogValue::First => us(Some(stamps.received), stamps.first_byte),
            LogValue::Total => us(Some(stamps.received), Some(done)),
            LogValue::Retries => Shown::Number(u64::from(self.trail.retries)),
            LogValue::Verdict => Shown::Word(self.end.cause.verdict().word()),
            LogValue::Cause => Shown::Word(self.end.cause.word()),
            LogValue::Phase => Shown::Word(self.end.phase.word()),
            LogValue::ClientEnd => Shown::Word(client_end),
            LogValue::WorkerEnd => Shown::Word(worker_end),
        }
    }

    /// How it ended for the client and for the worker. Whoever ended it has the cause; the other was
    /// `told` so, or was `cut` off, or was never there.
    fn sides(&self) -> (&'static str, &'static str) {
        let cause = self.end.cause;
        let had = if self.stamps.dispatched.is_some() { "cut" } else { "none" };
        match cause {
            Cause::Answered => ("ok", "ok"),
            Cause::TooLong | Cause::Incomplete | Cause::Malformed => (cause.word(), had),
            _ if cause.verdict() == Verdict::Left => (cause.word(), had),
            Cause::Worker
            | Cause::Record
            | Cause::Row
            | Cause::Database
            | Cause::Rows
            | Cause::Unreached
            | Cause::Garbled
            | Cause::Reply
            | Cause::Died
            | Cause::Deadline
            | Cause::Commit
            | Cause::Handler
            | Cause::Lost => ("told", cause.word()),
            _ => ("told", had),
        }
    }
}

/// The status that tells of an end that no server gave one for.
pub(crate) fn status_of(outcome: &Outcome) -> u16 {
    match outcome {
        Outcome::Reply(_) => 200,
        Outcome::Sorry(..) => 503,
        Outcome::Ended(end, _) => crate::session::status_of(end.cause),
    }
}

/// The line that says that there were more.
pub(super) fn write_dropped(format: &LogFormat, lines: u64, out: &mut Vec<u8>) {
    match format {
        LogFormat::Json => put(out, format_args!("{{\"dropped\":{lines}}}\n")),
        _ => put(out, format_args!("# {lines} lines were dropped\n")),
    }
}

fn bytes(bytes: &[u8]) -> Shown<'_> {
    if bytes.is_empty() { Shown::Nothing } else { Shown::Bytes(bytes) }
}

/// Writing to memory cannot fail.
fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

fn json(shown: &Shown<'_>, out: &mut Vec<u8>) {
    match shown {
        Shown::Nothing => out.extend_from_slice(b"null"),
        Shown::Number(number) => put(out, format_args!("{number}")),
        Shown::Bytes(bytes) => {
            out.push(b'"');
            for chunk in bytes.utf8_chunks() {
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

fn json_character(character: char, out: &mut Vec<u8>) {
    match character {
        '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
        // Some readers take these two for line ends.
        '\u{2028}' | '\u{2029}' => put(out, format_args!("\\u{:04x}", character as u32)),
        _ if character.is_control() => put(out, format_args!("\\u{:04x}", character as u32)),
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn text(shown: &Shown<'_>, out: &mut Vec<u8>) {
    match shown {
        Shown::Nothing => out.push(b'-'),
        Shown::Word(word) => out.extend_from_slice(word.as_bytes()),
        Shown::Number(number) => put(out, format_args!("{number}")),
        Shown::Peer(peer) => put(out, format_args!("{peer}")),
        Shown::Id(id) => put(out, format_args!("{id}")),
        Shown::At(at_us) => {
            let (year, month, day, second) = calendar(*at_us);
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            let us = at_us.rem_euclid(1_000_000);
            put(out, format_args!("{year:04}-{month:02}-{day:02}T"));
            put(out, format_args!("{hour:02}:{minute:02}:{second:02}.{us:06}Z"));
        }
        Shown::Bytes(bytes) => {
            for byte in *bytes {
                match byte {
                    b'"' | b'\\' => put(out, format_args!("\\x{byte:02x}")),
                    b' '..=b'~' => out.push(*byte),
                    _ => put(out, format_args!("\\x{byte:02x}")),
                }
            }
        }
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Year, month, day and second of the day of a moment in microseconds since 1970, in UTC. Days are
/// counted in eras of 400 years that begin in March, so that a leap day is the last of its year.
fn calendar(at_us: i64) -> (i64, u8, u8, i64) {
    let seconds = at_us.div_euclid(1_000_000);
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let small = |number: i64| u8::try_from(number).unwrap_or(0);
    (year, small(month), small(day), seconds.rem_euclid(86_400))
}
