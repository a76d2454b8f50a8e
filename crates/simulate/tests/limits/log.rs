//! The number of failures that the log suppresses.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::script::Script;

/// The values of each line, as `name=value` followed by a space.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn with(&self, text: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

struct Values(String);

impl Visit for Values {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut values = Values(String::new());
        event.record(&mut values);
        self.0.lock().unwrap().push(values.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A gateway whose queue has room for one request, which waits; further requests are rejected.
fn full() -> (Script, u32) {
    let mut script = Script::new(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
         [pool.main]\nservers = [\"10.0.0.1:80\"]\nupstream.max_concurrent = 1\n\
         response_timeout = \"300s\"\nqueue = { max_requests = 1, timeout = \"300s\" }\n",
    );
    let clients = [0; 9].map(|_| script.connect(10_000));
    for client in clients {
        script.say(client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    (script, clients[8])
}

#[test]
fn failures_that_the_log_leaves_out_are_counted_in_it_when_the_second_is_over() {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let (mut script, last) = full();
        assert!(script.taken(last).starts_with("HTTP/1.1 503 "), "{}", script.taken(last));
        assert_eq!(lines.with("cause=\"full\" phase").len(), 5);
        script.pass(Duration::from_millis(999));
        assert_eq!(lines.with("omitted="), [""; 0]);
        script.pass(Duration::from_millis(2));
        assert_eq!(lines.with("cause=\"full\" omitted=2").len(), 1, "{:?}", lines.with(""));
        script.pass(Duration::from_secs(10));
        assert_eq!(lines.with("omitted=").len(), 1);
    });
}

#[test]
fn they_are_counted_when_the_daemon_ends() {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let (mut script, _) = full();
        script.end();
        assert_eq!(lines.with("cause=\"full\" omitted=2").len(), 1, "{:?}", lines.with(""));
    });
}
