//! Malformed HTTP messages, by reason.
//!
//! A reason is an index into a list of words that the protocol supplies. So this module does not depend on the
//! protocol.

use super::published::Published;

/// The label values of all reasons. A reason is counted by its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectReasons {
    /// Reasons for a malformed request or response. Empty without an HTTP listener.
    pub messages: Vec<&'static str>,
    /// Reasons for a rejected request path. Empty without an HTTP listener.
    pub paths: Vec<&'static str>,
}

/// The counts of one shard.
#[derive(Debug, Default)]
pub struct Rejects {
    requests: Counts,
    replies: Counts,
    paths: Counts,
    dirty: bool,
}

/// Counts by index. Reasons that never occurred may be missing at the end.
#[derive(Debug, Default)]
struct Counts(Vec<u64>);

impl Counts {
    fn add(&mut self, reason: usize) {
        if self.0.len() <= reason {
            self.0.resize(reason + 1, 0);
        }
        self.0[reason] += 1;
    }
}

impl Rejects {
    /// Counts a malformed request.
    pub fn count_request(&mut self, reason: usize) {
        self.requests.add(reason);
        self.dirty = true;
    }

    /// Counts a malformed response of a worker.
    pub fn count_reply(&mut self, reason: usize) {
        self.replies.add(reason);
        self.dirty = true;
    }

    /// Counts a request whose path was rejected by its route.
    pub fn count_path(&mut self, reason: usize) {
        self.paths.add(reason);
        self.dirty = true;
    }

    /// Stores the counts, if any of them has changed.
    pub fn publish(&mut self, to: &PublishedRejects) {
        if std::mem::take(&mut self.dirty) {
            let PublishedRejects { requests, replies, paths } = to;
            for (to, counts) in
                [(requests, &self.requests), (replies, &self.replies), (paths, &self.paths)]
            {
                to.iter().zip(&counts.0).for_each(|((_, to), &count)| to.set(count));
            }
        }
    }
}

/// The published counts, each with its label value.
#[derive(Debug)]
pub struct PublishedRejects {
    requests: Vec<(&'static str, Published)>,
    replies: Vec<(&'static str, Published)>,
    paths: Vec<(&'static str, Published)>,
}

impl PublishedRejects {
    pub(super) fn new(reasons: &RejectReasons) -> Self {
        let places = |words: &[&'static str]| {
            words.iter().map(|word| (*word, Published::default())).collect()
        };
        Self {
            requests: places(&reasons.messages),
            replies: places(&reasons.messages),
            paths: places(&reasons.paths),
        }
    }

    /// Returns zeroed counters for the same reasons.
    pub(super) fn zero(&self) -> Self {
        let words =
            |counts: &[(&'static str, Published)]| counts.iter().map(|(word, _)| *word).collect();
        Self::new(&RejectReasons { messages: words(&self.requests), paths: words(&self.paths) })
    }

    pub(super) fn add(&self, other: &Self) {
        let Self { requests, replies, paths } = other;
        for (to, from) in
            [(&self.requests, requests), (&self.replies, replies), (&self.paths, paths)]
        {
            to.iter().zip(from).for_each(|((_, to), (_, from))| to.add(from));
        }
    }

    /// Returns each count with the side of the message and the label value of its reason.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let Self { requests, replies, paths } = self;
        [("request", requests), ("reply", replies), ("request", paths)].into_iter().flat_map(
            |(side, counts)| counts.iter().map(move |(word, count)| (side, *word, count.load())),
        )
    }
}
