//! The faults of a program, and the outcomes and log texts that they produce.

use std::time::Duration;

use exchange::{Cause, Outcome, Phase};
use settings::ExitMessage;

/// Why the requests in flight of a program are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Ended,
    TooLong,
    /// A reply is over the limit, and its request cannot be identified.
    TooLongUnattributed,
    /// The output violates the framing.
    Broken(&'static str),
    /// The output violates the framing, and no request can be identified as the cause.
    BrokenUnattributed(&'static str),
    Late(Duration),
    /// Nothing was written for this long while requests were in flight, including requests that clients cancelled.
    Silent(Duration),
    /// No byte of the reply arrived within this time.
    Mute(Duration),
    /// Nothing of the waiting input was read for this long.
    Stalled(Duration),
}

impl Fault {
    /// Whether the fault cannot be attributed to the oldest request.
    pub(super) const fn is_unattributed(self) -> bool {
        matches!(self, Self::Ended | Self::TooLongUnattributed | Self::BrokenUnattributed(_))
    }

    /// Returns how long a request may wait before this fault.
    pub(super) const fn limit(self) -> Option<Duration> {
        match self {
            Self::Late(limit) | Self::Silent(limit) | Self::Mute(limit) => Some(limit),
            Self::Ended | Self::TooLong | Self::TooLongUnattributed => None,
            Self::Broken(_) | Self::BrokenUnattributed(_) | Self::Stalled(_) => None,
        }
    }

    /// Returns the reason for killing the program, in one or two words.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "it could not go on",
            Self::TooLong | Self::TooLongUnattributed => "reply_max",
            Self::Broken(_) | Self::BrokenUnattributed(_) => "framing",
            Self::Late(_) | Self::Silent(_) => "response_timeout",
            Self::Mute(_) => "first_byte_timeout",
            Self::Stalled(_) => "send_timeout",
        }
    }

    /// Returns what the program did. The text follows its name.
    pub(super) fn message(self) -> String {
        match self {
            Self::Ended => "ended".to_owned(),
            Self::TooLong | Self::TooLongUnattributed => {
                "gave a reply longer than reply_max".to_owned()
            }
            Self::Broken(text) | Self::BrokenUnattributed(text) => {
                format!("does not keep to its framing: {text}")
            }
            Self::Late(limit) => format!("did not answer within {limit:?}"),
            Self::Silent(limit) => format!("said nothing for {limit:?} while it was asked"),
            Self::Mute(limit) => format!("did not begin to answer within {limit:?}"),
            Self::Stalled(limit) => format!("read nothing of its input for {limit:?}"),
        }
    }

    /// Returns the outcome of a request in flight of program `name`. The outcome includes how the program ended, if it
    /// ended.
    pub(super) fn outcome(self, name: &str, exit_report: &ExitReport) -> Outcome {
        let (cause, text) = match self {
            Self::Ended => return exit_report.outcome(Phase::Work, name),
            Self::TooLong => {
                (Cause::Reply, format!("the reply of worker {name} is longer than reply_max"))
            }
            Self::TooLongUnattributed | Self::BrokenUnattributed(_) => {
                let text = format!("worker {name} was ended: it {}", self.message());
                return Outcome::died(Phase::Work, &text, None);
            }
            Self::Broken(_) => (Cause::Reply, format!("worker {name} {}", self.message())),
            Self::Late(_) | Self::Silent(_) | Self::Mute(_) | Self::Stalled(_) => {
                (Cause::Deadline, format!("worker {name} {}", self.message()))
            }
        };
        Outcome::ended(cause, Phase::Work, &text)
    }
}

/// The maximum number of bytes of the end of standard error that a client may receive.
const TAIL_MAX: usize = 8 << 10;

/// What clients receive about a program that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExitReport {
    /// One line, which follows the name of the program.
    line: String,
    /// A longer text, for protocols that can carry more than one line.
    more: Option<String>,
}

impl ExitReport {
    /// Creates a report. `exit`: the exit status as text; `tail`: the end of the output.
    pub(super) fn new(words: ExitMessage, exit: &str, tail: &str) -> Self {
        let last = last_line(tail);
        let behind = |text: &str, last: &Option<String>| match last {
            Some(line) => format!("{text}; it said last: {line}"),
            None => text.to_owned(),
        };
        let line = match words {
            ExitMessage::Off => String::new(),
            ExitMessage::Auto | ExitMessage::Line | ExitMessage::Tail => behind(exit, &last),
        };
        let ended = format!("the program ended ({exit})");
        let more = match words {
            ExitMessage::Off => None,
            ExitMessage::Auto => Some(ended),
            ExitMessage::Line => Some(behind(&ended, &last)),
            ExitMessage::Tail if last.is_none() => Some(ended),
            ExitMessage::Tail => Some(format!("{ended}; it said last:\n{}", shown(tail))),
        };
        Self { line, more }
    }

    /// Returns the outcome of a request that was in flight.
    pub(crate) fn outcome(&self, phase: Phase, name: &str) -> Outcome {
        let line = match &self.line {
            how if how.is_empty() => format!("worker {name} ended"),
            how => format!("worker {name} ended ({how})"),
        };
        Outcome::died(phase, &line, self.more.as_deref())
    }
}

/// The maximum number of characters of the last line in an outcome.
const LAST_MAX: usize = 200;

/// Returns the last line that is not empty, escaped.
pub(super) fn last_line(tail: &str) -> Option<String> {
    let line = tail.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LAST_MAX).flat_map(char::escape_debug).collect())
}

/// Returns the end of the text, with characters replaced that would affect a terminal.
fn shown(tail: &str) -> String {
    let plain = |it: char| match it {
        '\n' | '\t' => it,
        it if exchange::is_hidden(it) => char::REPLACEMENT_CHARACTER,
        it => it,
    };
    let text: String = tail.replace("\r\n", "\n").chars().map(plain).collect();
    let from = text.len().saturating_sub(TAIL_MAX);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: ExitMessage, tail: &str) -> (String, Option<String>) {
        let outcome = ExitReport::new(words, "exit code 3", tail).outcome(Phase::Work, "main/0");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (line, more) = outcome.text();
        (text(line), more.map(text))
    }

    #[test]
    fn a_client_is_told_as_much_as_the_pool_says() {
        let tail = "connected as root:secret\nno such \u{1b}[31mtable\r\n \n";
        let line = r"worker main/0 ended (exit code 3; it said last: no such \u{1b}[31mtable)";
        let ended = "the program ended (exit code 3)";
        let last = r"the program ended (exit code 3); it said last: no such \u{1b}[31mtable";
        let all = "the program ended (exit code 3); it said last:\nconnected as root:secret\n\
                   no such \u{fffd}[31mtable\n \n";
        for (words, line, more) in [
            (ExitMessage::Off, "worker main/0 ended", None),
            (ExitMessage::Auto, line, Some(ended)),
            (ExitMessage::Line, line, Some(last)),
            (ExitMessage::Tail, line, Some(all)),
        ] {
            assert_eq!(told(words, tail), (line.to_owned(), more.map(str::to_owned)), "{words:?}");
        }
        for words in [ExitMessage::Auto, ExitMessage::Line, ExitMessage::Tail] {
            let line = "worker main/0 ended (exit code 3)".to_owned();
            assert_eq!(told(words, " \n"), (line, Some(ended.to_owned())), "{words:?}");
        }
    }

    #[test]
    fn what_is_told_has_a_limit_whatever_was_said() {
        for said in ["\u{1}", "x", "\u{fffd}", "ü\n"] {
            let (line, more) = told(ExitMessage::Tail, &said.repeat(100_000));
            assert!(!line.contains('\n') && line.len() < 2500, "{}", line.len());
            assert!(more.unwrap().len() < TAIL_MAX + 100);
        }
    }
}
