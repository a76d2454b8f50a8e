//! A text file of the checkout.

use std::ffi::OsStr;
use std::path::Path;

/// A text file of the checkout.
#[derive(Debug)]
pub(crate) struct File {
    /// The path from the root of the checkout, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(OsStr::to_str).unwrap_or_default()
    }

    pub(super) fn is_rust(&self) -> bool {
        self.extension() == "rs"
    }
}
