use std::net::SocketAddr;
use std::time::{Duration, Instant};

use exchange::{Cause, End, LogFormat, LogPiece, LogValue, Peer, Phase, RequestId, Stamps};

use super::entry::{KEPT_MAX, SPARE_BYTES};
use super::*;

fn config(format: LogFormat, fields: &[&str]) -> AccessLogConfig {
    let fields = fields.iter().map(|name| (*name).to_owned()).collect();
    AccessLogConfig { format, fields }
}

/// Returns the line of a request that arrived at `at_us`, was dispatched after 1 ms and answered after 3 ms.
fn written(config: &AccessLogConfig, log_entry: &AccessEntry, end: End, at_us: i64) -> String {
    let received = Instant::now();
    let after = |ms| Some(received + Duration::from_millis(ms));
    let stamps = Stamps {
        received,
        admitted: after(0),
        dispatched: after(1),
        first_byte: after(2),
        done: after(3),
    };
    let line = Line {
        id: Some(RequestId::new(7)),
        at_us,
        peer: Peer::Internet(SocketAddr::from(([127, 0, 0, 1], 5))),
        pool: "api",
        worker: "api/a:80",
        stamps,
        end,
        log_entry,
    };
    let mut out = Vec::new();
    line.write(config, &mut Dated::default(), &mut out);
    String::from_utf8(out).expect("a line is text")
}

fn log_entry(request: &[u8], fields: &[&[u8]]) -> AccessEntry {
    let mut log_entry =
        AccessEntry { status: 200, bytes_in: 4, bytes_out: 5, ..AccessEntry::default() };
    log_entry.push(request);
    fields.iter().for_each(|field| log_entry.push(field));
    log_entry
}

const ANSWERED: End = End::new(Cause::Answered, Phase::Reply);
/// 29 February 2024, 12:34:56.789012 UTC.
const LEAP_DAY: i64 = 1_709_210_096_789_012;

#[test]
fn json_has_every_value_by_its_name() {
    let config = config(LogFormat::Json, &["user-agent", "host"]);
    let said = written(&config, &log_entry(b"GET / HTTP/1.1", &[b"me", b""]), ANSWERED, LEAP_DAY);
    let id = RequestId::new(7);
    let expected = format!(
        "{{\"at\":\"2024-02-29T12:34:56.789012Z\",\"id\":\"{id}\",\"listener\":null,\
         \"client\":\"127.0.0.1:5\",\"pool\":\"api\",\"worker\":\"api/a:80\",\
         \"request\":\"GET / HTTP/1.1\",\"status\":200,\"in\":4,\"out\":5,\"queue_us\":1000,\
         \"connect_us\":null,\"first_us\":2000,\"total_us\":3000,\"retries\":0,\
         \"verdict\":\"answered\",\"cause\":\"ok\",\"reason\":null,\"phase\":\"reply\",\"client_end\":\"ok\",\
         \"worker_end\":\"ok\",\"fields\":{{\"user-agent\":\"me\",\"host\":null}}}}\n"
    );
    assert_eq!(said, expected);
}

#[test]
fn the_combined_format_is_what_readers_of_it_know() {
    let config = config(LogFormat::Combined, &["referer", "user-agent"]);
    let said = written(&config, &log_entry(b"GET / HTTP/1.1", &[b"", b"me"]), ANSWERED, LEAP_DAY);
    let expected =
        "127.0.0.1 - - [29/Feb/2024:12:34:56 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"me\"\n";
    assert_eq!(said, expected);
}

#[test]
fn a_template_has_its_values_in_their_places() {
    let pieces = vec![
        LogPiece::Value(LogValue::ClientEnd),
        LogPiece::Text(" ".into()),
        LogPiece::Value(LogValue::WorkerEnd),
        LogPiece::Text(" ".into()),
        LogPiece::Field(0),
    ];
    let config = config(LogFormat::Template(pieces), &["host"]);
    let mut said = String::new();
    for cause in [Cause::Left, Cause::Died, Cause::Waited, Cause::Malformed] {
        let end = End::new(cause, Phase::Work);
        said += &written(&config, &log_entry(b"", &[b"a b"]), end, 0);
    }
    assert_eq!(said, "left cut a b\ntold died a b\ntold cut a b\nmalformed cut a b\n");
}

#[test]
fn whatever_a_peer_says_is_one_line_and_one_value() {
    let template = vec![LogPiece::Value(LogValue::Request), LogPiece::Field(0)];
    let formats = [LogFormat::Json, LogFormat::Combined, LogFormat::Template(template)];
    let hostile: Vec<u8> = (0..=255).collect();
    let forged = "x\" 200 5\r\n127.0.0.1 - - [..] \"GET /forged\",\"status\":999\u{2028}\u{61c}\u{feff}\u{e0041}\\";
    for format in formats {
        let config = config(format, &["referer", "user-agent"]);
        for value in [&hostile[..], forged.as_bytes(), b"\xff\xfe\"\n"] {
            let said = written(&config, &log_entry(value, &[value, value]), ANSWERED, 0);
            assert_eq!(said.matches('\n').count(), 1, "{said}");
            let inner = said.trim_end_matches('\n');
            assert!(!inner.chars().any(char::is_control), "{said}");
            assert!(!inner.chars().any(exchange::is_hidden), "{said}");
            assert!(!inner.contains("\"status\":999"), "{said}");
            assert!(!inner.contains("\" 200 5\r"), "{said}");
            if config.format == LogFormat::Combined {
                assert_eq!(inner.matches('"').count(), 6, "{said}");
            }
        }
    }
}

#[test]
fn the_first_line_is_found_in_whatever_came() {
    for (bytes, line) in [
        (&b""[..], &b""[..]),
        (b"\r\n\r", b""),
        (b"GE", b"GE"),
        (b"\r\nGET /  HTTP/1.1\r\nHost: a\r\n", b"GET /  HTTP/1.1"),
        (b"GET /\n\n", b"GET /"),
        (b"\x16\x03\x01\0", b"\x16\x03\x01\0"),
    ] {
        assert_eq!(first_line(bytes), line, "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_is_long_is_cut() {
    let long = vec![b'x'; 100_000];
    let log_entry = log_entry(&long, &[&long]);
    assert_eq!((log_entry.kept(0).len(), log_entry.kept(1).len()), (KEPT_MAX, KEPT_MAX));
    assert_eq!(log_entry.kept(2), b"");
}

#[test]
fn where_there_is_no_room_lines_are_dropped_and_the_log_says_how_many() {
    // A line has 54 bytes.
    let (sink, mut source) = LogSink::new(150);
    let mut book = AccessLog::new(Some(config(LogFormat::Combined, &[])), Some(sink));
    let log_entry = AccessEntry::default();
    let write = |book: &mut AccessLog, lines: usize| {
        for _ in 0..lines {
            book.write(&Line {
                id: None,
                at_us: 0,
                peer: Peer::Local,
                pool: "a",
                worker: "",
                stamps: Stamps::received(Instant::now()),
                end: ANSWERED,
                log_entry: &log_entry,
            });
        }
        book.flush();
    };
    write(&mut book, 2);
    write(&mut book, 3);
    write(&mut book, 4);
    assert_eq!(book.lost(), 7);
    let mut batch = LogBatch::default();
    assert!(source.next(&mut batch) && batch.lines == 2, "{batch:?}");
    write(&mut book, 1);
    assert!(source.next(&mut batch));
    let text = String::from_utf8_lossy(&batch.bytes);
    assert!(text.ends_with("\n# 7 lines were dropped\n"), "{text}");
    assert_eq!((text.lines().count(), book.lost()), (2, 7));
}

#[test]
fn a_place_that_served_another_request_knows_nothing_of_it() {
    let (sink, _source) = LogSink::new(1 << 20);
    let mut book = AccessLog::new(Some(config(LogFormat::Json, &["host"])), Some(sink));
    let mut used = Box::new(log_entry(&[b'x'; 5000], &[b"secret"]));
    used.worker.push_str("api/a:80");
    (used.retries, used.reason) = (2, "bare-lf");
    book.recycle(used);
    let spare = book.0.as_mut().and_then(|open| open.spares.pop()).expect("it is kept");
    assert_eq!((spare.kept(0), spare.kept(1), spare.retries), (&b""[..], &b""[..], 0));
    assert_eq!((spare.status, spare.bytes_in, spare.bytes_out), (0, 0, 0));
    assert!(
        spare.worker.is_empty()
            && spare.reason.is_empty()
            && spare.listener.is_none()
            && spare.connected.is_none()
    );
    assert!(spare.text.capacity() <= SPARE_BYTES * 2, "{}", spare.text.capacity());
    for _ in 0..2 * SPARES_MAX {
        book.recycle(Box::default());
    }
    assert_eq!(book.0.map_or(0, |open| open.spares.len()), SPARES_MAX);
}
