//! Files that a configuration names: secrets and answers.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Bytes that such a file has at most: 16 MiB.
pub const NAMED_BYTES_MAX: u64 = 16 << 20;

/// What is in a file that a configuration names. Only a regular one is read: a pipe would stop whoever reads
/// it until somebody writes, and a device may never end.
///
/// # Errors
/// When it is not there, may not be read, is no regular file, or has more than [`NAMED_BYTES_MAX`] bytes.
pub fn read_named(path: &Path) -> io::Result<Vec<u8>> {
    // Looked at before it is opened: the opening of a pipe waits for its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(NAMED_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > NAMED_BYTES_MAX {
        let most = NAMED_BYTES_MAX >> 20;
        let text = format!("it has more than the {most} MiB that it may have");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
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
    use super::*;

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
