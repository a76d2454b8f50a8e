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

type Read = fn(&Path) -> Result<Source, Diagnostics>;

/// The suggested fix if other users can change what is included.
const PRIVATE: &str =
    "root and the daemon's user must be the only ones who can create files in this directory";

/// The maximum size of all files of one configuration together, in bytes.
const BYTES_MAX: usize = 16 << 20;

/// Adds the files that the file at `path` includes. `read` reads one file.
pub(crate) fn included(path: &Path, source: &Source, read: Read) -> Sources {
    let mut sources = Sources::including(source);
    let (table, _) = tree::read(&source.text);
    let Some(entry) = table.into_iter().find(|entry| entry.key == INCLUDE) else { return sources };
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let patterns = match entry.node.raw {
        Raw::List(items) => items,
        _ => vec![entry.node],
    };
    for pattern in patterns {
        add(&mut sources, folder, &pattern, read);
    }
    sources
}

fn add(sources: &mut Sources, folder: &Path, pattern: &Node, read: Read) {
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
            return sources.fault(Fault::at(place, message).suggestion(match why.kind() {
                io::ErrorKind::PermissionDenied => PRIVATE,
                _ => "check the path; it is relative to this file",
            }));
        }
    };
    for file in files {
        if sources.count() > FILES_MAX {
            let message = format!("more than {FILES_MAX} files are included");
            return sources.fault(Fault::at(place, message).suggestion("check the pattern"));
        }
        match read(&file) {
            Ok(source) if sources.text().len() + source.text.len() > BYTES_MAX => {
                let most = BYTES_MAX >> 20;
                let message =
                    format!("{}: the files have more than {most} MiB together", file.display());
                return sources.fault(Fault::at(place, message).suggestion("check the pattern"));
            }
            Ok(source) => sources.add(&source),
            Err(errors) => {
                for error in &errors {
                    let name = file.display();
                    let message = match error.is_located() {
                        true => {
                            format!("{name}:{}:{}: {}", error.line, error.column, error.message)
                        }
                        false => format!("{name}: {}", error.message),
                    };
                    let suggestion = error.suggestion.as_deref().unwrap_or("correct this file");
                    sources.fault(Fault::at(place.clone(), message).suggestion(suggestion));
                }
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
        return Err(io::Error::other("`*` is allowed only in the last part of a path"));
    }
    if !name.contains('*') {
        return std::fs::metadata(&whole).map(|_| vec![whole]);
    }
    let listed = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    paths::protected_directory(listed)?;
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

/// Whether a name matches a pattern in which `*` matches any characters. The time is at most the product of the two
/// lengths: the part after a `*` is placed at its first match, and only the last `*` is tried at later positions.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut of_name) = (0, 0);
    // The position after the last `*`, and the position of the name up to which it matches.
    let mut star = None;
    while of_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, of_name));
            }
            Some(byte) if *byte == name[of_name] => (at, of_name) = (at + 1, of_name + 1),
            _ => {
                let Some((after, matched)) = star else { return false };
                star = Some((after, matched + 1));
                (at, of_name) = (after, matched + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, name, matches) in [
            ("*", "", true),
            ("*", "a", true),
            ("*.toml", "a.toml", true),
            ("*.toml", ".toml.toml", true),
            ("*.toml", "a.toml.bak", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXcXb", false),
            ("ab*ba", "aba", false),
            ("a", "ab", false),
            ("é*", "é1", true),
        ] {
            assert_eq!(fits(pattern, name), matches, "{pattern} {name}");
        }
    }

    /// With exponential time this would not end.
    #[test]
    fn a_pattern_with_many_stars_is_matched_quickly() {
        let pattern = format!("{}b", "*a".repeat(100));
        assert!(!fits(&pattern, &"a".repeat(255)));
    }
}
