//! The limit on the memory of the whole daemon.

use std::time::Duration;

use crate::script::Script;

const CLOSED: &str = "roadstead_connections_closed_total";
const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const MAX: u64 = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// A daemon with a limit of 1 MiB and one server with this number of slots. Its memory is counted separately from other
/// tests.
fn script(slots: u32) -> Script {
    on_shards(1, slots)
}

fn on_shards(count: usize, slots: u32) -> Script {
    block::set_account(&block::Account::separate());
    let text = format!(
        "[daemon]\nmemory_max = \"1MiB\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         pool = \"servers\"\n[pool.servers]\nservers = [\"10.0.0.1:80\"]\nupstream.max_concurrent = {slots}\n\
         response_timeout = \"300s\"\nqueue = {{ timeout = \"300s\" }}\n"
    );
    Script::on_shards(&text, count)
}

fn held(script: &Script) -> u64 {
    script.metric("roadstead_memory_bytes", &[])
}

fn over(script: &Script) -> bool {
    script.metric("roadstead_memory_over_limit", &[]) == 1
}

/// A request with a body of 60 KB.
fn store() -> Vec<u8> {
    let mut request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n".to_vec();
    request.resize(request.len() + 60_000, b'x');
    request
}

fn reply(length: usize) -> Vec<u8> {
    let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    reply.resize(reply.len() + length, b'x');
    reply
}

#[test]
fn over_the_limit_new_requests_are_rejected_until_little_enough_is_held() {
    let mut script = script(100);
    // The server reads nothing, so the bodies remain.
    script.servers_take(0);
    let mut clients = Vec::new();
    while !over(&script) {
        let client = script.connect(0);
        script.say(client, &store());
        clients.push(client);
        assert!(clients.len() < 30, "{} bytes", held(&script));
    }
    assert!(held(&script) > MAX);
    assert_eq!(script.metric("roadstead_memory_limit_exceeded_total", &[]), 1);
    let late = script.connect(10_000);
    script.say(late, ASK);
    let said = script.taken(late);
    assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("memory: "), "{said}");
    assert_eq!(
        script.metric("roadstead_requests_finished_total", &["\"memory\"", "\"receive\""]),
        1
    );
    // Earlier clients are not closed, because closing them would free no memory.
    assert!(!clients.iter().any(|client| script.is_closed(*client)));
    script.servers_take(1 << 30);
    for server in script.servers() {
        script.read(server, 100_000);
        script.say(server, &reply(5));
    }
    assert!(!over(&script), "{} bytes", held(&script));
    let next = script.connect(10_000);
    script.say(next, ASK);
    script.say(*script.servers().last().unwrap(), &reply(7));
    assert!(script.taken(next).ends_with("xxxxxxx"), "{}", script.taken(next));
}

#[test]
fn the_connection_that_holds_most_output_is_closed_first() {
    let mut script = script(100);
    let ask = |script: &mut Script, length: usize| {
        let client = script.connect(0);
        script.say(client, ASK);
        script.say(*script.servers().last().unwrap(), &reply(length));
        client
    };
    let large = ask(&mut script, 120_000);
    let mut small = Vec::new();
    while !script.is_closed(large) {
        small.push(ask(&mut script, 50_000));
        assert!(small.len() < 30, "{} bytes", held(&script));
    }
    script.pass(SECOND);
    assert!(held(&script) <= MAX);
    assert!(!over(&script));
    let closed = small.iter().filter(|client| script.is_closed(**client)).count();
    assert!(closed <= 1, "{closed}: a sixteenth of the limit is freed and no more");
    assert_eq!(script.metric(CLOSED, &["\"memory\""]), closed as u64 + 1);
}

#[test]
fn the_request_that_has_waited_longest_is_rejected_last_of_all() {
    let mut script = script(1);
    let mut clients = Vec::new();
    while script.metric("roadstead_memory_limit_exceeded_total", &[]) == 0 {
        let client = script.connect(10_000);
        script.say(client, &store());
        clients.push(client);
        script.pass(SECOND);
        assert!(clients.len() < 30, "{} bytes", held(&script));
    }
    script.pass(SECOND);
    assert!(!over(&script) && held(&script) <= MAX);
    let said: Vec<String> = clients.iter().map(|client| script.taken(*client)).collect();
    // The first request is in flight at the server. Of the others, those that have waited longest are rejected, and no
    // others.
    assert_eq!(said[0], "");
    assert!(said[1].contains("memory: "), "{said:?}");
    assert_eq!(said.last().unwrap(), "");
    let rejected = said.iter().filter(|said| said.contains("memory: ")).count();
    assert!(said[1..=rejected].iter().all(|said| said.contains("memory: ")), "{said:?}");
    assert_eq!(
        script.metric("roadstead_requests_finished_total", &["\"memory\"", "\"queue\""]),
        rejected as u64
    );
}

#[test]
fn what_two_shards_hold_is_limited_together_and_both_reject() {
    let mut script = on_shards(2, 100);
    script.servers_take(0);
    let mut clients = [0, 0];
    while !over(&script) {
        let shard = usize::from(clients[0] > clients[1]);
        let client = script.connect_to(shard, 0);
        script.say(client, &store());
        clients[shard] += 1;
        assert!(clients[0] < 30, "{} bytes", held(&script));
    }
    // Neither of them holds much more than half of the memory.
    assert!(clients[1] > 0 && clients[0] * 60_000 < MAX * 6 / 10, "{clients:?}");
    assert_eq!(
        script.metric("roadstead_memory_limit_exceeded_total", &[]),
        1,
        "one shard sees it first"
    );
    let memory = script.memory();
    assert!(memory.over && memory.held > memory.max && memory.max as u64 == MAX, "{memory:?}");
    for shard in [0, 1] {
        let late = script.connect_to(shard, 10_000);
        script.say(late, ASK);
        let said = script.taken(late);
        assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("memory: "), "{shard}: {said}");
    }
    script.servers_take(1 << 30);
    for server in script.servers() {
        script.read(server, 100_000);
        script.say(server, &reply(5));
    }
    assert!(!over(&script), "{} bytes", held(&script));
    for shard in [0, 1] {
        let next = script.connect_to(shard, 10_000);
        script.say(next, ASK);
        assert_eq!(script.taken(next), "", "{shard}: it is with a server");
    }
}

#[test]
fn a_shard_closes_its_connections_when_another_exceeds_the_limit() {
    let mut script = on_shards(2, 100);
    // All output is held by one shard, which does not run while the other one exceeds the limit.
    let mut holders = Vec::new();
    while held(&script) + 100_000 <= MAX {
        let client = script.connect_to(1, 0);
        script.say(client, ASK);
        script.say(*script.servers().last().unwrap(), &reply(60_000));
        holders.push(client);
    }
    script.servers_take(0);
    let last = script.held(1, |script| {
        let mut last = 0;
        while !over(script) {
            last = script.connect_to(0, 0);
            // The server has received the request, but only its first part.
            script.say(last, &store());
        }
        last
    });
    script.pass(SECOND);
    assert!(held(&script) <= MAX && !over(&script), "{} bytes", held(&script));
    assert!(holders.iter().any(|client| script.is_closed(*client)), "{}", held(&script));
    assert!(!script.is_closed(last));
}

#[test]
fn small_clients_of_a_shard_stay_when_those_of_another_exceed_the_limit() {
    for (small, large) in [(0, 1), (1, 0)] {
        let mut script = on_shards(2, 100);
        let ask = |script: &mut Script, shard, length| {
            let client = script.connect_to(shard, 0);
            script.say(client, ASK);
            script.say(*script.servers().last().unwrap(), &reply(length));
            client
        };
        let few: Vec<_> = (0..10).map(|_| ask(&mut script, small, 5000)).collect();
        let mut much = Vec::new();
        while script.metric("roadstead_memory_limit_exceeded_total", &[]) == 0 {
            much.push(ask(&mut script, large, 120_000));
            assert!(much.len() < 30, "{} bytes", held(&script));
        }
        script.pass(SECOND);
        assert!(!over(&script) && held(&script) <= MAX, "{} bytes", held(&script));
        assert!(much.iter().any(|client| script.is_closed(*client)));
        let closed = few.iter().filter(|client| script.is_closed(**client)).count();
        assert_eq!(closed, 0, "of the small clients of shard {small}");
    }
}

#[test]
fn another_limit_holds_at_once() {
    let mut script = on_shards(2, 100);
    script.servers_take(0);
    for shard in [0, 0, 1, 1] {
        let client = script.connect_to(shard, 0);
        script.say(client, &store());
    }
    let before = script.memory();
    assert!(!before.over && before.held > 240_000, "{before:?}");
    for (max, is_over) in [(before.held - 1, true), (before.held, true), (2 * before.held, false)] {
        script.set_memory_max(max);
        let memory = script.memory();
        assert_eq!((memory.max, memory.over), (max, is_over), "{memory:?}");
        assert_eq!(script.metric("roadstead_memory_limit_bytes", &[]), max as u64);
    }
}
