//! Reads a file with a secret: tokens, users, a password or a key.

use std::fs::Metadata;
use std::io;
use std::path::Path;

/// Returns the content of the file and its metadata. The author of the file decides who is authenticated, so the author
/// is checked.
///
/// # Errors
/// The file, or a directory on its path, can have been written by a user other than root or the user of the daemon; or
/// as for [`paths::read`].
pub fn read_secret_file(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let (bytes, found) = paths::read(path)?;
    paths::check_author(&found)?;
    if paths::is_public(&found) {
        tracing::warn!(
            "the secret in {} can be read by every user: `chmod o-r` it",
            path.display()
        );
    }
    Ok((bytes, found))
}

/// Like [`read_secret_file`], but returns text.
///
/// # Errors
/// As for [`read_secret_file`], or the content is not UTF-8.
pub fn read_secret_text(path: &Path) -> io::Result<String> {
    let (bytes, _) = read_secret_file(path)?;
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_that_others_can_write_is_not_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        std::fs::write(&path, "0123456789abcdef").expect("a file");
        for (mode, is_taken) in [(0o600, true), (0o644, true), (0o620, false), (0o602, false)] {
            set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
            let read = read_secret_text(&path);
            assert_eq!(read.is_ok(), is_taken, "{mode:o}");
            let text = read.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(text.contains("chmod go-w"), !is_taken, "{text}");
        }
        set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("a mode");
        let error = read_secret_file(&link).expect_err("another user can change it").to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
}
