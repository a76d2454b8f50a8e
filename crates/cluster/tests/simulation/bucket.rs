//! A model of the bucket: one linearizable stream with one value per key.

use std::collections::BTreeMap;

use cluster::{Change, ChangeKind, Epoch, Subject, Value};

#[derive(Clone, Copy, Debug)]
struct Stored {
    revision: u64,
    kind: ChangeKind,
    /// The server's wall clock at the write.
    at_ms: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    stored: BTreeMap<Subject, Stored>,
    pub(crate) last: u64,
}

#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) contents: Contents,
    max_age_ms: u64,
    /// How far the server's wall clock is ahead.
    pub(crate) jumped_ms: u64,
    /// Raised when the contents are replaced.
    pub(crate) generation: u32,
}

impl Bucket {
    pub(crate) fn new(max_age_ms: u64) -> Self {
        Self { contents: Contents::default(), max_age_ms, jumped_ms: 0, generation: 0 }
    }

    fn change(&self, subject: Subject) -> Option<Change> {
        let Stored { revision, kind, .. } = *self.contents.stored.get(&subject)?;
        Some(Change { subject, revision, kind })
    }

    pub(crate) fn read(&self, subject: Subject) -> Option<Change> {
        self.change(subject)
    }

    /// All last changes from this revision, in the order of their revisions.
    pub(crate) fn changes(&self, from: u64) -> Vec<Change> {
        let all = self.contents.stored.keys().filter_map(|&subject| self.change(subject));
        let mut all: Vec<_> = all.filter(|change| change.revision >= from).collect();
        all.sort_by_key(|change| change.revision);
        all
    }

    pub(crate) fn first(&self) -> u64 {
        self.changes(0).first().map_or(self.contents.last + 1, |change| change.revision)
    }

    pub(crate) fn epoch(&self) -> Option<(Epoch, u64)> {
        match self.read(Subject::Epoch)? {
            Change { revision, kind: ChangeKind::Put(Value::Epoch(epoch)), .. } => {
                Some((epoch, revision))
            }
            _ => None,
        }
    }

    fn append(&mut self, now_ms: u64, subject: Subject, kind: ChangeKind) -> Change {
        self.contents.last += 1;
        let revision = self.contents.last;
        let stored = Stored { revision, kind, at_ms: now_ms + self.jumped_ms };
        self.contents.stored.insert(subject, stored);
        Change { subject, revision, kind }
    }

    /// Writes, if the key has the expected revision.
    pub(crate) fn write(
        &mut self,
        now_ms: u64,
        subject: Subject,
        value: Option<Value>,
        expect: u64,
    ) -> Option<Change> {
        let is_expected = match self.read(subject) {
            None => expect == 0,
            Some(Change { kind: ChangeKind::Put(_), revision, .. }) => revision == expect,
            Some(Change { revision, .. }) => expect == 0 || revision == expect,
        };
        let kind = value.map_or(ChangeKind::Deleted, ChangeKind::Put);
        is_expected.then(|| self.append(now_ms, subject, kind))
    }

    /// Writes the markers of the values that are too old.
    pub(crate) fn expire(&mut self, now_ms: u64) -> Vec<Change> {
        let now = now_ms + self.jumped_ms;
        let is_over = |stored: &Stored| now >= stored.at_ms + self.max_age_ms;
        let over: Vec<_> =
            self.contents.stored.iter().filter(|(_, stored)| is_over(stored)).collect();
        let over: Vec<_> =
            over.into_iter().map(|(&subject, stored)| (subject, stored.kind)).collect();
        let mut markers = Vec::new();
        for (subject, kind) in over {
            if matches!(kind, ChangeKind::Put(_)) {
                markers.push(self.append(now_ms, subject, ChangeKind::Expired));
            } else {
                self.contents.stored.remove(&subject);
            }
        }
        markers
    }

    /// The operator removes the markers of deletions.
    pub(crate) fn compact(&mut self) {
        self.contents.stored.retain(|_, stored| stored.kind != ChangeKind::Deleted);
    }

    /// Replaces the contents by an old copy, or by nothing.
    pub(crate) fn replace(&mut self, contents: Contents) {
        self.contents = contents;
        self.generation += 1;
    }
}
