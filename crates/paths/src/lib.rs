//! Where a path leads, if no other user can have led it there.
//!
//! What it is: the walk of a path, directory by directory. A symbolic link is followed only where nobody but
//! root and the user of this process can have made it: a daemon that runs as root could be led to any file.
//! Directories themselves may be writable for others, as `/var/log` is for a group on many systems, unless the caller asks
//! for a [`protected`] path. A file is opened in the directory that the walk has found, so that nothing can change in
//! between. What it depends on: the kernel alone. What it must never depend on: what the file is for.

#![forbid(unsafe_code)]

mod ownership;
mod protected;
mod read;
mod walk;

pub use ownership::{check_author, check_mode, is_public};
pub use protected::protected;
pub use read::{READ_BYTES_MAX, read};
pub use walk::{Place, walk};
