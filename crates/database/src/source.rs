//! Where a parameter or a part of the acknowledgement takes its value.

/// Names that stand for the request itself. A record cannot give them another value.
const OF_REQUEST: [(&str, Source); 3] =
    [("_id", Source::Id), ("_client", Source::Client), ("_at", Source::At)];

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The request's id.
    Id,
    /// Who asked.
    Client,
    /// When it was received, in microseconds since the Unix epoch.
    At,
    /// The member of the record with that number in [`Members`].
    Member(usize),
}

/// The names that are taken from each record, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members(Vec<Box<str>>);

impl Members {
    /// The source that `name` stands for, noting it when the record must have it.
    pub(crate) fn source(&mut self, name: &str) -> Source {
        if let Some((_, source)) = OF_REQUEST.iter().find(|(reserved, _)| *reserved == name) {
            return *source;
        }
        let known = self.0.iter().position(|known| **known == *name);
        Source::Member(known.unwrap_or_else(|| {
            self.0.push(name.into());
            self.0.len() - 1
        }))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_noted_once_and_the_names_of_the_request_never() {
        let mut members = Members::default();
        assert_eq!(members.source("a"), Source::Member(0));
        assert_eq!(members.source("_id"), Source::Id);
        assert_eq!(members.source("b"), Source::Member(1));
        assert_eq!(members.source("a"), Source::Member(0));
        assert_eq!(members.iter().collect::<Vec<_>>(), ["a", "b"]);
    }
}
