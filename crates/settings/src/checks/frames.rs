//! Rules between framings, ids of replies, and replies of several frames.

use crate::fault::{Fault, reject};
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
    reject! { faults;
        group.place("dispatch"), if tags && !is_json
            => "only JSON-RPC messages have ids that can be rewritten",
            expected "`tagged` requires `framing = \"jsonrpc\"` or `\"content-length\"`",
            help "remove `dispatch`, or set `framing` to one of these";
        group.place("handshake"), if !tags && group.is("handshake", Handshake::Mcp)
            => "this handshake requires a program that clients share",
            expected "`handshake = \"mcp\"` requires `framing = \"jsonrpc\"` or `\"content-length\"`",
            help "set `framing = \"jsonrpc\"`, or remove `handshake`";
        group.place("pipeline"), if framing == Framing::Oneshot && has_pipeline(group)
            => "a `oneshot` program serves one request",
            expected "`pipeline` = 1",
            help "remove `pipeline`; `workers` is the number of programs that run at once";
    }
    greeting(group, framing, faults);
    session(pool, framing, faults);
    stream(pool, framing, tags, faults);
    alignment(group, framing, tags, faults);
}

fn has_pipeline(group: &Group) -> bool {
    group.number("pipeline").is_some_and(|pipeline| pipeline > 1)
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
    let (key, stream) = (group.place("match").filter(|_| why.is_none()), group.key("stream"));
    let is_key = group.text("match").is_some_and(|text| MatchKey::parse(text).is_some());
    reject! { faults;
        group.key("line_breaks"), if framing != Framing::Lines || serves_one_client
            => "`line_breaks` has no effect here",
            expected "`line_breaks` requires `framing = \"lines\"` and programs that serve several clients",
            help "remove it";
        group.key("alignment"), if why.is_none() && group.is("alignment", Alignment::Strict)
            && has_pipeline(group) && group.key("match").is_none()
            => "`strict` cannot check before another client is served: with `pipeline` above 1 requests \
                of several clients are with the program at once",
            expected "`alignment = \"strict\"` requires `pipeline` = 1",
            help "remove `pipeline`, or replace `alignment` by `match`, which checks each reply";
        key.clone(), if !is_key
            => format!("`{}` does not name a part of a request", group.text("match").unwrap_or_default()),
            expected "expected `{N}`, a word counted from 1, or `{NAME}`, a member of a JSON object",
            help "write for example `match = \"{1}\"` or `match = \"{id}\"`";
        stream.clone(), if is_key && key.is_some() => "`match` needs a reply of one frame",
            expected "either `stream` or `match`",
            help "remove one of the two";
        group.key("alignment"), if is_key && key.is_some() && stream.is_none()
            => "`match` replaces the checks of `alignment`",
            expected "either `alignment` or `match`",
            help "remove one of the two";
    }
    for name in ["alignment", "match"] {
        if let Some(why) = why {
            reject! { faults;
                group.key(name) => format!("`{name}` has no effect here: {why}"),
                    expected format!("`{name}` requires programs whose replies come in order, without ids"),
                    help "remove it";
            }
        }
    }
}

/// Checks what a program must send first.
fn greeting(group: &Group, framing: Framing, faults: &mut Vec<Fault>) {
    let oneshot = framing == Framing::Oneshot;
    let ready = || group.place("ready").filter(|_| group.is("ready", Ready::Line));
    reject! { faults;
        group.key("sticky"), if oneshot
            => "a `oneshot` program serves one request, so no client can return to it",
            expected "`sticky` requires programs that keep running",
            help "remove `sticky`";
        ready(), if oneshot => "the whole output of a `oneshot` program is its reply",
            expected "`ready = \"start\"`",
            help "remove `ready`";
        ready(), if !oneshot && group.is("handshake", Handshake::Mcp)
            => "with a handshake, a program is ready when it has answered the handshake",
            expected "`ready = \"start\"` with `handshake = \"mcp\"`",
            help "remove `ready`";
    }
}

/// Checks programs that each serve one connection.
fn session(pool: &Section, framing: Framing, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    let is_session = group.is("dispatch", Dispatch::Session);
    reject! { faults;
        group.key("reset"), if !is_session => "there is no session to reset",
            expected "`reset` requires `dispatch = \"session\"`",
            help "add `dispatch = \"session\"`, or remove `reset`";
    }
    if !is_session {
        return;
    }
    reset(pool, framing, faults);
    let oneshot = framing == Framing::Oneshot;
    let why = if oneshot {
        "a `oneshot` program serves one request, not a connection"
    } else {
        "a `session` program has one slot and receives the bytes of its client directly"
    };
    reject! { faults;
        group.place("dispatch"), if oneshot || has_pipeline(group) => why,
            expected "one connection per program",
            help "remove `dispatch`, or `framing` and `pipeline`";
    }
}

/// Checks that `reset`, the request that clears the state of a program, is exactly one frame of the framing.
fn reset(pool: &Section, framing: Framing, faults: &mut Vec<Fault>) {
    let Some((text, place)) = pool.group.given_text("reset") else { return };
    let wrong = match framing {
        Framing::Lines | Framing::JsonRpc if text.contains('\n') => {
            Some("a line feed ends a frame")
        }
        Framing::Len1 if text.len() > 0xff => Some("a frame of `len1` has at most 255 bytes"),
        Framing::Len2 if text.len() > 0xffff => Some("a frame of `len2` has at most 65,535 bytes"),
        _ => None,
    };
    reject! { faults;
        Some(place.clone()), if framing == Framing::Raw
            => "with `raw`, a program may still have unread bytes of its last client",
            expected "`reset` requires a framing that marks the end of a request",
            help "remove `reset`: the program is then replaced after each connection";
    }
    if let Some(why) = wrong {
        reject! { faults;
            Some(place) => format!("`reset` is not a valid frame: {why}"),
                expected "expected one request, excluding framing",
                help "write one request, or remove `reset`: the program is then replaced";
        }
    }
}

/// A reply of another pool belongs to no connection. A program that serves one connection answers only that connection.
pub(super) fn check_then_session(pool: &Section, pools: &[&Section], faults: &mut Vec<Fault>) {
    let Some((name, place)) = pool.group.given_text("then") else { return };
    let next = pools.iter().find(|next| next.name == *name);
    reject! { faults;
        Some(place), if next.is_some_and(|next| next.group.is("dispatch", Dispatch::Session))
            => format!("each program of `[pool.{name}]` serves one connection"),
            expected "expected a pool whose workers serve all clients",
            help format!("remove `then`, or `dispatch` from `[pool.{name}]`");
    }
}

/// Checks replies of several frames.
fn stream(pool: &Section, framing: Framing, tags: bool, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    let (Some(Value::Group(stream)), Some(place)) = (group.value("stream"), group.key("stream"))
    else {
        reject! { faults;
            group.place("framing"), if framing == Framing::Raw
                => "the end of a reply of `raw` bytes is not marked",
                expected "`stream` defines the end of a reply",
                help "add `stream = { idle_timeout = \"50ms\" }`";
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
    } else if stream.find("until").is_none() && has_pipeline(group) {
        let why = "a pause cannot separate the replies to two requests";
        Some((why, "`until`, or `pipeline` = 1", "add `until = \".\"`, or remove `pipeline`"))
    } else if group.find("then").is_some() {
        let why = "a reply that goes to another pool is one frame";
        Some((why, "either `stream` or `then`", "remove one of the two"))
    } else {
        None
    };
    if let Some((why, expected, suggestion)) = wrong {
        reject! { faults;
            Some(place) => why, expected format!("expected {expected}"), help suggestion;
        }
    }
}

/// `reply = "status"` requires replies that are not JSON-RPC.
pub(super) fn check_reply_style(listener: &Section, faults: &mut Vec<Fault>) {
    let group = &listener.group;
    let is_json = matches!(
        group.get("protocol"),
        Some(Protocol::Frames(Framing::JsonRpc | Framing::ContentLength))
    );
    reject! { faults;
        group.place("reply"), if is_json && group.is("reply", ReplyStyle::Status)
            => "JSON-RPC messages have no `!` prefix",
            expected "errors are JSON-RPC error objects",
            help "remove `reply`";
    }
}
