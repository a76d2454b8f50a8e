//! Parts of a benchmark. Each is measured separately and stored, so that a page can be generated again after measuring
//! one part.

use crate::shell::{self, Failure};
use std::fs;
use std::path::Path;

/// The parts of a benchmark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    /// The folder where they are stored.
    pub(super) folder: &'a Path,
    /// All names, in the order of the page.
    pub(super) names: &'a [&'a str],
    /// Measure without storing.
    pub(super) dry: bool,
}

impl<'a> Parts<'a> {
    /// Measures the wanted parts. Returns these and the stored parts of earlier runs.
    pub(super) fn run(
        self,
        wanted: impl Fn(&str) -> bool,
        mut measure: impl FnMut(&str) -> Result<String, Failure>,
    ) -> Result<Vec<(&'a str, String)>, Failure> {
        let mut all = Vec::new();
        for &name in self.names {
            let file = self.folder.join(name);
            if wanted(name) {
                eprintln!("measuring {name}");
                let measured = measure(name)?;
                if !self.dry {
                    shell::write(&file, &measured)?;
                }
                all.push((name, measured));
            } else if let Ok(kept) = fs::read_to_string(&file) {
                all.push((name, kept));
            }
        }
        Ok(all)
    }

    /// Returns whether all parts exist. Prints the missing ones.
    pub(super) fn are_all(self, there: &[(&str, String)]) -> bool {
        let is_missing = |name: &&str| !there.iter().any(|(one, _)| one == name);
        let missing: Vec<&str> = self.names.iter().copied().filter(is_missing).collect();
        if !missing.is_empty() {
            println!("not measured yet, so the page is not made anew: {}", missing.join(", "));
        }
        missing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let parts = Parts { folder: folder.path(), names: &["one", "two"], dry: false };
        let one = parts.run(|name| name == "one", |_| Ok("1".to_owned())).unwrap();
        assert_eq!(one, [("one", "1".to_owned())]);
        assert!(!parts.are_all(&one));
        let dry = Parts { dry: true, ..parts };
        let both = dry.run(|name| name == "two", |_| Ok("2".to_owned())).unwrap();
        assert_eq!(both, [("one", "1".to_owned()), ("two", "2".to_owned())]);
        assert!(parts.are_all(&both));
        assert_eq!(parts.run(|_| false, |_| Ok(String::new())).unwrap(), one);
    }
}
