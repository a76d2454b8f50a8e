//! Reading a configuration file.
//!
//! What it is: the one place of this room that opens a file. What it knows: paths and bytes. What
//! it must never know: what is in them.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::diagnostics::Diagnostics;
use crate::fault::Fault;
use crate::include::included;
use crate::model::Configuration;
use crate::parse::parse;
use crate::source::Source;
use crate::sources::Sources;

/// The largest configuration file in bytes.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Reads and parses a file, with the daemon's environment at hand.
///
/// # Errors
///
/// All errors of the file at once; also a file that is missing, unreadable, too large or not UTF-8.
pub fn load(path: &Path) -> Result<Configuration, Diagnostics> {
    parse(&source(path)?, &|variable| std::env::var(variable).ok())
}

/// Reads a file, with those that it includes, for whoever has remarks on it.
///
/// # Errors
///
/// When it is missing, unreadable, too large or not UTF-8.
pub fn source(path: &Path) -> Result<Sources, Diagnostics> {
    let source = source_of(path, File::open(path))?;
    Ok(included(path, &source, regular))
}

/// Reads again the files of a daemon that serves. Nothing may be waited for here: a pipe that the settings
/// were read from at the start has nothing more to say, and a FIFO may never have.
///
/// # Errors
///
/// As of [`source`]; also when it is no regular file.
pub fn source_again(path: &Path) -> Result<Sources, Diagnostics> {
    let source = regular(path)?;
    Ok(included(path, &source, regular))
}

/// Reads a regular file, without waiting for anything.
fn regular(path: &Path) -> Result<Source, Diagnostics> {
    let is_odd = |found: std::io::Result<Metadata>| {
        found.is_ok_and(|found| !found.is_file() && !found.is_dir())
    };
    let refused = || {
        let message = "the configuration cannot be read again: it is no regular file";
        let mend =
            "start the daemon with the path of a file to change its settings while it serves";
        let name = path.display().to_string();
        Err(Diagnostics::unread(&name, message.to_owned(), mend.to_owned()))
    };
    // To open a device can do something. What is opened is looked at again: it may be another file.
    if is_odd(std::fs::metadata(path)) {
        return refused();
    }
    match open_without_waiting(path) {
        Ok(file) if is_odd(file.metadata()) => refused(),
        opened => source_of(path, opened),
    }
}

/// Opens a file for reading. Neither the opening nor reading waits: a pipe would until somebody writes, and
/// some files of the kernel, such as `/proc/kmsg`, until there is something new.
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn said_plainly(error: std::io::Error) -> std::io::Error {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let text = "it has nothing to read at the moment: it is not a file with a content";
            std::io::Error::new(std::io::ErrorKind::WouldBlock, text)
        }
        _ => error,
    }
}

fn source_of(path: &Path, opened: std::io::Result<File>) -> Result<Source, Diagnostics> {
    let name = path.display().to_string();
    let bytes = opened.and_then(|file| read(file).map_err(said_plainly)).map_err(|error| {
        let message = format!("the configuration file cannot be read: {error}");
        Diagnostics::unread(&name, message, mend(&error).to_owned())
    })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("the configuration file is larger than {FILE_BYTES_MAX} bytes");
        return Err(Diagnostics::unread(&name, message, "is this the right file?".into()));
    }
    let text = String::from_utf8(bytes).map_err(|error| not_utf8(&name, error.as_bytes()))?;
    Ok(Source { name, text })
}

/// Points at the first byte that is not UTF-8: what is before it reads the same either way.
fn not_utf8(name: &str, bytes: &[u8]) -> Diagnostics {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let at = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let fault =
        Fault::at(at..at + char::REPLACEMENT_CHARACTER.len_utf8(), "this is not UTF-8 text")
            .mend("save the file as UTF-8");
    Diagnostics::of(&Sources::from(&Source { name: name.to_owned(), text }), vec![fault])
}

/// At most one byte more than is allowed, so that an endless file ends.
fn read(file: File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn mend(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => "check the path; it is relative to the current folder",
        std::io::ErrorKind::PermissionDenied => "allow the daemon's user to read it",
        std::io::ErrorKind::IsADirectory => "name the file in it",
        _ => "check that it is a file that can be read",
    }
}
