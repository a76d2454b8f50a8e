//! The sources of the values of parameters and of parts of the acknowledgement.

use fields::{Fields, Value};
use sql::ColumnParameter;

use crate::DatabaseError;

/// Names that refer to the request itself. A record cannot give them another value.
const OF_REQUEST: [(&str, Source); 3] =
    [("_id", Source::Id), ("_client", Source::Client), ("_at", Source::At)];

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The id of the request.
    Id,
    /// The client.
    Client,
    /// The time of receipt, in microseconds since the Unix epoch.
    At,
    /// The member of the record with this number in [`Members`].
    Member(usize),
}

impl Source {
    /// Returns the description of a value of the request itself, for messages.
    pub(crate) const fn title(self) -> Option<&'static str> {
        match self {
            Self::Member(_) => None,
            Self::Id => Some("the number of a request, which has 64 bits"),
            Self::At => Some("a number of microseconds since 1970"),
            Self::Client => Some("the text of an address with its port"),
        }
    }
}

/// Returns the source of a name that refers to the request itself.
pub(crate) fn reserved(name: &str) -> Option<Source> {
    OF_REQUEST.iter().find(|(reserved, _)| *reserved == name).map(|(_, source)| *source)
}

/// Whether a name refers to the request itself.
#[cfg(feature = "server")]
pub(crate) fn is_reserved(name: &str) -> bool {
    reserved(name).is_some()
}

/// Returns the error of a parameter for a column of this type, which does not accept `what` it is.
pub(crate) fn unfit(given: &ColumnParameter, of: &str, what: &str, advice: &str) -> DatabaseError {
    let ColumnParameter { column, name, at } = given;
    let text = format!(
        "parameter `:{name}` goes into column `{}` of type {of}, which does not take {what}{advice}",
        column.text
    );
    DatabaseError::statement(&text, Some(*at))
}

#[cfg(feature = "server")]
impl Source {
    /// Returns the description of a value of the request itself, if a column of this type does not accept it.
    pub(crate) fn misfit(self, of: &str) -> Option<&'static str> {
        let text = ["text", "character varying", "bpchar", "citext", "name", "varchar", "char"];
        let text = text.contains(&of) || of.ends_with("text");
        let number = ["bigint", "numeric", "decimal", "double precision", "double"];
        let number = number.contains(&of);
        let takes = match self {
            Self::Member(_) => true,
            Self::Id | Self::At => text || number,
            Self::Client => text,
        };
        if takes { None } else { self.title() }
    }
}

/// The names that are read from each record, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members(Fields);

impl Members {
    /// Returns the source of `name`, and adds it if the record must have it.
    pub(crate) fn source(&mut self, name: &str) -> Result<Source, DatabaseError> {
        if let Some(source) = reserved(name) {
            return Ok(source);
        }
        let member = self.0.append_if_absent(name, Value::Null);
        member.map(Source::Member).map_err(|_| DatabaseError::NameLength(name.to_owned()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.names().map(|name| std::str::from_utf8(name).expect("each was text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_noted_once_and_the_names_of_the_request_never() {
        let mut members = Members::default();
        assert_eq!(members.source("a"), Ok(Source::Member(0)));
        assert_eq!(members.source("_id"), Ok(Source::Id));
        assert_eq!(members.source("b"), Ok(Source::Member(1)));
        assert_eq!(members.source("a"), Ok(Source::Member(0)));
        assert_eq!(members.iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_name_that_no_record_can_have_is_told() {
        let error = Members::default().source(&"a".repeat(1 << 16)).unwrap_err();
        let said = "a name may have 65535 bytes, and `aaaaaaaaaaaaaaaaaaaa…` has 65536";
        assert_eq!(error.to_string(), said);
    }
}
