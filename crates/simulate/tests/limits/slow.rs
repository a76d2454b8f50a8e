//! Clients that read their replies slowly.

use std::time::Duration;

use crate::script::Script;

const CLOSED: &str = "roadstead_connections_closed_total";
const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SECOND: Duration = Duration::from_secs(1);
const LONG: usize = 1 << 20;

/// One server with this number of slots.
fn script(listener: &str, slots: u32) -> Script {
    Script::new(&format!(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"servers\"\n{listener}\n\
         [pool.servers]\nservers = [\"10.0.0.1:80\"]\nupstream.max_concurrent = {slots}\n\
         response_timeout = \"300s\"\nread_timeout = \"300s\"\nqueue = {{ timeout = \"300s\" }}\n"
    ))
}

fn reply(length: usize) -> Vec<u8> {
    let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    reply.resize(reply.len() + length, b'x');
    reply
}

/// A client for which the kernel has no space sends a request, and its server answers with a long reply.
fn ask_long(script: &mut Script) -> u32 {
    let client = script.connect(0);
    script.say(client, ASK);
    let server = *script.servers().last().unwrap();
    script.say(server, &reply(LONG));
    client
}

/// Each client reads this number of bytes per second for this number of seconds.
fn read_for(script: &mut Script, clients: &[u32], seconds: usize, bytes: usize) {
    for _ in 0..seconds {
        for client in clients {
            script.read(*client, bytes);
        }
        script.pass(SECOND);
    }
}

#[test]
fn a_client_below_the_rate_is_closed_at_the_end_of_its_time_and_one_at_the_rate_is_not() {
    for (bytes, closed) in [(511, true), (512, false)] {
        let mut script = script("", 5);
        let client = ask_long(&mut script);
        read_for(&mut script, &[client], 29, bytes);
        assert!(!script.is_closed(client), "{bytes}");
        read_for(&mut script, &[client], 1, bytes);
        assert_eq!(script.is_closed(client), closed, "{bytes}");
        assert_eq!(script.metric(CLOSED, &["\"slowreader\""]), u64::from(closed));
        assert_eq!(
            script.metric("roadstead_requests_finished_total", &["slowreader"]),
            u64::from(closed)
        );
    }
}

#[test]
fn a_client_that_takes_nothing_is_stalled_and_not_slow() {
    let mut script = script("", 5);
    let client = ask_long(&mut script);
    script.pass(30 * SECOND);
    assert!(script.is_closed(client));
    assert_eq!(script.metric(CLOSED, &["\"stalled\""]), 1);
    assert_eq!(script.metric(CLOSED, &["\"slowreader\""]), 0);
}

/// A client with a send buffer of this size sends a request, and its server answers with more bytes than that.
fn ask_behind(script: &mut Script, buffer: usize) -> u32 {
    let client = script.connect_behind(buffer);
    script.say(client, ASK);
    let server = *script.servers().last().unwrap();
    script.say(server, &reply(buffer + 4 * LONG));
    client
}

#[test]
fn what_a_client_reads_counts_though_its_send_buffer_has_no_room_meanwhile() {
    let mut script = script("", 5);
    let client = ask_behind(&mut script, 4 * LONG);
    let accepted = script.taken(client).len();
    // The kernel has space again after 1.4 MB, which takes 282 seconds.
    read_for(&mut script, &[client], 270, 4956);
    assert!(!script.is_closed(client));
    assert_eq!(script.taken(client).len(), accepted);
    read_for(&mut script, &[client], 30, 4956);
    assert!(script.taken(client).len() > accepted);
    // Bytes that the kernel accepted immediately do not count for a client that does not read any more.
    script.pass(62 * SECOND);
    assert!(script.is_closed(client));
    assert_eq!(script.metric(CLOSED, &["\"stalled\""]), 1);
}

#[test]
fn behind_a_full_send_buffer_the_rate_is_that_of_reading() {
    for (bytes, cause) in [(0, "stalled"), (511, "slowreader"), (512, "")] {
        let mut script = script("", 5);
        let client = ask_behind(&mut script, 4 * LONG);
        // The rate counts from the first second on.
        read_for(&mut script, &[client], 31, bytes);
        assert_eq!(script.is_closed(client), !cause.is_empty(), "{bytes}");
        for why in ["stalled", "slowreader"] {
            let closed = script.metric(CLOSED, &[&format!("\"{why}\"")]);
            assert_eq!(closed, u64::from(why == cause), "{bytes}: {why}");
        }
    }
}

#[test]
fn the_rate_counts_only_while_output_waits() {
    let mut script = script("", 5);
    let client = script.connect(0);
    // Each reply is read completely after some time, and nothing waits in between: 100 bytes in five seconds.
    for _ in 0..20 {
        script.say(client, ASK);
        let server = *script.servers().last().unwrap();
        script.say(server, &reply(100));
        script.pass(4 * SECOND);
        script.read(client, 1000);
        script.pass(SECOND);
    }
    assert!(!script.is_closed(client));
}

#[test]
fn a_slow_server_is_no_slow_client() {
    let mut script = script("", 5);
    let client = script.connect(0);
    script.say(client, ASK);
    let server = *script.servers().last().unwrap();
    let all = reply(LONG);
    // The client has always read everything when more arrives.
    for part in all.chunks(100).take(300) {
        script.say(server, part);
        script.pass(SECOND / 2);
        script.read(client, 200);
        script.pass(SECOND / 2);
    }
    assert!(!script.is_closed(client));
}

#[test]
fn five_clients_that_read_256_bytes_a_second_do_not_keep_the_five_slots_of_a_server() {
    let mut script = script("", 5);
    let slow: Vec<u32> = (0..5).map(|_| ask_long(&mut script)).collect();
    let honest = script.connect(LONG);
    script.say(honest, ASK);
    assert_eq!(script.servers().len(), 5, "no slot is free");
    read_for(&mut script, &slow, 30, 256);
    assert!(slow.iter().all(|client| script.is_closed(*client)));
    assert_eq!(script.metric(CLOSED, &["\"slowreader\""]), 5);
    let server = *script.servers().last().unwrap();
    script.say(server, &reply(5));
    assert!(script.taken(honest).ends_with("xxxxx"), "{}", script.taken(honest));
}

#[test]
fn a_small_reply_leaves_its_slot_though_its_client_reads_nothing() {
    // The result does not depend on the limit of waiting bytes.
    for send_max in ["16KiB", "4MiB"] {
        let mut script = script(&format!("send_max = \"{send_max}\""), 1);
        let stuck = script.connect(0);
        script.say(stuck, ASK);
        let server = script.servers()[0];
        let all = reply(60 << 10);
        for part in all.chunks(10 << 10) {
            script.say(server, part);
            script.pass(SECOND);
        }
        assert_eq!(script.unreceived(server), 0, "{send_max}");
        let honest = script.connect(LONG);
        script.say(honest, ASK);
        script.say(*script.servers().last().unwrap(), &reply(5));
        assert!(script.taken(honest).ends_with("xxxxx"), "{send_max}: {}", script.taken(honest));
        // Nothing of the first reply is lost.
        script.read(stuck, LONG);
        assert!(script.taken(stuck).len() > 60 << 10);
    }
}

#[test]
fn a_worker_waits_with_a_long_reply_until_its_client_takes_it() {
    let mut script = script("send_max = \"256KiB\"", 1);
    let stuck = script.connect(0);
    script.say(stuck, ASK);
    let server = script.servers()[0];
    let all = reply(4 * LONG);
    script.say(server, &all);
    assert!(script.unreceived(server) > 3 * LONG, "it is not taken into memory");
    script.read(stuck, 5 * LONG);
    script.pass(SECOND);
    assert_eq!(script.unreceived(server), 0);
    assert!(script.taken(stuck).len() > 4 * LONG);
}
