//! Reads files that a configuration names.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::walk::{Place, walk};

/// The maximum size of such a file in bytes: 16 MiB.
pub const READ_BYTES_MAX: u64 = 16 << 20;

/// Reads a regular file whose path no other user can have changed. Returns its content and the metadata of the same
/// open file. A pipe would block the reader until another process writes, and a device may never end.
///
/// # Errors
/// Returns the errors of [`walk`], and an error if the file does not exist, may not be read, is not a regular file, has
/// no data at the moment, or is larger than [`READ_BYTES_MAX`].
pub fn read(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    read_at(&walk(path)?)
}

/// Reads the regular file at a place.
pub(crate) fn read_at(place: &Place) -> io::Result<(Vec<u8>, Metadata)> {
    // Opening a device can have side effects, so the file is checked before. The open file is checked again, because it
    // may be another file.
    regular(place.open(OFlags::PATH, Mode::empty())?)?;
    // Reading some files of the kernel, such as `/proc/kmsg`, would block until there is new data.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let (file, found) = regular(place.open(flags, Mode::empty())?)?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(clarify_error)?;
    if bytes.len() as u64 > READ_BYTES_MAX {
        let most = READ_BYTES_MAX >> 20;
        let text = format!("it has more than the {most} MiB that it may have");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok((bytes, found))
}

fn regular(file: File) -> io::Result<(File, Metadata)> {
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found)),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

fn clarify_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            let text = "it is not a regular file, and there is nothing to read at the moment";
            io::Error::new(io::ErrorKind::WouldBlock, text)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_file_that_another_user_can_have_led_to_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, inner) = (folder.path().join("file"), folder.path().join("inner"));
        fs::write(&file, "x").expect("a file");
        fs::create_dir(&inner).expect("a folder");
        symlink(&file, inner.join("link")).expect("a link");
        for (mode, follows) in [(0o777, false), (0o755, true)] {
            set_permissions(&inner, Permissions::from_mode(mode)).expect("a mode");
            let found = read(&inner.join("link"));
            assert_eq!(found.is_ok(), follows, "{mode:o}");
            let text = found.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(text.contains("symbolic link"), !follows, "{text}");
        }
    }

    /// The owner of a file decides which user receives its secret, so it must be the owner of the file that was read.
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
                let (bytes, found) = read(&link).expect("it is read");
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
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        let error = read(&path).expect_err("it is no file");
        assert_eq!(error.to_string(), "it is not a regular file");
        let error = clarify_error(io::ErrorKind::WouldBlock.into());
        assert!(error.to_string().contains("nothing to read at the moment"), "{error}");
    }

    #[test]
    fn only_a_regular_file_of_some_size_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, b"a\xff").expect("a file");
        assert_eq!(read(&path).expect("it is read").0, b"a\xff");
        for odd in [folder.path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
            let error = read(odd).expect_err("it is no file");
            assert_eq!(error.to_string(), "it is not a regular file", "{}", odd.display());
        }
        let file = File::create(&path).expect("a file");
        file.set_len(READ_BYTES_MAX).expect("a size");
        assert_eq!(read(&path).expect("it is read").0.len() as u64, READ_BYTES_MAX);
        file.set_len(READ_BYTES_MAX + 1).expect("a size");
        let error = read(&path).expect_err("it is too long");
        assert_eq!(error.to_string(), "it has more than the 16 MiB that it may have");
        assert_eq!(
            read(&folder.path().join("none")).expect_err("it is not there").kind(),
            io::ErrorKind::NotFound
        );
    }
}
