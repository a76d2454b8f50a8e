//! The examination: the sequence of runs, and the conclusion from each.
//!
//! ```text
//!   unsolicited? ── a request ──┬─ an answer ── a second request ── ten at the same time ── the end
//!                               └─ none ── its input is closed ──┬─ an answer: a buffer, or a filter?
//!                                                                └─ none: silent
//! ```

use std::time::{Duration, Instant};

use spawn::{DescriptorNumbers, Stop, Unbuffer, Wiring};
use wire::{Framing, Piece};

use super::finding::{Finding, Remedy};
use super::program_run::{ProgramRun, ProgramRunner, RunSettings};

/// How long to wait for unsolicited output.
const UNSOLICITED_WAIT: Duration = Duration::from_millis(300);
/// The number of requests that are sent together.
const BURST: usize = 10;
/// More bytes of standard error than this per request are a problem.
const ERRORS_MAX: u64 = 4 << 10;
/// The factor for the wait if the program may only be slow to start.
const SLOW_START_FACTOR: u32 = 5;
/// Words in the messages of programs that need a terminal, in lower case.
const TERMINAL_WORDS: [&str; 5] =
    ["not a tty", "not a terminal", "inappropriate ioctl", "requires a terminal", "isatty"];
/// The maximum number of bytes of output in a message.
const SHOWN_MAX: usize = 80;

/// The program and the parameters of its examination.
pub(super) struct Examination {
    pub(super) runner: ProgramRunner,
    pub(super) settings: RunSettings,
    pub(super) request: Vec<u8>,
    pub(super) wait: Duration,
}

/// The result of the first request.
enum First {
    /// The program answered. The examination continues.
    Answered,
    /// The program did not answer, not even after its input was closed.
    Nothing(Finding),
    /// The program answered after its input was closed.
    AtEnd,
    /// The findings are complete. No further run is needed.
    Over,
}

impl Examination {
    /// Returns all findings, or the reason that the program cannot be examined.
    pub(super) fn findings(&mut self) -> Result<Vec<Finding>, String> {
        let mut found = Vec::new();
        match self.first(&mut found)? {
            First::AtEnd => match self.remedy()? {
                Some(remedy) => found.push(Finding::Buffers(remedy)),
                None if self.is_slow(&mut found)? => self.second(&mut found)?,
                None => found.push(Finding::NeedsEnd),
            },
            First::Answered => self.second(&mut found)?,
            First::Nothing(finding) => {
                if self.speaks_lines()? {
                    found.push(Finding::SpeaksLines);
                } else if self.is_slow(&mut found)? {
                    self.second(&mut found)?;
                } else {
                    found.push(finding);
                }
            }
            First::Over => {}
        }
        if self.settings.framing != Framing::Oneshot {
            self.ending(&mut found)?;
        }
        Ok(found)
    }

    /// Sends one request.
    fn first(&mut self, found: &mut Vec<Finding>) -> Result<First, String> {
        let (wait, oneshot) = (self.wait, self.settings.framing == Framing::Oneshot);
        let mut running = self.runner.start(&self.settings)?;
        let notes = self.settings.framing.is_json();
        let greets = move |it: &ProgramRun<'_>| {
            if notes { it.heard.has_said() } else { it.heard.bytes > 0 }
        };
        running.listen(UNSOLICITED_WAIT, |it| greets(it) || it.output_ended());
        if greets(&running) {
            running.listen(UNSOLICITED_WAIT, |_| false);
            let is_prompt = !notes && running.heard.frames.is_empty() && !running.held.is_empty();
            let text = said(&running);
            // A frame length or a truncated greeting is not a prompt.
            let is_text = running.held.iter().all(|byte| matches!(byte, b' '..=b'~'));
            found.push(match is_prompt && is_text && self.settings.framing == Framing::Lines {
                true => Finding::Prompts(text),
                false => Finding::WritesBeforeRequest(text),
            });
            return Ok(First::Over);
        }
        if !dead(&running) {
            found.push(Finding::Starts);
        }
        if running.greet(wait)? {
            found.push(Finding::Initializes);
        }
        let errors_before = running.heard.errors;
        running.ask(&self.request)?;
        let asked = Instant::now();
        if oneshot {
            running.end_input(wait);
            running.listen(wait, ProgramRun::output_ended);
            found.push(match running.output_ended() {
                true if running.heard.bytes > 0 => Finding::Answers(asked.elapsed()),
                true => dies(&mut running, wait),
                false => Finding::Silent(wait),
            });
            return Ok(First::Over);
        }
        running.listen(wait, |it| it.heard.has_said() || it.output_ended());
        if !running.heard.frames.is_empty() {
            found.push(Finding::Answers(asked.elapsed()));
            if self.settings.framing != Framing::Raw {
                running.listen(UNSOLICITED_WAIT, |it| it.heard.frames.len() > 1);
                let frames = running.heard.frames.len();
                if frames > 1 {
                    found.push(Finding::TooMany(frames));
                    return Ok(First::Over);
                }
            }
            return Ok(First::Answered);
        }
        if let Some(finding) = output_error(&running) {
            found.push(finding);
            return Ok(First::Over);
        }
        if dead(&running) {
            found.push(dies(&mut running, wait));
            return Ok(First::Over);
        }
        if running.heard.errors > errors_before && running.heard.bytes == 0 {
            let last = running.heard.last_error().unwrap_or_default();
            return Ok(First::Nothing(Finding::AnswersOnStderr(last)));
        }
        running.end_input(Duration::ZERO);
        running.listen(wait, |it| it.output_ended() || it.heard.broken.is_some());
        let said_something = if notes { running.heard.has_said() } else { running.heard.bytes > 0 };
        Ok(if said_something {
            match output_error(&running) {
                Some(finding) if running.heard.frames.is_empty() => {
                    found.push(finding);
                    First::Over
                }
                _ => First::AtEnd,
            }
        } else {
            First::Nothing(Finding::Silent(wait))
        })
    }

    /// Returns whether the program answers with open input if it has more time, for example because it loads a model
    /// first.
    fn is_slow(&mut self, found: &mut Vec<Finding>) -> Result<bool, String> {
        let limit = self.wait * SLOW_START_FACTOR;
        let mut running = self.runner.start(&self.settings)?;
        running.greet(limit)?;
        running.ask(&self.request)?;
        let asked = Instant::now();
        running.listen(limit, |it| !it.heard.frames.is_empty() || it.output_ended());
        let first = asked.elapsed();
        if running.heard.frames.is_empty() {
            return Ok(false);
        }
        running.ask(&self.request)?;
        let asked = Instant::now();
        running.listen(limit, |it| it.heard.frames.len() > 1 || it.output_ended());
        found.push(Finding::StartsSlowly { first, second: asked.elapsed() });
        drop(running);
        // The following runs take as long to start.
        self.wait = first * 2;
        Ok(true)
    }

    /// Returns whether a program that is silent in a binary framing answers a line.
    fn speaks_lines(&mut self) -> Result<bool, String> {
        if !matches!(self.settings.framing, Framing::Len(_) | Framing::Netstring) {
            return Ok(false);
        }
        let settings = RunSettings { framing: Framing::Lines, ..self.settings.clone() };
        let mut running = self.runner.start(&settings)?;
        running.ask(&self.request)?;
        Ok(running.listen(self.wait, |it| !it.heard.frames.is_empty()))
    }

    /// Tries one remedy after the other, and returns the first with which the program answers immediately.
    fn remedy(&mut self) -> Result<Option<Remedy>, String> {
        let wiring = self.settings.wiring;
        let with = |unbuffer| Wiring { unbuffer, ..wiring };
        let python = ("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
        // A program that uses descriptor 4 opens its output itself. Neither the C library nor a terminal changes its
        // buffering.
        let tried = [
            (Remedy::PythonUnbuffered, RunSettings { env: vec![python], ..self.settings.clone() }),
            (
                Remedy::Stdbuf,
                RunSettings { wiring: with(Unbuffer::Stdbuf), ..self.settings.clone() },
            ),
            (Remedy::Pty, RunSettings { wiring: with(Unbuffer::Pty), ..self.settings.clone() }),
        ];
        for (remedy, mut settings) in tried {
            if remedy == Remedy::Stdbuf && wiring.numbers == DescriptorNumbers::ThreeFour {
                continue;
            }
            settings.env.extend(self.settings.env.clone());
            // A remedy that is not installed here is skipped; another may work.
            let Ok(mut running) = self.runner.start(&settings) else { continue };
            running.greet(self.wait)?;
            running.ask(&self.request)?;
            if running.listen(self.wait, |it| !it.heard.frames.is_empty()) {
                return Ok(Some(remedy));
            }
        }
        Ok(None)
    }

    /// Sends several requests to one process.
    fn second(&mut self, found: &mut Vec<Finding>) -> Result<(), String> {
        let wait = self.wait;
        let mut running = self.runner.start(&self.settings)?;
        running.greet(wait)?;
        for number in 1..=2 {
            running.ask(&self.request)?;
            running.listen(wait, |it| it.heard.frames.len() >= number || it.output_ended());
        }
        let frames = running.heard.frames.len();
        if frames < 2 {
            found.push(if dead(&running) {
                running.listen(wait, |it| it.exit.is_some());
                Finding::OneAnswer(status(&running))
            } else {
                Finding::Stalls
            });
            return Ok(());
        }
        found.push(Finding::AnswersAgain);
        for _ in 0..BURST {
            running.ask(&self.request)?;
        }
        running.listen(wait, |it| it.heard.frames.len() >= frames + BURST || it.output_ended());
        let requests = 2 + BURST;
        if self.settings.framing != Framing::Raw {
            if running.listen(UNSOLICITED_WAIT, |it| it.heard.frames.len() > requests) {
                // More frames may follow.
                running.listen(UNSOLICITED_WAIT, |_| false);
            }
            let frames = running.heard.frames.len();
            if frames > requests {
                found.push(Finding::Strays { frames, requests });
            }
        }
        if running.heard.frames.len() == frames + BURST {
            found.push(Finding::Pipelines(BURST));
        }
        let bytes = running.heard.errors;
        if bytes > ERRORS_MAX * requests as u64 {
            let last = running.heard.last_error();
            found.push(Finding::FillsStderr { bytes, requests, last });
        }
        Ok(())
    }

    /// Examines how the program ends: after its input was closed, and after SIGTERM.
    fn ending(&mut self, found: &mut Vec<Finding>) -> Result<(), String> {
        let wait = self.wait;
        let mut running = self.runner.start(&self.settings)?;
        running.listen(UNSOLICITED_WAIT, |it| it.exit.is_some());
        running.end_input(Duration::ZERO);
        if running.listen(wait, |it| it.exit.is_some()) {
            found.push(Finding::Ends);
        } else {
            found.push(Finding::Stays(wait));
        }
        drop(running);
        let mut running = self.runner.start(&self.settings)?;
        // The program may still be installing its signal handlers.
        running.listen(UNSOLICITED_WAIT, |it| it.exit.is_some());
        running.stop(Stop::Term);
        let ended = running.listen(wait, |it| it.exit.is_some());
        found.push(if ended { Finding::EndsOnTerm } else { Finding::IgnoresTerm(wait) });
        Ok(())
    }
}

pub(super) fn dead(running: &ProgramRun<'_>) -> bool {
    running.output_ended() || running.exit.is_some()
}

pub(super) fn dies(running: &mut ProgramRun<'_>, wait: Duration) -> Finding {
    running.listen(wait, |it| it.exit.is_some());
    // Its last error message may arrive together with its end.
    running.listen(UNSOLICITED_WAIT, |_| false);
    let last_error = running.heard.last_error();
    if let Some(line) = &last_error {
        let line = line.to_lowercase();
        if TERMINAL_WORDS.iter().any(|words| line.contains(words)) {
            return Finding::NeedsTerminal { status: status(running), last_error };
        }
    }
    Finding::Dies { status: status(running), last_error }
}

fn status(running: &ProgramRun<'_>) -> String {
    match &running.exit {
        Some(exit) => exit.to_string(),
        None => "its output is closed, though it runs".to_owned(),
    }
}

/// Returns the problem with output that is not an answer.
fn output_error(running: &ProgramRun<'_>) -> Option<Finding> {
    match &running.heard.broken {
        Some(Piece::Broken(wire::Fault::Text)) => {
            return Some(Finding::TextOnBinary(said(running)));
        }
        Some(Piece::Broken(fault)) => return Some(Finding::Breaks(fault.message(), said(running))),
        Some(_) | None => {}
    }
    if let Some(why) = running.heard.senseless {
        return Some(Finding::Breaks(why, said(running)));
    }
    if running.held.is_empty() {
        return None;
    }
    if running.says_text() {
        return Some(Finding::TextOnBinary(said(running)));
    }
    Some(Finding::NoEnd(said(running)))
}

/// Returns the beginning of its output in printable form.
fn said(running: &ProgramRun<'_>) -> String {
    let bytes = &running.heard.opening;
    let part = &bytes[..bytes.len().min(SHOWN_MAX)];
    let more = if part.len() < bytes.len() { "…" } else { "" };
    format!("\"{}\"{more}", part.escape_ascii())
}
