#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: the resolution of paths that no other user can have changed. The directories themselves may be writable
//! for other users, as `/var/log` is for a group on many systems, unless the caller requires a [`protected`] path. What it
//! depends on: only the kernel. What it must never depend on: the purpose of the file.

#![forbid(unsafe_code)]

mod entry;
mod held;
mod mounts;
mod ownership;
mod protected;
mod read;
mod socket;
mod walk;

pub use held::hold_process_files;
pub use mounts::is_trusted as is_trusted_mount;
pub use ownership::{check_author, check_mode, is_public};
pub use protected::{open_given, protected, protected_directory, read_protected};
pub use read::{READ_BYTES_MAX, read};
pub use socket::SocketFile;
pub use walk::{Place, walk};
