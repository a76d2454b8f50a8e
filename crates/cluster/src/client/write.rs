//! Writes of keys.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use serde_json::Value as Json;

use super::bucket::Bucket;
use super::change::{self, OPERATION};
use crate::message::{ChangeKind, Event, OperationId, Subject, Value};

/// The header that makes a write conditional.
const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
/// A write that the server rejected for another reason than its revision is reported this late, so that it is repeated
/// slowly.
const REJECTED_DELAY: Duration = Duration::from_secs(1);

/// What the server answered.
#[derive(Debug)]
pub(super) enum Answer {
    Accepted(u64),
    /// The key has another revision.
    LostRace,
    Rejected(String),
}

/// Writes a key if it has the expected revision; 0: if there is no key, or a marker. `None`: the outcome is unknown.
pub(super) async fn write(
    bucket: &Bucket,
    operation: OperationId,
    subject: Subject,
    value: Option<Value>,
    expect: u64,
) -> Option<Event> {
    let mut answer = publish(bucket, subject, value, expect).await?;
    if expect == 0 && matches!(answer, Answer::LostRace) {
        // A marker counts as a revision for the server.
        let change = bucket.get(subject).await.ok()?;
        let marker = change
            .filter(|change| matches!(change.kind, ChangeKind::Deleted | ChangeKind::Expired));
        if let Some(marker) = marker {
            answer = publish(bucket, subject, value, marker.revision).await?;
        }
    }
    Some(match answer {
        Answer::Accepted(revision) => Event::Written { operation, revision },
        Answer::LostRace => Event::LostRace { operation },
        Answer::Rejected(reason) => {
            tracing::debug!("a binding was not stored: {reason}");
            tokio::time::sleep(REJECTED_DELAY).await;
            Event::Rejected { operation, reason }
        }
    })
}

async fn publish(
    bucket: &Bucket,
    subject: Subject,
    value: Option<Value>,
    expect: u64,
) -> Option<Answer> {
    let name = format!("{}{}", bucket.prefix, change::name(subject));
    let mut headers = HeaderMap::new();
    let payload = match value {
        Some(value) => Bytes::copy_from_slice(&value.encode()),
        None => {
            headers.insert(OPERATION, "DEL");
            Bytes::new()
        }
    };
    // Without an answer the replica gives the connection up.
    put(&bucket.client, name, headers, payload, expect).await
}

/// Writes a subject if its last message has the expected revision. `None`: there is no answer.
pub(super) async fn put(
    client: &Client,
    subject: String,
    mut headers: HeaderMap,
    payload: Bytes,
    expect: u64,
) -> Option<Answer> {
    headers.insert(EXPECTED, expect.to_string());
    let message = client.request_with_headers(subject, headers, payload).await.ok()?;
    answer(&message.payload)
}

/// Reads the acknowledgement of the stream.
fn answer(payload: &[u8]) -> Option<Answer> {
    let json: Json = serde_json::from_slice(payload).ok()?;
    let Some(error) = json.get("error") else {
        return json.get("seq")?.as_u64().map(Answer::Accepted);
    };
    let code = error.get("err_code").and_then(Json::as_u64).unwrap_or_default();
    let is_race =
        [ErrorCode::STREAM_WRONG_LAST_SEQUENCE, ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT]
            .iter()
            .any(|race| race.0 == code);
    if is_race {
        return Some(Answer::LostRace);
    }
    let text = error.get("description").and_then(Json::as_str).unwrap_or("without a reason");
    Some(Answer::Rejected(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_read() {
        let read = |text: &str| answer(text.as_bytes());
        assert!(matches!(read(r#"{"stream":"KV_a","seq":7}"#), Some(Answer::Accepted(7))));
        for code in [10071, 10164] {
            let text = format!(r#"{{"error":{{"code":400,"err_code":{code}}}}}"#);
            assert!(matches!(read(&text), Some(Answer::LostRace)), "{code}");
        }
        let full =
            r#"{"error":{"code":400,"err_code":10077,"description":"maximum bytes exceeded"}}"#;
        assert!(matches!(read(full), Some(Answer::Rejected(text)) if text.contains("maximum")));
        assert!(read("?").is_none());
    }
}
