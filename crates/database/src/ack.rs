//! The acknowledgement: a text with placeholders for values of the record.

use crate::source::{Members, Source};
use crate::{Action, DatabaseError, Job};

/// A part of the acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A fixed text.
    Text(Box<str>),
    /// A value of the record or of the request.
    Value(Source),
    /// The number of rows that were stored or changed.
    Rows,
    /// The value that the statement returned in this column.
    Returned(usize),
}

/// Returns the acknowledgement of a job whose statement returns these columns. A query has none, because it is answered
/// with its rows.
pub(crate) fn of(
    job: &Job,
    members: &mut Members,
    returned: &[String],
) -> Result<Vec<Piece>, DatabaseError> {
    match job.action {
        Action::Query(_) => Ok(Vec::new()),
        Action::Insert { .. } | Action::Statement(_) => parse(&job.ack, members, returned),
    }
}

/// Parses `template`: `{name}` is replaced by a value, `{{` and `}}` by single braces. Names that records must have are
/// added to `members`.
pub(crate) fn parse(
    template: &str,
    members: &mut Members,
    returned: &[String],
) -> Result<Vec<Piece>, DatabaseError> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut letters = template.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let doubled = letters.next_if(|(_, next)| *next == letter && "{}".contains(letter));
        match letter {
            '\n' | '\r' => {
                return Err(DatabaseError::Ack("a reply holds no line end, seen", at + 1));
            }
            '}' if doubled.is_none() => {
                return Err(DatabaseError::Ack("`}` without `{` (write `}}` for a brace)", at + 1));
            }
            '{' if doubled.is_none() => {
                let rest = &template[at + 1..];
                let name = rest.split('}').next().unwrap_or_default();
                if name.len() == rest.len() {
                    return Err(DatabaseError::Ack(
                        "`{` without `}` (write `{{` for a brace)",
                        at + 1,
                    ));
                }
                if name.is_empty() || name.contains('{') {
                    return Err(DatabaseError::Ack("`{` needs a name and `}` behind it", at + 1));
                }
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text).into()));
                }
                let column = returned.iter().position(|column| column == name);
                pieces.push(match (name, column) {
                    ("rows", _) => Piece::Rows,
                    (_, Some(column)) => Piece::Returned(column),
                    (_, None) => Piece::Value(members.source(name)?),
                });
                while letters.next().is_some_and(|(_, passed)| passed != '}') {}
            }
            _ => text.push(letter),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text.into()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(template: &str) -> String {
        let mut members = Members::default();
        match parse(template, &mut members, &["x".to_owned(), "y".to_owned()]) {
            Ok(pieces) => format!("{pieces:?} {}", members.iter().collect::<Vec<_>>().join(",")),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_are_values_and_doubled_braces_are_braces() {
        assert_eq!(shown("ok"), r#"[Text("ok")] "#);
        assert_eq!(shown("ok {id}"), r#"[Text("ok "), Value(Member(0))] id"#);
        assert_eq!(
            shown("{a}{_id}{a}{{b}}ä"),
            r#"[Value(Member(0)), Value(Id), Value(Member(0)), Text("{b}ä")] a"#
        );
        assert_eq!(shown(""), "[] ");
        assert_eq!(shown("{rows}{y}{z}"), "[Rows, Returned(1), Value(Member(0))] z");
    }

    #[test]
    fn what_is_no_template_is_told_with_its_place() {
        assert_eq!(shown("ok {id"), "`ack`: `{` without `}` (write `{{` for a brace) at byte 4");
        assert_eq!(shown("ok }"), "`ack`: `}` without `{` (write `}}` for a brace) at byte 4");
        assert_eq!(shown("{}"), "`ack`: `{` needs a name and `}` behind it at byte 1");
        assert_eq!(shown("{a{b}"), "`ack`: `{` needs a name and `}` behind it at byte 1");
        assert_eq!(shown("a\nb"), "`ack`: a reply holds no line end, seen at byte 2");
    }
}
