//! Checks the guarantees of the gateway to clients after a run.
//!
//! - Reply number n of a client is the reply to its line number n: the output of a worker for that line, or an error
//!   with a code. Otherwise the connection ended.
//! - Acknowledged rows are stored, at least as often as they were acknowledged and not more often than they were
//!   forwarded. Rejected or failed rows are not stored. No row is stored that was not sent.
//! - A request of which a byte reached a program is not given to a second program.
//! - A client without an error or a fault of its connection has all its replies.
//! - A client that can be paused is not rejected because a queue is full. Requests from within cannot be paused, and
//!   may take the last place in the queue before a request that was read earlier.

mod distribution;
pub(crate) mod ends;
pub(crate) mod http;

use std::collections::{BTreeMap, BTreeSet};

use exchange::{Cause, Outcome, Verdict};
use wire::Framing;

use crate::asks::{InternalRequest, NOWHERE};
use crate::check::ends::{Ends, Found};
use crate::clients::{Client, End, Leaving, LineKind};
use crate::programs::frames;
use crate::scenario::{Finish, Job};
use crate::store::id_of;
use crate::world::World;

/// The meaning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyMeaning<'a> {
    Answer(&'a [u8]),
    Ended(Cause),
    /// An error reply of a worker.
    Refused(&'a [u8]),
    Nonsense,
}

/// Checks that a request from within got exactly one outcome, and a correct one.
fn check_ask(
    line_check: LineCheck<'_>,
    ask: &InternalRequest,
    ends: &mut Ends,
    acknowledged: &mut BTreeMap<u64, u32>,
    found: &mut Vec<String>,
) {
    let Some(asked_at) = ask.asked_at else { return };
    let world = line_check.world;
    let outcomes = ask.outcomes();
    let calm = world.scenario.finish == Finish::Calm && world.record.is_clean();
    let due = calm && world.progress.drain_at.is_some_and(|drain_at| drain_at > asked_at);
    if outcomes.len() > 1 || (due && outcomes.is_empty()) {
        found.push(format!("request {} from within was told {outcomes:?}", ask.id));
    }
    for outcome in outcomes {
        let said = match &outcome {
            Outcome::Reply(body) => ReplyMeaning::Answer(body),
            Outcome::Ended(end, text) if end.cause == Cause::Worker => ReplyMeaning::Refused(text),
            Outcome::Ended(end, _) | Outcome::Fallback(end, _) => ReplyMeaning::Ended(end.cause),
        };
        let judged = if ask.pool == NOWHERE && outcome.end().cause == Cause::NoPool {
            Ok(("nopool", None))
        } else {
            line_check.line(ask.id, LineKind::Whole, &ask.line, said)
        };
        match judged {
            Ok((end, row)) => {
                *ends.entry(end).or_default() += 1;
                if let Some(id) = row {
                    *acknowledged.entry(id).or_default() += 1;
                }
            }
            Err(why) => found.push(format!("request {} from within: {outcome:?}: {why}", ask.id)),
        }
    }
}

/// The lines that programs received, and their replies.
#[derive(Debug, Default)]
struct Truth {
    /// The reply lines of programs, by request.
    replies: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// The number of programs for which the kernel accepted bytes of a request, by id.
    given: BTreeMap<u64, u32>,
    /// The number of program lines that become a row, by id.
    rows: BTreeMap<u64, u32>,
}

impl Truth {
    fn of(world: &World) -> Self {
        let mut truth = Self::default();
        for program in &world.workers.programs {
            let framing = world.scenario.framing;
            let mut said = frames(framing, &program.said).0.into_iter();
            let (given, begun) = frames(framing, &program.given);
            for line in given {
                if let Some(id) = id_of(line) {
                    *truth.given.entry(id).or_default() += 1;
                }
                if let Some(reply) = said.next() {
                    truth.replies.entry(line.to_vec()).or_default().push(reply.to_vec());
                }
            }
            // The length prefix of a frame is not part of its line.
            let begun = begun_line(framing, begun);
            if begun.contains(&b' ')
                && let Some(id) = id_of(begun)
            {
                *truth.given.entry(id).or_default() += 1;
            }
            for line in frames(framing, &program.said).0 {
                if let Some(id) = id_of(line) {
                    *truth.rows.entry(id).or_default() += 1;
                }
            }
        }
        truth
    }
}

/// Returns the line in an incomplete frame.
fn begun_line(framing: Framing, begun: &[u8]) -> &[u8] {
    let prefix = match framing {
        Framing::Len(width) => width.bytes(),
        Framing::Netstring => begun.iter().position(|byte| *byte == b':').map_or(0, |at| at + 1),
        _ => 0,
    };
    begun.get(prefix..).unwrap_or_default()
}

/// Splits bytes into complete lines and the rest after the last line.
fn lines(bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let rest = lines.pop().unwrap_or_default();
    (lines, rest)
}

/// Checks everything that is visible from outside, and counts how requests ended.
pub(crate) fn check(world: &World) -> Found {
    let truth = Truth::of(world);
    let mut ends = Ends::new();
    let mut found = Vec::new();
    let mut acknowledged: BTreeMap<u64, u32> = BTreeMap::new();
    for (id, times) in &truth.given {
        if *times > 1 {
            found.push(format!("line {id} was given to {times} programs"));
        }
    }
    let line_check = LineCheck { world, truth: &truth };
    for (number, client) in world.users.clients.iter().enumerate() {
        let account = Account { line_check, world, number, client };
        account.check(&mut ends, &mut acknowledged, &mut found);
    }
    for ask in &world.users.asks {
        check_ask(line_check, ask, &mut ends, &mut acknowledged, &mut found);
    }
    check_rows(world, &truth, &acknowledged, &mut found);
    Found { ends, violations: found }
}

fn check_rows(
    world: &World,
    truth: &Truth,
    acknowledged: &BTreeMap<u64, u32>,
    found: &mut Vec<String>,
) {
    let mut sent: BTreeSet<u64> = world.users.asks.iter().map(|ask| ask.id).collect();
    for client in &world.users.clients {
        let mut whole = client.lines.iter().filter(|line| line.end <= client.sent);
        sent.extend(whole.clone().map(|line| line.id));
        // An incomplete last line may count as a line.
        if world.scenario.listeners[client.listener].accepts_last_line {
            let start = whole.next_back().map_or(0, |line| line.end);
            sent.extend(id_of(&client.bytes[start..client.sent]));
        }
    }
    for (id, times) in &world.workers.store.rows {
        if !sent.contains(id) {
            found.push(format!("row {id} is stored and nobody sent it"));
        }
        let most = match world.scenario.job {
            Job::Main => truth.rows.get(id).copied().unwrap_or_default(),
            Job::Rows | Job::Programs => 1,
        };
        if *times > most {
            found.push(format!("row {id} is stored {times} times, sent on {most} times"));
        }
    }
    for (id, times) in acknowledged {
        let stored = world.workers.store.rows.get(id).copied().unwrap_or_default();
        if stored < *times {
            found
                .push(format!("row {id} was acknowledged {times} times and stored {stored} times"));
        }
    }
}

/// A client and what it received.
struct Account<'a> {
    line_check: LineCheck<'a>,
    world: &'a World,
    number: usize,
    client: &'a Client,
}

/// Decides which replies to a line are correct.
#[derive(Clone, Copy)]
struct LineCheck<'a> {
    world: &'a World,
    truth: &'a Truth,
}

impl LineCheck<'_> {
    /// Whether a reply is correct for this line. Returns how the request ended, and the row that the reply
    /// acknowledges.
    fn line(
        &self,
        id: u64,
        kind: LineKind,
        line: &[u8],
        said: ReplyMeaning<'_>,
    ) -> Result<(&'static str, Option<u64>), &'static str> {
        let replies = self.truth.replies.get(line).map_or(&[][..], Vec::as_slice);
        match said {
            ReplyMeaning::Nonsense => Err("it is no reply at all"),
            ReplyMeaning::Answer(answer) => {
                if kind == LineKind::TooLong {
                    return Err("a line that is too long was answered");
                }
                let acknowledged = match self.world.scenario.job {
                    Job::Programs => {
                        let told = replies.iter().any(|reply| reply == answer);
                        return told.then_some(("ok", None)).ok_or("no program said that to it");
                    }
                    Job::Rows => Some(id),
                    Job::Main => replies
                        .iter()
                        .filter_map(|reply| id_of(reply))
                        .find(|id| answer == format!("ok {id}").as_bytes()),
                };
                match acknowledged {
                    Some(id) if answer == format!("ok {id}").as_bytes() => Ok(("ok", Some(id))),
                    _ => Err("that is not its acknowledgement"),
                }
            }
            ReplyMeaning::Refused(text) => {
                let told = replies.iter().any(|reply| reply.strip_prefix(b"!") == Some(text));
                told.then_some(("worker", None)).ok_or("no program refused it so")
            }
            ReplyMeaning::Ended(cause) => {
                let own = replies.iter().filter(|reply| id_of(reply) == Some(id)).count();
                self.end(id, kind, cause, own).map(|()| (cause.as_str(), None))
            }
        }
    }

    /// Whether an error with this cause is correct. `own`: the number of replies to this line that contain its own row.
    fn end(&self, id: u64, kind: LineKind, cause: Cause, own: usize) -> Result<(), &'static str> {
        let world = self.world;
        match (cause, kind) {
            (Cause::TooLong, LineKind::TooLong) => return Ok(()),
            // A line that is completed too slowly is rejected with this cause, whatever its length.
            (Cause::Incomplete, _) | (Cause::Draining, LineKind::TooLong) => {}
            (Cause::TooLong, _) => return Err("it is not too long"),
            (_, LineKind::TooLong) => return Err("it should have been refused as too long"),
            (
                Cause::Connections
                | Cause::NoPool
                | Cause::NoMethod
                | Cause::Cancelled
                | Cause::Left
                | Cause::Stalled
                | Cause::SlowReader
                | Cause::Shed
                | Cause::Overtime
                | Cause::Idle,
                _,
            ) => {
                return Err("nobody should be told that");
            }
            _ => {}
        }
        let given = self.truth.given.contains_key(&id);
        let alone = world.scenario.job == Job::Programs;
        let stored = world.workers.store.rows.get(&id).copied().unwrap_or_default();
        // A program that confuses its replies may have printed this row as the reply to another line.
        let said = self.truth.rows.get(&id).copied().unwrap_or_default();
        let elsewhere = said.saturating_sub(u32::try_from(own).unwrap_or(u32::MAX));
        match cause.verdict() {
            Verdict::Refused if given && alone => Err("it was refused though a program has it"),
            Verdict::Refused | Verdict::Failed if stored > elsewhere => {
                Err("it is stored, and its client was told that it is not")
            }
            Verdict::Refused | Verdict::Failed | Verdict::Unknown => Ok(()),
            Verdict::Answered | Verdict::Left => Err("that is no end to tell"),
        }
    }
}

impl Account<'_> {
    fn check(
        &self,
        ends: &mut Ends,
        acknowledged: &mut BTreeMap<u64, u32>,
        found: &mut Vec<String>,
    ) {
        let Self { client, number, .. } = *self;
        let (replies, rest) = lines(&client.received);
        let status = self.world.scenario.listeners[client.listener].status;
        let keeps = self.world.scenario.listeners[client.listener].keeps_half_closed;
        let left = client.leaving == Leaving::HalfCloses && !keeps;
        let cut = left || self.world.scenario.finish != Finish::Calm;
        if client.end == Some(End::Eof) && !rest.is_empty() && !cut {
            found.push(format!("client {number} got a reply without its end: {}", shown(rest)));
        }
        if replies.len() == 1
            && self.said(replies[0], status) == ReplyMeaning::Ended(Cause::Connections)
        {
            return self.count(ends, "connections");
        }
        for (place, reply) in replies.iter().enumerate() {
            let Some(line) = client.lines.get(place).filter(|_| place < self.lines_begun()) else {
                let reply = shown(reply);
                found.push(format!("client {number} got a reply to nothing: {reply}"));
                return;
            };
            let start = place.checked_sub(1).map_or(0, |before| client.lines[before].end);
            let bytes = without_end(&client.bytes[start..line.end]);
            match self.line_check.line(line.id, line.kind, bytes, self.said(reply, status)) {
                Ok((end, acknowledges)) => {
                    if end == Cause::Full.as_str() && self.world.users.asks.is_empty() {
                        found.push(format!(
                            "client {number}, line {}: rejected and not made to wait",
                            line.id
                        ));
                    }
                    if self.is_misdirected(reply) {
                        let reply = shown(reply);
                        found.push(format!(
                            "client {number}, line {}: {reply}: another client's reply",
                            line.id
                        ));
                    }
                    self.count(ends, end);
                    if let Some(id) = acknowledges {
                        *acknowledged.entry(id).or_default() += 1;
                    }
                }
                Err(why) => found.push(format!(
                    "client {number}, line {} ({:?}): {}: {why}",
                    line.id,
                    line.kind,
                    shown(reply)
                )),
            }
        }
        self.check_whole(replies.len(), found);
    }

    /// Whether a reply was printed by a program with surplus lines for a line that this client has not sent.
    fn is_misdirected(&self, reply: &[u8]) -> bool {
        let scenario = &self.world.scenario;
        let status = scenario.listeners[self.client.listener].status;
        // A program with several concurrent requests is trusted to answer each once.
        let is_watched = scenario.job == Job::Programs && scenario.text.contains("pipeline = 1\n");
        let (true, ReplyMeaning::Answer(answer)) = (is_watched, self.said(reply, status)) else {
            return false;
        };
        let Some(id) = id_of(answer) else { return false };
        let is_own = self.client.lines.iter().any(|line| line.id == id);
        let strays = self.world.workers.programs.iter().filter(|program| program.strays());
        let mut said = strays.flat_map(|program| frames(scenario.framing, &program.said).0);
        !is_own && said.any(|line| line == answer)
    }

    /// Returns the number of lines of which at least one byte was sent.
    fn lines_begun(&self) -> usize {
        let ended = self.client.lines.iter().filter(|line| line.end <= self.client.sent).count();
        let whole = self.client.lines.iter().any(|line| line.end == self.client.sent);
        ended + usize::from(!whole && self.client.sent > 0)
    }

    /// Checks that a client without an error has all its replies.
    fn check_whole(&self, replies: usize, found: &mut Vec<String>) {
        let Self { client, number, world, .. } = *self;
        let keeps = world.scenario.listeners[client.listener].keeps_half_closed;
        let half_closes = client.leaving == Leaving::HalfCloses;
        // Between two requests it may have been closed to make room for another client.
        let displaced = world.scenario.listeners[client.listener].connections_max < 100
            && matches!(client.end, Some(End::Eof | End::Reset));
        let excused = displaced
            || client.excused.is_some()
            || !world.record.is_clean()
            || world.scenario.finish != Finish::Calm
            || client.reading == crate::clients::Reading::Never
            || (half_closes && !keeps);
        if excused {
            return;
        }
        let all = client.lines.len();
        // A client that is idle in the middle of a line may be disconnected without a reply.
        let begun = client.lines.last().is_some_and(|line| line.kind == LineKind::Begun);
        let least = if begun && !half_closes { all - 1 } else { all };
        if client.sent < client.bytes.len() || replies < least || client.end == Some(End::Reset) {
            found.push(format!(
                "client {number} did nothing wrong and got {replies} replies to {all} lines: {:?}, \
                 {:?}, {:?}, sent {} of {} bytes",
                client.end,
                client.reading,
                client.leaving,
                client.sent,
                client.bytes.len()
            ));
        }
    }

    fn count(&self, ends: &mut Ends, end: &'static str) {
        *ends.entry(end).or_default() += 1;
    }

    /// Returns the meaning of a reply line.
    fn said<'b>(&self, reply: &'b [u8], status: bool) -> ReplyMeaning<'b> {
        let word_of = |text: &[u8], wanted: &[Verdict]| {
            let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
            let mut causes = Cause::ALL.iter().filter(|cause| wanted.contains(&cause.verdict()));
            causes.find(|cause| cause.as_str().as_bytes() == word).copied()
        };
        let refusal = |text: &'b [u8]| {
            word_of(text, &[Verdict::Refused])
                .map_or(ReplyMeaning::Refused(text), ReplyMeaning::Ended)
        };
        match (status, reply) {
            (true, [b'+', answer @ ..]) => ReplyMeaning::Answer(answer),
            (true, [b'!', text @ ..]) => refusal(text),
            (true, [b'-', text @ ..]) => word_of(text, &[Verdict::Failed, Verdict::Unknown])
                .map_or(ReplyMeaning::Nonsense, ReplyMeaning::Ended),
            (true, _) => ReplyMeaning::Nonsense,
            // If only a program answers, its output may begin with anything.
            (false, [b'!', b'n', b'o', b' ', ..]) if self.world.scenario.job == Job::Programs => {
                ReplyMeaning::Answer(reply)
            }
            (false, [b'!', text @ ..]) => {
                let failed = text.strip_prefix(b"failed ").map(|text| (text, Verdict::Failed));
                let unknown = text.strip_prefix(b"unknown ").map(|text| (text, Verdict::Unknown));
                match failed.or(unknown) {
                    Some((text, verdict)) => word_of(text, &[verdict])
                        .map_or(ReplyMeaning::Nonsense, ReplyMeaning::Ended),
                    None => refusal(text),
                }
            }
            (false, answer) => ReplyMeaning::Answer(answer),
        }
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the beginning of some bytes in printable form.
fn shown(bytes: &[u8]) -> String {
    let part = &bytes[..bytes.len().min(60)];
    format!("\"{}\"", part.escape_ascii())
}
