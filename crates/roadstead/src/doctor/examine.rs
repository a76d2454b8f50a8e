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
use super::patient::{Clinic, Patient, Treatment};

/// How long to wait for unsolicited output.
const UNASKED: Duration = Duration::from_millis(300);
/// The number of requests that are sent together.
const BURST: usize = 10;
/// More bytes of standard error than this per request are a problem.
const ERRORS_MAX: u64 = 4 << 10;
/// The factor for the wait if the program may only be slow to start.
const PATIENCE: u32 = 5;
/// Words in the messages of programs that need a terminal, in lower case.
const TERMINAL_WORDS: [&str; 5] =
    ["not a tty", "not a terminal", "inappropriate ioctl", "requires a terminal", "isatty"];
/// The maximum number of bytes of output in a message.
const SHOWN_MAX: usize = 80;

/// The program and the parameters of its examination.
pub(super) struct Examination {
    pub(super) clinic: Clinic,
    pub(super) treatment: Treatment,
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
        if self.treatment.framing != Framing::Oneshot {
            self.ending(&mut found)?;
        }
        Ok(found)
    }

    /// Sends one request.
    fn first(&mut self, found: &mut Vec<Finding>) -> Result<First, String> {
        let (wait, oneshot) = (self.wait, self.treatment.framing == Framing::Oneshot);
        let mut patient = self.clinic.admit(&self.treatment)?;
        let notes = self.treatment.framing.is_json();
        let greets = move |it: &Patient<'_>| {
            if notes { it.heard.has_said() } else { it.heard.bytes > 0 }
        };
        patient.listen(UNASKED, |it| greets(it) || it.output_ended());
        if greets(&patient) {
            patient.listen(UNASKED, |_| false);
            let is_prompt = !notes && patient.heard.frames.is_empty() && !patient.held.is_empty();
            let text = said(&patient);
            // A frame length or a truncated greeting is not a prompt.
            let is_text = patient.held.iter().all(|byte| matches!(byte, b' '..=b'~'));
            found.push(match is_prompt && is_text && self.treatment.framing == Framing::Lines {
                true => Finding::Prompts(text),
                false => Finding::Greets(text),
            });
            return Ok(First::Over);
        }
        if !dead(&patient) {
            found.push(Finding::Starts);
        }
        if patient.greet(wait)? {
            found.push(Finding::Initializes);
        }
        let errors_before = patient.heard.errors;
        patient.ask(&self.request)?;
        let asked = Instant::now();
        if oneshot {
            patient.end_input(wait);
            patient.listen(wait, Patient::output_ended);
            found.push(match patient.output_ended() {
                true if patient.heard.bytes > 0 => Finding::Answers(asked.elapsed()),
                true => dies(&mut patient, wait),
                false => Finding::Silent(wait),
            });
            return Ok(First::Over);
        }
        patient.listen(wait, |it| it.heard.has_said() || it.output_ended());
        if !patient.heard.frames.is_empty() {
            found.push(Finding::Answers(asked.elapsed()));
            if self.treatment.framing != Framing::Raw {
                patient.listen(UNASKED, |it| it.heard.frames.len() > 1);
                let frames = patient.heard.frames.len();
                if frames > 1 {
                    found.push(Finding::TooMany(frames));
                    return Ok(First::Over);
                }
            }
            return Ok(First::Answered);
        }
        if let Some(finding) = misspoken(&patient) {
            found.push(finding);
            return Ok(First::Over);
        }
        if dead(&patient) {
            found.push(dies(&mut patient, wait));
            return Ok(First::Over);
        }
        if patient.heard.errors > errors_before && patient.heard.bytes == 0 {
            let last = patient.heard.last_error().unwrap_or_default();
            return Ok(First::Nothing(Finding::AnswersOnStderr(last)));
        }
        patient.end_input(Duration::ZERO);
        patient.listen(wait, |it| it.output_ended() || it.heard.broken.is_some());
        let said_something = if notes { patient.heard.has_said() } else { patient.heard.bytes > 0 };
        Ok(if said_something {
            match misspoken(&patient) {
                Some(finding) if patient.heard.frames.is_empty() => {
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
        let limit = self.wait * PATIENCE;
        let mut patient = self.clinic.admit(&self.treatment)?;
        patient.greet(limit)?;
        patient.ask(&self.request)?;
        let asked = Instant::now();
        patient.listen(limit, |it| !it.heard.frames.is_empty() || it.output_ended());
        let first = asked.elapsed();
        if patient.heard.frames.is_empty() {
            return Ok(false);
        }
        patient.ask(&self.request)?;
        let asked = Instant::now();
        patient.listen(limit, |it| it.heard.frames.len() > 1 || it.output_ended());
        found.push(Finding::StartsSlowly { first, second: asked.elapsed() });
        drop(patient);
        // The following runs take as long to start.
        self.wait = first * 2;
        Ok(true)
    }

    /// Returns whether a program that is silent in a binary framing answers a line.
    fn speaks_lines(&mut self) -> Result<bool, String> {
        if !matches!(self.treatment.framing, Framing::Len(_) | Framing::Netstring) {
            return Ok(false);
        }
        let treatment = Treatment { framing: Framing::Lines, ..self.treatment.clone() };
        let mut patient = self.clinic.admit(&treatment)?;
        patient.ask(&self.request)?;
        Ok(patient.listen(self.wait, |it| !it.heard.frames.is_empty()))
    }

    /// Tries one remedy after the other, and returns the first with which the program answers immediately.
    fn remedy(&mut self) -> Result<Option<Remedy>, String> {
        let wiring = self.treatment.wiring;
        let with = |unbuffer| Wiring { unbuffer, ..wiring };
        let python = ("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
        // A program that uses descriptor 4 opens its output itself. Neither the C library nor a terminal changes its
        // buffering.
        let tried = [
            (Remedy::PythonUnbuffered, Treatment { env: vec![python], ..self.treatment.clone() }),
            (
                Remedy::Stdbuf,
                Treatment { wiring: with(Unbuffer::Stdbuf), ..self.treatment.clone() },
            ),
            (Remedy::Pty, Treatment { wiring: with(Unbuffer::Pty), ..self.treatment.clone() }),
        ];
        for (remedy, mut treatment) in tried {
            if remedy == Remedy::Stdbuf && wiring.numbers == DescriptorNumbers::ThreeFour {
                continue;
            }
            treatment.env.extend(self.treatment.env.clone());
            // A remedy that is not installed here is skipped; another may work.
            let Ok(mut patient) = self.clinic.admit(&treatment) else { continue };
            patient.greet(self.wait)?;
            patient.ask(&self.request)?;
            if patient.listen(self.wait, |it| !it.heard.frames.is_empty()) {
                return Ok(Some(remedy));
            }
        }
        Ok(None)
    }

    /// Sends several requests to one process.
    fn second(&mut self, found: &mut Vec<Finding>) -> Result<(), String> {
        let wait = self.wait;
        let mut patient = self.clinic.admit(&self.treatment)?;
        patient.greet(wait)?;
        for number in 1..=2 {
            patient.ask(&self.request)?;
            patient.listen(wait, |it| it.heard.frames.len() >= number || it.output_ended());
        }
        let frames = patient.heard.frames.len();
        if frames < 2 {
            found.push(if dead(&patient) {
                patient.listen(wait, |it| it.exit.is_some());
                Finding::OneAnswer(status(&patient))
            } else {
                Finding::Stalls
            });
            return Ok(());
        }
        found.push(Finding::AnswersAgain);
        for _ in 0..BURST {
            patient.ask(&self.request)?;
        }
        patient.listen(wait, |it| it.heard.frames.len() >= frames + BURST || it.output_ended());
        let requests = 2 + BURST;
        if self.treatment.framing != Framing::Raw {
            if patient.listen(UNASKED, |it| it.heard.frames.len() > requests) {
                // More frames may follow.
                patient.listen(UNASKED, |_| false);
            }
            let frames = patient.heard.frames.len();
            if frames > requests {
                found.push(Finding::Strays { frames, requests });
            }
        }
        if patient.heard.frames.len() == frames + BURST {
            found.push(Finding::Pipelines(BURST));
        }
        let bytes = patient.heard.errors;
        if bytes > ERRORS_MAX * requests as u64 {
            let last = patient.heard.last_error();
            found.push(Finding::FillsStderr { bytes, requests, last });
        }
        Ok(())
    }

    /// Examines how the program ends: after its input was closed, and after SIGTERM.
    fn ending(&mut self, found: &mut Vec<Finding>) -> Result<(), String> {
        let wait = self.wait;
        let mut patient = self.clinic.admit(&self.treatment)?;
        patient.listen(UNASKED, |it| it.exit.is_some());
        patient.end_input(Duration::ZERO);
        if patient.listen(wait, |it| it.exit.is_some()) {
            found.push(Finding::Ends);
        } else {
            found.push(Finding::Stays(wait));
        }
        drop(patient);
        let mut patient = self.clinic.admit(&self.treatment)?;
        // The program may still be installing its signal handlers.
        patient.listen(UNASKED, |it| it.exit.is_some());
        patient.stop(Stop::Term);
        let ended = patient.listen(wait, |it| it.exit.is_some());
        found.push(if ended { Finding::HeedsTerm } else { Finding::IgnoresTerm(wait) });
        Ok(())
    }
}

pub(super) fn dead(patient: &Patient<'_>) -> bool {
    patient.output_ended() || patient.exit.is_some()
}

pub(super) fn dies(patient: &mut Patient<'_>, wait: Duration) -> Finding {
    patient.listen(wait, |it| it.exit.is_some());
    // Its last error message may arrive together with its end.
    patient.listen(UNASKED, |_| false);
    let last_error = patient.heard.last_error();
    if let Some(line) = &last_error {
        let line = line.to_lowercase();
        if TERMINAL_WORDS.iter().any(|words| line.contains(words)) {
            return Finding::NeedsTerminal { status: status(patient), last_error };
        }
    }
    Finding::Dies { status: status(patient), last_error }
}

fn status(patient: &Patient<'_>) -> String {
    match &patient.exit {
        Some(exit) => exit.to_string(),
        None => "its output is closed, though it runs".to_owned(),
    }
}

/// Returns the problem with output that is not an answer.
fn misspoken(patient: &Patient<'_>) -> Option<Finding> {
    match &patient.heard.broken {
        Some(Piece::Broken(wire::Fault::Text)) => {
            return Some(Finding::TextOnBinary(said(patient)));
        }
        Some(Piece::Broken(fault)) => return Some(Finding::Breaks(fault.message(), said(patient))),
        Some(_) | None => {}
    }
    if let Some(why) = patient.heard.senseless {
        return Some(Finding::Breaks(why, said(patient)));
    }
    if patient.held.is_empty() {
        return None;
    }
    if patient.says_text() {
        return Some(Finding::TextOnBinary(said(patient)));
    }
    Some(Finding::NoEnd(said(patient)))
}

/// Returns the beginning of its output in printable form.
fn said(patient: &Patient<'_>) -> String {
    let bytes = &patient.heard.opening;
    let part = &bytes[..bytes.len().min(SHOWN_MAX)];
    let more = if part.len() < bytes.len() { "…" } else { "" };
    format!("\"{}\"{more}", part.escape_ascii())
}
