//! Temporary folders for the files and sockets of one command.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// Creates a folder with a random name and mode 0700, so that no other user can read its files, create a socket in it
/// or replace one. The folder is removed when the value is dropped.
pub(crate) fn private_folder(prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn nobody_else_can_enter_or_foresee_the_folder_of_a_command() {
        let make = || private_folder("roadstead-doctor-").unwrap();
        let (one, other) = (make(), make());
        assert_ne!(one.path(), other.path());
        let number = std::process::id().to_string();
        for folder in [&one, &other] {
            assert_eq!(std::fs::metadata(folder.path()).unwrap().mode() & 0o7777, 0o700);
            let name = folder.path().file_name().unwrap().to_str().unwrap();
            assert_ne!(name, format!("roadstead-doctor-{number}"));
        }
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }
}
