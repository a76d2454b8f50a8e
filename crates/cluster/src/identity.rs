//! Ids and other numbers with a meaning.

/// The target that a client is bound to: a hash of the server's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target(pub u64);

/// The daemon that wrote a value. Each daemon has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin(pub u64);

/// The identity of the contents of a bucket. It changes when the bucket was wiped or restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(pub u128);

/// Names an operation that the replica started. Answers carry it. Answers to an operation of an earlier connection are
/// ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationId(pub u64);
