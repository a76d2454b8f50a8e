//! Ids of ours in the messages of a program that several clients share.
//!
//! Each request goes out with a tag instead of its id, and with tags instead of the tokens by which
//! it wants to hear of its progress; what comes back gets the client's own again. So two clients
//! may use the same ids, and neither can name what belongs to the other. How a tag is written cannot be
//! guessed ([`keys`]).
//!
//! With a handshake the program is greeted once, by us, and every client that greets it is told
//! what the program said then.

mod keys;
mod outgoing;
mod sharing;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use exchange::{RequestId, Slice};
use wire::Framing;
use wire::jsonrpc::{
    self, Dialect, Kind, Skimmed, Tag, Task, result_for, scan, shared_result, skim, splice,
    write_cancel, write_initialize, write_initialized,
};

use keys::Keys;
pub(super) use outgoing::Outgoing;
use outgoing::write_result;
pub(super) use sharing::id_is_kept;
use sharing::{NOT_VERSION_2, RESPONSE, end_of_session, greeted, misread, naming};

/// Tags behind the youngest that lapsed, of which a reply is taken for late. One that somebody made up seldom
/// has such a tag.
const LATE_MAX: u32 = 1 << 20;

/// Requests whose further replies are discarded, each by its tag.
const OVER_MAX: usize = 1024;

/// What a message of the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// What was written is the reply to this request.
    Reply(RequestId),
    /// What was written concerns this request, and its reply is still to come.
    About(RequestId),
    /// What was written concerns all clients alike.
    All,
    /// It concerns one client, and nothing in it says which.
    Nobody,
    /// The program asks something; what was written is the answer to it.
    ProgramRequest,
    /// The program answered our greeting; what was written thanks it.
    Greeted,
    /// A reply to something that was not asked.
    Unasked,
    /// No message.
    Broken(&'static str),
}

#[derive(Debug)]
struct Named {
    request: RequestId,
    /// What the client wrote.
    written: Slice,
    /// How many tags after this one stand for tokens of the same request; none for a token.
    tokens: Option<u32>,
    /// Its request was cancelled.
    is_cancelled: bool,
}

/// How the program's greeting stands.
#[derive(Debug)]
enum Greeting {
    None,
    /// Our greeting went out under this tag.
    Sent(Tag),
    /// What it answered: the result.
    Done(Slice),
}

/// Tags of one program.
#[derive(Debug)]
pub(super) struct Tags {
    dialect: Dialect,
    keys: Keys,
    next: Tag,
    named: BTreeMap<Tag, Named>,
    /// The tag of the id of each request in flight.
    of: BTreeMap<RequestId, Tag>,
    /// The youngest tag that is not waited for though its reply may still come.
    lapsed: Option<Tag>,
    /// Tags of cancelled requests that were replied to, and of those that ended by a broken reply. Some programs
    /// reply to a request when it is cancelled and again when its work is done.
    over: VecDeque<Tag>,
    greeting: Greeting,
}

/// What a message is of a program whose messages keep their ids. What is to be written to the
/// program is written behind what `out` holds.
pub(super) fn said_in_order(frame: &[u8], out: &mut Vec<u8>) -> Spoken {
    let message = match scan(frame) {
        Ok(message) => message,
        Err(fault) => return Spoken::Broken(fault.message()),
    };
    match (message.kind(), &message.id) {
        (Kind::Response, id) => Spoken::Reply(id.clone().unwrap_or_default()),
        (Kind::Notification, _) | (Kind::Request, None) => Spoken::Aside,
        (Kind::Request, Some(place)) => {
            answer(&message, frame, &frame[place.clone()], out);
            Spoken::ProgramRequest
        }
    }
}

/// What a program says whose replies come in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    /// A reply, and where its id stands; nowhere in one to what could not be read at all.
    Reply(Range<usize>),
    /// Something beside it, to which nothing is answered.
    Aside,
    /// It asks something; what was written is the answer to it.
    ProgramRequest,
    /// No message.
    Broken(&'static str),
}

/// Answers a request of a program.
fn answer(message: &jsonrpc::Message, frame: &[u8], id: &[u8], out: &mut Vec<u8>) {
    if message.is_method(frame, "ping") {
        write_result(id, b"{}", out);
    } else {
        write_refusal(id, out);
    }
}

/// What becomes of a message that keeps its id, and where that stands. A program that `asks` its client
/// is told the answer, and whatever else that says, for it is this client's alone. An answer to the client is
/// written behind what `out` holds.
pub(super) fn unchanged(
    frame: &[u8],
    asks: bool,
    framing: Framing,
    out: &mut Vec<u8>,
) -> (Outgoing, Range<usize>) {
    let message = match scan(frame) {
        Ok(message) => message,
        Err(fault) => return (Outgoing::Refused(fault.message()), 0..0),
    };
    if let Some(outgoing) = naming(&message, frame).filter(|_| !asks) {
        return (outgoing, 0..0);
    }
    if let (Framing::ContentLength, false) = (framing, asks)
        && let Some(outgoing) = end_of_session(&message, frame, out)
    {
        return (outgoing, 0..0);
    }
    let outgoing = match (message.kind(), misread(&message, frame)) {
        (Kind::Response, _) if !asks => Outgoing::Refused(RESPONSE),
        (_, Some(text)) if !asks => Outgoing::Refused(text),
        (Kind::Request, _) => Outgoing::Request,
        (Kind::Notification | Kind::Response, _) => Outgoing::Notification,
    };
    (outgoing, message.id.unwrap_or_default())
}

/// The same of the message that resets a program. Only by its reply is the program known to have forgotten its
/// client.
pub(super) const fn of_reset(outgoing: Outgoing) -> Outgoing {
    match outgoing {
        Outgoing::Request | Outgoing::Refused(_) | Outgoing::Unshared => outgoing,
        Outgoing::Notification | Outgoing::Dropped | Outgoing::Stray | Outgoing::Answered => {
            Outgoing::Refused("`reset` is no request that the program replies to")
        }
    }
}

impl Tags {
    pub(super) fn new(framing: Framing) -> Self {
        Self::with(framing, Keys::random())
    }

    fn with(framing: Framing, keys: Keys) -> Self {
        let dialect = match framing {
            Framing::ContentLength => Dialect::Lsp,
            _ => Dialect::Mcp,
        };
        Self {
            dialect,
            keys,
            next: Tag::MAX.next(),
            named: BTreeMap::new(),
            of: BTreeMap::new(),
            lapsed: None,
            over: VecDeque::new(),
            greeting: Greeting::None,
        }
    }

    /// Writes the greeting of a program that wants one (MCP).
    pub(super) fn greet(&mut self, out: &mut Vec<u8>) {
        let tag = self.next;
        self.next = tag.next();
        self.greeting = Greeting::Sent(tag);
        write_initialize(Dialect::Mcp, self.keys.written(tag), env!("CARGO_PKG_VERSION"), out);
    }

    /// A message of a client. What the program shall read is written behind what `out` holds.
    pub(super) fn outgoing(&mut self, id: RequestId, frame: &[u8], out: &mut Vec<u8>) -> Outgoing {
        let message = match scan(frame) {
            Ok(message) => message,
            Err(fault) => return Outgoing::Refused(fault.message()),
        };
        // A program that ignores it would never answer.
        if !message.is_version_2(frame) {
            return Outgoing::Refused(NOT_VERSION_2);
        }
        if let Some(text) = message.measure.excess() {
            return Outgoing::Refused(text);
        }
        if let Some(outgoing) = naming(&message, frame) {
            return outgoing;
        }
        if self.dialect == Dialect::Lsp
            && let Some(outgoing) = end_of_session(&message, frame, out)
        {
            return outgoing;
        }
        let result = match &self.greeting {
            Greeting::Done(result) => Some(result),
            Greeting::None | Greeting::Sent(_) => None,
        };
        if let Some(outgoing) = result.and_then(|_| greeted(&message, frame)) {
            return outgoing;
        }
        match (message.kind(), &message.id) {
            (Kind::Response, _) => return Outgoing::Refused(RESPONSE),
            (Kind::Notification, _) | (Kind::Request, None) => {
                self.write_notification(&message, frame, out);
                return Outgoing::Notification;
            }
            (Kind::Request, Some(place)) => {
                if let Some(result) = result.filter(|_| message.is_method(frame, "initialize")) {
                    let params = message.params.clone().unwrap_or_default();
                    let result = result_for(result, &frame[params]);
                    write_result(&frame[place.clone()], &result, out);
                    return Outgoing::Answered;
                }
            }
        }
        let places = message.id.iter().chain(tokens_of(&message));
        let count = places.clone().count();
        let first = self.free_run(count);
        self.of.insert(id, first);
        let mut tag = first;
        let mut edits = Vec::with_capacity(count + 1);
        edits.extend(self.without_task(&message));
        for place in places {
            let written = Slice::copy_of(&frame[place.clone()]);
            let tokens = (tag == first).then(|| u32::try_from(count - 1).unwrap_or(0));
            self.named.insert(tag, Named { request: id, written, tokens, is_cancelled: false });
            edits.push((place.clone(), self.keys.written(tag).to_string()));
            tag = tag.next();
        }
        self.next = tag;
        splice_in_order(frame, edits, out);
        Outgoing::Request
    }

    /// Writes a notification. Nothing of it is in flight, so what is said about its tokens is for
    /// nobody: they become tags that stand for nothing.
    fn write_notification(&mut self, message: &jsonrpc::Message, frame: &[u8], out: &mut Vec<u8>) {
        let mut tag = self.free_run(tokens_of(message).count());
        let mut edits: Vec<_> = self.without_task(message).into_iter().collect();
        for place in tokens_of(message) {
            edits.push((place.clone(), self.keys.written(tag).to_string()));
            tag = tag.next();
            self.next = tag;
        }
        splice_in_order(frame, edits, out);
    }

    /// Where a message of MCP asks for a task that is to be asked for later, nothing is to stand. We announce no
    /// tasks, and whoever announces none does at once what it is asked.
    fn without_task(&self, message: &jsonrpc::Message) -> Option<(Range<usize>, String)> {
        match (&self.greeting, &message.task) {
            (Greeting::Done(_), Task::Member(place)) => Some((place.clone(), String::new())),
            _ => None,
        }
    }

    /// The first of so many tags in a row that stand for nothing. After the greatest tag comes the
    /// least again, and what it stood for may still be in flight.
    fn free_run(&self, count: usize) -> Tag {
        let mut first = self.next;
        let (mut tag, mut run) = (first, 0);
        while run < count {
            let taken = self.named.contains_key(&tag);
            tag = tag.next();
            (first, run) = if taken { (tag, 0) } else { (first, run + 1) };
        }
        first
    }

    /// The tag that is written here.
    fn tag(&self, written: &[u8]) -> Option<Tag> {
        Tag::parse(written).map(|tag| self.keys.counted(tag))
    }

    /// Whether our greeting is not answered.
    pub(super) const fn is_greeting(&self) -> bool {
        matches!(self.greeting, Greeting::Sent(_))
    }

    /// A message of the program. What its reader shall read is written behind what `out` holds.
    pub(super) fn incoming(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Message {
        let message = match scan(frame) {
            Ok(message) => message,
            Err(fault) => return Message::Broken(fault.message()),
        };
        match (message.kind(), &message.id) {
            (Kind::Request, Some(place)) => {
                let id = &frame[place.clone()];
                answer(&message, frame, id, out);
                Message::ProgramRequest
            }
            (Kind::Response, Some(place)) => self.response(frame, place, &message, out),
            // An error to something that the program could not read at all.
            (Kind::Response, None) => Message::Nobody,
            (Kind::Notification, _) | (Kind::Request, None) => {
                if FOR_ALL.iter().any(|method| message.is_method(frame, method)) {
                    splice(frame, &[], out);
                    return Message::All;
                }
                let Some(place) = message.reports(frame) else { return Message::Nobody };
                let named = self.tag(&frame[place.clone()]).and_then(|tag| self.named.get(&tag));
                let Some(named) = named.filter(|named| named.tokens.is_none()) else {
                    return Message::Nobody;
                };
                splice(frame, &[(place.clone(), &named.written)], out);
                Message::About(named.request)
            }
        }
    }

    fn response(
        &mut self,
        frame: &[u8],
        place: &Range<usize>,
        message: &jsonrpc::Message,
        out: &mut Vec<u8>,
    ) -> Message {
        if frame[place.clone()] == *b"null" {
            return Message::Nobody;
        }
        let Some(tag) = self.tag(&frame[place.clone()]) else { return Message::Unasked };
        if let Greeting::Sent(greeting) = self.greeting
            && greeting == tag
        {
            let Some(result) = &message.result else {
                return Message::Broken("it refused the greeting");
            };
            self.greeting = Greeting::Done(Slice::from(&shared_result(&frame[result.clone()])[..]));
            write_initialized(Dialect::Mcp, out);
            return Message::Greeted;
        }
        let Some(named) = self.named.get(&tag).filter(|named| named.tokens.is_some()) else {
            return if self.may_be_late(tag) { Message::Nobody } else { Message::Unasked };
        };
        splice(frame, &[(place.clone(), &named.written)], out);
        self.replied(tag).map_or(Message::Unasked, Message::Reply)
    }

    /// The request in flight with this tag has its reply.
    fn replied(&mut self, tag: Tag) -> Option<RequestId> {
        let named = self.named.get(&tag).filter(|named| named.tokens.is_some())?;
        let (request, is_cancelled) = (named.request, named.is_cancelled);
        self.forget(request);
        if is_cancelled {
            self.note_over(tag);
        }
        Some(request)
    }

    /// A message of the program that is none, for this reason. It may tell what it replies to: that request has no
    /// other reply.
    pub(super) fn broken(&mut self, frame: &[u8], why: &'static str) -> Message {
        let tag = match skim(frame) {
            Skimmed::Reply(id) => self.tag(&id),
            // Nothing waits for it, and a client may cause any number of them.
            Skimmed::Notification => return Message::Nobody,
            Skimmed::Request(_) | Skimmed::Unknown => None,
        };
        let Some(tag) = tag else { return Message::Broken(why) };
        match self.replied(tag) {
            Some(request) => {
                self.note_over(tag);
                Message::Reply(request)
            }
            None if self.may_be_late(tag) => Message::Nobody,
            None => Message::Broken(why),
        }
    }

    /// Further replies to this request are discarded.
    fn note_over(&mut self, tag: Tag) {
        if self.over.contains(&tag) {
            return;
        }
        self.over.push_back(tag);
        if self.over.len() > OVER_MAX
            && let Some(oldest) = self.over.pop_front()
        {
            self.note_lapsed(oldest);
        }
    }

    /// A message of the program that is too long. What is to be written to the program is written behind what
    /// `out` holds. Nothing is known of more than its id, so it is no reply that anybody gets.
    pub(super) fn too_long(&mut self, skimmed: &Skimmed, out: &mut Vec<u8>) -> Message {
        let id = match skimmed {
            Skimmed::Notification => return Message::Nobody,
            Skimmed::Unknown => return Message::Broken("it is too long and names no request"),
            Skimmed::Request(id) => {
                write_refusal(id, out);
                return Message::ProgramRequest;
            }
            Skimmed::Reply(id) if id == b"null" => return Message::Nobody,
            Skimmed::Reply(id) => id,
        };
        let Some(tag) = self.tag(id) else { return Message::Unasked };
        match self.replied(tag) {
            Some(request) => Message::Reply(request),
            None if self.may_be_late(tag) => Message::Nobody,
            None => Message::Unasked,
        }
    }

    /// Writes the message that takes a request back. False when it is not in flight.
    pub(super) fn cancel(&mut self, id: RequestId, out: &mut Vec<u8>) -> bool {
        let tag = self.of.get(&id);
        if let Some(tag) = tag {
            write_cancel(self.dialect, self.keys.written(*tag), out);
            if let Some(named) = self.named.get_mut(tag) {
                named.is_cancelled = true;
            }
        }
        tag.is_some()
    }

    /// A cancelled request that is forgotten before its reply has come, if that comes at all.
    pub(super) fn lapse(&mut self, id: RequestId) {
        if let Some(tag) = self.of.get(&id) {
            self.note_lapsed(*tag);
        }
        self.forget(id);
    }

    fn note_lapsed(&mut self, tag: Tag) {
        let is_younger = |lapsed| distance(lapsed, tag) <= Tag::MAX.number() / 2;
        if self.lapsed.is_none_or(is_younger) {
            self.lapsed = Some(tag);
        }
    }

    /// Whether this tag may be that of a request which was cancelled, or ended by a broken reply.
    fn may_be_late(&self, tag: Tag) -> bool {
        self.over.contains(&tag)
            || self.lapsed.is_some_and(|lapsed| distance(tag, lapsed) < LATE_MAX)
    }

    /// A request whose reply is not waited for any more.
    pub(super) fn forget(&mut self, id: RequestId) {
        let Some(mut tag) = self.of.remove(&id) else { return };
        let tokens = self.named.remove(&tag).and_then(|named| named.tokens).unwrap_or(0);
        for _ in 0..tokens {
            tag = tag.next();
            self.named.remove(&tag);
        }
    }
}

/// How far the second tag is behind the first, as they are counted.
fn distance(from: Tag, to: Tag) -> u32 {
    to.number().wrapping_sub(from.number()) & Tag::MAX.number()
}

/// The places of the tokens by which a message wants to hear of its progress.
fn tokens_of(message: &jsonrpc::Message) -> impl Iterator<Item = &Range<usize>> + Clone {
    let tokens = &message.tokens;
    [&tokens.meta_progress, &tokens.work_done, &tokens.partial_result].into_iter().flatten()
}

fn splice_in_order(frame: &[u8], mut edits: Vec<(Range<usize>, String)>, out: &mut Vec<u8>) {
    edits.sort_by_key(|(place, _)| place.start);
    let edits: Vec<_> =
        edits.iter().map(|(place, text)| (place.clone(), text.as_bytes())).collect();
    splice(frame, &edits, out);
}

/// What MCP has a server say that is as true for one client as for another: what it offers is not
/// what it was. Its other notifications belong to a client (a resource that one subscribed to, the
/// log at the level that one asked for), and so do all of LSP (the diagnostics of a file that one
/// has open): only a program of its own can say those.
const FOR_ALL: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// What a program is told that asks something of its clients: it has many, and none of them is
/// meant more than another.
pub(super) fn write_refusal(id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(
        br#","error":{"code":-32601,"message":"this server is shared by many clients, which cannot be asked"}}"#,
    );
}

#[cfg(test)]
mod tests;
