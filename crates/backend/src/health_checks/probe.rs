//! Health checks over a connection: what is sent, and which replies are good.

use event::Data;
use wire::http1::{Body, HeadScan, Kind, Limits, Method, ReplyHead, RequestInfo, Upgrades};

use super::config::{HttpProbeConfig, ProbeConfig};

/// The result of a check. An error is a failed check.
pub(super) type Verdict = Result<CheckResult, CheckResult>;

/// The result of a check, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// The text for operators, which includes the reply of the worker.
    pub text: String,
    /// The text for clients, which contains only the kind of result. A reply may be an error message that contains a
    /// password.
    pub kind: String,
}

impl From<String> for CheckResult {
    fn from(text: String) -> Self {
        Self { kind: text.clone(), text }
    }
}

impl From<&str> for CheckResult {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// The maximum number of bytes of a reply that are examined.
const ANSWER_MAX: usize = 64 << 10;

/// The received part of a reply.
#[derive(Debug)]
pub(super) enum Seen {
    /// No reply is expected: an established connection is a passed check.
    Connection,
    Line {
        expect: String,
        line: Vec<u8>,
    },
    Http(Box<Reply>),
}

/// An HTTP reply.
#[derive(Debug)]
pub(super) struct Reply {
    config: HttpProbeConfig,
    scan: HeadScan,
    interim: u32,
    /// The bytes after the head.
    body: Option<Body>,
    status: u16,
    text: Vec<u8>,
    /// The number of bytes of `text` that were searched.
    searched: usize,
}

impl Seen {
    /// Starts a check of a server with the display address `host`. Returns the bytes to send.
    pub(super) fn new(probe: &ProbeConfig, host: &str) -> (Self, Vec<u8>) {
        match probe {
            ProbeConfig::Tcp | ProbeConfig::Program(_) => (Self::Connection, Vec::new()),
            ProbeConfig::Line { send, expect } => {
                let line = Self::Line { expect: expect.clone(), line: Vec::new() };
                (line, format!("{send}\n").into_bytes())
            }
            ProbeConfig::Http(config) => {
                let HttpProbeConfig { method, path, .. } = config;
                let host = config.host.as_deref().unwrap_or(host);
                let head = format!(
                    "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: roadstead-check\r\n\
                     Accept: */*\r\nConnection: close\r\n\r\n"
                );
                (Self::Http(Box::new(Reply::new(config.clone()))), head.into_bytes())
            }
        }
    }

    pub(super) const fn is_connection_alone(&self) -> bool {
        matches!(self, Self::Connection)
    }

    /// Handles received bytes. Returns `None` while the result is unknown.
    pub(super) fn receive(&mut self, data: &mut Data<'_>) -> Option<Verdict> {
        match self {
            Self::Connection => None,
            Self::Line { expect, line: text } => {
                let bytes = data.bytes();
                let end = bytes.iter().position(|byte| *byte == b'\n');
                let length = end.unwrap_or(bytes.len());
                text.extend_from_slice(&bytes[..length]);
                data.consume(length);
                (end.is_some() || text.len() > ANSWER_MAX).then(|| line(text, expect))
            }
            Self::Http(reply) => reply.receive(data),
        }
    }

    /// Returns the result at the end of the stream.
    pub(super) fn ended(&mut self) -> Verdict {
        match self {
            Self::Connection => Err("it ended the connection".into()),
            Self::Line { line: text, .. } if text.is_empty() => Err("it did not answer".into()),
            Self::Line { expect, line: text } => line(text, expect),
            Self::Http(reply) => reply.ended(),
        }
    }
}

/// Returns the result for a reply line.
pub(super) fn line(text: &[u8], expect: &str) -> Verdict {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let shown = String::from_utf8_lossy(&text[..text.len().min(60)]);
    let shown = shown.escape_debug();
    if text.starts_with(expect.as_bytes()) {
        let text = format!("it answers `{shown}`");
        Ok(CheckResult { text, kind: "it answers as expected".to_owned() })
    } else {
        let text = format!("it answers `{shown}` and not `{expect}`");
        Err(CheckResult { text, kind: "it does not answer as expected".to_owned() })
    }
}

/// Whether a text contains `wanted`. Every text contains the empty one.
fn holds(text: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || text.windows(wanted.len()).any(|part| part == wanted)
}

impl Reply {
    fn new(config: HttpProbeConfig) -> Self {
        let scan = HeadScan::default();
        Self { config, scan, interim: 0, body: None, status: 0, text: Vec::new(), searched: 0 }
    }

    fn receive(&mut self, data: &mut Data<'_>) -> Option<Verdict> {
        while self.body.is_none() {
            match self.head(data) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(refusal) => {
                    return Some(Err(format!("it answers against the rules: {refusal}").into()));
                }
            }
        }
        let (from, to) = self.config.status;
        if !(from..=to).contains(&self.status) {
            return Some(Err(format!("it answers {}", self.status).into()));
        }
        let wanted = self.config.body.clone();
        let Some(wanted) = wanted else {
            return Some(Ok(format!("it answers {}", self.status).into()));
        };
        let body = self.body.as_mut()?;
        while !body.is_done() && self.text.len() < ANSWER_MAX {
            match body.next(data.bytes(), &Limits::REPLY) {
                Err(refusal) => {
                    return Some(Err(format!("it answers against the rules: {refusal}").into()));
                }
                Ok(None) => break,
                Ok(Some(span)) if span.length == 0 => break,
                Ok(Some(span)) => {
                    if span.kind == Kind::Data {
                        self.text.extend_from_slice(&data.bytes()[..span.length]);
                    }
                    data.consume(span.length);
                }
            }
        }
        let whole = self.body.as_ref().is_some_and(Body::is_done) || self.text.len() >= ANSWER_MAX;
        if self.has_come(wanted.as_bytes()) {
            return Some(Ok(format!("it answers {} and what is expected", self.status).into()));
        }
        whole.then(|| Err(self.without(&wanted)))
    }

    /// Whether the received bytes contain `wanted`. Bytes are searched once, except for an overlap of the length of
    /// `wanted`.
    fn has_come(&mut self, wanted: &[u8]) -> bool {
        let from = self.searched.saturating_sub(wanted.len().saturating_sub(1));
        self.searched = self.text.len();
        holds(&self.text[from..], wanted)
    }

    fn without(&self, wanted: &str) -> CheckResult {
        let text = format!("it answers {} without `{}`", self.status, wanted.escape_debug());
        CheckResult { text, kind: format!("it answers {} without what is expected", self.status) }
    }

    /// Parses the next head. Returns `true` if a head was complete.
    fn head(&mut self, data: &mut Data<'_>) -> Result<bool, wire::http1::Refusal> {
        let Some(found) = self.scan.next(data.bytes(), &Limits::REPLY)? else { return Ok(false) };
        let method = if self.config.method == "HEAD" { Method::Head } else { Method::Get };
        let asked = RequestInfo { method, upgrades: Upgrades::NONE };
        let mut head = ReplyHead::default();
        head.read(&data.bytes()[..found.head.end], &found, asked, &Limits::REPLY)?;
        data.consume(found.head.end);
        if head.is_interim() {
            self.interim += 1;
            if self.interim > Limits::REPLY.interim {
                return Err(wire::http1::Refusal::Interim);
            }
        } else {
            self.status = head.status;
            self.body = Some(Body::new(head.body, &Limits::REPLY));
        }
        Ok(true)
    }

    fn ended(&mut self) -> Verdict {
        match (&self.config.body, self.status) {
            (_, 0) => Err("it ended the connection before its answer was whole".into()),
            (Some(wanted), _) => Err(self.without(wanted)),
            (None, status) => Ok(format!("it answers {status}").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpProbeConfig, Reply, holds, line};

    #[test]
    fn what_a_worker_answers_is_for_operators_alone() {
        for (answer, is_good) in [(&b"error: password HUSH"[..], false), (b"pong HUSH\r", true)] {
            let said = line(answer, "pong");
            assert_eq!(said.is_ok(), is_good);
            let (Ok(said) | Err(said)) = said;
            assert!(said.text.contains("HUSH") && !said.kind.contains("HUSH"), "{said:?}");
        }
    }

    #[test]
    fn what_is_expected_is_found_wherever_the_parts_that_come_are_cut() {
        let text = b"all that is well ends well";
        for cut in 0..text.len() {
            let config = HttpProbeConfig {
                method: String::new(),
                path: String::new(),
                host: None,
                status: (200, 200),
                body: None,
            };
            let mut reply = Reply::new(config);
            let mut seen = false;
            for part in [&text[..cut], &text[cut..]] {
                reply.text.extend_from_slice(part);
                seen = seen || reply.has_come(b"is well");
            }
            assert!(seen && !reply.has_come(b"is ill"), "{cut}");
        }
    }

    #[test]
    fn what_is_wanted_stands_in_a_text_and_nothing_in_every_one() {
        assert!(holds(b"all is well", b"well") && !holds(b"wel", b"well"));
        assert!(holds(b"well", b"") && holds(b"", b""));
    }
}
