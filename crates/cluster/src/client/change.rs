//! A message of the stream as a change of the table.

use async_nats::HeaderMap;

use crate::key::Key;
use crate::message::{Change, ChangeKind, Subject, Value};

/// The name of the key with the epoch.
const EPOCH: &str = "_epoch";
/// The header of a message that a client wrote to delete the key.
pub(super) const OPERATION: &str = "KV-Operation";
/// The header of a message that the server wrote because it removed the key: because of its age, or by an order.
pub(super) const MARKER_REASON: &str = "Nats-Marker-Reason";

/// The name of a key in the bucket.
pub(super) fn name(subject: Subject) -> String {
    match subject {
        Subject::Epoch => EPOCH.to_owned(),
        Subject::Client(key) => key.name(),
    }
}

/// Reads a message. `None`: it is not a key of ours.
///
/// The server's marker of an expiry may also carry the header of a purge, so the reason is read first.
pub(super) fn change(
    name: &str,
    revision: u64,
    headers: Option<&HeaderMap>,
    payload: &[u8],
) -> Option<Change> {
    let subject = match name {
        EPOCH => Subject::Epoch,
        name => Subject::Client(Key::from_name(name)?),
    };
    let header = |name| headers.and_then(|headers| headers.get(name)).map(|value| value.as_str());
    let kind = match (header(MARKER_REASON), header(OPERATION)) {
        (Some("MaxAge"), _) => ChangeKind::Expired,
        (Some(_), _) | (None, Some(_)) => ChangeKind::Deleted,
        (None, None) => Value::decode(payload).map_or(ChangeKind::Unreadable, ChangeKind::Put),
    };
    Some(Change { subject, revision, kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Secret;
    use crate::message::{Origin, Target};

    #[test]
    fn an_expiry_is_distinguished_from_a_deletion() {
        let key = Key::new(Secret(1, 2), b"a");
        let value = Value::Binding { target: Target(1), origin: Origin(2) };
        let kind = |headers: &[(&str, &str)], payload: &[u8]| {
            let mut map = HeaderMap::new();
            headers.iter().for_each(|(name, value)| map.insert(*name, *value));
            change(&key.name(), 7, Some(&map), payload).unwrap().kind
        };
        assert_eq!(kind(&[], &value.encode()), ChangeKind::Put(value));
        assert_eq!(kind(&[], b"?"), ChangeKind::Unreadable);
        assert_eq!(kind(&[(OPERATION, "DEL")], b""), ChangeKind::Deleted);
        assert_eq!(kind(&[(OPERATION, "PURGE")], b""), ChangeKind::Deleted);
        let expiry = [(OPERATION, "PURGE"), (MARKER_REASON, "MaxAge")];
        assert_eq!(kind(&expiry, b""), ChangeKind::Expired);
        assert_eq!(kind(&[(MARKER_REASON, "Purge")], b""), ChangeKind::Deleted);
        assert_eq!(change("other", 7, None, b""), None);
        assert_eq!(change(EPOCH, 7, None, b"").unwrap().subject, Subject::Epoch);
    }
}
