//! Parts of a bench, each measured by itself and kept, so that a page of all of them need not be
//! measured anew for one.

use crate::shell::{self, Failure};
use std::fs;
use std::path::Path;

/// What a bench is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    /// Where they are kept.
    pub(super) folder: &'a Path,
    /// All of them, in the order of the page.
    pub(super) names: &'a [&'a str],
    /// Measures and does not keep.
    pub(super) dry: bool,
}

impl<'a> Parts<'a> {
    /// Measures the parts that are wanted. Gives all that there are, those of earlier runs included.
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

    /// Whether all are there; says which are not.
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
