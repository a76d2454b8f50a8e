//! Compares the access log with the replies to visitors: one line per request, with its status and the number of bytes
//! of its reply body.

use std::collections::BTreeMap;

use gateway::{LogBatch, LogSource};

use crate::http::speakers::{Http, Role};
use crate::http::visitors::{Visitor, VisitorRequest};

/// The fields of a line, in the form of [`FORMAT`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) status: u16,
    pub(crate) out: usize,
}

/// The template of a line. A request line contains spaces, so it is the last field.
pub(crate) const FORMAT: &str =
    "\n[access_log]\nto = \"stdout\"\nformat = \"{client} {status} {out} {request}\"\n";
/// A size that no world exceeds.
pub(crate) const BYTES_MAX: usize = 1 << 30;

/// The port of the first visitor; the number of the visitor is added.
pub(crate) const PORTS: usize = 10_000;

/// The lines of a visitor: those with a known request, and the statuses of the others.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) known: BTreeMap<u64, Line>,
    pub(crate) unknown: Vec<u16>,
}

impl Http {
    /// Compares the log with the replies.
    pub(crate) fn check_log(
        &self,
        source: Option<LogSource>,
        shards: usize,
        found: &mut Vec<String>,
    ) {
        let Some(source) = source else { return };
        let text = read(source);
        let mut lines: BTreeMap<usize, Lines> = BTreeMap::new();
        for line in text.lines() {
            if let Err(why) = note(&mut lines, line) {
                found.push(format!("the log has {why}: {line}"));
            }
        }
        let nothing = Lines::default();
        for (number, speaker) in self.speakers.iter().enumerate() {
            let Role::Visitor(visitor) = &speaker.role else { continue };
            let lines = lines.get(&number).unwrap_or(&nothing);
            check_visitor(number, visitor, lines, shards, found);
        }
    }
}

/// Returns the whole log, after all writers have ended.
pub(crate) fn read(mut source: LogSource) -> String {
    let (mut batch, mut text) = (LogBatch::default(), String::new());
    while source.next(&mut batch) {
        text += &String::from_utf8_lossy(&batch.bytes);
    }
    text
}

pub(crate) fn note(lines: &mut BTreeMap<usize, Lines>, line: &str) -> Result<(), &'static str> {
    let mut words = line.split(' ');
    let port = words.next().and_then(|client| client.rsplit_once(':')?.1.parse::<usize>().ok());
    let number = port.and_then(|port| port.checked_sub(PORTS)).ok_or("a client that nobody is")?;
    let status = words.next().and_then(|word| word.parse().ok()).ok_or("no status")?;
    let out = words.next().and_then(|word| word.parse().ok()).ok_or("no bytes")?;
    let id = words.nth(1).and_then(|target| target.strip_prefix("/r/")?.parse().ok());
    // In a line for an incomplete request line, the id may be cut off as well.
    let id = id.filter(|_| words.next().is_some_and(|it| matches!(it, "HTTP/1.1" | "HTTP/1.0")));
    let of = lines.entry(number).or_default();
    match id {
        Some(id) if of.known.insert(id, Line { status, out }).is_some() => {
            Err("two lines of a request")
        }
        Some(_) => Ok(()),
        None => {
            of.unknown.push(status);
            Ok(())
        }
    }
}

pub(crate) fn check_visitor(
    number: usize,
    visitor: &Visitor,
    lines: &Lines,
    shards: usize,
    found: &mut Vec<String>,
) {
    for (ask, reply) in visitor.asks.iter().zip(&visitor.answers) {
        let right = match lines.known.get(&ask.id) {
            Some(line) if line.status == reply.status => has_bytes(*ask, reply, *line),
            // Two shards may each have detected an error in the request at the same moment.
            Some(line) => shards > 1 && line.status >= 400 && reply.status >= 400,
            // For an incomplete head, the log has only the status of the reply.
            None => lines.unknown.contains(&reply.status),
        };
        if !right {
            let line = lines.known.get(&ask.id);
            let (status, raw, whole) = (reply.status, reply.raw, reply.is_whole);
            found.push(format!(
                "visitor {number} was told {status} with {raw} bytes (whole: {whole}) to {ask:?}, \
                 and the log says {line:?}"
            ));
        }
    }
}

/// Whether the number of bytes in a line matches the reply of a visitor, either as the server sent it or as the visitor
/// received it.
pub(crate) fn has_bytes(
    ask: VisitorRequest,
    reply: &crate::http::message::Reply,
    line: Line,
) -> bool {
    let is_ours = !matches!(reply.status, 101 | 200);
    let same = line.out == reply.raw || line.out == reply.body.len();
    // For HTTP/1.0, chunks are sent without their framing.
    is_ours || !reply.is_whole || same || (ask.request_kind.is_old() && line.out >= reply.raw)
}
