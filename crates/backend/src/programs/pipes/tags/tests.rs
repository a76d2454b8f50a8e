use super::*;

use wire::jsonrpc::{NUMBER_MAX, SHARED_DEPTH_MAX};

fn id(number: u32) -> RequestId {
    RequestId::new(number.into())
}

/// Creates tags that are written as they are counted.
fn plain(framing: Framing) -> Tags {
    Tags::with(framing, Keys::none())
}

fn out(tags: &mut Tags, request: u32, frame: &str) -> (Outgoing, String) {
    let mut out = Vec::new();
    let outgoing = tags.outgoing(id(request), frame.as_bytes(), &mut out);
    (outgoing, String::from_utf8(out).unwrap())
}

fn unchanged(frame: &[u8], asks: bool) -> (Outgoing, Range<usize>) {
    super::unchanged(frame, asks, Framing::JsonRpc, &mut Vec::new())
}

fn back(tags: &mut Tags, frame: &str) -> (Message, String) {
    let mut out = Vec::new();
    let message = tags.incoming(frame.as_bytes(), &mut out);
    (message, String::from_utf8(out).unwrap())
}

#[test]
fn two_clients_with_one_id_each_get_their_own_reply() {
    let mut tags = plain(Framing::JsonRpc);
    let asked = r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#;
    assert_eq!(out(&mut tags, 1, asked).1, r#"{"jsonrpc":"2.0","id":0,"method":"m"}"#);
    assert_eq!(out(&mut tags, 2, asked).1, r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#);
    let second = back(&mut tags, r#"{"jsonrpc":"2.0","id":1,"result":2}"#);
    assert_eq!(
        second,
        (Message::Reply(id(2)), r#"{"jsonrpc":"2.0","id":"a","result":2}"#.to_owned())
    );
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"error":1}"#).0, Message::Reply(id(1)));
    assert_eq!(
        back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0,
        Message::Unsolicited,
        "a reply too many"
    );
}

#[test]
fn a_value_that_some_programs_cannot_carry_reaches_none_that_clients_share() {
    let frame = |value: &str, rest: &str| {
        format!(r#"{{"jsonrpc":"2.0",{rest}"method":"m","params":[{value}]}}"#)
    };
    let digits = |count| format!("0.{}", "9".repeat(count - 2));
    for (fits, over) in [
        (digits(NUMBER_MAX), digits(NUMBER_MAX + 1)),
        ("1e300".to_owned(), "1e400".to_owned()),
        (nested(SHARED_DEPTH_MAX - 2), nested(SHARED_DEPTH_MAX - 1)),
    ] {
        for rest in [r#""id":1,"#, ""] {
            let (fits, over) = (frame(&fits, rest), frame(&over, rest));
            let is_refused = |outgoing| matches!(outgoing, Outgoing::Refused(_));
            let mut tags = plain(Framing::JsonRpc);
            assert!(is_refused(out(&mut tags, 1, &over).0), "{over}");
            assert!(!is_refused(out(&mut tags, 1, &fits).0), "{fits}");
            assert!(is_refused(unchanged(over.as_bytes(), false).0), "{over}");
            assert!(!is_refused(unchanged(fits.as_bytes(), false).0), "{fits}");
            assert!(!is_refused(unchanged(over.as_bytes(), true).0), "it has one client");
        }
    }
    let mut tags = plain(Framing::JsonRpc);
    assert_eq!(out(&mut tags, 1, &frame("1", r#""id":1,"#)).0, Outgoing::Request);
    let reply = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{}}}"#, "9".repeat(NUMBER_MAX + 1));
    assert_eq!(back(&mut tags, &reply).0, Message::Reply(id(1)), "programs may reply with one");
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[test]
fn a_reply_of_any_depth_ends_its_own_request_and_no_other() {
    let mut tags = plain(Framing::JsonRpc);
    for request in 0..3 {
        out(&mut tags, request, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
    }
    for (request, depth) in [(0, 128), (1, 1000)] {
        let said = format!(r#"{{"result":{},"jsonrpc":"2.0","id":{request}}}"#, nested(depth));
        let Message::Broken(why) = back(&mut tags, &said).0 else { panic!("it is too deep") };
        assert_eq!(tags.broken(said.as_bytes(), why), Message::Reply(id(request)));
    }
    let said = br#"{"jsonrpc":"2.0","method":"notifications/message","params":NaN}"#;
    assert_eq!(tags.broken(said, "why"), Message::Nobody, "it replies to no request");
    let said = format!(r#"{{"result":{},"jsonrpc":"2.0","id":2}}"#, nested(127));
    assert_eq!(back(&mut tags, &said).0, Message::Reply(id(2)));
}

#[test]
fn progress_goes_to_the_client_that_asked_for_it() {
    let mut tags = plain(Framing::JsonRpc);
    let asked = r#"{"jsonrpc":"2.0","params":{"_meta":{"progressToken":"p"}},"id":7,"method":"m"}"#;
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
        Message::Unsolicited,
        "a token is no id"
    );
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0, Message::Reply(id(1)));
    assert_eq!(back(&mut tags, said).0, Message::Nobody, "its request has ended");
}

#[test]
fn what_is_true_for_one_client_as_for_another_is_for_all() {
    let mut tags = plain(Framing::JsonRpc);
    for method in FOR_ALL {
        let said = format!("{{\"jsonrpc\":\"2.0\",\n\"method\":\"{method}\"}}");
        assert_eq!(back(&mut tags, &said), (Message::All, said.replace('\n', " ")));
    }
    for method in ["notifications/resources/updated", "notifications/message"] {
        let said = format!("{{\"method\":\"{method}\"}}");
        assert_eq!(back(&mut tags, &said).0, Message::Nobody);
    }
    let asked = format!("{{\"id\":1,\"method\":\"{}\"}}", FOR_ALL[0]);
    assert_eq!(back(&mut tags, &asked).0, Message::ProgramRequest, "a request is none");
}

#[test]
fn clients_are_greeted_with_what_the_program_said_to_us() {
    let mut tags = plain(Framing::JsonRpc);
    let mut greeting = Vec::new();
    tags.start_handshake(&mut greeting);
    assert!(greeting.starts_with(br#"{"jsonrpc":"2.0","id":0,"method":"initialize""#));
    let (message, thanks) = back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":{"x":1}}"#);
    assert_eq!(message, Message::HandshakeReply);
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
    let mut tags = plain(Framing::JsonRpc);
    let ping = back(&mut tags, r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#);
    assert_eq!(
        ping,
        (Message::ProgramRequest, r#"{"jsonrpc":"2.0","id":"x","result":{}}"#.to_owned())
    );
    let (message, refused) =
        back(&mut tags, r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage"}"#);
    assert_eq!(message, Message::ProgramRequest);
    assert!(refused.starts_with(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"#));
}

#[test]
fn a_request_is_taken_back_by_its_tag() {
    let mut tags = plain(Framing::ContentLength);
    out(&mut tags, 1, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
    let mut cancel = Vec::new();
    assert!(tags.cancel(id(1), &mut cancel));
    let text = String::from_utf8(cancel).unwrap();
    assert!(text.contains(r#""$/cancelRequest","params":{"id":0}"#), "{text}");
    assert!(!tags.cancel(id(2), &mut Vec::new()));
    let own = r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":0}}"#;
    assert_eq!(out(&mut tags, 3, own).0, Outgoing::Stray, "it would be another's");
}

#[test]
fn no_client_can_name_what_belongs_to_another() {
    let methods = [
        "notifications/cancelled",
        "$/cancelRequest",
        "window/workDoneProgress/cancel",
        "notifications/progress",
        "$/progress",
        "Notifications/CANCELLED",
        r"$\/cancelRequest",
        r"$/\u0063ancelRequest",
    ];
    let params = [
        r#"{"requestId":0}"#,
        r#"{"requestid":0}"#,
        r#"{"id":0}"#,
        r#"{"ID":0}"#,
        r#"{"token":1}"#,
        r#"{"progressToken":1}"#,
        "[0]",
        "[[0]]",
        "0",
        "{}",
    ];
    for method in methods {
        for params in params {
            let mut tags = plain(Framing::JsonRpc);
            out(&mut tags, 1, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
            let rest = format!(r#""method":"{method}","params":{params}}}"#);
            let said = format!(r#"{{"jsonrpc":"2.0",{rest}"#);
            assert_eq!(out(&mut tags, 2, &said), (Outgoing::Stray, String::new()), "{said}");
            assert_eq!(unchanged(said.as_bytes(), false).0, Outgoing::Stray, "{said}");
            assert_eq!(unchanged(said.as_bytes(), true).0, Outgoing::Notification, "{said}");
            for id in ["9", "null"] {
                let said = format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}"#);
                let (outgoing, sent) = out(&mut tags, 2, &said);
                assert!(matches!(outgoing, Outgoing::Refused(_)), "{said}: {outgoing:?}");
                assert_eq!(sent, "");
                let outgoing = unchanged(said.as_bytes(), false).0;
                assert!(matches!(outgoing, Outgoing::Refused(_)), "{said}: {outgoing:?}");
                assert_eq!(unchanged(said.as_bytes(), true).0, Outgoing::Request, "{said}");
            }
        }
    }
}

#[test]
fn progress_of_a_notification_reaches_nobody() {
    let mut tags = plain(Framing::JsonRpc);
    let asked = r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{"progressToken":"p"}}}"#;
    out(&mut tags, 1, asked);
    for params in [
        r#"{"_meta":{"progressToken":1}}"#,
        r#"{"workDoneToken":1}"#,
        r#"{"partialResultToken":1}"#,
    ] {
        let said = format!(r#"{{"jsonrpc":"2.0","method":"note","params":{params}}}"#);
        let (outgoing, sent) = out(&mut tags, 2, &said);
        assert_eq!(outgoing, Outgoing::Notification);
        let message = scan(sent.as_bytes()).unwrap();
        let tokens = &message.tokens;
        let tokens = [&tokens.meta_progress, &tokens.work_done, &tokens.partial_result];
        let token = &sent[tokens.into_iter().flatten().next().unwrap().clone()];
        let said = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token}}}}}"#
        );
        assert_eq!(back(&mut tags, &said).0, Message::Nobody, "{sent}");
    }
    // The tags of these are not given to the next request.
    let sent = out(&mut tags, 3, r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).1;
    assert!(sent.contains(r#""id":5,"#), "{sent}");
}

#[test]
fn a_tag_that_is_still_in_flight_is_not_given_again() {
    let mut tags = plain(Framing::JsonRpc);
    let asked = r#"{"jsonrpc":"2.0","params":{"_meta":{"progressToken":"p"}},"id":7,"method":"m"}"#;
    out(&mut tags, 1, asked);
    out(&mut tags, 2, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
    tags.next = Tag::MAX;
    let (_, sent) = out(&mut tags, 3, asked);
    assert!(sent.contains(r#""id":3,"#) && sent.contains(r#""progressToken":4"#), "{sent}");
    tags.next = Tag::MAX;
    assert!(out(&mut tags, 4, r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).1.contains("2147483647"));
    assert!(out(&mut tags, 5, r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).1.contains(r#""id":5,"#));
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0, Message::Reply(id(1)));
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":2,"result":1}"#).0, Message::Reply(id(2)));
}

#[test]
fn a_reply_to_what_lapsed_is_late_and_one_to_what_was_never_asked_is_not() {
    let mut tags = plain(Framing::JsonRpc);
    for request in 0..3 {
        out(&mut tags, request, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
    }
    tags.lapse(id(1));
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":1,"result":1}"#).0, Message::Nobody);
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":2,"result":1}"#).0, Message::Reply(id(2)));
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":2,"result":1}"#).0, Message::Unsolicited);
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":3,"result":1}"#).0, Message::Unsolicited);
    assert_eq!(back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0, Message::Reply(id(0)));
    // A tag that was never given is almost always invented.
    assert_eq!(
        back(&mut tags, r#"{"jsonrpc":"2.0","id":1500000000,"result":1}"#).0,
        Message::Unsolicited
    );
}

#[test]
fn what_follows_the_reply_to_a_cancelled_request_is_late_and_to_another_it_is_not() {
    let mut tags = plain(Framing::JsonRpc);
    let asked = |tags: &mut Tags, request| {
        out(tags, request, r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
    };
    let reply = |tags: &mut Tags, tag: u32| {
        back(tags, &format!(r#"{{"jsonrpc":"2.0","id":{tag},"result":1}}"#)).0
    };
    (0..2).for_each(|request| asked(&mut tags, request));
    assert!(tags.cancel(id(0), &mut Vec::new()));
    assert_eq!(reply(&mut tags, 0), Message::Reply(id(0)));
    for _ in 0..3 {
        assert_eq!(reply(&mut tags, 0), Message::Nobody);
    }
    assert_eq!(reply(&mut tags, 1), Message::Reply(id(1)));
    assert_eq!(reply(&mut tags, 1), Message::Unsolicited);
    // Tags beyond the limit are recognised too, though not with certainty.
    let last = u32::try_from(OVER_MAX).unwrap() + 10;
    for request in 2..=last {
        asked(&mut tags, request);
        assert!(tags.cancel(id(request), &mut Vec::new()));
        assert_eq!(reply(&mut tags, request), Message::Reply(id(request)));
    }
    assert_eq!(tags.over.len(), OVER_MAX);
    for request in [0, 2, 9, last] {
        assert_eq!(reply(&mut tags, request), Message::Nobody, "{request}");
    }
    assert_eq!(reply(&mut tags, last + 1), Message::Unsolicited);
}

#[test]
fn a_broken_message_ends_the_request_in_flight_that_it_names_once() {
    let mut tags = plain(Framing::JsonRpc);
    let asked = r#"{"jsonrpc":"2.0","params":{"_meta":{"progressToken":"p"}},"id":7,"method":"m"}"#;
    out(&mut tags, 1, asked);
    for frame in [
        r#"{"jsonrpc":"2.0","id":0,"method":"m","params":NaN}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":NaN}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":NaN}"#,
        r#"{"jsonrpc":"2.0","id":"0","result":NaN}"#,
        r#"{"jsonrpc":"2.0","result":{"id":0,"x":NaN}}"#,
        r#"NaN"id":0,"result":1"#,
    ] {
        assert!(matches!(back(&mut tags, frame).0, Message::Broken(_)), "{frame}");
        assert_eq!(tags.broken(frame.as_bytes(), "why"), Message::Broken("why"), "{frame}");
    }
    let broken = br#"{"jsonrpc":"2.0","id":0,"result":NaN}"#;
    assert_eq!(tags.broken(broken, "why"), Message::Reply(id(1)));
    assert_eq!(tags.broken(broken, "why"), Message::Nobody, "once");
    let late = back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":1}"#).0;
    assert_eq!(late, Message::Nobody, "it may reply anew");
}

#[test]
fn what_a_client_learns_of_its_tags_tells_nothing_of_anothers() {
    let mut tags = Tags::new(Framing::JsonRpc);
    let asked =
        r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"_meta":{"progressToken":"p"}}}"#;
    let mut written = Vec::new();
    for request in 0..100 {
        let (_, sent) = out(&mut tags, request, asked);
        let message = scan(sent.as_bytes()).unwrap();
        let place = |place: &Option<Range<usize>>| sent[place.clone().unwrap()].to_owned();
        written.push((place(&message.id), place(&message.tokens.meta_progress)));
    }
    let small = written.iter().filter(|(id, _)| id.len() < 6).count();
    assert!(small < 5, "they are spread over all numbers: {written:?}");
    let (cancelled, mut cancel) = (&written[3].0, Vec::new());
    assert!(tags.cancel(id(3), &mut cancel));
    assert!(String::from_utf8(cancel).unwrap().contains(&format!(r#""requestId":{cancelled}}}"#)));
    for (request, (tag, token)) in (0..).zip(&written) {
        let progress = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token}}}}}"#
        );
        assert_eq!(back(&mut tags, &progress).0, Message::About(id(request)));
        let reply = format!(r#"{{"jsonrpc":"2.0","id":{tag},"result":1}}"#);
        assert_eq!(
            back(&mut tags, &reply),
            (Message::Reply(id(request)), r#"{"jsonrpc":"2.0","id":"a","result":1}"#.to_owned())
        );
    }
}

#[test]
fn of_a_message_that_is_too_long_only_its_request_is_known() {
    let too_long = |tags: &mut Tags, skimmed: &Skimmed| {
        let mut out = Vec::new();
        let message = tags.too_long(skimmed, &mut out);
        (message, String::from_utf8(out).unwrap())
    };
    let mut tags = plain(Framing::JsonRpc);
    let asked = r#"{"jsonrpc":"2.0","params":{"_meta":{"progressToken":"p"}},"id":7,"method":"m"}"#;
    for request in 0..2 {
        out(&mut tags, request, asked);
    }
    let reply = |id: &str| Skimmed::Reply(id.into());
    for (id, message) in [
        ("null", Message::Nobody),
        ("\"a\"", Message::Unsolicited),
        ("1", Message::Unsolicited),
        ("9", Message::Unsolicited),
        ("2", Message::Reply(id(1))),
        ("2", Message::Unsolicited),
    ] {
        assert_eq!(too_long(&mut tags, &reply(id)).0, message, "{id}");
    }
    tags.lapse(id(0));
    assert_eq!(too_long(&mut tags, &reply("0")).0, Message::Nobody, "it is late");
    let (message, refusal) = too_long(&mut tags, &Skimmed::Request("\"q\"".into()));
    assert_eq!(message, Message::ProgramRequest);
    assert!(refusal.starts_with(r#"{"jsonrpc":"2.0","id":"q","error":{"code":-32601,"#));
    assert_eq!(too_long(&mut tags, &Skimmed::Notification).0, Message::Nobody);
    assert!(matches!(too_long(&mut tags, &Skimmed::Unknown).0, Message::Broken(_)));
}

#[test]
fn what_is_no_message_is_refused_or_breaks_the_program() {
    let mut tags = plain(Framing::JsonRpc);
    assert!(matches!(out(&mut tags, 1, "hello").0, Outgoing::Refused(_)));
    assert!(matches!(back(&mut tags, "hello").0, Message::Broken(_)));
    assert_eq!(unchanged(br#"{"jsonrpc":"2.0","method":"m"}"#, false).0, Outgoing::Notification);
    assert_eq!(
        unchanged(br#"{"jsonrpc":"2.0","id":12,"method":"m"}"#, false),
        (Outgoing::Request, 22..24)
    );
    let answer = br#"{"jsonrpc":"2.0","id":1,"result":1}"#;
    assert!(matches!(unchanged(answer, false).0, Outgoing::Refused(_)));
    assert_eq!(unchanged(answer, true).0, Outgoing::Notification);
}

#[test]
fn no_client_ends_a_language_server_that_is_shared_however_it_says_so() {
    let refused = |it: Outgoing| matches!(it, Outgoing::Refused(_));
    for method in ["exit", "Exit", r"\u0065xit", "shutdown", "ShutDown"] {
        for (id, is_request) in [("", false), (r#""id":1,"#, true), (r#""id":null,"#, true)] {
            let said = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}"}}"#);
            let is_answered = is_request && method.eq_ignore_ascii_case("shutdown");
            let shared = out(&mut Tags::new(Framing::ContentLength), 1, &said).0;
            let frame = said.as_bytes();
            let in_order =
                super::unchanged(frame, false, Framing::ContentLength, &mut Vec::new()).0;
            for outgoing in [shared, in_order] {
                match (is_request, is_answered) {
                    (false, _) => assert_eq!(outgoing, Outgoing::Dropped, "{said}"),
                    (true, true) => assert_eq!(outgoing, Outgoing::Answered, "{said}"),
                    (true, false) => assert!(refused(outgoing), "{said}: {outgoing:?}"),
                }
            }
        }
    }
}

#[test]
fn tasks_of_all_clients_are_nobodys() {
    let mut tags = plain(Framing::JsonRpc);
    tags.start_handshake(&mut Vec::new());
    let said =
        r#"{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"tasks":{"list":{}},"tools":{}}}}"#;
    assert_eq!(back(&mut tags, said).0, Message::HandshakeReply);
    let (_, reply) = out(&mut tags, 1, r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#);
    assert_eq!(reply, r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{}}}}"#);
    for method in [
        "tasks/list",
        "Tasks/List",
        r"tas\u006bs/get",
        "ta\u{17f}ks/result",
        "tasks/cancel",
        "tasks/sendInput",
        "notifications/tasks/status",
        "logging/setlevel",
        "Resources/Subscribe",
        "Initialize",
    ] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        assert_eq!(out(&mut tags, 2, &request), (Outgoing::Unshared, String::new()), "{method}");
        let notification = request.replace(r#""id":1,"#, "");
        let outgoing = out(&mut tags, 2, &notification).0;
        assert!(matches!(outgoing, Outgoing::Stray | Outgoing::Dropped), "{method}: {outgoing:?}");
    }
}

#[test]
fn what_is_to_become_a_task_is_done_at_once_by_a_program_that_clients_share() {
    let asks = |params: &str| {
        let mut tags = plain(Framing::JsonRpc);
        tags.start_handshake(&mut Vec::new());
        back(&mut tags, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
        let said =
            format!(r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{params}}}"#);
        let (outgoing, sent) = out(&mut tags, 1, &said);
        let note = said.replace(r#""id":"a","#, "");
        let (noted, note) = out(&mut tags, 2, &note);
        assert_eq!(matches!(outgoing, Outgoing::Refused(_)), matches!(noted, Outgoing::Refused(_)));
        let params = |sent: &str| sent.split_once(r#""params":"#).map(|it| it.1.to_owned());
        assert_eq!(params(&note).is_some(), params(&sent).is_some(), "{note}");
        params(&sent).ok_or(outgoing)
    };
    for (params, sent) in [
        (r#"{"task":{"ttl":1}}"#, "{}"),
        (r#"{"task":{"ttl":1},"name":"x"}"#, r#"{"name":"x"}"#),
        (r#"{"name":"x" , "task" : {"ttl":1} }"#, r#"{"name":"x"  }"#),
        (r#"{"name":"x","task":null,"y":1}"#, r#"{"name":"x","y":1}"#),
        (r#"{"name":"x","t\u0061sk":{},"y":1}"#, r#"{"name":"x","y":1}"#),
        (
            r#"{"task":{},"_meta":{"progressToken":"p"},"name":"x"}"#,
            r#"{"_meta":{"progressToken":2},"name":"x"}"#,
        ),
        (r#"{"arguments":{"task":1}}"#, r#"{"arguments":{"task":1}}"#),
        (r#"["task"]"#, r#"["task"]"#),
    ] {
        assert_eq!(asks(params), Ok(format!("{sent}}}")), "{params}");
    }
    for params in [r#"{"task":1,"task":2}"#, r#"{"Task":1}"#, r#"{"task":1,"TASK":2}"#] {
        assert!(matches!(asks(params), Err(Outgoing::Refused(_))), "{params}");
    }
    // Without the handshake the member may have any meaning for the program.
    let said = r#"{"jsonrpc":"2.0","id":0,"method":"m","params":{"Task":1,"task":2}}"#;
    assert_eq!(out(&mut plain(Framing::JsonRpc), 1, said), (Outgoing::Request, said.to_owned()));
    assert_eq!(unchanged(said.as_bytes(), false).0, Outgoing::Request);
}

#[test]
fn what_programs_in_order_may_take_for_something_else_is_refused() {
    let message =
        |version: &str, id: &str, params: &str| format!(r#"{{{version}{id}"method":"m"{params}}}"#);
    let version = r#""jsonrpc":"2.0","#;
    let outgoing = |said: &str, asks| unchanged(said.as_bytes(), asks).0;
    let refused = |said: &str| {
        let refused = matches!(outgoing(said, false), Outgoing::Refused(_));
        assert!(!matches!(outgoing(said, true), Outgoing::Refused(_)), "its own may: {said}");
        refused
    };
    for id in ["", r#""id":1,"#] {
        for other in ["", r#""jsonrpc":"1.0","#, r#""jsonrpc":2.0,"#] {
            assert!(refused(&message(other, id, "")), "{other}{id}");
        }
        for params in ["\"text\"", "1", "-1", "true", "false"] {
            assert!(refused(&message(version, id, &format!(r#","params":{params}"#))), "{params}");
        }
        for params in ["[]", "{}", "null"] {
            assert!(!refused(&message(version, id, &format!(r#","params":{params}"#))), "{params}");
        }
    }
    for id in ["null", "1.0", "-0", "1e3", "1234567890123456", r#""a/b""#, r#""\u0061""#, r#""ä""#]
    {
        assert!(refused(&message(version, &format!(r#""id":{id},"#), "")), "{id}");
    }
    for id in ["0", "-7", "123456789012345", r#""""#, r#""a b""#, r#""{2f-1}:3""#] {
        let said = message(version, &format!(r#""id":{id},"#), "");
        assert_eq!(outgoing(&said, false), Outgoing::Request, "{id}");
    }
}

#[test]
fn a_program_is_reset_only_by_what_it_replies_to() {
    let sent = |frame: &str| of_reset(unchanged(frame.as_bytes(), true).0);
    assert_eq!(sent(r#"{"jsonrpc":"2.0","id":"r","method":"forget"}"#), Outgoing::Request);
    for frame in [
        r#"{"jsonrpc":"2.0","method":"$/forget"}"#,
        r#"{"jsonrpc":"2.0","id":"r","result":1}"#,
        "forget",
    ] {
        assert!(matches!(sent(frame), Outgoing::Refused(_)), "{frame}");
    }
}
