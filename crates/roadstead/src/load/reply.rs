//! Evaluates the reply to a line.

use exchange::{Cause, Verdict};

use super::settings::ReplyCheck;
use crate::ledger::Fate;
use crate::record::{self, Record};

/// The evaluation of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evaluation {
    /// The fate of the line.
    pub(super) fate: Fate,
    /// The code of an error reply.
    pub(super) code: Option<Code>,
}

/// The code of an error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// A code of the daemon.
    Known(Cause),
    /// A code of a worker, or of another server.
    Other,
}

/// A reply without its prefix character.
enum ParsedReply<'a> {
    /// An answer of a worker or a database.
    Answer(&'a [u8]),
    /// An error, and the fate that follows from it.
    Ended(Fate, Code),
}

/// Evaluates a reply, which should be for the record `own`.
pub(super) fn evaluate(check: ReplyCheck, reply: &[u8], own: &Record<'_>) -> Evaluation {
    match said(reply) {
        ParsedReply::Ended(fate, code) => Evaluation { fate, code: Some(code) },
        ParsedReply::Answer(answer) => {
            let is_own = match check {
                ReplyCheck::Any => true,
                ReplyCheck::AckWithId => {
                    answer.strip_prefix(b"ok ").and_then(record::number) == Some(own.id)
                }
                ReplyCheck::Echo => {
                    let record = match answer.first() {
                        Some(b'{') => Record::parse_json(answer),
                        _ => Record::parse(answer),
                    };
                    record.as_ref() == Ok(own)
                }
            };
            let fate = if is_own { Fate::Acknowledged } else { Fate::Misdirected };
            Evaluation { fate, code: None }
        }
    }
}

/// Returns the code of a line that the daemon sent about the connection instead of a request: the daemon rejects the
/// connection, or is draining.
pub(super) fn notice(reply: &[u8]) -> Option<Code> {
    match said(reply) {
        ParsedReply::Ended(
            _,
            code @ Code::Known(
                Cause::Connections | Cause::Denied | Cause::Crowded | Cause::Draining,
            ),
        ) => Some(code),
        _ => None,
    }
}

fn said(reply: &[u8]) -> ParsedReply<'_> {
    let Some((&mark, rest)) = reply.split_first() else { return ParsedReply::Answer(reply) };
    match mark {
        b'+' => ParsedReply::Answer(rest),
        b'!' => {
            let (word, text) = word(rest);
            match word {
                b"failed" => ParsedReply::Ended(Fate::Failed, code(self::word(text).0)),
                b"unknown" => ParsedReply::Ended(Fate::Unknown, code(self::word(text).0)),
                word => ParsedReply::Ended(Fate::Refused, code(word)),
            }
        }
        b'-' => {
            let code = code(word(rest).0);
            let failed = matches!(code, Code::Known(cause) if cause.verdict() == Verdict::Failed);
            // An unknown code may mean anything.
            ParsedReply::Ended(if failed { Fate::Failed } else { Fate::Unknown }, code)
        }
        _ => ParsedReply::Answer(reply),
    }
}

/// Returns the first word, and the text after the space that follows the word.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == b' ') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, b""),
    }
}

fn code(word: &[u8]) -> Code {
    let cause = Cause::ALL.iter().find(|cause| cause.as_str().as_bytes() == word);
    cause.map_or(Code::Other, |&cause| Code::Known(cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exchange::{End, Outcome, Phase, Slice};
    use wire::lines::{Marks, write_reply};

    const OWN: Record<'_> = Record { id: 7, at: 5, path: "/a/17", status: 200 };

    fn fate(check: ReplyCheck, reply: &str) -> Fate {
        evaluate(check, reply.as_bytes(), &OWN).fate
    }

    #[test]
    fn an_acknowledgement_names_the_line_that_it_is_for() {
        let table = [
            ("ok 7", Fate::Acknowledged),
            ("+ok 7", Fate::Acknowledged),
            ("ok 8", Fate::Misdirected),
            ("ok 77", Fate::Misdirected),
            ("ok 07", Fate::Misdirected),
            ("ok 7 ", Fate::Misdirected),
            ("ok", Fate::Misdirected),
            ("", Fate::Misdirected),
            ("++ok 7", Fate::Misdirected),
        ];
        for (reply, expected) in table {
            assert_eq!(fate(ReplyCheck::AckWithId, reply), expected, "{reply:?}");
        }
    }

    #[test]
    fn an_echo_is_the_whole_record_in_either_form() {
        let table = [
            ("7 5 /a/17 200", Fate::Acknowledged),
            (r#"{"id":7,"at":5,"path":"/a/17","status":200}"#, Fate::Acknowledged),
            ("7 5 /a/18 200", Fate::Misdirected),
            (r#"{"id":7,"at":6,"path":"/a/17","status":200}"#, Fate::Misdirected),
            ("8 5 /a/17 200", Fate::Misdirected),
            ("ok 7", Fate::Misdirected),
        ];
        for (reply, expected) in table {
            assert_eq!(fate(ReplyCheck::Echo, reply), expected, "{reply:?}");
        }
        assert_eq!(fate(ReplyCheck::Any, "what ever"), Fate::Acknowledged);
        assert_eq!(fate(ReplyCheck::Any, ""), Fate::Acknowledged);
        assert_eq!(fate(ReplyCheck::Any, "!full"), Fate::Refused);
    }

    /// The replies are written by the code of the daemon, so that both sides stay consistent.
    #[test]
    fn every_end_that_the_daemon_can_write_is_understood_in_both_styles() {
        for &cause in Cause::ALL {
            let expected = match cause.verdict() {
                Verdict::Refused => Fate::Refused,
                Verdict::Failed => Fate::Failed,
                Verdict::Unknown => Fate::Unknown,
                Verdict::Answered | Verdict::Left => continue,
            };
            for marks in [Marks::Plain, Marks::Status] {
                for text in ["", "some words"] {
                    let end = End::new(cause, Phase::Work);
                    let mut line = Vec::new();
                    write_reply(&mut line, marks, &Outcome::Ended(end, Slice::from(text)));
                    line.pop();
                    let judgement = evaluate(ReplyCheck::AckWithId, &line, &OWN);
                    assert_eq!(judgement.fate, expected, "{:?}", line.escape_ascii());
                    if cause != Cause::Worker {
                        assert_eq!(judgement.code, Some(Code::Known(cause)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_worker_may_refuse_in_its_own_words() {
        let judgement = evaluate(ReplyCheck::AckWithId, b"!nomood today", &OWN);
        assert_eq!(judgement, Evaluation { fate: Fate::Refused, code: Some(Code::Other) });
        assert_eq!(fate(ReplyCheck::AckWithId, "!"), Fate::Refused);
        assert_eq!(fate(ReplyCheck::AckWithId, "-whatever"), Fate::Unknown);
        assert_eq!(fate(ReplyCheck::AckWithId, "!unknown"), Fate::Unknown);
    }

    #[test]
    fn only_what_concerns_the_connection_is_a_notice() {
        assert!(notice(b"!connections there are 100").is_some());
        assert!(notice(b"!draining").is_some());
        for reply in ["ok 7", "!full", "", "connections", "-commit"] {
            assert!(notice(reply.as_bytes()).is_none(), "{reply:?}");
        }
    }
}
