//! Ids of ours in the messages of a program that several clients share.
//!
//! Each request goes out with a tag instead of its id, and with tags instead of the tokens by which
//! it wants to hear of its progress; what comes back gets the client's own again. So two clients
//! may use the same ids, and neither can name what belongs to the other.
//!
//! With a handshake the program is greeted once, by us, and every client that greets it is told
//! what the program said then.

use std::collections::BTreeMap;
use std::ops::Range;

use exchange::{RequestId, Slice};
use wire::Framing;
use wire::jsonrpc::{
    self, Dialect, Kind, Tag, id_at_start, scan, splice, write_cancel, write_initialize,
    write_initialized,
};

/// What becomes of a message to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// It is sent, and a reply waited for.
    Request,
    /// It is sent, and nothing is answered.
    Notification,
    /// It is not for the program, and nothing is answered.
    Dropped,
    /// What was written is the reply.
    Answered,
    /// It cannot be sent.
    Refused(&'static str),
}

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
    Asked,
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
    next: Tag,
    named: BTreeMap<Tag, Named>,
    /// The tag of the id of each request in flight.
    of: BTreeMap<RequestId, Tag>,
    /// The youngest tag that is not waited for though its reply may still come.
    lapsed: Option<Tag>,
    greeting: Greeting,
}

/// What a message is of a program whose messages keep their ids. What is to be written to the
/// program is written behind what `out` holds.
pub(super) fn said_in_order(frame: &[u8], out: &mut Vec<u8>) -> Spoken {
    let message = match scan(frame) {
        Ok(message) => message,
        Err(fault) => return Spoken::Broken(fault.text()),
    };
    match (message.kind(), &message.id) {
        (Kind::Response, id) => Spoken::Reply(id.clone().unwrap_or_default()),
        (Kind::Notification, _) | (Kind::Request, None) => Spoken::Aside,
        (Kind::Request, Some(place)) => {
            answer(&message, frame, &frame[place.clone()], out);
            Spoken::Asked
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
    Asked,
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
/// is told the answer.
pub(super) fn unchanged(frame: &[u8], asks: bool) -> (Outgoing, Range<usize>) {
    let message = match scan(frame) {
        Ok(message) => message,
        Err(fault) => return (Outgoing::Refused(fault.text()), 0..0),
    };
    let outgoing = match message.kind() {
        Kind::Request => Outgoing::Request,
        Kind::Notification => Outgoing::Notification,
        Kind::Response if asks => Outgoing::Notification,
        Kind::Response => Outgoing::Refused(RESPONSE),
    };
    (outgoing, message.id.unwrap_or_default())
}

const RESPONSE: &str = "it answers what nobody asked";

impl Tags {
    pub(super) fn new(framing: Framing) -> Self {
        let dialect = match framing {
            Framing::ContentLength => Dialect::Lsp,
            _ => Dialect::Mcp,
        };
        Self {
            dialect,
            next: Tag::MAX.next(),
            named: BTreeMap::new(),
            of: BTreeMap::new(),
            lapsed: None,
            greeting: Greeting::None,
        }
    }

    /// Writes the greeting of a program that wants one (MCP).
    pub(super) fn greet(&mut self, out: &mut Vec<u8>) {
        let tag = self.next;
        self.next = tag.next();
        self.greeting = Greeting::Sent(tag);
        write_initialize(Dialect::Mcp, tag, env!("CARGO_PKG_VERSION"), out);
    }

    /// A message of a client. What the program shall read is written behind what `out` holds.
    pub(super) fn outgoing(&mut self, id: RequestId, frame: &[u8], out: &mut Vec<u8>) -> Outgoing {
        let message = match scan(frame) {
            Ok(message) => message,
            Err(fault) => return Outgoing::Refused(fault.text()),
        };
        // A program that ignores it would never answer.
        if !message.is_version_2(frame) {
            return Outgoing::Refused("the message has no \"jsonrpc\":\"2.0\"");
        }
        let greeted = matches!(self.greeting, Greeting::Done(_));
        match (message.kind(), &message.id) {
            (Kind::Response, _) => return Outgoing::Refused(RESPONSE),
            // A client's own would name another client's request, or nothing.
            (Kind::Notification, _)
                if message.cancels(frame).is_some() || message.reports(frame).is_some() =>
            {
                return Outgoing::Dropped;
            }
            (Kind::Notification, _)
                if greeted && message.is_method(frame, "notifications/initialized") =>
            {
                return Outgoing::Dropped;
            }
            (Kind::Notification, _) | (Kind::Request, None) => {
                splice(frame, &[], out);
                return Outgoing::Notification;
            }
            (Kind::Request, Some(place)) => {
                if let Greeting::Done(result) = &self.greeting
                    && message.is_method(frame, "initialize")
                {
                    write_result(&frame[place.clone()], result, out);
                    return Outgoing::Answered;
                }
            }
        }
        let tokens = &message.tokens;
        let tokens = [&tokens.meta_progress, &tokens.work_done, &tokens.partial_result];
        let places = message.id.iter().chain(tokens.into_iter().flatten());
        let count = places.clone().count();
        let first = self.free_run(count);
        self.of.insert(id, first);
        let mut tag = first;
        let mut edits = Vec::with_capacity(count);
        for place in places {
            let written = Slice::copy_of(&frame[place.clone()]);
            let tokens = (tag == first).then(|| u32::try_from(count - 1).unwrap_or(0));
            self.named.insert(tag, Named { request: id, written, tokens });
            edits.push((place.clone(), tag.to_string()));
            tag = tag.next();
        }
        self.next = tag;
        edits.sort_by_key(|(place, _)| place.start);
        let edits: Vec<_> =
            edits.iter().map(|(place, text)| (place.clone(), text.as_bytes())).collect();
        splice(frame, &edits, out);
        Outgoing::Request
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

    /// A message of the program. What its reader shall read is written behind what `out` holds.
    pub(super) fn incoming(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Message {
        let message = match scan(frame) {
            Ok(message) => message,
            Err(fault) => return Message::Broken(fault.text()),
        };
        match (message.kind(), &message.id) {
            (Kind::Request, Some(place)) => {
                let id = &frame[place.clone()];
                answer(&message, frame, id, out);
                Message::Asked
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
                let named = Tag::parse(&frame[place.clone()]).and_then(|tag| self.named.get(&tag));
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
        let Some(tag) = Tag::parse(&frame[place.clone()]) else { return Message::Unasked };
        if let Greeting::Sent(greeting) = self.greeting
            && greeting == tag
        {
            let Some(result) = &message.result else {
                return Message::Broken("it refused the greeting");
            };
            self.greeting = Greeting::Done(Slice::copy_of(&frame[result.clone()]));
            write_initialized(Dialect::Mcp, out);
            return Message::Greeted;
        }
        let Some(named) = self.named.get(&tag).filter(|named| named.tokens.is_some()) else {
            return if self.may_be_late(tag) { Message::Nobody } else { Message::Unasked };
        };
        splice(frame, &[(place.clone(), &named.written)], out);
        let request = named.request;
        self.forget(request);
        Message::Reply(request)
    }

    /// The request that is answered by the message which begins so.
    pub(super) fn answered(&self, start: &[u8]) -> Option<RequestId> {
        let tag = Tag::parse(&start[id_at_start(start)?])?;
        let named = self.named.get(&tag).filter(|named| named.tokens.is_some())?;
        Some(named.request)
    }

    /// Writes the message that takes a request back. False when it is not in flight.
    pub(super) fn cancel(&mut self, id: RequestId, out: &mut Vec<u8>) -> bool {
        let tag = self.of.get(&id);
        if let Some(tag) = tag {
            write_cancel(self.dialect, *tag, out);
        }
        tag.is_some()
    }

    /// A cancelled request that is forgotten before its reply has come, if that comes at all. They
    /// lapse in the order in which they were sent.
    pub(super) fn lapse(&mut self, id: RequestId) {
        self.lapsed = self.of.get(&id).copied().or(self.lapsed);
        self.forget(id);
    }

    /// Whether this tag may be that of a request which lapsed.
    fn may_be_late(&self, tag: Tag) -> bool {
        let half = Tag::MAX.number() / 2;
        self.lapsed.is_some_and(|lapsed| {
            lapsed.number().wrapping_sub(tag.number()) & Tag::MAX.number() <= half
        })
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

/// What MCP has a server say that is as true for one client as for another: what it offers is not
/// what it was. Its other notifications belong to a client (a resource that one subscribed to, the
/// log at the level that one asked for), and so do all of LSP (the diagnostics of a file that one
/// has open): only a program of its own can say those.
const FOR_ALL: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

fn write_result(id: &[u8], result: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","result":"#);
    splice(result, &[], out);
    out.push(b'}');
}

/// What a program is told that asks something of its clients: it has many, and none of them is
/// meant more than another.
fn write_refusal(id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(
        br#","error":{"code":-32601,"message":"this server is shared by many clients, which cannot be asked"}}"#,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> RequestId {
        RequestId::new(number, 1)
    }

    fn out(tags: &mut Tags, request: u32, frame: &str) -> (Outgoing, String) {
        let mut out = Vec::new();
        let outgoing = tags.outgoing(id(request), frame.as_bytes(), &mut out);
        (outgoing, String::from_utf8(out).unwrap())
    }

    fn back(tags: &mut Tags, frame: &str) -> (Message, String) {
        let mut out = Vec::new();
        let message = tags.incoming(frame.as_bytes(), &mut out);
        (message, String::from_utf8(out).unwrap())
    }

    #[test]
    fn two_clients_with_one_id_each_get_their_own_reply() {
        let mut tags = Tags::new(Framing::JsonRpc);
        let asked = r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#;
        assert_eq!(out(&mut tags, 1, asked).1, r#"{"jsonrpc":"2.0","id":0,"method":"m"}"#);
        assert_eq!(out(&mut tags, 2, asked).1, r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#);
        let second = back(&mut tags, r#"{"jsonrpc":"2.0","id":1,"result":2}"#);
        assert_eq!(
            second,
            (Message::Reply(id(2)), r#"{"jsonrpc":"2.0","id":"a","result":2}"#.to_owned())
        );
        assert_eq!(
            back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"error":1}"#).0,
            Message::Reply(id(1))
        );
        assert_eq!(
            back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0,
            Message::Unasked,
            "a reply too many"
        );
    }

    #[test]
    fn progress_goes_to_the_client_that_asked_for_it() {
        let mut tags = Tags::new(Framing::JsonRpc);
        let asked =
            r#"{"jsonrpc":"2.0","params":{"_meta":{"progressToken":"p"}},"id":7,"method":"m"}"#;
        let (_, sent) = out(&mut tags, 1, asked);
        assert_eq!(
            sent,
            r#"{"jsonrpc":"2.0","params":{"_meta":{"progressToken":1}},"id":0,"method":"m"}"#
        );
        let said = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":5}}"#;
        let (message, told) = back(&mut tags, said);
        assert_eq!(message, Message::About(id(1)));
        assert!(told.contains(r#""progressToken":"p""#), "{told}");
        assert_eq!(
            back(&mut tags, r#"{"jsonrpc":"2.0","id":1,"result":1}"#).0,
            Message::Unasked,
            "a token is no id"
        );
        assert_eq!(
            back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0,
            Message::Reply(id(1))
        );
        assert_eq!(back(&mut tags, said).0, Message::Nobody, "its request has ended");
    }

    #[test]
    fn what_is_true_for_one_client_as_for_another_is_for_all() {
        let mut tags = Tags::new(Framing::JsonRpc);
        for method in FOR_ALL {
            let said = format!("{{\"jsonrpc\":\"2.0\",\n\"method\":\"{method}\"}}");
            assert_eq!(back(&mut tags, &said), (Message::All, said.replace('\n', " ")));
        }
        for method in ["notifications/resources/updated", "notifications/message"] {
            let said = format!("{{\"method\":\"{method}\"}}");
            assert_eq!(back(&mut tags, &said).0, Message::Nobody);
        }
        let asked = format!("{{\"id\":1,\"method\":\"{}\"}}", FOR_ALL[0]);
        assert_eq!(back(&mut tags, &asked).0, Message::Asked, "a request is none");
    }

    #[test]
    fn clients_are_greeted_with_what_the_program_said_to_us() {
        let mut tags = Tags::new(Framing::JsonRpc);
        let mut greeting = Vec::new();
        tags.greet(&mut greeting);
        assert!(greeting.starts_with(br#"{"jsonrpc":"2.0","id":0,"method":"initialize""#));
        let (message, thanks) = back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":{"x":1}}"#);
        assert_eq!(message, Message::Greeted);
        assert!(thanks.contains("notifications/initialized"));
        let (outgoing, reply) =
            out(&mut tags, 1, r#"{"jsonrpc":"2.0","id":"i","method":"initialize"}"#);
        assert_eq!(outgoing, Outgoing::Answered);
        assert_eq!(reply, r#"{"jsonrpc":"2.0","id":"i","result":{"x":1}}"#);
        let (outgoing, _) =
            out(&mut tags, 2, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(outgoing, Outgoing::Dropped);
    }

    #[test]
    fn what_the_program_asks_is_answered_by_us() {
        let mut tags = Tags::new(Framing::JsonRpc);
        let ping = back(&mut tags, r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#);
        assert_eq!(ping, (Message::Asked, r#"{"jsonrpc":"2.0","id":"x","result":{}}"#.to_owned()));
        let (message, refused) =
            back(&mut tags, r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage"}"#);
        assert_eq!(message, Message::Asked);
        assert!(refused.starts_with(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"#));
    }

    #[test]
    fn a_request_is_taken_back_by_its_tag() {
        let mut tags = Tags::new(Framing::ContentLength);
        out(&mut tags, 1, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
        let mut cancel = Vec::new();
        assert!(tags.cancel(id(1), &mut cancel));
        let text = String::from_utf8(cancel).unwrap();
        assert!(text.contains(r#""$/cancelRequest","params":{"id":0}"#), "{text}");
        assert!(!tags.cancel(id(2), &mut Vec::new()));
        let own = r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":0}}"#;
        assert_eq!(out(&mut tags, 3, own).0, Outgoing::Dropped, "it would be another's");
    }

    #[test]
    fn a_tag_that_is_still_in_flight_is_not_given_again() {
        let mut tags = Tags::new(Framing::JsonRpc);
        let asked =
            r#"{"jsonrpc":"2.0","params":{"_meta":{"progressToken":"p"}},"id":7,"method":"m"}"#;
        out(&mut tags, 1, asked);
        out(&mut tags, 2, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
        tags.next = Tag::MAX;
        let (_, sent) = out(&mut tags, 3, asked);
        assert!(sent.contains(r#""id":3,"#) && sent.contains(r#""progressToken":4"#), "{sent}");
        tags.next = Tag::MAX;
        assert!(
            out(&mut tags, 4, r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).1.contains("2147483647")
        );
        assert!(
            out(&mut tags, 5, r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).1.contains(r#""id":5,"#)
        );
        assert_eq!(
            back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0,
            Message::Reply(id(1))
        );
        assert_eq!(
            back(&mut tags, r#"{"jsonrpc":"2.0","id":2,"result":1}"#).0,
            Message::Reply(id(2))
        );
    }

    #[test]
    fn a_reply_to_what_lapsed_is_late_and_one_to_what_was_never_asked_is_not() {
        let mut tags = Tags::new(Framing::JsonRpc);
        for request in 0..3 {
            out(&mut tags, request, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
        }
        tags.lapse(id(1));
        assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":1,"result":1}"#).0, Message::Nobody);
        assert_eq!(
            back(&mut tags, r#"{"jsonrpc":"2.0","id":2,"result":1}"#).0,
            Message::Reply(id(2))
        );
        assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":2,"result":1}"#).0, Message::Unasked);
        assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":3,"result":1}"#).0, Message::Unasked);
        assert_eq!(
            back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0,
            Message::Reply(id(0))
        );
    }

    #[test]
    fn what_is_no_message_is_refused_or_breaks_the_program() {
        let mut tags = Tags::new(Framing::JsonRpc);
        assert!(matches!(out(&mut tags, 1, "hello").0, Outgoing::Refused(_)));
        assert!(matches!(back(&mut tags, "hello").0, Message::Broken(_)));
        assert_eq!(
            unchanged(br#"{"jsonrpc":"2.0","method":"m"}"#, false).0,
            Outgoing::Notification
        );
        assert_eq!(
            unchanged(br#"{"jsonrpc":"2.0","id":12,"method":"m"}"#, false),
            (Outgoing::Request, 22..24)
        );
        let answer = br#"{"jsonrpc":"2.0","id":1,"result":1}"#;
        assert!(matches!(unchanged(answer, false).0, Outgoing::Refused(_)));
        assert_eq!(unchanged(answer, true).0, Outgoing::Notification);
    }
}
