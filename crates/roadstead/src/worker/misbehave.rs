//! Faults of the worker program, on request, so that fault tests need no scripts.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::serve::{Answer, Next, serve};

/// The default number of bytes of a flood or of chatter.
const FLOOD_SIZE: u64 = 1 << 30;

/// The default number of bytes on standard error per line. It is far more than the capacity of a pipe.
const STDERR_SIZE: u64 = 1 << 20;

/// The exit code of a worker that ends by itself.
const EXIT_STATUS: i32 = 3;

pub(super) const HELP: &str = "\
Do one thing wrong, on purpose:
  exits-at-once    end before anything is read
  exit-after=N     answer N lines and end with the next one in hand
  twice            write every answer twice, at once
  no-newline       write the answers without line ends
  never            read, and never answer
  unasked          say a line before anything was asked
  flood[=BYTES]    answer with so many bytes without a line end (1 GiB)
  chatter[=BYTES]  answer with so many bytes of lines (1 GiB)
  stderr[=BYTES]   write so much on standard error before each answer (1 MiB)
  ignore-term      ignore TERM, and stay when the input ends
  grandchild       leave a process in a session of its own behind, which holds the output open
  slow=MS          take so many milliseconds for each answer
  close-stdout     close the output at the first line, and stay
  stay             do nothing but stay, in a session of its own";

/// One way to misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Exit before reading.
    ExitsAtOnce,
    /// Answer this number of lines, and exit while the next one is in flight.
    ExitAfter(u64),
    /// Write every answer twice, in one write.
    Twice,
    /// Write answers without line ends.
    NoNewline,
    /// Read, and never answer.
    Never,
    /// Write a line before the first request.
    Unasked,
    /// Answer the first line with this number of bytes without a line end.
    Flood(u64),
    /// Answer the first line with this number of bytes of lines.
    Chatter(u64),
    /// Write this number of bytes to standard error before each answer.
    Stderr(u64),
    /// Ignore SIGTERM, and keep running when the input ends.
    IgnoreTerm,
    /// Leave a process in a session of its own that keeps the output open.
    Grandchild,
    /// Take this time for each answer.
    Slow(Duration),
    /// Close the output at the first line, and keep running.
    CloseStdout,
    /// Only keep running, in a session of its own.
    Stay,
}

impl FromStr for Misbehaviour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, value) = match text.split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (text, None),
        };
        let number = value
            .map(|value| value.parse().map_err(|_| format!("`{value}` is not a number")))
            .transpose()?;
        let how = match (word, number) {
            ("exit-after", Some(count)) => Self::ExitAfter(count),
            ("slow", Some(ms)) => Self::Slow(Duration::from_millis(ms)),
            ("exit-after" | "slow", None) => {
                return Err(format!("`{word}` needs `=` and a number"));
            }
            ("flood", size) => Self::Flood(size.unwrap_or(FLOOD_SIZE)),
            ("chatter", size) => Self::Chatter(size.unwrap_or(FLOOD_SIZE)),
            ("stderr", size) => Self::Stderr(size.unwrap_or(STDERR_SIZE)),
            ("exits-at-once", None) => Self::ExitsAtOnce,
            ("twice", None) => Self::Twice,
            ("no-newline", None) => Self::NoNewline,
            ("never", None) => Self::Never,
            ("unasked", None) => Self::Unasked,
            ("ignore-term", None) => Self::IgnoreTerm,
            ("grandchild", None) => Self::Grandchild,
            ("close-stdout", None) => Self::CloseStdout,
            ("stay", None) => Self::Stay,
            (_, Some(_)) => return Err(format!("`{word}` takes no number, or is not known")),
            (_, None) => return Err(format!("unknown misbehaviour `{word}`; see --help")),
        };
        Ok(how)
    }
}

/// Serves standard input with this fault.
pub(super) fn run(how: Misbehaviour, answer: Answer) -> io::Result<()> {
    begin(how)?;
    let mut answered = 0;
    serve(io::stdin().lock(), io::stdout().lock(), |line, out| {
        answered += 1;
        respond(how, answer, line, out, answered)
    })?;
    match how {
        Misbehaviour::IgnoreTerm => stay(),
        Misbehaviour::ExitAfter(_) => std::process::exit(EXIT_STATUS),
        _ => Ok(()),
    }
}

/// Acts before anything is read.
fn begin(how: Misbehaviour) -> io::Result<()> {
    match how {
        Misbehaviour::ExitsAtOnce => std::process::exit(EXIT_STATUS),
        Misbehaviour::Unasked => {
            let mut output = io::stdout().lock();
            output.write_all(b"nobody asked for this\n")?;
            output.flush()
        }
        Misbehaviour::IgnoreTerm => {
            // The handler only sets a flag that is never read, so the signal is ignored.
            let unread = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal_hook::consts::SIGTERM, unread).map(drop)
        }
        Misbehaviour::Grandchild => Command::new(std::env::current_exe()?)
            .args(["worker", "--misbehave", "stay"])
            .stdin(Stdio::null())
            .spawn()
            .map(drop),
        Misbehaviour::Stay => {
            // Fails only for the leader of a process group, which may stay in its session.
            let _ = rustix::process::setsid();
            stay()
        }
        _ => Ok(()),
    }
}

/// Handles the line with the number `count`, from 1.
fn respond(how: Misbehaviour, answer: Answer, line: &[u8], out: &mut Vec<u8>, count: u64) -> Next {
    let begin = out.len();
    match how {
        Misbehaviour::ExitAfter(most) if count > most => return Next::End,
        Misbehaviour::Never => return Next::Read,
        Misbehaviour::Twice => {
            answer(line, out);
            out.extend_from_within(begin..);
        }
        Misbehaviour::NoNewline => {
            answer(line, out);
            out.pop();
        }
        Misbehaviour::Flood(size) => return poured(io::stdout().lock(), b"flood ", size),
        Misbehaviour::Chatter(size) => return poured(io::stdout().lock(), b"chatter\n", size),
        Misbehaviour::Stderr(size) => {
            poured(io::stderr().lock(), b"noise on standard error\n", size);
            answer(line, out);
        }
        Misbehaviour::Slow(time) => {
            std::thread::sleep(time);
            answer(line, out);
            return Next::Write;
        }
        Misbehaviour::CloseStdout => return close_stdout(),
        _ => answer(line, out),
    }
    Next::Read
}

/// Writes `size` bytes by repeating `pattern`. Stops if the reader closes the pipe.
fn poured(mut output: impl Write, pattern: &[u8], size: u64) -> Next {
    let block = pattern.repeat(8192);
    let mut left = size;
    while left > 0 {
        let count = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if output.write_all(&block[..count]).and_then(|()| output.flush()).is_err() {
            return Next::End;
        }
        left -= count as u64;
    }
    Next::Read
}

/// Replaces the output by another file, so that the reader sees the end.
fn close_stdout() -> Next {
    let nowhere = std::fs::File::options().write(true).open("/dev/null");
    match nowhere.map(rustix::stdio::dup2_stdout) {
        Ok(Ok(())) => Next::Read,
        _ => Next::End,
    }
}

fn stay() -> ! {
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_in_the_help_is_understood() {
        let ways = HELP.lines().skip(1).map(|line| line.split_whitespace().next().unwrap());
        let mut count = 0;
        for way in ways {
            let (word, value) = way.split_once(['=', '[']).unwrap_or((way, ""));
            let text = if value.is_empty() { word.to_owned() } else { format!("{word}=5") };
            assert!(text.parse::<Misbehaviour>().is_ok(), "{text}");
            count += 1;
        }
        assert_eq!(count, 14);
    }

    #[test]
    fn what_is_not_understood_says_why() {
        let table = [
            ("twist", "unknown misbehaviour `twist`; see --help"),
            ("slow", "`slow` needs `=` and a number"),
            ("slow=x", "`x` is not a number"),
            ("twice=2", "`twice` takes no number, or is not known"),
        ];
        for (text, why) in table {
            assert_eq!(text.parse::<Misbehaviour>(), Err(why.to_owned()));
        }
    }

    #[test]
    fn each_way_of_answering_differs_as_its_name_says() {
        let respond_to = |how, count| {
            let mut out = Vec::new();
            let next = respond(how, super::super::echo, b"x", &mut out, count);
            (String::from_utf8(out).unwrap(), next)
        };
        let line = |text: &str| (text.to_owned(), Next::Read);
        assert_eq!(respond_to(Misbehaviour::Twice, 1), line("x\nx\n"));
        assert_eq!(respond_to(Misbehaviour::NoNewline, 1), line("x"));
        assert_eq!(respond_to(Misbehaviour::Never, 1), line(""));
        assert_eq!(respond_to(Misbehaviour::ExitAfter(2), 2), line("x\n"));
        assert_eq!(respond_to(Misbehaviour::ExitAfter(2), 3), (String::new(), Next::End));
    }

    #[test]
    fn so_many_bytes_are_poured_and_no_more() {
        for size in [0, 1, 50_000, 200_000] {
            let mut out = Vec::new();
            assert_eq!(poured(&mut out, b"chatter\n", size), Next::Read);
            assert_eq!(out.len() as u64, size);
        }
    }
}
