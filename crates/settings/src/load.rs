//! Reading a configuration file.
//!
//! What it is: the only module of this crate that opens a file. What it depends on: paths and bytes. What it must never
//! depend on: the content of the file.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;

use rustix::fs::OFlags;

use crate::diagnostics::Diagnostics;
use crate::fault::Fault;
use crate::include::included;
use crate::model::Configuration;
use crate::parse::parse;
use crate::source::Source;
use crate::sources::Sources;

/// The maximum size of a configuration file, in bytes.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Reads and parses a file. Variables are looked up in the environment of the daemon.
///
/// # Errors
///
/// Returns all errors of the file. A file that is missing, unreadable, too large or not UTF-8 is an error too.
pub fn load(path: &Path) -> Result<Configuration, Diagnostics> {
    parse(&source(path)?, &|variable| std::env::var(variable).ok())
}

/// Reads a file and the files that it includes, for callers that place remarks in it.
///
/// # Errors
///
/// Returns an error if the file is missing, unreadable, too large or not UTF-8.
pub fn source(path: &Path) -> Result<Sources, Diagnostics> {
    let source = source_of(path, paths::open_given(path, OFlags::empty()))?;
    Ok(included(path, &source, included_source))
}

/// Reads the files of a running daemon again. This must not block: a pipe that the settings were read from at startup
/// is at its end, and a FIFO may never have data.
///
/// # Errors
///
/// Returns the errors of [`source`], and an error if the path is not a regular file.
pub fn reread_source(path: &Path) -> Result<Sources, Diagnostics> {
    let source = regular(path)?;
    Ok(included(path, &source, included_source))
}

/// Reads a regular file without blocking.
fn regular(path: &Path) -> Result<Source, Diagnostics> {
    let is_odd = |found: std::io::Result<Metadata>| {
        found.is_ok_and(|found| !found.is_file() && !found.is_dir())
    };
    let refused = || {
        let message = "the configuration cannot be reloaded: it is not a regular file";
        let suggestion = "to be able to reload, start the daemon with the path of a file";
        let name = path.display().to_string();
        Err(Diagnostics::unreadable(&name, message.to_owned(), suggestion.to_owned()))
    };
    // Opening a device can have side effects, so the path is checked before. The open file is checked again, because it
    // may be another file.
    if is_odd(std::fs::metadata(path)) {
        return refused();
    }
    match open_without_waiting(path) {
        Ok(file) if is_odd(file.metadata()) => refused(),
        opened => source_of(path, opened),
    }
}

/// Opens a file for reading. Neither opening nor reading blocks: a pipe would block until a writer opens it, and some
/// files of the kernel, such as `/proc/kmsg`, until there is new data.
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    paths::open_given(path, OFlags::NONBLOCK | OFlags::NOCTTY)
}

/// Reads an included file.
fn included_source(path: &Path) -> Result<Source, Diagnostics> {
    let name = path.display().to_string();
    let bytes = paths::read_protected(path).map_err(|error| {
        let message = format!("the file cannot be included: {error}");
        Diagnostics::unreadable(&name, message, suggestion(&error).to_owned())
    })?;
    text_of(name, bytes)
}

fn clarify_error(error: std::io::Error) -> std::io::Error {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let text = "it is not a regular file, and there is nothing to read at the moment";
            std::io::Error::new(std::io::ErrorKind::WouldBlock, text)
        }
        _ => error,
    }
}

fn source_of(path: &Path, opened: std::io::Result<File>) -> Result<Source, Diagnostics> {
    let name = path.display().to_string();
    let bytes = opened.and_then(|file| read(file).map_err(clarify_error)).map_err(|error| {
        let message = format!("the configuration file cannot be read: {error}");
        Diagnostics::unreadable(&name, message, suggestion(&error).to_owned())
    })?;
    text_of(name, bytes)
}

fn text_of(name: String, bytes: Vec<u8>) -> Result<Source, Diagnostics> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("the configuration file is larger than {FILE_BYTES_MAX} bytes");
        return Err(Diagnostics::unreadable(&name, message, "is this the right file?".into()));
    }
    let text = String::from_utf8(bytes).map_err(|error| not_utf8(&name, error.as_bytes()))?;
    Ok(Source { name, text })
}

/// Returns an error at the first byte that is not UTF-8. The text before it is the same in both encodings.
fn not_utf8(name: &str, bytes: &[u8]) -> Diagnostics {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let at = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let fault =
        Fault::at(at..at + char::REPLACEMENT_CHARACTER.len_utf8(), "this is not UTF-8 text")
            .suggestion("save the file as UTF-8");
    Diagnostics::of(&Sources::from(&Source { name: name.to_owned(), text }), vec![fault])
}

/// Reads at most one byte more than is allowed, so that an endless file ends.
fn read(file: File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn suggestion(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => "check the path; it is relative to the current directory",
        // An error without a number is one of crate `paths`, which contains the fix.
        std::io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            "root and the daemon's user must be the only ones who can change it and its directory"
        }
        std::io::ErrorKind::PermissionDenied => "allow the daemon's user to read it",
        std::io::ErrorKind::IsADirectory => "name the file in it",
        _ => "check that it is a readable file",
    }
}
