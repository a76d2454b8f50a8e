//! `roadstead doctor`: finds out why a program does not answer.
//!
//! What it is: a run of one program, as a pool would run it, that is checked against its framing. Each problem is
//! reported in words, with its fix. What it depends on: the framings of `wire`, and `spawn`. What it must never depend
//! on: a pool, a client, the expected content of a reply.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use spawn::{DescriptorNumbers, Unbuffer, Wiring};
use wire::Framing;

mod examine;
mod finding;
mod program_run;
mod serving;

use examine::Examination;
use program_run::{ProgramRunner, RunSettings};

/// The program has a problem.
const EXIT_WRONG: u8 = 1;
/// The program could not be examined: the arguments are wrong, or it cannot be started.
const EXIT_NOT_EXAMINED: u8 = 2;

/// Find out why a program does not answer.
///
/// Runs the program as a pool would, sends it a few requests in its framing, closes its input, and sends it SIGTERM.
/// Then prints each problem with a fix, for example: the program buffers its output, prints text in a binary framing,
/// answers only at the end of its input, fills standard error, or ignores SIGTERM. The exit code is 0 if no problem was
/// found, 1 if a problem was found, and 2 if the program could not be examined.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct DoctorArgs {
    /// How requests and replies are framed, as in the pool's `framing`
    #[arg(long, default_value = "lines", value_name = "WORD", value_parser = framing)]
    framing: Spoken,

    /// With `--framing http`: where the program serves, as in the pool's `socket`
    #[arg(long, default_value = "inherited")]
    socket: serving::Place,

    /// The request to send (with `--framing http`: the path). The default depends on the framing
    #[arg(long, value_name = "TEXT")]
    send: Option<String>,

    /// How long to wait for an answer, and for the end of the program
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = crate::load::cli::duration)]
    wait: Duration,

    /// The descriptors for requests and replies, as in the pool's `fds`
    #[arg(long, default_value = "0/1", value_name = "0/1|3/4", value_parser = numbers)]
    fds: DescriptorNumbers,

    /// How to disable output buffering, as in the pool's `unbuffer`
    #[arg(long, default_value = "no", value_name = "no|stdbuf|pty", value_parser = unbuffer)]
    unbuffer: Unbuffer,

    /// An environment variable for the program. May be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,

    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  roadstead doctor -- awk '{ print length($0) }'
      it keeps its answers in a buffer: fflush() is missing
  roadstead doctor --framing jsonrpc -- npx some-mcp-server
  roadstead doctor --framing http --socket port -- python3 -m http.server {port}
  roadstead doctor --framing len2 --send ping -- ./port
  roadstead doctor -- sort
      it answers at the end of its input only: framing = \"oneshot\"";

/// The protocol of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    Frames(Framing),
    Http,
}

fn framing(word: &str) -> Result<Spoken, String> {
    if word == "http" {
        return Ok(Spoken::Http);
    }
    let found = Framing::ALL.iter().find(|framing| framing.as_str() == word).copied();
    found.map(Spoken::Frames).ok_or_else(|| {
        let words: Vec<&str> = Framing::ALL.iter().map(|framing| framing.as_str()).collect();
        format!("is none of {}, http", words.join(", "))
    })
}

fn numbers(text: &str) -> Result<DescriptorNumbers, String> {
    match text {
        "0/1" => Ok(DescriptorNumbers::Standard),
        "3/4" => Ok(DescriptorNumbers::ThreeFour),
        _ => Err("is neither 0/1 nor 3/4".to_owned()),
    }
}

fn unbuffer(text: &str) -> Result<Unbuffer, String> {
    match text {
        "no" => Ok(Unbuffer::No),
        "stdbuf" => Ok(Unbuffer::Stdbuf),
        "pty" => Ok(Unbuffer::Pty),
        _ => Err("is neither no, stdbuf nor pty".to_owned()),
    }
}

/// Parses a variable from the command line.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("is not NAME=VALUE".to_owned()),
    }
}

impl DoctorArgs {
    /// Returns the framing of the pipes. The pipes of an HTTP server are not decoded.
    const fn frames(&self) -> Framing {
        match self.framing {
            Spoken::Frames(framing) => framing,
            Spoken::Http => Framing::Raw,
        }
    }

    fn settings(&self) -> RunSettings {
        RunSettings {
            program: self.program.clone(),
            framing: self.frames(),
            socket: None,
            wiring: Wiring { numbers: self.fds, unbuffer: self.unbuffer, ..Wiring::default() },
            env: self.env.clone(),
        }
    }

    fn request(&self) -> Vec<u8> {
        match &self.send {
            Some(text) => text.clone().into_bytes(),
            // Every JSON-RPC server answers an unknown method, at least with an error.
            None if self.frames().is_json() => {
                br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#.to_vec()
            }
            None => b"roadstead doctor".to_vec(),
        }
    }
}

/// Runs `roadstead doctor`.
#[must_use]
pub fn main(args: &DoctorArgs) -> ExitCode {
    let runner = match ProgramRunner::open() {
        Ok(runner) => runner,
        Err(error) => {
            eprintln!("roadstead doctor: {}", exchange::visible(&error.to_string()));
            return ExitCode::from(EXIT_NOT_EXAMINED);
        }
    };
    let (settings, wait) = (args.settings(), args.wait);
    let (word, findings) = match args.framing {
        Spoken::Frames(framing) => {
            let request = args.request();
            (framing.as_str(), Examination { runner, settings, request, wait }.findings())
        }
        Spoken::Http => {
            let path = args.send.clone().unwrap_or_else(|| "/".to_owned());
            let mut serving = serving::Serving { runner, settings, place: args.socket, path, wait };
            ("http", serving.findings())
        }
    };
    let (told, code) = match findings {
        Ok(findings) => {
            let wrong = findings.iter().any(finding::Finding::is_wrong);
            let code = ExitCode::from(if wrong { EXIT_WRONG } else { 0 });
            (finding::report(&args.program, word, args.frames(), &findings), code)
        }
        Err(why) => {
            eprintln!("roadstead doctor: {}", exchange::visible(&why));
            return ExitCode::from(EXIT_NOT_EXAMINED);
        }
    };
    match io::stdout().lock().write_all(exchange::visible(&told).as_bytes()) {
        Ok(()) => code,
        Err(_) => ExitCode::from(EXIT_NOT_EXAMINED),
    }
}
