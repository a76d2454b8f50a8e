//! One run of the program under examination: what is sent, what is heard, and for how long.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use spawn::{Command, Exit, Report, Spawn, Spawner, Stop, Wiring};
use wire::jsonrpc::{Dialect, Kind, Tag, scan, write_initialize, write_initialized};
use wire::{Decoder, Framing, OversizePolicy, Piece, encode};

/// Bytes of one answer.
const FRAME_MAX: usize = 16 << 20;
/// The end of standard error that is kept.
const TAIL_MAX: usize = 8 << 10;
/// The beginning of its output that is kept.
const OPENING_MAX: usize = 256;
/// How often the spawner's reports are looked at while nothing is heard.
const LOOK: Duration = Duration::from_millis(10);

/// What is run and how.
#[derive(Clone, Debug)]
pub(super) struct Treatment {
    pub(super) program: Vec<String>,
    pub(super) framing: Framing,
    pub(super) wiring: Wiring,
    pub(super) env: Vec<(String, String)>,
    /// What it serves on, if it serves.
    pub(super) socket: Option<spawn::Socket>,
}

/// Where programs are run.
pub(super) struct Clinic {
    spawner: Spawner,
    reports: Receiver<Report>,
    token: u64,
}

impl Clinic {
    pub(super) fn open() -> Result<Self, spawn::SpawnError> {
        let (send, reports) = channel();
        let report = move |report| drop(send.send(report));
        Ok(Self { spawner: Spawner::new(Box::new(report))?, reports, token: 0 })
    }

    /// Starts the program; why not, in words.
    pub(super) fn admit(&mut self, treatment: &Treatment) -> Result<Patient<'_>, String> {
        self.token += 1;
        let token = self.token;
        let (program, arguments) = treatment.program.split_first().ok_or("there is no program")?;
        let command = Command {
            program: program.clone(),
            arguments: arguments.to_vec(),
            env: treatment.env.clone(),
            name: "doctor/0".to_owned(),
            wiring: treatment.wiring,
            socket: treatment.socket.clone(),
            ..Command::default()
        };
        self.spawner.start(token, command);
        loop {
            match self.reports.recv() {
                Ok(Report::Started { token: of, pid, pipes }) if of == token => {
                    let spawn::Pipes { stdin, stdout, stderr } = pipes;
                    return Ok(Patient {
                        clinic: self,
                        pid,
                        stdin: Some(stdin),
                        stdout: Some(stdout),
                        stderr: Some(stderr),
                        decoder: Decoder::new(treatment.framing, FRAME_MAX, OversizePolicy::End),
                        framing: treatment.framing,
                        outbox: Vec::new(),
                        held: Vec::new(),
                        heard: Heard::default(),
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

/// What the program has said.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) frames: Vec<Vec<u8>>,
    /// All bytes of its output, in frames or not.
    pub(super) bytes: u64,
    /// The first of them.
    pub(super) opening: Vec<u8>,
    pub(super) broken: Option<Piece>,
    /// Why a frame is no message, where frames are JSON-RPC messages.
    pub(super) senseless: Option<&'static str>,
    pub(super) errors: u64,
    pub(super) error_tail: Vec<u8>,
}

impl Heard {
    /// Whether there is anything that an answer could be, or that shows that none will come.
    pub(super) fn has_said(&self) -> bool {
        !self.frames.is_empty() || self.broken.is_some() || self.senseless.is_some()
    }

    /// The last line on standard error.
    pub(super) fn last_error(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.error_tail);
        text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
    }
}

/// The program, running. It is killed when this goes.
pub(super) struct Patient<'a> {
    clinic: &'a mut Clinic,
    pid: u32,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    decoder: Decoder,
    framing: Framing,
    outbox: Vec<u8>,
    /// Bytes of an answer that has not ended.
    pub(super) held: Vec<u8>,
    pub(super) heard: Heard,
    pub(super) exit: Option<Exit>,
}

impl Patient<'_> {
    /// Puts a request into what is to be sent; why it cannot be, in words.
    pub(super) fn ask(&mut self, request: &[u8]) -> Result<(), String> {
        encode(self.framing, request, &mut self.outbox)
            .map_err(|why| format!("the request cannot be sent: {why}"))
    }

    /// Begins as clients of such a program do, where frames are JSON-RPC messages: many answer
    /// nothing before. Whether it was answered.
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

    /// Ends its input once all is sent.
    pub(super) fn end_input(&mut self, limit: Duration) {
        self.listen(limit, |patient| patient.outbox.is_empty());
        self.stdin = None;
    }

    pub(super) fn stop(&mut self, how: Stop) {
        self.clinic.spawner.stop(self.clinic.token, how);
    }

    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) const fn output_ended(&self) -> bool {
        self.stdout.is_none()
    }

    /// Whether what it says is text where a length should be.
    pub(super) fn says_text(&self) -> bool {
        self.decoder.is_text(&self.held)
    }

    /// Sends and listens until `enough`, or `limit` has passed; whether it was enough.
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
        // Interrupted or not: the turn looks at everything.
        let _ = poll(&mut fds, Some(&limit));
    }

    fn turn(&mut self) {
        while let Ok(report) = self.clinic.reports.try_recv() {
            if let Report::Exited { token, exit } = report
                && token == self.clinic.token
            {
                self.exit = Some(exit);
            }
        }
        if let Some(fd) = self.stdin.as_ref().filter(|_| !self.outbox.is_empty()) {
            match rustix::io::write(fd, &self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // It reads no more, which its answers, or its end, will tell.
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

impl Patient<'_> {
    /// A frame is an answer. Of JSON-RPC messages only responses are; what the program asks is
    /// refused, and what it notes is nobody's here, as in a pool.
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
                // One that cannot be framed is not sent: it is no line.
                let _ = encode(self.framing, &refusal.concat(), &mut self.outbox);
            }
            Some(Ok(_)) => {}
            Some(Err(fault)) => self.heard.senseless = Some(fault.message()),
        }
    }
}

/// How clients of such a program begin.
fn dialect(framing: Framing) -> Option<Dialect> {
    match framing {
        Framing::ContentLength => Some(Dialect::Lsp),
        framing => framing.is_json().then_some(Dialect::Mcp),
    }
}

impl Drop for Patient<'_> {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.stop(Stop::Kill);
        }
    }
}

/// How many bytes came; `None` when none did. The end closes the descriptor.
fn read(from: &mut Option<OwnedFd>, buffer: &mut [u8]) -> Option<usize> {
    match rustix::io::read(from.as_ref()?, buffer) {
        Ok(0) => *from = None,
        Ok(count) => return Some(count),
        Err(Errno::AGAIN | Errno::INTR) => {}
        // A terminal whose program has ended says EIO.
        Err(_) => *from = None,
    }
    None
}
