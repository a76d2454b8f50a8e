//! The built-in worker program: `roadstead worker`.
//!
//! What it is: a program that reads lines of work on its standard input and answers each with one line, so that demo,
//! load and tests need no interpreter. What it depends on: the line of work, and the faults that fault tests request.
//! What it must never depend on: who sends the lines.
//!
//! It answers all lines that it has read before it reads more, as every program on a pipe must.

mod misbehave;
mod serve;

use std::io::{self, Write};
use std::process::ExitCode;

pub use misbehave::Misbehaviour;
pub use serve::LINE_MAX;

use crate::record::Record;
use serve::{Next, serve};

/// The built-in worker program: reads `ID AT PATH STATUS` on standard input and answers each line with one JSON record.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct WorkerArgs {
    /// Answer each line with the same line, without parsing it.
    #[arg(long)]
    pub echo: bool,

    /// Misbehave in this way, for fault tests.
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
        // The reader of the answers has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("worker: {}", exchange::visible(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Appends the JSON record of a line of work, or the reason why the line is invalid.
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

#[cfg(test)]
mod tests {
    use super::serve::{Answer, READ_SIZE};
    use super::*;
    use std::io::Read;

    /// Returns one part per read.
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

    /// Stores each write separately.
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
