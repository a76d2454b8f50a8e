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
                .expected("`tagged` goes with `framing = \"jsonrpc\"` or `\"content-length\"`")
                .suggestion("remove `dispatch`, or set `framing` to one of these"),
        );
    }
    if let (false, true, Some(place)) =
        (tags, group.is("handshake", Handshake::Mcp), group.place("handshake"))
    {
        faults.push(
            Fault::at(place, "this handshake needs a program that is shared by its ids")
                .expected("`handshake = \"mcp\"` goes with `framing = \"jsonrpc\"` or `\"content-length\"`")
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
                .suggestion("remove `pipeline`; `workers` says how many run at once"),
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
        Framing::Oneshot => Some("a `oneshot` process has one request, so its reply is that one's"),
        Framing::Http => Some("a program that serves HTTP has a connection for each request"),
        _ if tags => Some("replies are found by their ids, which name their requests"),
        _ if is_session => Some("a connection's own program answers nobody else"),
        _ => None,
    };
    let serves_one_client = is_session && group.key("reset").is_none();
    if let (false, Some(place)) =
        (framing == Framing::Lines && !serves_one_client, group.key("line_breaks"))
    {
        faults.push(
            Fault::at(place, "`line_breaks` has nothing to do here")
                .expected(
                    "it goes with `framing = \"lines\"`, and programs that serve several clients",
                )
                .suggestion("remove it"),
        );
    }
    for name in ["alignment", "match"] {
        if let (Some(why), Some(place)) = (why, group.key(name)) {
            faults.push(
                Fault::at(place, format!("`{name}` has nothing to do here: {why}"))
                    .expected("it goes with programs whose replies come in order, without ids")
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
            .expected("`alignment = \"strict\"` goes with `pipeline` = 1")
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
            Fault::at(place, format!("`{text}` names nothing that a request carries"))
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
            Fault::at(place, "a `oneshot` program serves one request, so nobody comes back to it")
                .expected("`sticky` goes with programs that stay")
                .suggestion("remove `sticky`"),
        );
    }
    let (true, Some(place)) = (group.is("ready", Ready::Line), group.place("ready")) else {
        return;
    };
    if oneshot {
        faults.push(
            Fault::at(place, "all that a `oneshot` program says is its reply")
                .expected("`ready = \"start\"`")
                .suggestion("remove `ready`"),
        );
    } else if group.is("handshake", Handshake::Mcp) {
        faults.push(
            Fault::at(place, "a program that is greeted is ready when it has answered that")
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
            Fault::at(place, "nothing is to be forgotten between connections")
                .expected("`reset` goes with `dispatch = \"session\"`")
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
        Some("a connection's own program has one slot; what its client sends goes straight to it")
    } else {
        None
    };
    if let (Some(why), Some(place)) = (wrong, group.place("dispatch")) {
        let suggestion = "remove `dispatch`, or `framing` and `pipeline`";
        faults.push(
            Fault::at(place, why).expected("one connection a program").suggestion(suggestion),
        );
    }
}

/// Checks that `reset`, the request that clears the state of a program, is exactly one frame of the framing.
fn reset(pool: &Section, framing: Framing, faults: &mut Vec<Fault>) {
    let Some((text, place)) = pool.group.given_text("reset") else {
        return;
    };
    if framing == Framing::Raw {
        let message = "a program on `raw` may still hold a part of what its last client sent";
        return faults.push(
            Fault::at(place, message)
                .expected("`reset` goes with a framing that says where a request ends")
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
            Fault::at(place, format!("`reset` is no frame: {why}"))
                .expected("expected one request, without what the framing adds")
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
            Fault::at(
                place,
                format!("the programs of `[pool.{name}]` are each a connection's own"),
            )
            .expected("expected a pool whose workers anybody may ask")
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
                Fault::at(place, "nobody could tell where a reply of `raw` bytes ends")
                    .expected("`stream` says what ends it")
                    .suggestion("add `stream = { idle_timeout = \"50ms\" }`"),
            );
        }
        return;
    };
    let wrong = if stream.find("until").is_none() && stream.find("idle_timeout").is_none() {
        Some(("nothing ends the reply", "`until`, `idle_timeout` or both", "add `until = \".\"`"))
    } else if framing == Framing::Oneshot {
        let why = "the reply of a `oneshot` program ends with its output";
        Some((why, "no `stream`", "remove `stream`"))
    } else if tags {
        let why = "a reply that is found by its id is one message";
        Some((why, "no `stream`", "remove `stream`, or set `dispatch = \"in-order\"`"))
    } else if stream.find("until").is_none() && group.number("pipeline").is_some_and(|it| it > 1) {
        let why = "silence cannot tell the replies to two requests apart";
        Some((why, "`until`, or `pipeline` = 1", "add `until = \".\"`, or remove `pipeline`"))
    } else if group.find("then").is_some() {
        let why = "what goes to another pool is one frame";
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
            Fault::at(place, "JSON-RPC messages carry no marks")
                .expected("refusals are error objects there")
                .suggestion("remove `reply`"),
        );
    }
}
