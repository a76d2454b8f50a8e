//! What an operator orders.

/// What an operator orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The pool answers that it is sorry, or no longer.
    Sorry(bool),
    /// A worker gets this weight; none: the one that its settings say.
    Weight(String, Option<u32>),
    /// A worker gets nothing.
    Disable(String),
    /// A worker serves like the others again.
    Enable(String),
    /// A worker keeps the clients that are bound to it, and gets no others.
    Drain(String),
}
