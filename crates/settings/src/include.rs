//! The files that a configuration includes.
//!
//! What it is: the expansion of `include = "conf.d/*.toml"` at the top of a file into paths. What it must never depend
//! on: the content of those files.

use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostics::Diagnostics;
use crate::fault::Fault;
use crate::source::Source;
use crate::sources::Sources;
use crate::table::INCLUDE;
use crate::tree::{self, Node, Raw};

/// The maximum number of files of one configuration.
const FILES_MAX: usize = 1000;

/// Adds the files that the file at `path` includes. `read` reads one file.
pub(crate) fn included(
    path: &Path,
    source: &Source,
    read: impl Fn(&Path) -> Result<Source, Diagnostics>,
) -> Sources {
    let mut sources = Sources::including(source);
    let (table, _) = tree::read(&source.text);
    let Some(entry) = table.into_iter().find(|entry| entry.key == INCLUDE) else { return sources };
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let patterns = match entry.node.raw {
        Raw::List(items) => items,
        _ => vec![entry.node],
    };
    for pattern in patterns {
        add(&mut sources, folder, &pattern, &read);
    }
    sources
}

fn add(
    sources: &mut Sources,
    folder: &Path,
    pattern: &Node,
    read: impl Fn(&Path) -> Result<Source, Diagnostics>,
) {
    let place = pattern.span.clone();
    let Raw::Text(text) = &pattern.raw else {
        let message = format!("`{INCLUDE}` cannot be {}", pattern.raw.title());
        let fault = Fault::at(place, message).expected("expected a path, or a list of paths");
        return sources.fault(fault.suggestion(format!("write `{INCLUDE} = \"conf.d/*.toml\"`")));
    };
    let files = match matching(folder, text) {
        Ok(files) => files,
        Err(why) => {
            let message = format!("`{text}` cannot be included: {why}");
            return sources.fault(
                Fault::at(place, message).suggestion("check the path; it is relative to this file"),
            );
        }
    };
    for file in files {
        if sources.count() > FILES_MAX {
            let message = format!("more than {FILES_MAX} files are included");
            return sources.fault(Fault::at(place, message).suggestion("check the pattern"));
        }
        match read(&file) {
            Ok(source) => sources.add(&source),
            Err(errors) => {
                let why = errors.iter().next().map(|error| error.message.clone());
                let message = format!("{}: {}", file.display(), why.unwrap_or_default());
                sources.fault(Fault::at(place.clone(), message).suggestion("correct this file"));
            }
        }
    }
}

/// Returns the files that match a pattern, sorted by name. `*` in the last part matches any characters. A hidden file
/// must be named.
fn matching(folder: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let whole = folder.join(pattern);
    let name = whole.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let parent = whole.parent().unwrap_or_else(|| Path::new(""));
    if parent.to_string_lossy().contains('*') {
        return Err(io::Error::other("`*` stands only in the last part of a path"));
    }
    if !name.contains('*') {
        return std::fs::metadata(&whole).map(|_| vec![whole]);
    }
    let listed = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(listed)? {
        let found = entry?.file_name();
        let Some(found) = found.to_str() else { continue };
        if fits(&name, found) && !found.starts_with('.') {
            files.push(parent.join(found));
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a name matches a pattern in which `*` matches any characters.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| fits(after, &rest[at..]))
        }),
    }
}
