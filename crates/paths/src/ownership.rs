//! Which users may have written a file, and which may read it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Checks that only root and the user of this process can have written a file.
///
/// # Errors
/// Returns the reason: the file belongs to another user, or its mode lets other users write it.
pub fn check_author(found: &Metadata) -> io::Result<()> {
    check_author_unless(0o022, found)
}

/// Checks that only root and the user of this process can have written a file. `others`: the mode bits that let other
/// users write it.
pub(crate) fn check_author_unless(others: u32, found: &Metadata) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    check(found.uid(), found.mode() & (others | !0o022), Some(user))
}

/// Checks that only root and the owner of a file can have written it.
///
/// # Errors
/// Returns an error if the mode lets other users write the file.
pub fn check_mode(found: &Metadata) -> io::Result<()> {
    check(found.uid(), found.mode(), None)
}

fn check(owner: u32, mode: u32, user: Option<u32>) -> io::Result<()> {
    let denied = |text: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    if mode & 0o022 != 0 {
        let mode = mode & 0o7777;
        return denied(format!("others can write it (mode {mode:04o}): `chmod go-w` it"));
    }
    match user {
        Some(user) if owner != 0 && owner != user => denied(format!(
            "it belongs to user {owner}, who can write it: `chown` it to root or to user {user}"
        )),
        _ => Ok(()),
    }
}

/// Whether every user may read a file, judged by the mode of the file alone.
#[must_use]
pub fn is_public(found: &Metadata) -> bool {
    found.mode() & 0o004 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_root_or_this_user_wrote_is_taken() {
        for (owner, mode, is_taken) in [
            (0, 0o100_600, true),
            (7, 0o100_644, true),
            (7, 0o100_440, true),
            (7, 0o100_660, false),
            (0, 0o100_602, false),
            (8, 0o100_600, false),
        ] {
            assert_eq!(check(owner, mode, Some(7)).is_ok(), is_taken, "{owner} {mode:o}");
        }
        assert!(check(8, 0o100_600, None).is_ok() && check(8, 0o100_620, None).is_err());
        let text = check(8, 0o100_600, Some(7)).expect_err("another's").to_string();
        assert!(text.contains("belongs to user 8") && text.contains("user 7"), "{text}");
        assert!(check(7, 0o100_666, Some(7)).expect_err("open").to_string().contains("0666"));
    }
}
