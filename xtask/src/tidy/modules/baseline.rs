//! The remaining violations of the rules. The check fails if a figure is exceeded, and also if it is too high, so that
//! it can only shrink. A line whose figures are all zero must be removed.

/// The allowed figures.
#[derive(Debug)]
pub(super) struct Baseline {
    /// Crates with import cycles: the number of files in a cycle, and the number of modules in a cycle of folders that
    /// does not appear as a cycle of files.
    pub(super) cycles: &'static [(&'static str, usize, usize)],
    /// Crates with more lines than the limit: their lines in thousands, rounded up.
    pub(super) large_crates: &'static [(&'static str, usize)],
    /// Structs with too many fields that are passed between modules: the number of modules that take them by `&mut`.
    pub(super) wide_structs: &'static [(&'static str, usize)],
}

/// The figures of this checkout.
pub(super) const BASELINE: Baseline =
    Baseline { cycles: &[], large_crates: &[], wide_structs: &[] };
