//! Resolves paths that no other user can have changed.
//!
//! What it is: the resolution of a path, directory by directory. A symbolic link is followed only if no user except
//! root and the user of this process can have created it. Otherwise another user could make a daemon that runs as root
//! open any file. The directories themselves may be writable for other users, as `/var/log` is for a group on many
//! systems, unless the caller requires a [`protected`] path. A file is opened in the directory that the resolution
//! found, so that nothing can change in between. The socket of a server is opened in the same way ([`SocketFile`]). What it depends on: only the kernel. What it must never depend on: the
//! purpose of the file.

#![forbid(unsafe_code)]

mod mounts;
mod ownership;
mod protected;
mod read;
mod socket;
mod walk;

pub use ownership::{check_author, check_mode, is_public};
pub use protected::{open_given, protected, protected_directory, read_protected};
pub use read::{READ_BYTES_MAX, read};
pub use socket::SocketFile;
pub use walk::{Place, walk};
