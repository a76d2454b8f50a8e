//! The findings of the doctor, each with its message and its fix.
//!
//! What it is: one enum, its messages, and the report. What it must never depend on: how a finding was made.

use std::time::Duration;

use wire::Framing;

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Finding {
    /// The program starts.
    Starts,
    /// It answers `initialize`, the first request of JSON-RPC clients.
    Initializes,
    /// It answers, after this time.
    Answers(Duration),
    /// It answers one request after the other.
    AnswersAgain,
    /// It reads several requests before it answers, and answers all of them.
    Pipelines(usize),
    /// It ends when its input ends.
    Ends,
    /// It ends on SIGTERM.
    EndsOnTerm,
    /// It answers an HTTP request: the status, and the time.
    Serves(u16, Duration),
    /// It answers more than one request on a connection.
    Keeps,
    /// It closes the connection after each reply.
    Closes,

    /// It accepts no connections at its socket.
    NoConnection(Duration),
    /// It does not answer an HTTP request.
    Unanswered(Duration),
    /// It closes the connection without a reply.
    Drops,
    /// Its reply is not HTTP.
    NotHttp(String),

    /// It writes output before the first request.
    WritesBeforeRequest(String),
    /// It writes a text without a line end before the first request.
    Prompts(String),
    /// It answers, but the first answer takes long.
    StartsSlowly { first: Duration, second: Duration },
    /// It is silent in its framing, but answers a line.
    SpeaksLines,
    /// It answers a request on standard error.
    AnswersOnStderr(String),
    /// It ends because it has no terminal.
    NeedsTerminal { status: String, last_error: Option<String> },
    /// It speaks FastCGI instead of HTTP.
    FastCgi,
    /// It buffers its output. The remedy was tried successfully.
    Buffers(Remedy),
    /// It answers only when its input ends, with or without buffering.
    NeedsEnd,
    /// It writes no output.
    Silent(Duration),
    /// It writes text where a frame length is expected.
    TextOnBinary(String),
    /// Its output violates the framing.
    Breaks(&'static str, String),
    /// It begins an answer but does not finish it.
    NoEnd(String),
    /// It sends more answers than it received requests.
    TooMany(usize),
    /// For several requests, it answers some more than once, or writes other frames than answers.
    Strays { frames: usize, requests: usize },
    /// It ends while a request is in flight.
    Dies { status: String, last_error: Option<String> },
    /// It answers once, and ends.
    OneAnswer(String),
    /// It stops answering, but still runs.
    Stalls,
    /// It writes much to standard error.
    FillsStderr { bytes: u64, requests: usize, last: Option<String> },
    /// It does not end when its input ends.
    Stays(Duration),
    /// It does not end on SIGTERM.
    IgnoresTerm(Duration),
}

/// A remedy for output buffering that was tried successfully.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    PythonUnbuffered,
    Stdbuf,
    Pty,
}

impl Remedy {
    const fn option(self) -> &'static str {
        match self {
            Self::PythonUnbuffered => "`env = { PYTHONUNBUFFERED = \"1\" }`",
            Self::Stdbuf => "`unbuffer = \"stdbuf\"`",
            Self::Pty => "`unbuffer = \"pty\"`",
        }
    }
}

impl Finding {
    /// Returns whether the finding is a problem.
    pub(super) const fn is_wrong(&self) -> bool {
        !matches!(
            self,
            Self::Starts
                | Self::Initializes
                | Self::Answers(_)
                | Self::AnswersAgain
                | Self::Pipelines(_)
                | Self::Ends
                | Self::EndsOnTerm
                | Self::Serves(..)
                | Self::Keeps
                | Self::Closes
        )
    }

    fn what(&self) -> String {
        match self {
            Self::Starts => "it starts, and says nothing before it is asked".into(),
            Self::Initializes => "it answers `initialize`".into(),
            Self::Answers(after) => format!("it answers a request (after {after:.1?})"),
            Self::AnswersAgain => "it answers a second one".into(),
            Self::Pipelines(count) => {
                format!("it takes {count} requests at once and answers all: `pipeline` may be more than 1")
            }
            Self::Ends => "it ends when its input ends".into(),
            Self::EndsOnTerm => "it ends on SIGTERM".into(),
            Self::Serves(status, after) => {
                format!("it answers a request of HTTP with {status} (after {after:.1?})")
            }
            Self::Keeps => "it answers a second one on the same connection".into(),
            Self::Closes => "it ends the connection behind each reply: every request costs one".into(),
            Self::NoConnection(wait) => {
                format!("it takes no connection where it is to serve within {wait:?}")
            }
            Self::Unanswered(wait) => format!("it did not answer a request of HTTP within {wait:?}"),
            Self::Drops => "it ends the connection without a reply".into(),
            Self::NotHttp(why) => format!("what it says is no HTTP: {why}"),
            Self::WritesBeforeRequest(text) => format!("it speaks before it is asked: {text}"),
            Self::Prompts(text) => format!("it prints a prompt before it is asked: {text}"),
            Self::StartsSlowly { first, second } => format!(
                "it answers its first request only after {first:.1?}, and the next after {second:.1?}: it starts slowly"
            ),
            Self::SpeaksLines => "it says nothing in this framing, and answers a line of text".into(),
            Self::AnswersOnStderr(line) => {
                format!("it prints nothing on standard output, but on standard error: {line}")
            }
            Self::NeedsTerminal { status, last_error } => format!(
                "it ended ({status}) because its input or output is no terminal: {}",
                last_error.as_deref().unwrap_or_default()
            ),
            Self::FastCgi => "it speaks FastCGI on its socket, not HTTP".into(),
            Self::Buffers(_) => {
                "it keeps its answer in a buffer: nothing came, and all of it once the input had ended"
                    .into()
            }
            Self::NeedsEnd => "it answers only when its input has ended".into(),
            Self::Silent(wait) => {
                format!("it said nothing within {wait:?}, nor when its input ended")
            }
            Self::TextOnBinary(text) => {
                format!("it prints text where the length of a frame should be: {text}")
            }
            Self::Breaks(rule, text) => format!("what it says is no frame: {rule}. It said {text}"),
            Self::NoEnd(text) => format!("it begins an answer and does not end it: {text}"),
            Self::TooMany(count) => format!("it was asked once and answered {count} times"),
            Self::Strays { frames, requests } => {
                format!("it was asked {requests} times and answered {frames} times")
            }
            Self::Dies { status, last_error: Some(line) } => {
                format!("it ended ({status}) before it had answered; its last words were: {line}")
            }
            Self::Dies { status, last_error: None } => {
                format!("it ended ({status}) before it had answered, without a word")
            }
            Self::OneAnswer(status) => format!("it answers once and ends ({status})"),
            Self::Stalls => "it answers once, and not a second time".into(),
            Self::FillsStderr { bytes, requests, last } => {
                let last = last.as_deref().unwrap_or("nothing that can be read");
                format!(
                    "it writes much on standard error: {bytes} bytes with {requests} requests. The \
                     last line: {last}"
                )
            }
            Self::Stays(wait) => format!("it does not end within {wait:?} when its input ends"),
            Self::IgnoresTerm(wait) => format!("it does not end within {wait:?} of SIGTERM"),
        }
    }

    fn fix(&self, framing: Framing) -> Option<String> {
        Some(match self {
            Self::NoConnection(_) => "have it listen at `ROADSTEAD_SOCKET` (`--socket path`) or on 127.0.0.1 at \
                                      `PORT` (`--socket port`); if it takes longer to start, `--wait`"
                .into(),
            Self::Unanswered(_) => "have it accept connections on descriptor 3, which is a listening \
                                    socket, or say where it listens by `--socket`; if it takes \
                                    longer, `--wait`"
                .into(),
            Self::Drops => "perhaps an error in its handler; run it by hand with the same request"
                .into(),
            Self::NotHttp(_) => "is it a program on pipes, of another `--framing`?".into(),
            Self::WritesBeforeRequest(_) => "print that to standard error, or set `ready = \"line\"` in its pool if it \
                                is one line; else the pool takes it for an answer to nobody, and \
                                replaces the program"
                .into(),
            Self::Prompts(_) => "turn the prompt off (options like `-q`, `--quiet`, `--batch`): a prompt stands before \
                                 each answer, and a pool would take it for a part of it"
                .into(),
            Self::StartsSlowly { .. } => "have its pool start it before it is needed: `workers = { min = 1, spare = 1 }`; if it \
                                          prints a line when it is ready, set `ready = \"line\"`, so that requests wait in the \
                                          queue and not with it. `start_timeout` (30s) must be longer than its start, and \
                                          `response_timeout` than its longest answer"
                .into(),
            Self::SpeaksLines => "set `framing = \"lines\"` in its pool".into(),
            Self::AnswersOnStderr(_) => "print answers on standard output; standard error goes to the log".into(),
            Self::NeedsTerminal { .. } => "look for its option for scripts and pipes; `unbuffer = \"pty\"` in its pool gives it a \
                                           terminal for its output"
                .into(),
            Self::FastCgi => "start it as a server of HTTP (`php -S 127.0.0.1:{port}` in place of php-cgi), or put one that speaks \
                              FastCGI between: Roadstead speaks HTTP to such programs"
                .into(),
            Self::Buffers(remedy) => format!(
                "set {} in its pool; or flush after every answer: `$| = 1` in Perl, `flush=True` or \
                 `python3 -u` in Python, `fflush()` in awk and C, `--line-buffered` for grep, `-u` for \
                 sed",
                remedy.option()
            ),
            Self::NeedsEnd => "set `framing = \"oneshot\"` in its pool: a process for each request, whose \
                               input ends behind it. If it should answer at once: it keeps a buffer \
                               that only a change of the program can flush"
                .into(),
            Self::Silent(_) => format!(
                "is this request one that it answers (`--send`), and `{}` its framing (`--framing`)? \
                 If it takes longer, `--wait`",
                framing.as_str()
            ),
            Self::TextOnBinary(_) => "set `fds = \"3/4\"` in its pool and have it speak there, so that \
                                      prints cannot harm; or print to standard error; or it speaks \
                                      another framing, `lines` perhaps"
                .into(),
            Self::Breaks(..) => format!(
                "does it speak `{}`? A library that prints to standard output may be the cause: \
                 `fds = \"3/4\"` makes such prints harmless",
                framing.as_str()
            ),
            Self::NoEnd(_) => match framing {
                Framing::Lines | Framing::JsonRpc => "end every answer with a newline".into(),
                Framing::Nul => "end every answer with a NUL".into(),
                Framing::Netstring => "end every answer with a comma, and count its bytes".into(),
                _ => "announce as many bytes as are written, and flush all of them".into(),
            },
            Self::TooMany(_) => "one request has one answer; if it has several parts, end them with a \
                                 mark or choose a framing that carries them in one frame"
                .into(),
            Self::Strays { .. } => "have it print exactly one answer to each request, and everything else on \
                                    standard error; otherwise clients get each other's replies. Set \
                                    `match` in its pool if its answers carry what the requests carry"
                .into(),
            Self::Dies { .. } => "run it by hand with the same request; `--env` and `--send` change what \
                                  it gets here"
                .into(),
            Self::OneAnswer(_) => "set `framing = \"oneshot\"` in its pool, or have it read on in a loop"
                .into(),
            Self::Stalls => "it may wait for the end of its input, or for more than one line: have it \
                             read one request at a time"
                .into(),
            Self::FillsStderr { .. } => "a pool always reads standard error, so this blocks nothing; but \
                                         50 lines a second of it go to the log, the rest is counted: \
                                         have it say less"
                .into(),
            Self::Stays(_) => "end when a read finds the end of the input; else every stop and every \
                               restart waits for the pool's `stop_timeout` and then sends TERM"
                .into(),
            Self::IgnoresTerm(_) => "do not catch TERM, or end when it comes; else it is killed after \
                                     `stop_timeout`, with whatever it has in its hands"
                .into(),
            _ => return None,
        })
    }
}

impl Finding {
    /// Returns the same remedy as an option of `roadstead run`, which has no file.
    const fn flag(&self) -> Option<&'static str> {
        Some(match self {
            Self::Buffers(Remedy::PythonUnbuffered) => "--env PYTHONUNBUFFERED=1",
            Self::Buffers(Remedy::Stdbuf) => "--unbuffer stdbuf",
            Self::Buffers(Remedy::Pty) | Self::NeedsTerminal { .. } => "--unbuffer pty",
            Self::NeedsEnd | Self::OneAnswer(_) => "--framing oneshot",
            Self::SpeaksLines => "--framing lines",
            Self::StartsSlowly { .. } => "--workers 1..4 --response-timeout 60s",
            _ => return None,
        })
    }
}

/// Writes the report for people.
pub(super) fn report(
    program: &[String],
    word: &str,
    framing: Framing,
    findings: &[Finding],
) -> String {
    let mut page = format!("{} (framing {word})\n\n", program.join(" "));
    for finding in findings {
        let mark = if finding.is_wrong() { "WRONG" } else { "ok   " };
        page += &format!("  {mark}  {}\n", finding.what());
        if let Some(fix) = finding.fix(framing) {
            page += &format!("         fix: {fix}\n");
        }
        if let Some(flag) = finding.flag() {
            page += &format!("         without a file: roadstead run {flag} -- …\n");
        }
    }
    let wrong = findings.iter().filter(|finding| finding.is_wrong()).count();
    page += &match wrong {
        0 => "\nNothing is wrong with it.\n".to_owned(),
        1 => "\nOne thing is wrong with it.\n".to_owned(),
        more => format!("\n{more} things are wrong with it.\n"),
    };
    page
}
