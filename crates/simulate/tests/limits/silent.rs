//! Clients that send nothing.

use std::time::Duration;

use crate::script::Script;

const CLOSED: &str = "roadstead_connections_closed_total";
const MS: Duration = Duration::from_millis(1);
const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn script(listener: &str) -> Script {
    Script::new(&format!(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n{listener}\n\
         route = [{{ path = \"/\", respond = {{ body = \"fixed\" }} }}, \"servers\"]\n\
         [pool.servers]\nservers = [\"10.0.0.1:80\"]\n"
    ))
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn a_silent_client_is_closed_when_its_time_has_passed_and_not_before() {
    let mut script = script("");
    let client = script.connect(1000);
    script.pass(seconds(10) - MS);
    assert!(!script.is_closed(client));
    script.pass(MS);
    assert!(script.is_closed(client));
    assert_eq!(script.metric(CLOSED, &["\"silent\""]), 1);
    assert_eq!(script.metric("roadstead_connections", &["main"]), 0);
}

#[test]
fn an_empty_line_begins_no_request_and_puts_nothing_off() {
    let mut script = script("");
    let client = script.connect(1000);
    script.pass(seconds(9));
    script.say(client, b"\r\n");
    script.pass(seconds(1));
    assert!(script.is_closed(client));
    assert_eq!(script.metric(CLOSED, &["\"silent\""]), 1);
}

#[test]
fn a_client_that_was_answered_has_the_time_of_idle() {
    let mut script = script("idle_timeout = \"60s\"");
    let client = script.connect(1000);
    script.pass(seconds(9));
    script.say(client, ASK);
    assert!(script.taken(client).ends_with("fixed"), "{}", script.taken(client));
    script.pass(seconds(60) - MS);
    assert!(!script.is_closed(client));
    script.pass(MS);
    assert!(script.is_closed(client));
    assert_eq!(script.metric(CLOSED, &["\"idle\""]), 1);
    assert_eq!(script.metric(CLOSED, &["\"silent\""]), 0);
}

#[test]
fn a_client_that_waits_for_its_first_reply_is_not_silent() {
    let mut script = script("");
    let client = script.connect(1000);
    script.say(client, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    script.pass(seconds(20));
    assert!(!script.is_closed(client));
    let server = script.servers()[0];
    script.say(server, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
    assert!(script.taken(client).ends_with("late"));
}

#[test]
fn the_idle_connection_that_is_silent_longest_makes_place() {
    let mut script = script("connections_max = 3\nfirst_request_timeout = \"off\"");
    let [first, second, third] = [1000; 3].map(|room| {
        let client = script.connect(room);
        script.pass(seconds(1));
        client
    });
    // The first client was answered, so it has been silent for the shortest time; the second waits for its reply.
    script.say(second, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    script.say(first, ASK);
    script.pass(seconds(1));
    let fourth = script.connect(1000);
    assert_eq!([first, second, third].map(|it| script.is_closed(it)), [false, false, true]);
    script.pass(seconds(1));
    script.connect(1000);
    assert_eq!([first, second, fourth].map(|it| script.is_closed(it)), [true, false, false]);
    assert_eq!(script.metric(CLOSED, &["\"displaced\""]), 2);
}

#[test]
fn a_request_that_has_begun_and_a_reply_that_is_not_taken_keep_their_places() {
    let mut script = script("connections_max = 2\nfirst_request_timeout = \"off\"");
    let begun = script.connect(1000);
    script.say(begun, b"GET");
    // The kernel has no space for its reply.
    let untaken = script.connect(0);
    script.say(untaken, ASK);
    script.pass(seconds(1));
    let refused = script.connect(1000);
    script.say(refused, ASK);
    assert!(script.taken(refused).starts_with("HTTP/1.1 503 "), "{}", script.taken(refused));
    assert!(!script.is_closed(begun) && !script.is_closed(untaken));
    // After it has read its reply, it is idle.
    script.read(untaken, 1000);
    script.pass(seconds(1));
    let served = script.connect(1000);
    script.say(served, ASK);
    assert!(script.taken(served).ends_with("fixed"));
    assert_eq!([begun, untaken].map(|it| script.is_closed(it)), [false, true]);
}
