//! The use of limits by addresses, which daemons report to each other twice per second.
//!
//! | subject | contents |
//! |---|---|
//! | `roadstead.<site>.limits` | the version (1 byte), the origin (8), the length of the name of the listener (1) and the name; then for each address 28 bytes: its key (16), new connections, requests, and open connections (4 each). Numbers are big-endian. |
//!
//! A report that is lost is not sent again: `pool::AddressLimiter` states the error.

use exchange::{AddressUse, SharedKey};

use super::config::{AddressUses, LimitSharing};
use super::status::LimitCounters;
use crate::message::Origin;

/// The version of the format.
const VERSION: u8 = 1;
/// The time between two reports.
const INTERVAL_MS: u64 = 500;
/// The maximum number of addresses in a message.
const USES_PER_MESSAGE: usize = 1000;
/// The number of bytes of an address in a message.
const USE: usize = 28;

/// What the clients of a listener used at another daemon.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitReport {
    origin: Origin,
    listener: String,
    uses: Vec<AddressUse>,
}

impl LimitReport {
    /// Reads a report of another daemon. `None`: it is one of this daemon, or of another version.
    pub(super) fn decode(bytes: &[u8], own: Origin) -> Option<Self> {
        let (&version, rest) = bytes.split_first()?;
        let (origin, rest) = rest.split_first_chunk()?;
        let (&length, rest) = rest.split_first()?;
        let (listener, rest) = rest.split_at_checked(length.into())?;
        let origin = Origin(u64::from_be_bytes(*origin));
        let (uses, rest) = rest.as_chunks::<USE>();
        let is_ours = version == VERSION && origin != own;
        let listener = std::str::from_utf8(listener).ok()?.to_owned();
        let uses = uses.iter().map(decode_use).collect();
        (is_ours && rest.is_empty()).then_some(Self { origin, listener, uses })
    }
}

fn decode_use(bytes: &[u8; USE]) -> AddressUse {
    let number = |at: usize| {
        let bytes = bytes[at..].first_chunk().expect("the bytes of an address");
        u32::from_be_bytes(*bytes)
    };
    let key = SharedKey(*bytes.first_chunk().expect("the bytes of an address"));
    AddressUse { key, connects: number(16), requests: number(20), open: number(24) }
}

/// Returns the messages for what this daemon reports about a listener.
fn encode(origin: Origin, listener: &str, uses: &[AddressUse]) -> Vec<Vec<u8>> {
    // The name of a listener is shorter (`crates/settings`).
    let Ok(length) = u8::try_from(listener.len()) else { return Vec::new() };
    let message = |uses: &[AddressUse]| {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&origin.0.to_be_bytes());
        bytes.push(length);
        bytes.extend_from_slice(listener.as_bytes());
        for AddressUse { key, connects, requests, open } in uses {
            bytes.extend_from_slice(&key.0);
            for number in [connects, requests, open] {
                bytes.extend_from_slice(&number.to_be_bytes());
            }
        }
        bytes
    };
    uses.chunks(USES_PER_MESSAGE).map(message).collect()
}

/// The reports of this daemon and of others.
pub(super) struct Limits {
    config: LimitSharing,
    ask_due_ms: u64,
    counters: LimitCounters,
}

impl Limits {
    pub(super) fn new(config: LimitSharing) -> Self {
        Self { config, ask_due_ms: 0, counters: LimitCounters::default() }
    }

    /// Asks the shards for what was used when this is due, and returns the messages about what they have reported. They
    /// are asked without a connection too: what was used meanwhile is old when it can be sent.
    pub(super) fn take_messages(&mut self, now_ms: u64, origin: Origin) -> Vec<Vec<u8>> {
        if now_ms >= self.ask_due_ms {
            self.ask_due_ms = now_ms + INTERVAL_MS;
            (self.config.ask)();
        }
        let mut messages = Vec::new();
        while let Ok(AddressUses { listener, uses }) = self.config.reports.try_recv() {
            messages.extend(encode(origin, &listener, &uses));
        }
        messages
    }

    pub(super) const fn count_sent(&mut self) {
        self.counters.sent += 1;
    }

    /// Another daemon has reported.
    pub(super) fn handle(&mut self, report: LimitReport) {
        self.counters.received += 1;
        let LimitReport { origin, listener, uses } = report;
        (self.config.apply)(origin.0, AddressUses { listener, uses });
    }

    pub(super) const fn counters(&self) -> LimitCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn uses(count: u8) -> Vec<AddressUse> {
        let one = |number: u8| AddressUse {
            key: SharedKey([number; 16]),
            connects: number.into(),
            requests: u32::MAX,
            open: 7,
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_report_of_another_daemon_is_read_back() {
        let messages = encode(Origin(7), "web", &uses(3));
        let [message] = &messages[..] else { panic!("{messages:?}") };
        let report = LimitReport { origin: Origin(7), listener: "web".to_owned(), uses: uses(3) };
        assert_eq!(LimitReport::decode(message, Origin(8)), Some(report));
        assert_eq!(LimitReport::decode(message, Origin(7)), None, "it is its own");
        for end in 0..message.len() {
            let is_whole = end >= 13 && (end - 13).is_multiple_of(USE);
            assert_eq!(
                LimitReport::decode(&message[..end], Origin(8)).is_some(),
                is_whole,
                "{end}"
            );
        }
        let other = [&[2], &message[1..]].concat();
        assert_eq!(LimitReport::decode(&other, Origin(8)), None, "another version");
    }

    #[test]
    fn many_addresses_are_several_messages_and_the_shards_are_asked_twice_per_second() {
        let (sender, reports) = sync_channel(8);
        let ask = move || {
            let uses = (0..10).flat_map(|_| uses(250)).collect();
            sender.send(AddressUses { listener: "web".to_owned(), uses }).unwrap();
        };
        let apply = |_, _| {};
        let sharing = LimitSharing { ask: Box::new(ask), reports, apply: Box::new(apply) };
        let mut limits = Limits::new(sharing);
        assert_eq!(limits.take_messages(1, Origin(7)).len(), 3);
        assert_eq!(limits.take_messages(500, Origin(7)).len(), 0);
        assert_eq!(limits.take_messages(501, Origin(7)).len(), 3);
    }
}
