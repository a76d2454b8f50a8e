//! Files that a configuration names: secrets and answers.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Bytes that such a file has at most: 16 MiB.
pub const NAMED_BYTES_MAX: u64 = 16 << 20;

/// What is in a file that a configuration names. Only a regular one is read: a pipe would stop whoever reads
/// it until somebody writes, and a device may never end.
///
/// # Errors
/// When it is not there, may not be read, is no regular file, has nothing to read at the moment, or has more
/// than [`NAMED_BYTES_MAX`] bytes.
pub fn read_named(path: &Path) -> io::Result<Vec<u8>> {
    read_named_of(path).map(|(bytes, _)| bytes)
}

/// As [`read_named`], with what the system says of the very file that was read: what stands at the path may
/// be another one by then.
///
/// # Errors
/// As there.
pub fn read_named_of(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    // To open a device can do something. What is opened is looked at again: it may be another file.
    if !fs::metadata(path)?.is_file() {
        return Err(not_regular());
    }
    let file = open_without_waiting(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(not_regular());
    }
    let mut bytes = Vec::new();
    file.take(NAMED_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(said_plainly)?;
    if bytes.len() as u64 > NAMED_BYTES_MAX {
        let most = NAMED_BYTES_MAX >> 20;
        let text = format!("it has more than the {most} MiB that it may have");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok((bytes, found))
}

/// Opens a file for reading. Neither the opening nor reading waits: a pipe would until somebody writes, and
/// some files of the kernel, such as `/proc/kmsg`, until there is something new.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

pub(crate) fn said_plainly(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            let text = "it has nothing to read at the moment: it is not a file with a content";
            io::Error::new(io::ErrorKind::WouldBlock, text)
        }
        _ => error,
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// As [`read_named`], of a text.
///
/// # Errors
/// As there, and when it is not UTF-8.
pub fn read_named_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_named(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// The owner of a file decides who gets its secret: it must be the owner of what was read.
    #[test]
    fn what_is_said_of_a_file_is_of_the_one_that_was_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("one"), "1").expect("a file");
        fs::write(at("two"), "22").expect("a file");
        let link = at("link");
        symlink(at("one"), &link).expect("a link");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for name in ["two", "one"] {
                        symlink(at(name), at("new")).expect("a link");
                        fs::rename(at("new"), &link).expect("it is replaced");
                    }
                }
            });
            let mut seen = [0, 0];
            while seen.iter().any(|count| *count < 100) {
                let (bytes, found) = read_named_of(&link).expect("it is read");
                is_over.store(found.len() != bytes.len() as u64, Ordering::Relaxed);
                assert_eq!(found.len(), bytes.len() as u64);
                seen[bytes.len() - 1] += 1;
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn nothing_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        let mut pipe = open_without_waiting(&path).expect("it is opened");
        let _writer = OpenOptions::new().write(true).open(&path).expect("it is opened");
        let error = pipe.read(&mut [0]).map_err(said_plainly).expect_err("nothing was written");
        assert!(error.to_string().contains("nothing to read at the moment"), "{error}");
        assert_eq!(
            read_named(&path).expect_err("it is no file").to_string(),
            "it is not a regular file"
        );
    }

    #[test]
    fn only_a_regular_file_of_some_size_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, b"a\xff").expect("a file");
        assert_eq!(read_named(&path).expect("it is read"), b"a\xff");
        let error = read_named_text(&path).expect_err("it is no text");
        assert_eq!(error.to_string(), "it is not UTF-8 text");
        for odd in [folder.path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
            let error = read_named(odd).expect_err("it is no file");
            assert_eq!(error.to_string(), "it is not a regular file", "{}", odd.display());
        }
        let file = File::create(&path).expect("a file");
        file.set_len(NAMED_BYTES_MAX).expect("a size");
        assert_eq!(read_named(&path).expect("it is read").len() as u64, NAMED_BYTES_MAX);
        file.set_len(NAMED_BYTES_MAX + 1).expect("a size");
        let error = read_named(&path).expect_err("it is too long");
        assert_eq!(error.to_string(), "it has more than the 16 MiB that it may have");
        assert_eq!(
            read_named(&folder.path().join("none")).expect_err("it is not there").kind(),
            io::ErrorKind::NotFound
        );
    }
}
