//! The built-in worker program: `roadstead worker`.
//!
//! What it is: a program that reads lines of work on its standard input and answers each with one
//! line, so that demo, load and tests need no interpreter. What it knows: the line of work, and
//! the ways to misbehave that fault tests ask for. What it must never know: who asks.
//!
//! It answers all that it has read before it waits for more, as every program on a pipe must.

mod misbehave;

use std::io::{self, Read, Write};
use std::process::ExitCode;

use wire::lines::{Lines, Piece};

pub use misbehave::Misbehaviour;

use crate::record::Record;

/// Bytes of the longest line that is understood.
pub const LINE_MAX: usize = 64 * 1024;

/// Bytes read at once. More than a line and its end, so that there is always room to read into.
const READ_SIZE: usize = 256 * 1024;

/// The built-in worker program: reads `ID AT PATH STATUS` on its standard input and answers one
/// JSON record a line.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct WorkerArgs {
    /// Answer each line with itself, whatever it is.
    #[arg(long)]
    pub echo: bool,

    /// Do one thing wrong, on purpose.
    #[arg(long, value_name = "HOW", long_help = misbehave::HELP)]
    pub misbehave: Option<Misbehaviour>,
}

/// Runs the worker until its input ends.
#[must_use]
pub fn main(args: &WorkerArgs) -> ExitCode {
    let answer = if args.echo { echo } else { answer };
    let done = match args.misbehave {
        None => serve(io::stdin().lock(), io::stdout().lock(), |line, out| {
            answer(line, out);
            Next::Read
        }),
        Some(how) => misbehave::run(how, answer),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody is left to read the answers: whoever asked has gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("worker: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Appends the answer to one line, with its line end.
type Answer = fn(&[u8], &mut Vec<u8>);

/// The JSON record of a line of work, or why it is none.
fn answer(line: &[u8], out: &mut Vec<u8>) {
    match Record::parse(line) {
        Ok(record) => record.write_json(out),
        Err(flaw) => write!(out, "!record {flaw}").expect("memory takes every write"),
    }
    out.push(b'\n');
}

fn echo(line: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(line);
    out.push(b'\n');
}

/// What to do after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The next line.
    Read,
    /// First write what is there.
    Write,
    /// Write what is there, and end.
    End,
}

/// Gives every line of `input` to `answer` until either ends. The answers to what one read brought
/// are written at once. A last line without a line end counts.
fn serve(
    mut input: impl Read,
    mut output: impl Write,
    mut answer: impl FnMut(&[u8], &mut Vec<u8>) -> Next,
) -> io::Result<()> {
    let mut lines = Lines::new(LINE_MAX);
    let mut buffer = vec![0; READ_SIZE];
    let mut filled = 0;
    let mut answers = Vec::with_capacity(READ_SIZE);
    loop {
        let count = match input.read(&mut buffer[filled..]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        filled += count;
        let (bytes, mut from) = (&buffer[..filled], 0);
        let ended = count == 0;
        loop {
            let found = match lines.next(bytes, &mut from) {
                None if ended => lines.finish(&bytes[std::mem::replace(&mut from, filled)..]),
                found => found,
            };
            let Some(piece) = found else { break };
            let next = match piece {
                Piece::Line(place) => answer(&bytes[place], &mut answers),
                Piece::TooLong => {
                    answers.extend_from_slice(b"!toolong the line exceeds 65536 bytes\n");
                    Next::Read
                }
            };
            if next != Next::Read {
                write(&mut output, &mut answers)?;
            }
            if next == Next::End {
                return Ok(());
            }
        }
        write(&mut output, &mut answers)?;
        if ended {
            return Ok(());
        }
        let done = lines.consume(filled, from);
        buffer.copy_within(done..filled, 0);
        filled -= done;
    }
}

fn write(output: &mut impl Write, answers: &mut Vec<u8>) -> io::Result<()> {
    if !answers.is_empty() {
        output.write_all(answers)?;
        output.flush()?;
        answers.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its parts one read at a time.
    struct Parts(std::collections::VecDeque<Vec<u8>>);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(mut part) = self.0.pop_front() else { return Ok(0) };
            let count = part.len().min(buffer.len());
            buffer[..count].copy_from_slice(&part[..count]);
            if count < part.len() {
                self.0.push_front(part.split_off(count));
            }
            Ok(count)
        }
    }

    /// Keeps every write apart.
    #[derive(Default)]
    struct Writes(Vec<String>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn served(parts: &[&[u8]], answer: Answer) -> Vec<String> {
        let mut writes = Writes::default();
        let parts = Parts(parts.iter().map(|part| part.to_vec()).collect());
        let answered = |line: &[u8], out: &mut Vec<u8>| {
            answer(line, out);
            Next::Read
        };
        serve(parts, &mut writes, answered).unwrap();
        writes.0
    }

    #[test]
    fn a_line_of_work_is_answered_by_its_record_and_any_other_by_a_refusal() {
        let answers = served(&[b"7 1700 /a/17 200\nhello\n8 1700 /a 999\r\n"], answer).concat();
        let answers: Vec<_> = answers.lines().collect();
        assert_eq!(answers[0], r#"{"id":7,"at":1700,"path":"/a/17","status":200}"#);
        assert!(answers[1].starts_with("!record expected ID AT PATH STATUS"), "{}", answers[1]);
        assert!(answers[2].starts_with("!record the status"), "{}", answers[2]);
        assert_eq!(answers.len(), 3);
    }

    #[test]
    fn what_was_read_at_once_is_answered_at_once_and_before_more_is_read() {
        let writes = served(&[b"a\nb\nc", b"\nd\n", b"e"], echo);
        assert_eq!(writes, ["a\nb\n", "c\nd\n", "e\n"]);
    }

    #[test]
    fn any_division_into_reads_gives_the_same_answers() {
        let input = b"one\ntwo\r\n\nthree\nfour";
        for first in 1..input.len() {
            for second in first + 1..input.len() {
                let parts = [&input[..first], &input[first..second], &input[second..]];
                let answers = served(&parts, echo).concat();
                assert_eq!(answers, "one\ntwo\n\nthree\nfour\n", "{first} {second}");
            }
        }
    }

    #[test]
    fn a_line_beyond_the_limit_is_refused_once_and_the_next_is_served() {
        let mut input = vec![b'x'; 3 * READ_SIZE];
        input.extend_from_slice(b"\nnext\n");
        let answers = served(&[b"first\n", &input], echo).concat();
        assert_eq!(answers, "first\n!toolong the line exceeds 65536 bytes\nnext\n");
        let limit = "y".repeat(LINE_MAX) + "\n";
        assert_eq!(served(&[limit.as_bytes()], echo).concat(), limit);
    }
}
