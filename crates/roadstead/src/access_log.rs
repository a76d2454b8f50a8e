//! Writes the access log on a thread of its own, so that a slow disk or pipe never blocks an event loop.

mod open;

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway::{LogBatch, LogSink, LogSource};
use settings::LogTarget;

use open::open_log;

/// The maximum number of bytes in lines that wait to be written.
const BYTES_MAX: usize = 4 << 20;
/// How long the daemon waits at its end for the remaining lines to be written.
const END_MAX: Duration = Duration::from_secs(2);

/// The destination of the lines.
enum Target {
    File(PathBuf, File),
    Stdout(io::Stdout),
    Stderr(io::Stderr),
}

impl Target {
    fn open(to: &LogTarget) -> io::Result<Self> {
        Ok(match to {
            LogTarget::File(path) => Self::File(path.clone(), open_log(path)?),
            LogTarget::Stdout => Self::Stdout(io::stdout()),
            LogTarget::Stderr => Self::Stderr(io::stderr()),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(_, file) => file.write_all(bytes),
            Self::Stdout(out) => out.write_all(bytes).and_then(|()| out.flush()),
            Self::Stderr(out) => out.write_all(bytes),
        }
    }

    /// Reopens the file. On an error the old file is kept.
    fn reopen(&mut self) {
        let Self::File(path, file) = self else { return };
        match open_log(path) {
            Ok(opened) => *file = opened,
            Err(error) => {
                let path = path.display();
                tracing::error!(
                    "the access log {path} cannot be opened, the old file is kept: {error}"
                );
            }
        }
    }
}

/// The handle of the thread for the rest of the daemon.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog {
    reopen: Arc<AtomicBool>,
    /// The thread runs until this sink and its clones are dropped.
    sink: Arc<Mutex<Option<LogSink>>>,
    ended: Arc<Mutex<Receiver<()>>>,
}

impl AccessLog {
    /// Starts the thread, and returns the sink to which shards send their lines.
    ///
    /// # Errors
    /// The file cannot be opened, or the thread cannot be started.
    pub(crate) fn start(to: &LogTarget) -> io::Result<(Self, LogSink)> {
        let mut target = Target::open(to)?;
        let (sink, mut source) = LogSink::new(BYTES_MAX);
        let (end, ended) = sync_channel(1);
        let reopen = Arc::new(AtomicBool::new(false));
        let wanted = Arc::clone(&reopen);
        std::thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            write_all(&mut target, &mut source, &wanted);
            // The receiver may be gone.
            let _ = end.send(());
        })?;
        let log = Self {
            reopen,
            sink: Arc::new(Mutex::new(Some(sink.clone()))),
            ended: Arc::new(Mutex::new(ended)),
        };
        Ok((log, sink))
    }

    /// Reopens the log by its name, because the file was moved.
    pub(crate) fn reopen(&self) {
        self.reopen.store(true, Ordering::Relaxed);
        if let Some(sink) = &*self.sink.lock().unwrap_or_else(PoisonError::into_inner) {
            sink.wake_source();
        }
    }

    /// Waits until all lines are written, at most [`END_MAX`]. The shards have ended before this call.
    pub(crate) fn finish(&self) {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(END_MAX).is_err() {
            tracing::error!("the access log takes no lines; some are lost");
        }
    }
}

fn write_all(target: &mut Target, source: &mut LogSource, reopen: &AtomicBool) {
    let (mut batch, mut torn) = (LogBatch::default(), false);
    while source.next(&mut batch) {
        if reopen.swap(false, Ordering::Relaxed) {
            target.reopen();
            torn = false;
        }
        if batch.bytes.is_empty() {
            continue;
        }
        // A line that was written only in part must not run into the next line.
        let begun = if torn { target.write(b"\n") } else { Ok(()) };
        match begun.and_then(|()| target.write(&batch.bytes)) {
            Ok(()) => torn = false,
            Err(error) => {
                if !torn {
                    tracing::error!("the access log cannot be written: {error}");
                }
                torn = true;
                source.lose(batch.lines);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_reload_that_cannot_open_the_file_keeps_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        let mut target = Target::open(&LogTarget::File(path.clone())).unwrap();
        std::fs::rename(&path, &old).unwrap();
        let kind = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        target.reopen();
        target.write(b"a\n").unwrap();
        assert_eq!(std::fs::read(&old).unwrap(), b"a\n");
    }

    #[test]
    fn lines_go_to_the_file_and_after_a_move_to_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut target = Target::open(&LogTarget::File(path.clone())).unwrap();
        let (sink, mut source) = LogSink::new(100);
        let reopen = AtomicBool::new(false);
        let send = move |text: &str| {
            assert!(sink.add(&LogBatch { bytes: text.into(), lines: 1 }));
        };
        send("a\n");
        let old = folder.path().join("log.1");
        std::thread::scope(|scope| {
            let (target, source, wanted) = (&mut target, &mut source, &reopen);
            scope.spawn(move || write_all(target, source, wanted));
            let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
            while read(&path) != "a\n" {
                std::thread::yield_now();
            }
            std::fs::rename(&path, &old).unwrap();
            reopen.store(true, Ordering::Relaxed);
            send("b\n");
            while read(&path) != "b\n" {
                std::thread::yield_now();
            }
            assert_eq!(read(&old), "a\n");
            drop(send);
        });
        assert_eq!(source.lost(), 0);
    }

    #[test]
    fn lines_that_a_full_disk_refuses_are_counted() {
        let full = LogTarget::File("/dev/full".into());
        let mut target = Target::open(&full).unwrap();
        let (sink, mut source) = LogSink::new(100);
        assert!(sink.add(&LogBatch { bytes: b"a\n".to_vec(), lines: 5 }));
        drop(sink);
        write_all(&mut target, &mut source, &AtomicBool::new(false));
        assert_eq!(source.lost(), 5);
    }
}
