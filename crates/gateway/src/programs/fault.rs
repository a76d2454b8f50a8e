//! What a program does wrong, and what is said of it.

use std::time::Duration;

use exchange::{Cause, Outcome, Phase};

/// Why the requests in a program's hands are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Ended,
    TooLong,
    /// It does not keep to its framing.
    Broken(&'static str),
    Late(Duration),
    /// No byte of its reply came.
    Mute(Duration),
    /// It reads nothing of what waits for it.
    Stalled(Duration),
}

impl Fault {
    /// What it did, behind its name.
    pub(super) fn text(self) -> String {
        match self {
            Self::Ended => "ended".to_owned(),
            Self::TooLong => "gave a reply longer than reply_max".to_owned(),
            Self::Broken(text) => format!("does not keep to its framing: {text}"),
            Self::Late(limit) => format!("did not answer within {limit:?}"),
            Self::Mute(limit) => format!("did not begin to answer within {limit:?}"),
            Self::Stalled(limit) => format!("read nothing of its input for {limit:?}"),
        }
    }

    /// What a request in the hands of program `name` is told; `how` it ended, where it did.
    pub(super) fn outcome(self, name: &str, how: &str) -> Outcome {
        let (cause, text) = match self {
            Self::Ended => (Cause::Died, format!("worker {name} ended ({how})")),
            Self::TooLong => {
                (Cause::Reply, format!("the reply of worker {name} is longer than reply_max"))
            }
            Self::Broken(_) => (Cause::Reply, format!("worker {name} {}", self.text())),
            Self::Late(_) | Self::Mute(_) | Self::Stalled(_) => {
                (Cause::Deadline, format!("worker {name} {}", self.text()))
            }
        };
        Outcome::ended(cause, Phase::Work, &text)
    }
}
