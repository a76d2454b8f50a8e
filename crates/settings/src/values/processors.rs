//! The processors that programs run on.

/// The processors for the programs of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processors {
    /// The kernel chooses.
    Any,
    /// The processor of the event loop, to which the loop is pinned.
    Near,
    /// Each program on another processor, in turn.
    Spread,
    /// These processors.
    List(Vec<usize>),
}
