//! Our own ids in the messages of a program that several clients share.
//!
//! Each request is sent with a tag instead of its id, and with tags instead of its progress tokens. In the messages
//! that come back, the client's own ids and tokens are restored. So two clients may use the same ids, and neither can
//! name the requests of the other. Written tags cannot be guessed ([`keys`]).
//!
//! If the protocol has a handshake, we perform it with the program once. Each client that performs it receives what the
//! program answered then.

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
use sharing::{NOT_VERSION_2, RESPONSE, after_handshake, ambiguity, end_of_session, naming};

/// The number of tags before the latest lapsed tag whose replies count as late. An invented tag is rarely in this
/// range.
const LATE_MAX: u32 = 1 << 20;

/// The maximum number of requests whose further replies are discarded, each by its tag.
const OVER_MAX: usize = 1024;

/// The kind of a message of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The output is the reply to this request.
    Reply(RequestId),
    /// The output concerns this request, whose reply is still to come.
    About(RequestId),
    /// The output concerns all clients.
    All,
    /// The message concerns one client, and does not show which.
    Nobody,
    /// The program sent a request; the output is the answer to it.
    ProgramRequest,
    /// The program answered our handshake; the output completes the handshake.
    HandshakeReply,
    /// A reply to a request that was not sent.
    Unsolicited,
    /// Not a valid message.
    Broken(&'static str),
}

#[derive(Debug)]
struct Named {
    request: RequestId,
    /// The id or token as the client wrote it.
    written: Slice,
    /// The number of tags after this one that stand for tokens of the same request; `None`: this tag stands for a
    /// token.
    tokens: Option<u32>,
    /// Whether its request was cancelled.
    is_cancelled: bool,
}

/// The state of the handshake with the program.
#[derive(Debug)]
enum Handshake {
    None,
    /// Our first message was sent with this tag.
    Sent(Tag),
    /// The result that the program answered.
    Done(Slice),
}

/// The tags of one program.
#[derive(Debug)]
pub(super) struct Tags {
    dialect: Dialect,
    keys: Keys,
    next: Tag,
    named: BTreeMap<Tag, Named>,
    /// The tag of the id of each request in flight.
    of: BTreeMap<RequestId, Tag>,
    /// The latest tag that is not waited for although its reply may still arrive.
    lapsed: Option<Tag>,
    /// Tags of cancelled requests that were answered, and of requests that ended because of an invalid reply. Some
    /// programs reply to a request when it is cancelled, and again when its work is done.
    over: VecDeque<Tag>,
    greeting: Handshake,
}

/// Returns the kind of a message of a program whose messages keep their ids. An answer to the program is appended to
/// `out`.
pub(super) fn classify_in_order(frame: &[u8], out: &mut Vec<u8>) -> OrderedMessage {
    let message = match scan(frame) {
        Ok(message) => message,
        Err(fault) => return OrderedMessage::Broken(fault.message()),
    };
    match (message.kind(), &message.id) {
        (Kind::Response, id) => OrderedMessage::Reply(id.clone().unwrap_or_default()),
        (Kind::Notification, _) | (Kind::Request, None) => OrderedMessage::Notification,
        (Kind::Request, Some(place)) => {
            answer(&message, frame, &frame[place.clone()], out);
            OrderedMessage::ProgramRequest
        }
    }
}

/// The kind of a message of a program that replies in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OrderedMessage {
    /// A reply, and the range of its id; empty in a reply to a request that the program could not read.
    Reply(Range<usize>),
    /// A message that needs no answer and is not a reply.
    Notification,
    /// A request of the program; the answer to it was appended.
    ProgramRequest,
    /// Not a valid message.
    Broken(&'static str),
}

/// Writes the answer to a request of a program.
fn answer(message: &jsonrpc::Message, frame: &[u8], id: &[u8], out: &mut Vec<u8>) {
    if message.is_method(frame, "ping") {
        write_result(id, b"{}", out);
    } else {
        write_refusal(id, out);
    }
}

/// Returns how to handle a message that keeps its id, and the range of the id. If the program may send requests to its
/// client (`asks`), it receives the client's answers and all other messages, because the program belongs to this client
/// alone. An answer to the client is appended to `out`.
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
    let outgoing = match (message.kind(), ambiguity(&message, frame)) {
        (Kind::Response, _) if !asks => Outgoing::Refused(RESPONSE),
        (_, Some(text)) if !asks => Outgoing::Refused(text),
        (Kind::Request, _) => Outgoing::Request,
        (Kind::Notification | Kind::Response, _) => Outgoing::Notification,
    };
    (outgoing, message.id.unwrap_or_default())
}

/// Returns how to handle the message that resets a program, given how an ordinary message is handled. Only the reply
/// shows that the program has forgotten its client.
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
            greeting: Handshake::None,
        }
    }

    /// Writes the first message of the handshake with a program that requires one (MCP).
    pub(super) fn start_handshake(&mut self, out: &mut Vec<u8>) {
        let tag = self.next;
        self.next = tag.next();
        self.greeting = Handshake::Sent(tag);
        write_initialize(Dialect::Mcp, self.keys.written(tag), env!("CARGO_PKG_VERSION"), out);
    }

    /// Converts a message of a client. The bytes to be sent are appended to `out`.
    pub(super) fn outgoing(&mut self, id: RequestId, frame: &[u8], out: &mut Vec<u8>) -> Outgoing {
        let message = match scan(frame) {
            Ok(message) => message,
            Err(fault) => return Outgoing::Refused(fault.message()),
        };
        // A program that ignores the message would never answer.
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
            Handshake::Done(result) => Some(result),
            Handshake::None | Handshake::Sent(_) => None,
        };
        if let Some(outgoing) = result.and_then(|_| after_handshake(&message, frame)) {
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

    /// Writes a notification. It is not in flight, so messages about its tokens concern no client: the tokens are
    /// replaced by tags that stand for nothing.
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

    /// Returns the edit that removes a request for a task from an MCP message. We announce no tasks, and a server that
    /// announces no tasks executes the request immediately.
    fn without_task(&self, message: &jsonrpc::Message) -> Option<(Range<usize>, String)> {
        match (&self.greeting, &message.task) {
            (Handshake::Done(_), Task::Member(place)) => Some((place.clone(), String::new())),
            _ => None,
        }
    }

    /// Returns the first of `count` consecutive unused tags. After the maximum tag the first tag follows again, and its
    /// request may still be in flight.
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

    /// Returns the tag that is written as `written`.
    fn tag(&self, written: &[u8]) -> Option<Tag> {
        Tag::parse(written).map(|tag| self.keys.counted(tag))
    }

    /// Whether our handshake is not answered yet.
    pub(super) const fn is_in_handshake(&self) -> bool {
        matches!(self.greeting, Handshake::Sent(_))
    }

    /// Converts a message of the program. The bytes for the receiver are appended to `out`.
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
            // An error for a message that the program could not read.
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
        let Some(tag) = self.tag(&frame[place.clone()]) else { return Message::Unsolicited };
        if let Handshake::Sent(greeting) = self.greeting
            && greeting == tag
        {
            let Some(result) = &message.result else {
                return Message::Broken("it refused the greeting");
            };
            self.greeting =
                Handshake::Done(Slice::from(&shared_result(&frame[result.clone()])[..]));
            write_initialized(Dialect::Mcp, out);
            return Message::HandshakeReply;
        }
        let Some(named) = self.named.get(&tag).filter(|named| named.tokens.is_some()) else {
            return if self.may_be_late(tag) { Message::Nobody } else { Message::Unsolicited };
        };
        splice(frame, &[(place.clone(), &named.written)], out);
        self.replied(tag).map_or(Message::Unsolicited, Message::Reply)
    }

    /// Removes the request in flight with this tag, which has its reply, and returns it.
    fn replied(&mut self, tag: Tag) -> Option<RequestId> {
        let named = self.named.get(&tag).filter(|named| named.tokens.is_some())?;
        let (request, is_cancelled) = (named.request, named.is_cancelled);
        self.forget(request);
        if is_cancelled {
            self.note_over(tag);
        }
        Some(request)
    }

    /// Handles an invalid message of the program; `why` is the reason. If it names a request, that request gets no
    /// other reply.
    pub(super) fn broken(&mut self, frame: &[u8], why: &'static str) -> Message {
        let tag = match skim(frame) {
            Skimmed::Reply(id) => self.tag(&id),
            // No request waits for it, and a client may cause any number of them.
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

    /// Records that further replies to this request are discarded.
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

    /// Handles a message of the program that is too long. Only its id is known, so no client receives it. The answer to
    /// the program is appended to `out`.
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
        let Some(tag) = self.tag(id) else { return Message::Unsolicited };
        match self.replied(tag) {
            Some(request) => Message::Reply(request),
            None if self.may_be_late(tag) => Message::Nobody,
            None => Message::Unsolicited,
        }
    }

    /// Writes the message that cancels a request. Returns false if the request is not in flight.
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

    /// Removes a cancelled request before its reply arrives. The reply may never arrive.
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

    /// Whether the tag may belong to a request that was cancelled or that ended because of an invalid reply.
    fn may_be_late(&self, tag: Tag) -> bool {
        self.over.contains(&tag)
            || self.lapsed.is_some_and(|lapsed| distance(tag, lapsed) < LATE_MAX)
    }

    /// Removes a request whose reply is not waited for any more.
    pub(super) fn forget(&mut self, id: RequestId) {
        let Some(mut tag) = self.of.remove(&id) else { return };
        let tokens = self.named.remove(&tag).and_then(|named| named.tokens).unwrap_or(0);
        for _ in 0..tokens {
            tag = tag.next();
            self.named.remove(&tag);
        }
    }
}

/// Returns how many tags `to` is ahead of `from`, in counting order.
fn distance(from: Tag, to: Tag) -> u32 {
    to.number().wrapping_sub(from.number()) & Tag::MAX.number()
}

/// Returns the ranges of the progress tokens of a message.
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

/// MCP notifications of a server that are valid for all clients: the list of what it offers has changed. Its other
/// notifications concern one client (a resource to which one client subscribed, the log at the level that one client
/// requested). The same holds for all notifications of LSP (the diagnostics of a file that one client has open). Only a
/// session program can send those.
const FOR_ALL: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// Writes the error for a program that sends a request to its clients: it has many, and the request does not name one.
pub(super) fn write_refusal(id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(
        br#","error":{"code":-32601,"message":"this server is shared by many clients, which cannot be asked"}}"#,
    );
}

#[cfg(test)]
mod tests;
