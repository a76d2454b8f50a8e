//! One run of the program under examination: sends requests and reads its output, with time limits.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use spawn::{Command, Exit, Report, Spawn, Spawner, Stop, Wiring};
use wire::jsonrpc::{Dialect, Kind, Tag, scan, write_initialize, write_initialized};
use wire::{Decoder, Framing, OversizePolicy, Piece, encode};

/// The maximum size of one answer in bytes.
const FRAME_MAX: usize = 16 << 20;
/// Bytes at the end of standard error that are kept.
const TAIL_MAX: usize = 8 << 10;
/// Bytes at the beginning of standard output that are kept.
const OPENING_MAX: usize = 256;
/// How often the reports of the spawner are checked while there is no output.
const LOOK: Duration = Duration::from_millis(10);

/// What to run, and how.
#[derive(Clone, Debug)]
pub(super) struct RunSettings {
    pub(super) program: Vec<String>,
    pub(super) framing: Framing,
    pub(super) wiring: Wiring,
    pub(super) env: Vec<(String, String)>,
    /// The socket of a program that serves.
    pub(super) socket: Option<spawn::Socket>,
}

/// Runs the programs.
pub(super) struct ProgramRunner {
    spawner: Spawner,
    reports: Receiver<Report>,
    token: u64,
}

impl ProgramRunner {
    pub(super) fn open() -> Result<Self, spawn::SpawnError> {
        let (send, reports) = channel();
        let report = move |report| drop(send.send(report));
        Ok(Self { spawner: Spawner::new(Box::new(report))?, reports, token: 0 })
    }

    /// Starts the program, or returns the reason in words.
    pub(super) fn start(&mut self, settings: &RunSettings) -> Result<ProgramRun<'_>, String> {
        self.token += 1;
        let token = self.token;
        let (program, arguments) = settings.program.split_first().ok_or("there is no program")?;
        let command = Command {
            program: program.clone(),
            arguments: arguments.to_vec(),
            env: settings.env.clone(),
            name: "doctor/0".to_owned(),
            wiring: settings.wiring,
            socket: settings.socket.clone(),
            ..Command::default()
        };
        self.spawner.start(token, command);
        loop {
            match self.reports.recv() {
                Ok(Report::Started { token: of, pid, pipes }) if of == token => {
                    let spawn::Pipes { stdin, stdout, stderr } = pipes;
                    return Ok(ProgramRun {
                        runner: self,
                        pid,
                        stdin: Some(stdin),
                        stdout: Some(stdout),
                        stderr: Some(stderr),
                        decoder: Decoder::new(settings.framing, FRAME_MAX, OversizePolicy::End),
                        framing: settings.framing,
                        outbox: Vec::new(),
                        held: Vec::new(),
                        heard: Output::default(),
                        exit: None,
                    });
                }
                Ok(Report::StartFailed { token: of, error }) if of == token => {
                    return Err(error.to_string());
                }
                Ok(Report::SupervisorLost) | Err(_) => {
                    return Err("the supervisor was lost".to_owned());
                }
                Ok(_) => {}
            }
        }
    }
}

/// The output of the program.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) frames: Vec<Vec<u8>>,
    /// The number of bytes of standard output, in frames or not.
    pub(super) bytes: u64,
    /// The first bytes of standard output.
    pub(super) opening: Vec<u8>,
    pub(super) broken: Option<Piece>,
    /// Why a frame is not a valid message, if frames are JSON-RPC messages.
    pub(super) senseless: Option<&'static str>,
    pub(super) errors: u64,
    pub(super) error_tail: Vec<u8>,
}

impl Output {
    /// Returns whether there is output that may be an answer, or that shows that no answer will follow.
    pub(super) fn has_said(&self) -> bool {
        !self.frames.is_empty() || self.broken.is_some() || self.senseless.is_some()
    }

    /// Returns the last line on standard error.
    pub(super) fn last_error(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.error_tail);
        text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
    }
}

/// The running program. It is killed when this value is dropped.
pub(super) struct ProgramRun<'a> {
    runner: &'a mut ProgramRunner,
    pid: u32,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    decoder: Decoder,
    framing: Framing,
    outbox: Vec<u8>,
    /// Bytes of an unfinished answer.
    pub(super) held: Vec<u8>,
    pub(super) heard: Output,
    pub(super) exit: Option<Exit>,
}

impl ProgramRun<'_> {
    /// Appends a request to the bytes to send, or returns the reason in words.
    pub(super) fn ask(&mut self, request: &[u8]) -> Result<(), String> {
        encode(self.framing, request, &mut self.outbox)
            .map_err(|why| format!("the request cannot be sent: {why}"))
    }

    /// If frames are JSON-RPC messages, sends the initialization of a client, because many programs answer no other
    /// request before. Returns whether the program answered.
    pub(super) fn greet(&mut self, limit: Duration) -> Result<bool, String> {
        let Some(dialect) = dialect(self.framing) else { return Ok(false) };
        let mut message = Vec::new();
        write_initialize(dialect, Tag::MAX, env!("CARGO_PKG_VERSION"), &mut message);
        self.ask(&message)?;
        self.listen(limit, |it| it.heard.has_said() || it.output_ended());
        if self.heard.frames.is_empty() {
            return Ok(false);
        }
        self.heard.frames.clear();
        message.clear();
        write_initialized(dialect, &mut message);
        self.ask(&message)?;
        Ok(true)
    }

    /// Closes its input when everything has been sent.
    pub(super) fn end_input(&mut self, limit: Duration) {
        self.listen(limit, |running| running.outbox.is_empty());
        self.stdin = None;
    }

    pub(super) fn stop(&mut self, how: Stop) {
        self.runner.spawner.stop(self.runner.token, how);
    }

    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) const fn output_ended(&self) -> bool {
        self.stdout.is_none()
    }

    /// Returns whether the output is text where a length is expected.
    pub(super) fn says_text(&self) -> bool {
        self.decoder.is_text(&self.held)
    }

    /// Sends and reads until `enough` returns `true` or `limit` has passed. Returns the last result of `enough`.
    pub(super) fn listen(&mut self, limit: Duration, enough: impl Fn(&Self) -> bool) -> bool {
        let until = Instant::now() + limit;
        loop {
            self.turn();
            if enough(self) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.wait(left.min(LOOK));
        }
    }

    fn wait(&self, limit: Duration) {
        let mut fds = Vec::new();
        let input = self.stdin.as_ref().filter(|_| !self.outbox.is_empty());
        fds.extend(input.map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::OUT)));
        for fd in [&self.stdout, &self.stderr].into_iter().flatten() {
            fds.push(PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
        }
        let limit = Timespec::try_from(limit).expect("at most LOOK");
        // An interruption is ignored, because every descriptor is checked anyway.
        let _ = poll(&mut fds, Some(&limit));
    }

    fn turn(&mut self) {
        while let Ok(report) = self.runner.reports.try_recv() {
            if let Report::Exited { token, exit } = report
                && token == self.runner.token
            {
                self.exit = Some(exit);
            }
        }
        if let Some(fd) = self.stdin.as_ref().filter(|_| !self.outbox.is_empty()) {
            match rustix::io::write(fd, &self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // The program has closed its input. Its answers or its end will show the cause.
                Err(_) => self.outbox.clear(),
            }
        }
        let mut buffer = vec![0; 64 << 10];
        if let Some(count) = read(&mut self.stdout, &mut buffer) {
            self.heard.bytes += count as u64;
            let room = OPENING_MAX.saturating_sub(self.heard.opening.len());
            self.heard.opening.extend_from_slice(&buffer[..count.min(room)]);
            self.held.extend_from_slice(&buffer[..count]);
            self.decode();
        }
        if let Some(count) = read(&mut self.stderr, &mut buffer) {
            self.heard.errors += count as u64;
            self.heard.error_tail.extend_from_slice(&buffer[..count]);
            let beyond = self.heard.error_tail.len().saturating_sub(TAIL_MAX);
            self.heard.error_tail.drain(..beyond);
        }
    }

    fn decode(&mut self) {
        let mut from = 0;
        while let Some(piece) = self.decoder.next(&self.held, &mut from) {
            match piece {
                Piece::Frame(range) => self.handle_frame(range),
                other => self.heard.broken = Some(other),
            }
        }
        let consumed = self.decoder.consume(self.held.len(), from);
        self.held.drain(..consumed);
    }
}

impl ProgramRun<'_> {
    /// Handles one frame as an answer. Of JSON-RPC messages only responses count: requests of the program are refused
    /// and its notifications are ignored, as in a pool.
    fn handle_frame(&mut self, range: Range<usize>) {
        let frame = &self.held[range];
        let message = dialect(self.framing).map(|_| scan(frame));
        match message.map(|message| message.map(|it| (it.kind(), it.id))) {
            None | Some(Ok((Kind::Response, _))) => self.heard.frames.push(frame.to_vec()),
            Some(Ok((Kind::Request, Some(id)))) => {
                let refusal = [
                    &br#"{"jsonrpc":"2.0","id":"#[..],
                    &frame[id],
                    br#","error":{"code":-32601,"message":"the doctor answers nothing"}}"#,
                ];
                // A refusal that cannot be framed, because it is not a line, is not sent.
                let _ = encode(self.framing, &refusal.concat(), &mut self.outbox);
            }
            Some(Ok(_)) => {}
            Some(Err(fault)) => self.heard.senseless = Some(fault.message()),
        }
    }
}

/// Returns the first messages of a client for this framing.
fn dialect(framing: Framing) -> Option<Dialect> {
    match framing {
        Framing::ContentLength => Some(Dialect::Lsp),
        framing => framing.is_json().then_some(Dialect::Mcp),
    }
}

impl Drop for ProgramRun<'_> {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.stop(Stop::Kill);
        }
    }
}

/// Returns the number of bytes read, or `None` if there were none. At the end, the descriptor is closed.
fn read(from: &mut Option<OwnedFd>, buffer: &mut [u8]) -> Option<usize> {
    match rustix::io::read(from.as_ref()?, buffer) {
        Ok(0) => *from = None,
        Ok(count) => return Some(count),
        Err(Errno::AGAIN | Errno::INTR) => {}
        // A terminal returns EIO when its program has ended.
        Err(_) => *from = None,
    }
    None
}
