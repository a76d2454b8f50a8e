//! Rules between framings, ids of replies, and replies of several frames.

use crate::fault::Fault;
use crate::model::{
    Alignment, Dispatch, Framing, Handshake, MatchKey, Protocol, Ready, ReplyStyle,
};
use crate::options::{Group, Value};
use crate::walk::Section;

/// Checks which options a framing supports.
pub(super) fn framing(pool: &Section, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    let Some(framing) = group.get("framing") else { return };
    let is_json = matches!(framing, Framing::JsonRpc | Framing::ContentLength);
    let tags = match group.get("dispatch") {
        Some(Dispatch::Auto) => is_json,
        Some(Dispatch::InOrder | Dispatch::Session) | None => false,
        Some(Dispatch::Tagged) => true,
    };
    if let (true, false, Some(place)) = (tags, is_json, group.place("dispatch")) {
        faults.push(
            Fault::at(place, "only JSON-RPC messages have ids that can be rewritten")
                .expected("`tagged` requires `framing = \"jsonrpc\"` or `\"content-length\"`")
                .suggestion("remove `dispatch`, or set `framing` to one of these"),
        );
    }
    if let (false, true, Some(place)) =
        (tags, group.is("handshake", Handshake::Mcp), group.place("handshake"))
    {
        faults.push(
            Fault::at(place, "this handshake requires a program that clients share")
                .expected("`handshake = \"mcp\"` requires `framing = \"jsonrpc\"` or `\"content-length\"`")
                .suggestion("set `framing = \"jsonrpc\"`, or remove `handshake`"),
        );
    }
    if let (Framing::Oneshot, Some(place), Some(pipeline)) =
        (framing, group.place("pipeline"), group.number("pipeline"))
        && pipeline > 1
    {
        faults.push(
            Fault::at(place, "a `oneshot` program serves one request")
                .expected("`pipeline` = 1")
                .suggestion(
                    "remove `pipeline`; `workers` is the number of programs that run at once",
                ),
        );
    }
    greeting(group, framing, faults);
    session(pool, framing, faults);
    stream(pool, framing, tags, faults);
    alignment(group, framing, tags, faults);
}

/// Checks how replies are matched with requests if the framing has no ids.
fn alignment(group: &Group, framing: Framing, tags: bool, faults: &mut Vec<Fault>) {
    let is_session = group.is("dispatch", Dispatch::Session);
    let why = match framing {
        Framing::Oneshot => {
            Some("a `oneshot` process has one request, so its reply cannot be another one's")
        }
        Framing::Http => Some("a program that serves HTTP has a connection for each request"),
        _ if tags => Some("replies are matched to requests by id"),
        _ if is_session => Some("a `session` program serves one client"),
        _ => None,
    };
    let serves_one_client = is_session && group.key("reset").is_none();
    if let (false, Some(place)) =
        (framing == Framing::Lines && !serves_one_client, group.key("line_breaks"))
    {
        faults.push(
            Fault::at(place, "`line_breaks` has no effect here")
                .expected(
                    "`line_breaks` requires `framing = \"lines\"` and programs that serve several clients",
                )
                .suggestion("remove it"),
        );
    }
    for name in ["alignment", "match"] {
        if let (Some(why), Some(place)) = (why, group.key(name)) {
            faults.push(
                Fault::at(place, format!("`{name}` has no effect here: {why}"))
                    .expected("`{name}` requires programs whose replies come in order, without ids")
                    .suggestion("remove it"),
            );
        }
    }
    if let (true, Some(place), None) =
        (group.is("alignment", Alignment::Strict), group.key("alignment"), why)
        && group.number("pipeline").is_some_and(|pipeline| pipeline > 1)
        && group.key("match").is_none()
    {
        faults.push(
            Fault::at(
                place,
                "`strict` cannot check before another client is served: with `pipeline` above 1 requests \
                 of several clients are with the program at once",
            )
            .expected("`alignment = \"strict\"` requires `pipeline` = 1")
            .suggestion("remove `pipeline`, or replace `alignment` by `match`, which checks each reply"),
        );
    }
    let (Some(Value::Text(text)), Some(place), None) =
        (group.value("match"), group.place("match"), why)
    else {
        return;
    };
    if MatchKey::parse(text).is_none() {
        faults.push(
            Fault::at(place, format!("`{text}` does not name a part of a request"))
                .expected(
                    "expected `{N}`, a word counted from 1, or `{NAME}`, a member of a JSON object",
                )
                .suggestion("write for example `match = \"{1}\"` or `match = \"{id}\"`"),
        );
    } else if let Some(place) = group.key("stream") {
        faults.push(
            Fault::at(place, "`match` needs a reply of one frame")
                .expected("either `stream` or `match`")
                .suggestion("remove one of the two"),
        );
    } else if let Some(place) = group.key("alignment") {
        faults.push(
            Fault::at(place, "`match` replaces the checks of `alignment`")
                .expected("either `alignment` or `match`")
                .suggestion("remove one of the two"),
        );
    }
}

/// Checks what a program must send first.
fn greeting(group: &Group, framing: Framing, faults: &mut Vec<Fault>) {
    let oneshot = framing == Framing::Oneshot;
    if let (true, Some(place)) = (oneshot, group.key("sticky")) {
        faults.push(
            Fault::at(
                place,
                "a `oneshot` program serves one request, so no client can return to it",
            )
            .expected("`sticky` requires programs that keep running")
            .suggestion("remove `sticky`"),
        );
    }
    let (true, Some(place)) = (group.is("ready", Ready::Line), group.place("ready")) else {
        return;
    };
    if oneshot {
        faults.push(
            Fault::at(place, "the whole output of a `oneshot` program is its reply")
                .expected("`ready = \"start\"`")
                .suggestion("remove `ready`"),
        );
    } else if group.is("handshake", Handshake::Mcp) {
        faults.push(
            Fault::at(
                place,
                "with a handshake, a program is ready when it has answered the handshake",
            )
            .expected("`ready = \"start\"` with `handshake = \"mcp\"`")
            .suggestion("remove `ready`"),
        );
    }
}

/// Checks programs that each serve one connection.
fn session(pool: &Section, framing: Framing, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    let is_session = group.is("dispatch", Dispatch::Session);
    if let (false, Some(place)) = (is_session, group.key("reset")) {
        faults.push(
            Fault::at(place, "there is no session to reset")
                .expected("`reset` requires `dispatch = \"session\"`")
                .suggestion("add `dispatch = \"session\"`, or remove `reset`"),
        );
    }
    if is_session {
        reset(pool, framing, faults);
    }
    let wrong = if !is_session {
        None
    } else if framing == Framing::Oneshot {
        Some("a `oneshot` program serves one request, not a connection")
    } else if group.number("pipeline").is_some_and(|pipeline| pipeline > 1) {
        Some("a `session` program has one slot and receives the bytes of its client directly")
    } else {
        None
    };
    if let (Some(why), Some(place)) = (wrong, group.place("dispatch")) {
        let suggestion = "remove `dispatch`, or `framing` and `pipeline`";
        faults.push(
            Fault::at(place, why).expected("one connection per program").suggestion(suggestion),
        );
    }
}

/// Checks that `reset`, the request that clears the state of a program, is exactly one frame of the framing.
fn reset(pool: &Section, framing: Framing, faults: &mut Vec<Fault>) {
    let Some((text, place)) = pool.group.given_text("reset") else {
        return;
    };
    if framing == Framing::Raw {
        let message = "with `raw`, a program may still have unread bytes of its last client";
        return faults.push(
            Fault::at(place, message)
                .expected("`reset` requires a framing that marks the end of a request")
                .suggestion("remove `reset`: the program is then replaced after each connection"),
        );
    }
    let wrong = match framing {
        Framing::Lines | Framing::JsonRpc if text.contains('\n') => {
            Some("a line feed ends a frame")
        }
        Framing::Len1 if text.len() > 0xff => Some("a frame of `len1` has at most 255 bytes"),
        Framing::Len2 if text.len() > 0xffff => Some("a frame of `len2` has at most 65,535 bytes"),
        _ => None,
    };
    if let Some(why) = wrong {
        faults.push(
            Fault::at(place, format!("`reset` is not a valid frame: {why}"))
                .expected("expected one request, excluding framing")
                .suggestion("write one request, or remove `reset`: the program is then replaced"),
        );
    }
}

/// A reply of another pool belongs to no connection. A program that serves one connection answers only that connection.
pub(super) fn check_then_session(pool: &Section, pools: &[&Section], faults: &mut Vec<Fault>) {
    let Some((name, place)) = pool.group.given_text("then") else {
        return;
    };
    let next = pools.iter().find(|next| next.name == *name);
    if next.is_some_and(|next| next.group.is("dispatch", Dispatch::Session)) {
        faults.push(
            Fault::at(place, format!("each program of `[pool.{name}]` serves one connection"))
                .expected("expected a pool whose workers serve all clients")
                .suggestion(format!("remove `then`, or `dispatch` from `[pool.{name}]`")),
        );
    }
}

/// Checks replies of several frames.
fn stream(pool: &Section, framing: Framing, tags: bool, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    let (Some(Value::Group(stream)), Some(place)) = (group.value("stream"), group.key("stream"))
    else {
        if framing == Framing::Raw
            && let Some(place) = group.place("framing")
        {
            faults.push(
                Fault::at(place, "the end of a reply of `raw` bytes is not marked")
                    .expected("`stream` defines the end of a reply")
                    .suggestion("add `stream = { idle_timeout = \"50ms\" }`"),
            );
        }
        return;
    };
    let wrong = if stream.find("until").is_none() && stream.find("idle_timeout").is_none() {
        Some((
            "the end of the reply is not defined",
            "`until`, `idle_timeout` or both",
            "add `until = \".\"`",
        ))
    } else if framing == Framing::Oneshot {
        let why = "the reply of a `oneshot` program ends with its output";
        Some((why, "no `stream`", "remove `stream`"))
    } else if tags {
        let why = "a reply that is matched by id is one message";
        Some((why, "no `stream`", "remove `stream`, or set `dispatch = \"in-order\"`"))
    } else if stream.find("until").is_none() && group.number("pipeline").is_some_and(|it| it > 1) {
        let why = "a pause cannot separate the replies to two requests";
        Some((why, "`until`, or `pipeline` = 1", "add `until = \".\"`, or remove `pipeline`"))
    } else if group.find("then").is_some() {
        let why = "a reply that goes to another pool is one frame";
        Some((why, "either `stream` or `then`", "remove one of the two"))
    } else {
        None
    };
    if let Some((why, expected, suggestion)) = wrong {
        faults.push(
            Fault::at(place, why).expected(format!("expected {expected}")).suggestion(suggestion),
        );
    }
}

/// `reply = "status"` requires replies that are not JSON-RPC.
pub(super) fn check_reply_style(listener: &Section, faults: &mut Vec<Fault>) {
    let group = &listener.group;
    if let (
        Some(Protocol::Frames(Framing::JsonRpc | Framing::ContentLength)),
        Some(ReplyStyle::Status),
        Some(place),
    ) = (group.get("protocol"), group.get("reply"), group.place("reply"))
    {
        faults.push(
            Fault::at(place, "JSON-RPC messages have no `!` prefix")
                .expected("errors are JSON-RPC error objects")
                .suggestion("remove `reply`"),
        );
    }
}
