//! Writes the log to standard error without ever blocking or ending the daemon.
//!
//! Standard error can be a pipe whose reader is slow or has ended, a full disk, or a terminal that is stopped or gone. A
//! line is written at once to a regular file, and to a socket that has room (`RWF_NOWAIT`). Otherwise it waits for a
//! thread, which may block: a terminal takes a part of a line and blocks for the rest, and a pipe blocks, whatever its mode
//! is, while its reader waits in splice(2). Lines that do not fit into the queue, or cannot be written, are dropped and counted.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway::{LogBatch, LogSink, LogSource};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::io::{ReadWriteFlags, pwritev2};

/// The maximum number of bytes in lines that wait to be written.
const BYTES_MAX: usize = 1 << 20;
/// The maximum length of an event that is written at once.
const AT_ONCE_BYTES: usize = 4096;
/// The current position in a file.
const HERE: u64 = u64::MAX;
/// How long the daemon waits at its end for the remaining lines to be written.
const END_MAX: Duration = Duration::from_secs(1);

/// The end of the log to which events are written. It never returns an error.
#[derive(Debug)]
pub struct LogQueue<W> {
    shared: Arc<Shared<W>>,
    sink: LogSink,
}

/// The handle by which the daemon waits for the remaining lines.
#[derive(Debug)]
pub struct LogThread {
    sink: LogSink,
    is_finishing: Arc<AtomicBool>,
    finished: Receiver<()>,
}

#[derive(Debug)]
struct Shared<W> {
    target: Mutex<Target<W>>,
    /// Lines in the queue, including those that the thread is writing.
    waiting: AtomicU64,
    /// Lines that were lost since this was reported.
    dropped: AtomicU64,
}

#[derive(Debug)]
struct Target<W> {
    out: W,
    kind: FileType,
    /// Whether the last line was written only in part.
    torn: bool,
}

/// Starts the thread.
///
/// # Errors
/// The thread cannot be started.
pub fn start<W: Write + AsFd + Send + 'static>(out: W) -> io::Result<(LogQueue<W>, LogThread)> {
    let (sink, source) = LogSink::new(BYTES_MAX);
    let kind = rustix::fs::fstat(&out)
        .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode));
    let target = Mutex::new(Target { out, kind, torn: false });
    let shared = Arc::new(Shared { target, waiting: 0.into(), dropped: 0.into() });
    let is_finishing = Arc::new(AtomicBool::new(false));
    let (finish, finished) = channel();
    let thread =
        LogThread { sink: sink.clone(), is_finishing: Arc::clone(&is_finishing), finished };
    let queue = LogQueue { shared: Arc::clone(&shared), sink };
    std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || write_all(&shared, source, &is_finishing, &finish))?;
    Ok((queue, thread))
}

impl<W> Clone for LogQueue<W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), sink: self.sink.clone() }
    }
}

impl<W: Write + AsFd> Write for LogQueue<W> {
    /// Writes or queues one complete event.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        if !self.write_at_once(event) {
            self.queue(event);
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write + AsFd> LogQueue<W> {
    /// Writes an event unless this can block or other events wait. Returns `false` if it must be queued.
    fn write_at_once(&self, event: &[u8]) -> bool {
        let shared = &self.shared;
        let is_first = shared.waiting.load(Ordering::Relaxed) == 0
            && shared.dropped.load(Ordering::Relaxed) == 0;
        if event.len() > AT_ONCE_BYTES || !is_first {
            return false;
        }
        let Ok(mut target) = shared.target.try_lock() else { return false };
        if target.torn {
            return false;
        }
        match target.kind {
            FileType::RegularFile => {
                shared.write(&mut target, event, 1);
                return true;
            }
            FileType::Socket => {}
            _ => return false,
        }
        let slices = [IoSlice::new(event)];
        match pwritev2(&target.out, &slices, HERE, ReadWriteFlags::NOWAIT) {
            Ok(count) if count == event.len() => true,
            // A socket accepted a part.
            Ok(count) if count > 0 => {
                target.torn = !self.queue(&event[count..]);
                true
            }
            // The thread waits, or counts an event that cannot be written.
            _ => false,
        }
    }

    /// Gives bytes to the thread. Returns `false` if they do not fit into the queue; then they are counted as dropped.
    fn queue(&self, bytes: &[u8]) -> bool {
        self.shared.waiting.fetch_add(1, Ordering::Relaxed);
        let fits = self.sink.add(&LogBatch { bytes: bytes.to_vec(), lines: 1 });
        if !fits {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }
}

impl LogThread {
    /// Waits until all lines are written, at most one second.
    pub fn finish(self) {
        self.is_finishing.store(true, Ordering::Release);
        self.sink.wake_source();
        // If this times out, the rest is lost with the process.
        let _ = self.finished.recv_timeout(END_MAX);
    }
}

impl<W: Write + AsFd> Shared<W> {
    fn write(&self, target: &mut Target<W>, bytes: &[u8], lines: u64) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let mut before = Vec::new();
        // A line that was written only in part must not run into the next line.
        if target.torn {
            before.push(b'\n');
        }
        if dropped > 0 {
            before.extend_from_slice(dropped_text(dropped).as_bytes());
        }
        target.torn = false;
        if write_whole(target, &before).is_err() {
            self.dropped.fetch_add(dropped + lines, Ordering::Relaxed);
        } else if write_whole(target, bytes).is_err() {
            self.dropped.fetch_add(lines, Ordering::Relaxed);
        }
    }
}

fn dropped_text(lines: u64) -> String {
    format!("{lines} lines of the log were dropped: standard error did not accept them\n")
}

/// Writes all bytes. Waits while a descriptor in non-blocking mode accepts none.
fn write_whole<W: Write + AsFd>(target: &mut Target<W>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match target.out.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                target.torn = !bytes.is_empty();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // An error of the descriptor is reported by the next write.
                let _ = poll(&mut [PollFd::new(&target.out, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn write_all<W: Write + AsFd>(
    shared: &Shared<W>,
    mut source: LogSource,
    is_finishing: &AtomicBool,
    finish: &Sender<()>,
) {
    let mut batch = LogBatch::default();
    while source.next(&mut batch) {
        if !batch.bytes.is_empty() {
            let mut target = shared.target.lock().unwrap_or_else(PoisonError::into_inner);
            shared.write(&mut target, &batch.bytes, batch.lines);
            drop(target);
            shared.waiting.fetch_sub(batch.lines, Ordering::Relaxed);
        } else if is_finishing.swap(false, Ordering::Acquire) {
            // An empty batch after `wake_source`: all earlier lines are written.
            let _ = finish.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use rustix::fs::OFlags;
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

    use super::*;

    /// A line that fills a pipe of one page in a few writes.
    fn line(number: usize) -> String {
        format!("{number:04} {}\n", "x".repeat(1000))
    }

    fn until_written<W>(queue: &LogQueue<W>) {
        while queue.shared.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
    }

    /// Writes `count` lines before the first is read, and compares what is read in the end.
    fn check_all_lines(mut reader: impl Read + Send + 'static, writer: OwnedFd, count: usize) {
        let (mut queue, thread) = start(File::from(writer)).unwrap();
        let written: String = (0..count).map(line).collect();
        for number in 0..count {
            queue.write_all(line(number).as_bytes()).unwrap();
        }
        drop(queue);
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        thread.finish();
        assert!(read.join().unwrap() == written, "all lines, in their order");
    }

    #[test]
    fn a_reader_that_does_not_read_delays_nobody_and_gets_the_lines_later() {
        let (reader, writer) = io::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        check_all_lines(reader, writer.into(), 100);
    }

    #[test]
    fn a_pipe_in_non_blocking_mode_loses_no_line() {
        let (reader, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        check_all_lines(reader, writer.into(), 200);
    }

    /// A stream accepts a part of a line, and the rest follows it.
    #[test]
    fn a_socket_that_accepts_a_part_of_a_line_gets_the_rest() {
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        check_all_lines(reader, writer.into(), 900);
    }

    #[test]
    fn lines_that_do_not_fit_into_the_queue_are_counted() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (mut queue, thread) = start(writer).unwrap();
        // Nobody reads yet, so the thread blocks, the queue fills, and lines are dropped.
        let mut most = 0;
        while queue.shared.dropped.load(Ordering::Relaxed) == 0 {
            queue.write_all(line(most).as_bytes()).unwrap();
            most += 1;
        }
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        until_written(&queue);
        queue.write_all(b"last\n").unwrap();
        drop(queue);
        thread.finish();
        let text = read.join().unwrap();
        let dropped = text.lines().filter_map(|line| {
            line.strip_suffix(dropped_text(0).trim_end().strip_prefix('0')?)?.parse::<usize>().ok()
        });
        let written = text.lines().filter(|line| line.ends_with('x')).count();
        assert_eq!(written + dropped.sum::<usize>(), most);
        assert!(text.ends_with("last\n"));
    }

    #[test]
    fn a_target_that_accepts_nothing_ends_nothing() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (mut queue, thread) = start(full).unwrap();
        assert_eq!(queue.write(b"a\n").unwrap(), 2);
        queue.write_all(&vec![b'x'; 2 * AT_ONCE_BYTES]).unwrap();
        until_written(&queue);
        drop(thread);
        assert_eq!(queue.shared.dropped.load(Ordering::Relaxed), 2);
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let (mut queue, _thread) = start(writer).unwrap();
        queue.write_all(b"a\nb\n").unwrap();
        until_written(&queue);
        assert_eq!(queue.shared.dropped.load(Ordering::Relaxed), 1);
    }

    /// A terminal whose reader does not read takes a part of a line and blocks.
    #[test]
    fn a_terminal_delays_nobody() {
        use std::os::unix::fs::OpenOptionsExt;
        for is_nonblocking in [false, true] {
            let owner = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
            unlockpt(&owner).unwrap();
            let name = ptsname(&owner, Vec::new()).unwrap().into_string().unwrap();
            let mut options = File::options();
            options.write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed());
            let terminal = options.open(name).unwrap();
            rustix::io::ioctl_fionbio(&terminal, is_nonblocking).unwrap();
            let (mut queue, thread) = start(terminal).unwrap();
            let written: String = (0..300).map(line).collect();
            for number in 0..300 {
                queue.write_all(line(number).as_bytes()).unwrap();
            }
            assert!(queue.shared.waiting.load(Ordering::Relaxed) > 0);
            let read = std::thread::spawn(move || {
                let (mut text, mut owner) = (Vec::new(), File::from(owner));
                let mut room = [0; 4096];
                while !text.ends_with(b"last\r\n") {
                    let count = owner.read(&mut room).unwrap();
                    text.extend_from_slice(&room[..count]);
                }
                String::from_utf8(text).unwrap()
            });
            until_written(&queue);
            queue.write_all(b"last\n").unwrap();
            thread.finish();
            let text = read.join().unwrap().replace("\r\n", "\n");
            assert!(text == written + "last\n", "all lines, in their order");
        }
    }
}
