//! What a program does wrong, and what is said of it.

use std::time::Duration;

use exchange::{Cause, Outcome, Phase};
use settings::ExitMessage;

/// Why the requests in a program's hands are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Ended,
    TooLong,
    /// It gave a reply over the limit, and nobody can say to whom.
    TooLongForSomebody,
    /// It does not keep to its framing.
    Broken(&'static str),
    /// The same, and no request is named that is to blame.
    BrokenForSomebody(&'static str),
    Late(Duration),
    /// It said nothing at all while it was asked, by clients that took back what they asked or not.
    Silent(Duration),
    /// No byte of its reply came.
    Mute(Duration),
    /// It reads nothing of what waits for it.
    Stalled(Duration),
}

impl Fault {
    /// Whether the oldest request is no more to blame than any other that the program has.
    pub(super) const fn is_of_nobody(self) -> bool {
        matches!(self, Self::Ended | Self::TooLongForSomebody | Self::BrokenForSomebody(_))
    }

    /// How long a request may have waited without it.
    pub(super) const fn limit(self) -> Option<Duration> {
        match self {
            Self::Late(limit) | Self::Silent(limit) | Self::Mute(limit) => Some(limit),
            Self::Ended | Self::TooLong | Self::TooLongForSomebody => None,
            Self::Broken(_) | Self::BrokenForSomebody(_) | Self::Stalled(_) => None,
        }
    }

    /// Why it is killed, in a word or two.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "it could not go on",
            Self::TooLong | Self::TooLongForSomebody => "reply_max",
            Self::Broken(_) | Self::BrokenForSomebody(_) => "framing",
            Self::Late(_) | Self::Silent(_) => "response_timeout",
            Self::Mute(_) => "first_byte_timeout",
            Self::Stalled(_) => "send_timeout",
        }
    }

    /// What it did, behind its name.
    pub(super) fn message(self) -> String {
        match self {
            Self::Ended => "ended".to_owned(),
            Self::TooLong | Self::TooLongForSomebody => {
                "gave a reply longer than reply_max".to_owned()
            }
            Self::Broken(text) | Self::BrokenForSomebody(text) => {
                format!("does not keep to its framing: {text}")
            }
            Self::Late(limit) => format!("did not answer within {limit:?}"),
            Self::Silent(limit) => format!("said nothing for {limit:?} while it was asked"),
            Self::Mute(limit) => format!("did not begin to answer within {limit:?}"),
            Self::Stalled(limit) => format!("read nothing of its input for {limit:?}"),
        }
    }

    /// What a request in the hands of program `name` is told; how that ended, where it did.
    pub(super) fn outcome(self, name: &str, exit_report: &ExitReport) -> Outcome {
        let (cause, text) = match self {
            Self::Ended => return exit_report.outcome(Phase::Work, name),
            Self::TooLong => {
                (Cause::Reply, format!("the reply of worker {name} is longer than reply_max"))
            }
            Self::TooLongForSomebody | Self::BrokenForSomebody(_) => {
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

/// Bytes of the end of its standard error that a client may be told.
const TAIL_MAX: usize = 8 << 10;

/// What is told of a program that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExitReport {
    /// In a line, behind its name.
    line: String,
    /// To whoever can read more than a line.
    more: Option<String>,
}

impl ExitReport {
    /// `exit`: how it exited; `tail`: the end of what it said.
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

    /// What becomes of a request that it had.
    pub(crate) fn outcome(&self, phase: Phase, name: &str) -> Outcome {
        let line = match &self.line {
            how if how.is_empty() => format!("worker {name} ended"),
            how => format!("worker {name} ended ({how})"),
        };
        Outcome::died(phase, &line, self.more.as_deref())
    }
}

/// Characters of the last line that go into an outcome.
const LAST_MAX: usize = 200;

/// The last line that says something, escaped.
pub(super) fn last_line(tail: &str) -> Option<String> {
    let line = tail.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LAST_MAX).flat_map(char::escape_debug).collect())
}

/// The end of it, as text that does nothing to a terminal.
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
