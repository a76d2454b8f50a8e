//! Outcomes that the engine makes itself.

use exchange::{Cause, Outcome, Phase, Slice};

/// The outcome with the parts that came before it.
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

/// The answer to a request that its pool does not take.
pub fn refusal(cause: Cause, pool: &str) -> Outcome {
    let text = match cause {
        Cause::Full => {
            format!("pool {pool} has as many requests waiting as it may; try again later")
        }
        Cause::Waited => format!("no worker of pool {pool} was free in time; try again later"),
        Cause::Down => format!("no worker of pool {pool} can be started or is fit at the moment"),
        Cause::Sorry => format!("pool {pool} was told to answer nobody for now; try again later"),
        Cause::Gone => format!("the worker of pool {pool} that this client is bound to is gone"),
        Cause::Draining => "the daemon is about to end".to_owned(),
        other => other.meaning().to_owned(),
    };
    Outcome::ended(cause, Phase::Queue, &text)
}

/// The same, of a pool without workers for a reason that its clients may be told.
pub fn down(pool: &str, kind: &str) -> Outcome {
    let text = format!("no worker of pool {pool} can be started at the moment: {kind}");
    Outcome::ended(Cause::Down, Phase::Queue, &text)
}

/// A connection's own program has ended, and with it what it knew.
pub(super) fn lost() -> Outcome {
    let text = "the program that was this connection's own has ended; connect again";
    Outcome::ended(Cause::Lost, Phase::Queue, text)
}
