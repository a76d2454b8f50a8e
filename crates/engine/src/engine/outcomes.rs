//! Outcomes that the engine generates.

use exchange::{Cause, Outcome, Phase, Slice};

/// Combines the collected parts with the outcome.
pub(super) fn whole(mut parts: Vec<u8>, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Reply(rest) if !parts.is_empty() => {
            if rest.is_empty() {
                parts.pop();
            }
            parts.extend_from_slice(&rest);
            Outcome::Reply(Slice::from(&parts[..]))
        }
        other => other,
    }
}

/// The outcome of a request that its pool rejected.
pub fn refusal(cause: Cause, pool: &str) -> Outcome {
    let text = match cause {
        Cause::Full => {
            format!("pool {pool} has as many requests waiting as it may; try again later")
        }
        Cause::Waited => format!("no worker of pool {pool} was free in time; try again later"),
        Cause::Down => format!("no worker of pool {pool} can be started or is fit at the moment"),
        Cause::Fallback => {
            format!("pool {pool} is disabled; try again later")
        }
        Cause::Gone => format!("the worker of pool {pool} that this client is bound to is gone"),
        Cause::Draining => "the daemon is about to end".to_owned(),
        other => other.meaning().to_owned(),
    };
    Outcome::ended(cause, Phase::Queue, &text)
}

/// The outcome of a request to a pool without workers, with the kind of failure for clients.
pub fn down(pool: &str, kind: &str) -> Outcome {
    let text = format!("no worker of pool {pool} can be started at the moment: {kind}");
    Outcome::ended(Cause::Down, Phase::Queue, &text)
}

/// The outcome of a request whose connection's own program has ended.
pub(super) fn lost() -> Outcome {
    let text = "the program that was this connection's own has ended; connect again";
    Outcome::ended(Cause::Lost, Phase::Queue, text)
}
