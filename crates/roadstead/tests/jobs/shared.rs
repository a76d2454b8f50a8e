// tidy: tests
//! Programs that several clients share by ids: the actions of one client must not reach the others.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::daemon::{Daemon, PATIENCE, folder, one_pool, read_log, until};
use crate::framings::{parse, serve};

/// The method selects the action: `echo` answers, `stall` does not, `later` answers when `release` was received,
/// `until-cancelled` when a request was cancelled, `huge` answers with many bytes, `hang` answers nothing from then on,
/// `busy` reads nothing until a file exists and then sends a request, `broken` answers with invalid JSON.
const SHARED: &str = r#"
import json, os, sys, time
def say(it):
    sys.stdout.write(json.dumps(it) + "\n")
    sys.stdout.flush()
def forged():
    return [{"jsonrpc": "2.0", "id": held[0]}, '"id":%d}' % held[0]]
held, cancelled, waiting = [], [], []
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if method == "notifications/cancelled":
        cancelled.append(asked["params"]["requestId"])
        for it in waiting: say({"jsonrpc": "2.0", "id": it, "result": "at last"})
        waiting = []
    elif method == "until-cancelled": waiting.append(id)
    elif method == "echo": say({"jsonrpc": "2.0", "id": id, "result": len(cancelled)})
    elif method == "endless":
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "result": float("inf"), "id": id}) + "\n")
        sys.stdout.flush()
    elif method == "later": held.append(id)
    elif method == "release":
        for it in held + cancelled: say({"jsonrpc": "2.0", "id": it, "result": "released"})
        say({"jsonrpc": "2.0", "id": id, "result": len(held)})
        held = []
    elif method == "huge": say({"jsonrpc": "2.0", "id": id, "result": "x" * 200000})
    elif method == "huge-id-last": say({"result": forged() * 9000, "jsonrpc": "2.0", "id": id})
    elif method == "huge-no-id": say({"jsonrpc": "2.0", "result": forged() * 9000})
    elif method == "huge-question":
        # Programs number their own requests, too.
        say({"jsonrpc": "2.0", "id": held[0], "method": "ask", "params": ["x" * 200000]})
        say({"method": "ask", "params": ["x" * 200000], "jsonrpc": "2.0", "id": "its own"})
        say({"jsonrpc": "2.0", "method": "note", "params": ["x" * 200000]})
        refusals = [json.loads(sys.stdin.readline()) for it in range(2)]
        told = [it["id"] in (held[0], "its own") and it["error"]["code"] for it in refusals]
        say({"jsonrpc": "2.0", "id": id, "result": told})
    elif method == "hang": time.sleep(600)
    elif method == "busy":
        while not os.path.exists(asked["params"]["until"]): time.sleep(0.01)
        say({"jsonrpc": "2.0", "id": "its own", "method": "roots/list"})
        say({"jsonrpc": "2.0", "id": id, "result": "busy no more"})
    elif method == "broken":
        written = {
            "endless": '{"jsonrpc":"2.0","id":%d,"result":Infinity}', "endless-id-last": '{"result":-Infinity,"id":%d}',
            "endless-within": '{"result":{"x":[NaN]},"id":%d}', "cut": '{"jsonrpc":"2.0","id":%d,"result":{"x":',
            "no-text": '{"jsonrpc":"2.0","id":%d,"result":"\xff"}', "twice": '{"id":%d,"result":1,"result":2}'}
        sys.stdout.buffer.write((written[asked["params"]["how"]] % id).encode("latin-1") + b"\n")
        sys.stdout.flush()
"#;

fn shared(folder: &Path, pool: &str) -> Daemon {
    let pool = format!(
        "framing = \"jsonrpc\"\nready = \"line\"\npipeline = 16\nworkers = 1\nmin_uptime = \"0s\"\n{pool}\n"
    );
    serve(folder, "jsonrpc", &["python3", "-c", SHARED], &pool)
}

fn ask(client: &mut Client, id: u32, method: &str) {
    client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n"));
}

/// Makes the program read nothing until such a file exists.
fn busy(id: u32, until: &Path) -> String {
    let params = format!("{{\"until\":{until:?}}}");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"busy\",\"params\":{params}}}\n")
}

/// Returns a request of this size, of which a pipe accepts only a few.
fn padded(id: u32, method: &str) -> String {
    let params = "x".repeat(40_000);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":[\"{params}\"]}}\n"
    )
}

fn cancel(id: u32) -> String {
    let params = format!("{{\"requestId\":{id}}}");
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}\n")
}

fn deaths(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_worker_failures_total", &[])
}

#[test]
fn nothing_that_a_client_sends_reaches_a_request_of_another() {
    let folder = folder();
    let daemon = shared(folder.path(), "");
    let (mut victim, mut other) = (daemon.connect(), daemon.connect());
    ask(&mut victim, 1, "later");
    until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    // Python interprets a CR as the end of a line.
    let inner = r#"{"jsonrpc":"2.0","id":0,"method":"echo"}"#;
    other.send(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":[\r{inner}\r]}}\n"));
    let cancel = r#""method":"notifications/cancelled","params":{"requestId":0}}"#;
    for id in ["9", "null"] {
        other.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{cancel}\n"));
        let reply = parse(&other.line());
        assert_eq!(
            (&reply["error"]["code"], reply["id"].to_string()),
            (&(-32600).into(), id.to_owned())
        );
    }
    let cancels = [cancel.to_owned(), cancel.replace("requestId", "requestid")];
    for cancel in &cancels {
        other.send(format!("{{\"jsonrpc\":\"2.0\",{cancel}\n"));
    }
    ask(&mut other, 5, "echo");
    let reply = parse(&other.line());
    assert_eq!((&reply["id"], &reply["result"]), (&5.into(), &0.into()), "nothing was cancelled");
    let dropped = || daemon.metric("roadstead_notifications_dropped_total", &[]);
    until("both are counted", || dropped() == 2);
    ask(&mut other, 6, "release");
    assert_eq!(parse(&victim.line())["result"], "released");
}

#[test]
fn a_late_request_is_taken_back_and_the_calls_of_other_clients_go_on() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"2s\"");
    let mut others: Vec<_> = (0..3).map(|_| daemon.connect()).collect();
    let mut late = daemon.connect();
    ask(&mut late, 1, "stall");
    until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    let (mut ended, begun) = (None, Instant::now());
    // Other clients send requests meanwhile, and each is answered.
    for round in 0.. {
        assert!(begun.elapsed() < PATIENCE, "the program was told of nothing");
        for other in &mut others {
            ask(other, round, "echo");
            let reply = parse(&other.line());
            assert_eq!(reply["id"], round);
            ended = ended.or_else(|| (reply["result"] == 1).then_some(round));
        }
        if ended.is_some() {
            break;
        }
    }
    let reply = parse(&late.line());
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&1.into(), &(-32071).into()), "{reply}");
    assert_eq!(deaths(&daemon), 0, "{}", read_log(folder.path()));
}

#[test]
fn a_late_request_does_not_end_a_younger_one_of_another_client_though_nothing_was_said() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"3s\"");
    let (mut late, mut other) = (daemon.connect(), daemon.connect());
    ask(&mut late, 1, "stall");
    let begun = Instant::now();
    until("the other is younger", || begun.elapsed() > Duration::from_millis(1500));
    ask(&mut other, 2, "until-cancelled");
    assert_eq!(parse(&late.line())["error"]["code"], -32071);
    assert_eq!(parse(&other.line())["result"], "at last", "{}", read_log(folder.path()));
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn a_late_reply_to_what_was_taken_back_is_discarded_and_counted() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"2s\"");
    let (mut late, mut other) = (daemon.connect(), daemon.connect());
    ask(&mut late, 7, "stall");
    let begun = Instant::now();
    for round in 0.. {
        assert!(begun.elapsed() < PATIENCE, "the program was told of nothing");
        ask(&mut other, round, "echo");
        if parse(&other.line())["result"] == 1 {
            break;
        }
    }
    assert_eq!(parse(&late.line())["error"]["code"], -32071);
    let before = daemon.metric("roadstead_discarded_replies_total", &[]);
    ask(&mut other, 1_000_000, "release");
    assert_eq!(parse(&other.line())["id"], 1_000_000);
    until("it is counted", || {
        daemon.metric("roadstead_discarded_replies_total", &[]) == before + 1
    });
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn a_program_that_answers_no_client_is_replaced_and_safe_requests_are_made_again() {
    for safe in [true, false] {
        let folder = folder();
        let idempotent = if safe { "idempotent = \"all\"" } else { "" };
        let daemon = shared(folder.path(), &format!("response_timeout = \"2s\"\n{idempotent}"));
        let mut clients: Vec<_> = (0..7).map(|_| daemon.connect()).collect();
        let in_flight = || daemon.status()["pools"][0]["workers"][0]["in_flight"].clone();
        ask(&mut clients[0], 0, "hang");
        until("it hangs", || in_flight() == 1);
        ask(&mut clients[1], 1, "echo");
        until("two have it", || in_flight() == 2);
        let begun = Instant::now();
        until("the third is younger", || begun.elapsed() > Duration::from_millis(1500));
        ask(&mut clients[2], 2, "echo");
        assert_eq!(parse(&clients[0].line())["error"]["code"], -32071, "the first is late");
        // At any time, one request is not late.
        for late in 1..5 {
            assert_eq!(parse(&clients[late].line())["error"]["code"], -32071, "{late} is late");
            assert_eq!(deaths(&daemon), 0, "others have requests with it");
            ask(&mut clients[late + 2], u32::try_from(late).unwrap() + 2, "echo");
        }
        let last = parse(&clients[6].line());
        if safe {
            assert_eq!((&last["id"], &last["result"]), (&6.into(), &0.into()), "{last}");
        } else {
            assert_eq!(last["error"]["code"], -32070, "it may have taken effect: {last}");
        }
        until("it is counted", || deaths(&daemon) == 1);
    }
}

#[test]
fn a_message_that_is_not_json_rpc_2_is_rejected_with_its_id_before_the_queue() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"60s\"");
    let mut client = daemon.connect();
    for message in [
        "{\"id\":8,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"1.0\",\"id\":8,\"method\":\"ping\"}",
        "{\"jsonrpc\":2.0,\"id\":8,\"method\":\"ping\"}",
    ] {
        let reply = parse(&client.ask(message));
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&8.into(), &(-32600).into()));
    }
    ask(&mut client, 9, "echo");
    assert_eq!(parse(&client.line())["id"], 9);
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn a_reply_over_its_limit_ends_the_request_that_it_is_to_and_no_other() {
    for method in ["huge", "huge-id-last"] {
        let folder = folder();
        let daemon = shared(folder.path(), "response_timeout = \"60s\"\nreply_max = \"64KiB\"");
        let (mut first, mut greedy) = (daemon.connect(), daemon.connect());
        ask(&mut first, 1, "later");
        until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
        ask(&mut greedy, 2, method);
        let reply = parse(&greedy.line());
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&2.into(), &(-32072).into()));
        ask(&mut greedy, 3, "release");
        assert_eq!(parse(&first.line())["result"], "released");
        assert_eq!(parse(&greedy.line())["result"], 1);
        assert_eq!(deaths(&daemon), 0);
    }
}

#[test]
fn what_a_shared_program_says_that_is_no_json_costs_no_request_of_another_client() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"60s\"");
    let (mut first, mut other) = (daemon.connect(), daemon.connect());
    ask(&mut first, 1, "later");
    until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    let endless = "{\"jsonrpc\":\"2.0\",\"method\":\"endless\"}\n";
    for id in 2..5 {
        other.send(endless.repeat(7));
        ask(&mut other, id, "echo");
        assert_eq!(parse(&other.line())["id"], id);
    }
    until("they are counted", || daemon.metric("roadstead_discarded_replies_total", &[]) == 21);
    ask(&mut other, 5, "release");
    assert_eq!(parse(&first.line())["result"], "released");
    assert_eq!(parse(&other.line())["result"], 1);
    assert_eq!(deaths(&daemon), 0);
    until("it is logged", || read_log(folder.path()).contains("printed an invalid message"));
    other.send(endless.repeat(8));
    until("one that says nothing else is replaced", || deaths(&daemon) == 1);
}

#[test]
fn a_reply_over_its_limit_that_has_no_id_ends_no_request() {
    let folder = folder();
    let pool = "response_timeout = \"60s\"\nreply_max = \"64KiB\"\n";
    let daemon = shared(folder.path(), pool);
    let (mut first, mut greedy) = (daemon.connect(), daemon.connect());
    ask(&mut first, 1, "later");
    until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    ask(&mut greedy, 2, "huge-no-id");
    until("it is counted", || daemon.metric("roadstead_discarded_replies_total", &[]) == 1);
    ask(&mut greedy, 3, "release");
    assert_eq!(parse(&first.line())["result"], "released");
    assert_eq!(parse(&greedy.line())["id"], 3);
    assert_eq!(deaths(&daemon), 0);
    ask(&mut first, 4, "later");
    until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 2);
    for id in 5..13 {
        ask(&mut greedy, id, "huge-no-id");
    }
    let reply = parse(&first.line());
    assert_eq!(reply["error"]["code"], -32070, "{reply}");
    let text = reply["error"]["message"].as_str().unwrap();
    assert!(text.contains("longer than reply_max"), "{text}");
    until("one that prints nothing else is replaced", || deaths(&daemon) == 1);
}

#[test]
fn a_question_or_a_notification_over_the_limit_ends_no_request() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"60s\"\nreply_max = \"64KiB\"");
    let (mut first, mut other) = (daemon.connect(), daemon.connect());
    ask(&mut first, 1, "later");
    until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    ask(&mut other, 2, "huge-question");
    let reply = parse(&other.line());
    assert_eq!(reply["result"], serde_json::json!([-32601, -32601]), "{reply}");
    ask(&mut other, 3, "release");
    assert_eq!(parse(&first.line())["result"], "released");
    assert_eq!(parse(&other.line())["result"], 1);
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn of_a_pipeline_the_oldest_request_ends_by_a_reply_over_its_limit_and_safe_ones_are_made_again() {
    let folder = folder();
    let program = "import sys\n\
        for line in sys.stdin:\n    \
            sys.stdout.write('x' * 200000 + '\\n' if line.startswith('huge') else line)\n    \
            sys.stdout.flush()\n";
    let pool = "pipeline = 4\nworkers = 1\nmin_uptime = \"0s\"\nreply_max = \"64KiB\"\nidempotent = \"all\"\n";
    let daemon = serve(folder.path(), "lines", &["python3", "-c", program], pool);
    let (mut greedy, mut other) = (daemon.connect(), daemon.connect());
    greedy.send("huge\n");
    other.send("mine\n");
    let reply = greedy.line();
    assert!(reply.starts_with("!unknown reply "), "{reply}");
    assert_eq!(other.line(), "mine");
}

#[test]
fn a_busy_program_that_asks_something_is_not_ended_because_much_waits_for_it() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"60s\"");
    let (mut victim, mut other) = (daemon.connect(), daemon.connect());
    ask(&mut victim, 1, "later");
    let go = folder.path().join("go");
    other.send(busy(2, &go));
    for id in 3..13 {
        other.send(padded(id, "echo"));
    }
    until("it has them", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 12);
    fs::write(go, "").unwrap();
    assert_eq!(parse(&other.line())["result"], "busy no more", "{}", read_log(folder.path()));
    for id in 3..13 {
        assert_eq!(parse(&other.line())["id"], id);
    }
    ask(&mut other, 13, "release");
    assert_eq!(parse(&victim.line())["result"], "released");
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn the_slots_of_cancelled_requests_are_free_once_a_busy_program_has_read_on() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"5m\"");
    let (mut victim, mut left) = (daemon.connect(), daemon.connect());
    let in_flight = || daemon.status()["pools"][0]["workers"][0]["in_flight"].as_u64();
    ask(&mut victim, 1, "later");
    let go = folder.path().join("go");
    victim.send(busy(2, &go));
    until("it is busy", || in_flight() == Some(2));
    // One request is cancelled immediately, although more data waits for the program than it may leave unread.
    ask(&mut left, 3, "stall");
    for id in 4..14 {
        left.send(padded(id, "stall"));
    }
    until("it has them", || in_flight() == Some(13));
    left.send(cancel(3));
    until("its slot is free", || in_flight() == Some(12));
    for id in 4..14 {
        left.send(cancel(id));
    }
    // The amount of unread data is limited: most of these requests keep their slots meanwhile.
    until("some are free", || in_flight() < Some(12));
    fs::write(go, "").unwrap();
    assert_eq!(parse(&victim.line())["result"], "busy no more");
    until("all are free", || in_flight() == Some(1));
    ask(&mut victim, 4, "release");
    assert_eq!(parse(&victim.line())["result"], "released");
    assert_eq!(deaths(&daemon), 0);
}

/// Sends a request that the program does not answer, and cancels it, repeatedly.
fn ask_and_take_back(daemon: &Daemon, client: &mut Client, ids: std::ops::RangeInclusive<u32>) {
    let in_flight = || daemon.status()["pools"][0]["workers"][0]["in_flight"].clone();
    for id in ids {
        ask(client, id, "stall");
        until("it has it", || in_flight() == 1);
        client.send(cancel(id));
        until("its slot is free", || in_flight() == 0);
    }
}

#[test]
fn a_program_that_answers_nothing_that_was_cancelled_goes_on_serving_others() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\nworkers = 1\nmin_uptime = \"0s\"\nresponse_timeout = \"5m\"";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", SHARED], pool);
    let (mut hasty, mut other) = (daemon.connect(), daemon.connect());
    ask_and_take_back(&daemon, &mut hasty, 1..=17);
    let begun = Instant::now();
    ask_and_take_back(&daemon, &mut hasty, 18..=19);
    // The program may still be processing cancelled requests, so each further one waits longer.
    assert!(begun.elapsed() >= Duration::from_millis(100), "{:?}", begun.elapsed());
    drop(hasty);
    ask(&mut other, 1, "echo");
    assert_eq!(parse(&other.line())["result"], 19);
    // The answer shows that it is not.
    ask_and_take_back(&daemon, &mut other, 2..=17);
    ask(&mut other, 18, "echo");
    assert_eq!(parse(&other.line())["result"], 35);
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn a_program_whose_requests_were_all_cancelled_owes_nothing_and_ends_with_the_daemon() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\nworkers = 1\nmin_uptime = \"0s\"\nresponse_timeout = \"5m\"";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", SHARED], pool);
    let mut hasty = daemon.connect();
    ask_and_take_back(&daemon, &mut hasty, 1..=17);
    drop(hasty);
    daemon.stop();
}

#[test]
fn a_cancelled_request_that_is_answered_twice_costs_no_request_of_another_client() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"60s\"");
    let (mut first, mut other) = (daemon.connect(), daemon.connect());
    let in_flight = || daemon.status()["pools"][0]["workers"][0]["in_flight"].clone();
    ask(&mut first, 1, "later");
    until("it has it", || in_flight() == 1);
    ask(&mut other, 2, "later");
    until("it has both", || in_flight() == 2);
    other.send(cancel(2));
    until("it is told", || in_flight() == 1);
    // The request is both held and cancelled, so it is answered twice; the next one adds another answer.
    for (id, discarded) in [(3, 2), (4, 3)] {
        ask(&mut other, id, "release");
        assert_eq!(parse(&other.line())["id"], id, "{}", read_log(folder.path()));
        until("it is counted", || {
            daemon.metric("roadstead_discarded_replies_total", &[]) == discarded
        });
    }
    assert_eq!(parse(&first.line())["result"], "released");
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn a_reply_that_is_no_json_ends_the_request_that_it_names() {
    let folder = folder();
    let daemon = shared(folder.path(), "response_timeout = \"5m\"");
    let (mut first, mut other) = (daemon.connect(), daemon.connect());
    ask(&mut first, 1, "later");
    until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    let mut id = 2;
    // These are more consecutive discarded messages than the limit.
    for _ in 0..2 {
        for how in ["endless", "endless-id-last", "endless-within", "cut", "no-text", "twice"] {
            other.send(format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"broken\",\"params\":{{\"how\":\"{how}\"}}}}\n"
            ));
            let reply = parse(&other.line());
            assert_eq!((&reply["id"], &reply["error"]["code"]), (&id.into(), &(-32076).into()));
            id += 1;
        }
    }
    ask(&mut other, id, "release");
    assert_eq!(parse(&first.line())["result"], "released");
    assert_eq!(parse(&other.line())["result"], 1);
    assert_eq!(deaths(&daemon), 0);
}

/// Starts a daemon whose clients may have four requests in flight.
fn four_in_flight(folder: &Path) -> Daemon {
    let program = serde_json::json!(["python3", "-c", SHARED]);
    let pool = format!(
        "program = {program}\nframing = \"jsonrpc\"\npipeline = 16\nworkers = 1\nresponse_timeout = \"5m\"\n"
    );
    let text = one_pool("in_flight_max = 4", &pool).replace("\"lines\"", "\"jsonrpc\"");
    Daemon::serve(folder, &text)
}

/// A client that has received a reply. The reply occupies none of its four slots and stays unread.
fn answered_client(daemon: &Daemon) -> Client {
    let mut client = daemon.connect();
    ask(&mut client, 1, "echo");
    assert_eq!(client.stream().peek(&mut [0]).unwrap(), 1);
    client
}

#[test]
fn the_slots_of_a_paused_client_that_resets_its_connection_are_free_at_once() {
    let folder = folder();
    let daemon = four_in_flight(folder.path());
    let in_flight = || daemon.status()["pools"][0]["workers"][0]["in_flight"].clone();
    for behind in ["", "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"stall\"}\n"] {
        let mut client = answered_client(&daemon);
        for id in 2..6 {
            ask(&mut client, id, "stall");
        }
        client.send(behind);
        until("it may ask no more", || in_flight() == 4);
        client.reset();
        until("its slots are free", || in_flight() == 0);
    }
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn a_client_whose_reset_is_noticed_before_its_requests_are_read_keeps_no_slots() {
    let folder = folder();
    let daemon = four_in_flight(folder.path());
    let left = || daemon.metric("roadstead_requests_finished_total", &["cause=\"left\""]);
    let mut client = answered_client(&daemon);
    daemon.stopped(|| {
        for id in 2..7 {
            ask(&mut client, id, "stall");
        }
        client.reset();
    });
    until("its requests have ended", || left() == 4);
    assert_eq!(daemon.status()["pools"][0]["workers"][0]["in_flight"], 0);
    assert_eq!(deaths(&daemon), 0);
}

#[test]
fn a_client_that_resets_while_it_waits_for_room_in_the_queue_waits_no_more() {
    let folder = folder();
    let program = serde_json::json!(["python3", "-c", SHARED]);
    let pool = format!(
        "program = {program}\nframing = \"jsonrpc\"\nworkers = 1\nqueue = {{ max_requests = 1, timeout = \"5m\" }}\nresponse_timeout = \"5m\"\n"
    );
    let text = one_pool("", &pool).replace("\"lines\"", "\"jsonrpc\"");
    let daemon = Daemon::serve(folder.path(), &text);
    let (mut served, mut queued) = (daemon.connect(), daemon.connect());
    ask(&mut served, 1, "stall");
    until("it is with the program", || daemon.metric("roadstead_workers", &["busy"]) == 1);
    ask(&mut queued, 2, "stall");
    until("the queue is full", || daemon.metric("roadstead_queue_length", &["main"]) == 1);
    let paused = || daemon.metric("roadstead_paused_clients", &["main"]);
    let connections = || daemon.metric("roadstead_connections", &["main"]);
    let mut waits = daemon.connect();
    ask(&mut waits, 3, "stall");
    until("it is not read", || paused() == 1);
    waits.reset();
    until("it waits no more", || paused() == 0);
    assert_eq!(connections(), 2);
    // The same with a client whose reset arrives together with its request.
    daemon.stopped(|| {
        let mut waits = daemon.connect();
        ask(&mut waits, 4, "stall");
        waits.reset();
    });
    until("it was accepted", || daemon.status()["listeners"][0]["accepted"] == 4);
    until("it waits no more", || connections() == 2 && paused() == 0);
}
