//! Programs with wrong or late answers, under load from clients that each check that a reply is their own: one program
//! prints a stray line before some replies, and another is shared by several clients and some of its calls exceed the
//! response timeout.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::daemon::{Daemon, becomes, folder, one_pool, read_log};
use crate::times;

/// The maximum time for a load to encounter its faults. It matters only for failing tests.
const LIMIT: Duration = Duration::from_secs(240);

/// The results of the requests of one client, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ledger {
    sent: u32,
    /// Answered with their own reply.
    own: u32,
    /// Answered with a line that the program printed besides.
    stray: u32,
    /// Answered with the reply to another request of the same client.
    shifted: u32,
    /// Answered with the reply to a request of another client.
    misdirected: u32,
    /// Ended by the response timeout.
    late: u32,
    /// Ended otherwise.
    failed: u32,
}

impl Ledger {
    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            own: self.own + other.own,
            stray: self.stray + other.stray,
            shifted: self.shifted + other.shifted,
            misdirected: self.misdirected + other.misdirected,
            late: self.late + other.late,
            failed: self.failed + other.failed,
        }
    }

    fn is_complete(&self) -> bool {
        let ends = self.own + self.stray + self.shifted + self.misdirected;
        self.sent == ends + self.late + self.failed
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, own, stray, shifted, misdirected, late, failed } = self;
        write!(
            f,
            "sent {sent}, own {own}, stray {stray}, shifted {shifted}, misdirected {misdirected}, \
             late {late}, failed {failed}"
        )
    }
}

/// Runs `clients` clients that send one request after the other until `met` is true, or for [`LIMIT`]. `ask` sends
/// request number `round` of client `who` and records the result. Returns the sum, and whether `met` became true.
fn under_load(
    daemon: &Daemon,
    clients: u32,
    ask: impl Fn(&mut Client, u32, u32, &mut Ledger) + Sync,
    met: impl FnMut() -> bool,
) -> (Ledger, bool) {
    let (done, ask) = (AtomicBool::new(false), &ask);
    thread::scope(|scope| {
        let each = |who| {
            let mut client = daemon.connect();
            let done = &done;
            scope.spawn(move || {
                let (mut ledger, mut round) = (Ledger::default(), 0);
                while !done.load(Ordering::Relaxed) {
                    ledger.sent += 1;
                    ask(&mut client, who, round, &mut ledger);
                    round += 1;
                }
                ledger
            })
        };
        let all: Vec<_> = (0..clients).map(each).collect();
        let was_met = becomes(LIMIT, met);
        done.store(true, Ordering::Relaxed);
        let ledgers = all.into_iter().map(|it| it.join().expect("each request is answered"));
        (ledgers.fold(Ledger::default(), Ledger::add), was_met)
    })
}

/// Prints a stray line before every `every`th reply from number `first` on, and the reply shortly after. The time of
/// its second reply makes the alignment checks 100 ms long, so that a delay of the machine between the two lines does
/// not change the result.
const STRAY: &str = r#"
import sys, time
first, every, count = int(sys.argv[1]), int(sys.argv[2]), 0
for line in sys.stdin:
    count += 1
    if count == 2:
        time.sleep(0.05)
    if count >= first and count % every == 0:
        sys.stdout.write("DEBUG: cache miss\n")
        sys.stdout.flush()
        time.sleep(0.002)
    sys.stdout.write(line)
    sys.stdout.flush()
"#;

const PROGRAMS: u32 = 8;
const CLIENTS: u32 = 24;

fn stray(folder: &Path, (first, every): (u32, u32), pool: &str) -> Daemon {
    let path = folder.join("stray.py");
    std::fs::write(&path, STRAY).unwrap();
    let path = path.display().to_string();
    let pool = format!(
        "program = [\"python3\", {path:?}, \"{first}\", \"{every}\"]\nworkers = {PROGRAMS}\n\
         min_uptime = \"0s\"\n{pool}\n"
    );
    Daemon::serve(folder, &one_pool("", &pool))
}

/// Sends a line that is unique to this client.
fn ask_line(client: &mut Client, who: u32, round: u32, ledger: &mut Ledger) {
    let line = format!("client{who} {who}-{round}");
    let reply = client.ask(&line);
    let kind = match &*reply {
        own if own == line => &mut ledger.own,
        it if it.starts_with(&format!("client{who} ")) => &mut ledger.shifted,
        it if it.starts_with("client") => &mut ledger.misdirected,
        it if it.starts_with("DEBUG") => &mut ledger.stray,
        it if it.starts_with('!') => &mut ledger.failed,
        other => panic!("nobody sent this: {other}"),
    };
    *kind += 1;
}

fn deaths(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_worker_failures_total", &[])
}

fn suspects(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_suspect_replies_total", &[])
}

/// Programs that print a stray line before every tenth reply are stopped for it `count` times.
fn shifted(count: u32, first: u32, pool: &str) -> (Ledger, u64) {
    let folder = folder();
    let daemon = stray(folder.path(), (first, 10), pool);
    let met = || deaths(&daemon) >= u64::from(count);
    let (ledger, was_met) = under_load(&daemon, CLIENTS, ask_line, met);
    let suspects = suspects(&daemon);
    eprintln!("shifted programs, {pool}: {count} times\n{ledger}, suspect {suspects}");
    assert!(was_met, "they are ended: {}", read_log(folder.path()));
    assert!(ledger.is_complete() && ledger.own > 0, "{ledger}");
    assert!(daemon.stop().success());
    (ledger, suspects)
}

#[test]
fn a_shifted_program_that_is_checked_strictly_misdirects_no_reply() {
    let (ledger, _) = shifted(times(100), 1, "alignment = \"strict\"");
    assert_eq!(ledger.misdirected, 0, "{ledger}");
    assert!(ledger.stray > 0, "{ledger}");
}

#[test]
fn a_shifted_program_whose_replies_must_match_misdirects_no_reply() {
    let (ledger, _) = shifted(times(400), 1, "match = \"{2}\"");
    let answered_wrongly = (ledger.misdirected, ledger.stray, ledger.shifted);
    assert_eq!(answered_wrongly, (0, 0, 0), "{ledger}");
}

#[test]
fn a_program_that_is_shifted_from_the_start_misdirects_no_reply() {
    let (ledger, suspects) = shifted(times(100), 1, "alignment = \"auto\"");
    assert_eq!(ledger.misdirected, 0, "{ledger}");
    assert!(suspects > 0);
}

#[test]
fn a_program_that_is_shifted_after_its_probation_is_found_and_its_replies_are_suspect() {
    let folder = folder();
    // The 40th reply comes after probation.
    let daemon = stray(folder.path(), (40, 10), "alignment = \"auto\"");
    let (mut all, count) = (Ledger::default(), times(10));
    for round in 0..count {
        let before = suspects(&daemon);
        let met = || suspects(&daemon) > before;
        let (ledger, was_met) = under_load(&daemon, CLIENTS, ask_line, met);
        assert!(was_met && ledger.is_complete(), "it is found: {}", read_log(folder.path()));
        // From then on each reply is checked, until the file is reloaded.
        let deaths_before = deaths(&daemon);
        let met = || deaths(&daemon) > deaths_before;
        let (strict, was_met) = under_load(&daemon, CLIENTS, ask_line, met);
        assert!(was_met && strict.is_complete(), "round {round}: {}", read_log(folder.path()));
        all = all.add(ledger).add(strict);
        daemon.reload().unwrap();
    }
    let suspects = suspects(&daemon);
    eprintln!("shifted programs, after probation: {count} times\n{all}, suspect {suspects}");
    assert!(u64::from(all.misdirected) <= suspects, "{all}, suspect {suspects}");
    assert!(daemon.stop().success());
}

/// `echo` answers, `stall` does not, `late` answers when it is cancelled, and after `hang` nothing is answered.
const SHARED: &str = r#"
import json, sys, time
held = set()
print("ready", flush=True)
def say(id, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n")
    sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if method == "echo":
        say(id, asked["params"]["token"])
    elif method == "late":
        held.add(id)
    elif method == "notifications/cancelled" and asked["params"]["requestId"] in held:
        held.discard(asked["params"]["requestId"])
        say(asked["params"]["requestId"], "late")
    elif method == "hang":
        time.sleep(600)
"#;

/// The error code of a call whose program does not answer in time, and of one whose program has exited.
const LATE: i64 = -32071;
const DIED: i64 = -32070;

fn shared(folder: &Path, deadline: &str) -> Daemon {
    let path = folder.join("shared.py");
    std::fs::write(&path, SHARED).unwrap();
    let path = path.display().to_string();
    let pool = format!(
        "program = [\"python3\", {path:?}]\nframing = \"jsonrpc\"\nready = \"line\"\npipeline = 64\n\
         workers = 1\nmin_uptime = \"0s\"\nresponse_timeout = \"{deadline}\"\n"
    );
    let configuration = one_pool("", &pool).replace("\"lines\"", "\"jsonrpc\"");
    Daemon::serve(folder, &configuration)
}

/// Makes a call. All clients use the same ids, but different tokens.
fn call(client: &mut Client, (who, round): (u32, u32), method: &str, ledger: &mut Ledger) {
    let token = format!("{who} {round}");
    let reply = client.ask(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{round},\"method\":\"{method}\",\"params\":{{\"token\":\"{token}\"}}}}"
    ));
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(reply["id"], round, "{reply}");
    let kind = match (reply["result"].as_str(), reply["error"]["code"].as_i64()) {
        (Some(own), None) if own == token => &mut ledger.own,
        (Some(_), None) => &mut ledger.misdirected,
        (None, Some(LATE)) => &mut ledger.late,
        (None, Some(DIED)) => &mut ledger.failed,
        _ => panic!("no such end: {reply}"),
    };
    *kind += 1;
}

#[test]
fn late_calls_to_a_shared_program_fail_alone() {
    let folder = folder();
    let daemon = shared(folder.path(), "6s");
    let count = u64::from(times(100));
    let late = || daemon.metric("roadstead_requests_finished_total", &["\"deadline\""]);
    let discarded = || daemon.metric("roadstead_discarded_replies_total", &[]);
    // Twelve clients make late calls, half of which the program answers when they are cancelled. When there were
    // enough, all clients make calls that are answered, until no slow call is left: a program that has only late calls and
    // sends nothing is replaced, as intended.
    let (enough, under_way) = (AtomicBool::new(false), AtomicU32::new(0));
    let ask = |client: &mut Client, who, round, ledger: &mut Ledger| {
        let is_slow = who < 12 && {
            under_way.fetch_add(1, Ordering::SeqCst);
            let is_wanted = !enough.load(Ordering::SeqCst);
            under_way.fetch_sub(u32::from(!is_wanted), Ordering::SeqCst);
            is_wanted
        };
        let method = match is_slow {
            false => "echo",
            true if round % 2 == 0 => "late",
            true => "stall",
        };
        let (before, answered) = (ledger.late, ledger.own);
        call(client, (who, round), method, ledger);
        under_way.fetch_sub(u32::from(is_slow), Ordering::SeqCst);
        let (late, answered) = (ledger.late > before, ledger.own > answered);
        assert_eq!((late, answered), (is_slow, !is_slow), "only late calls fail: {ledger}");
    };
    let met = || {
        let seen = late() >= count;
        enough.fetch_or(seen, Ordering::SeqCst) && under_way.load(Ordering::SeqCst) == 0
    };
    let (ledger, was_met) = under_load(&daemon, CLIENTS, ask, met);
    eprintln!("late calls: {count} times\n{ledger}, discarded {}", discarded());
    assert!(was_met && ledger.is_complete(), "{ledger}: {}", read_log(folder.path()));
    assert_eq!((ledger.misdirected, ledger.failed), (0, 0), "{ledger}");
    assert!(discarded() > 0, "late replies came");
    let log = || read_log(folder.path());
    assert_eq!(deaths(&daemon), 0, "it answered others all the while: {}", log());
    assert!(daemon.stop().success());
}

#[test]
fn a_shared_program_that_answers_nobody_is_replaced_and_serves_all_clients_again() {
    let folder = folder();
    let daemon = shared(folder.path(), "5s");
    let count = times(20);
    let mut all = Ledger::default();
    for round in 0..count {
        let before = deaths(&daemon);
        let hangs = AtomicBool::new(true);
        let ask = |client: &mut Client, who, round, ledger: &mut Ledger| {
            let is_first = who == 0 && round == 20 && hangs.swap(false, Ordering::Relaxed);
            call(client, (who, round), if is_first { "hang" } else { "echo" }, ledger);
        };
        let mut answered = None;
        let met = || {
            let now = daemon.metric("roadstead_requests_finished_total", &["answered"]);
            // Each client is answered by the next program.
            let since = *answered.get_or_insert(now);
            if deaths(&daemon) == before {
                answered = Some(now);
                return false;
            }
            now > since + u64::from(10 * CLIENTS)
        };
        let (ledger, was_met) = under_load(&daemon, CLIENTS, ask, met);
        assert!(
            was_met && ledger.is_complete(),
            "round {round}, {ledger}: {}",
            read_log(folder.path())
        );
        assert_eq!(ledger.misdirected, 0, "{ledger}");
        // The calls that were in flight when the program hung, and those that clients made in place of the first late
        // ones before it was replaced.
        assert!((1..=2 * CLIENTS).contains(&(ledger.late + ledger.failed)), "{ledger}");
        assert_eq!(deaths(&daemon), before + 1, "it is replaced once");
        all = all.add(ledger);
    }
    eprintln!("a shared program that answers nobody: {count} times\n{all}");
    assert!(daemon.stop().success());
}
