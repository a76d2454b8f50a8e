//! Which messages clients may send to a program that they share. A message is rejected or dropped if the program could
//! interpret it differently than we do, or if it would affect every client.

use wire::jsonrpc::{self, Kind, Task, is_unshared};

use super::outgoing::{Outgoing, write_result};

/// Returns why a message is rejected that programs may interpret differently. It concerns programs that answer in order
/// and keep the ids: such a message could be answered although no reply is expected, not answered although a reply is
/// expected, or answered with another id.
pub(super) fn ambiguity(message: &jsonrpc::Message, frame: &[u8]) -> Option<&'static str> {
    let params = message.params.clone().and_then(|place| frame.get(place)?.first());
    let id = message.id.clone().and_then(|place| frame.get(place));
    if !message.is_version_2(frame) {
        Some(NOT_VERSION_2)
    } else if let Some(text) = message.measure.excess() {
        Some(text)
    } else if id.is_some_and(|id| !id_is_kept(id)) {
        Some(ID_NOT_KEPT)
    } else if params.is_some_and(|first| !matches!(first, b'{' | b'[' | b'n')) {
        Some("`params` is an array or an object")
    } else {
        None
    }
}

/// Whether every JSON library writes this id as it read it: an integer of at most 15 digits, or a string of characters
/// that no library escapes.
pub(in super::super) fn id_is_kept(id: &[u8]) -> bool {
    match id {
        [b'"', text @ .., b'"'] => text
            .iter()
            .all(|it| it.is_ascii_alphanumeric() || b" !#$%()*,-.:;=?@[]^_{|}~".contains(it)),
        [b'0'] => true,
        [b'-', b'1'..=b'9', rest @ ..] | [b'1'..=b'9', rest @ ..] => {
            rest.len() < 15 && rest.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

pub(super) const NOT_VERSION_2: &str = "the message has no \"jsonrpc\":\"2.0\"";

const ID_NOT_KEPT: &str = "programs may change this id: send an integer of at most 15 digits, \
                           or a string of plain characters";

pub(super) const RESPONSE: &str = "it answered a request that does not exist";

const NOTIFICATION: &str = "this method is a notification: send it without an id";

/// Returns how to handle a client's message that cancels a request or reports progress. The name in it may belong to
/// another client of a shared program. Only the method decides: a program may find the name in a place where we would
/// not look.
pub(super) fn naming(message: &jsonrpc::Message, frame: &[u8]) -> Option<Outgoing> {
    let names = message.is_cancel(frame) || message.is_progress(frame);
    match message.kind() {
        _ if !names => None,
        Kind::Request => Some(Outgoing::Refused(NOTIFICATION)),
        Kind::Notification | Kind::Response => Some(Outgoing::Stray),
    }
}

/// Returns how to handle the messages with which an editor ends its language server. Other editors still need a shared
/// server. Only the method decides, because some servers check nothing else.
pub(super) fn end_of_session(
    message: &jsonrpc::Message,
    frame: &[u8],
    out: &mut Vec<u8>,
) -> Option<Outgoing> {
    if message.is_method_like(frame, &["exit"]) {
        return Some(match message.kind() {
            Kind::Request => Outgoing::Refused(NOTIFICATION),
            Kind::Notification | Kind::Response => Outgoing::Dropped,
        });
    }
    if !message.is_method_like(frame, &["shutdown"]) {
        return None;
    }
    let Some(place) = &message.id else { return Some(Outgoing::Dropped) };
    write_result(&frame[place.clone()], b"null", out);
    Some(Outgoing::Answered)
}

/// Why a request of a client is rejected whose task could belong to another client.
const TASK_ALIKE: &str = "`task` occurs twice in `params`, or with different case";

/// Returns how to handle a message to a shared program with which the handshake (MCP) was performed; `None`: it is an
/// ordinary message.
pub(super) fn after_handshake(message: &jsonrpc::Message, frame: &[u8]) -> Option<Outgoing> {
    let method = message.method.clone().and_then(|place| frame.get(place)).unwrap_or_default();
    let is_request = message.kind() == Kind::Request;
    if is_unshared(method) {
        // Some programs execute the method even without an id.
        return Some(if is_request { Outgoing::Unshared } else { Outgoing::Stray });
    }
    if message.is_method_like(frame, &["initialize", "notifications/initialized"]) {
        // We have performed the handshake with the program.
        let is_exact = message.is_method(frame, "initialize");
        return match is_request {
            true if is_exact => None,
            true => Some(Outgoing::Unshared),
            false => Some(Outgoing::Dropped),
        };
    }
    matches!(message.task, Task::Ambiguous).then_some(Outgoing::Refused(TASK_ALIKE))
}
