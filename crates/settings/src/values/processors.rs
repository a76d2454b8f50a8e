//! Processors that programs run on.

/// Processors for the programs of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processors {
    /// Wherever the kernel puts them.
    Any,
    /// On the one of the loop, which stays on it.
    Near,
    /// Each on another, in turn.
    Spread,
    /// On these.
    List(Vec<usize>),
}
