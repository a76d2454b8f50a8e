//! Conversion of HTTP requests to records: the parameters of the target become a record, and the result becomes the
//! body of the reply.
//!
//! Pure. All parameters are texts; the statement determines their types.

use fields::{Case, Fields, Value, json};
use wire::http1::Method;

/// How a pool of records answers HTTP requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRecord {
    /// The path pattern; `None`: every path.
    path: Option<Vec<Segment>>,
    /// The `Content-Type` of the replies.
    pub content_type: &'static str,
    /// The replies are lines, each with a line end.
    pub lines: bool,
}

/// A path segment of the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// A fixed text.
    Text(Box<str>),
    /// A non-empty text, which becomes the parameter of this name.
    Named(Box<str>),
}

/// Why a request cannot be converted to a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// The method is neither `GET` nor `HEAD`.
    Method,
    /// The path does not match the pattern.
    Path,
    /// A parameter is malformed. The text is the reason.
    Parameter(&'static str),
}

impl QueryError {
    /// The HTTP status: 405, 404 or 400.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Method => 405,
            Self::Path => 404,
            Self::Parameter(_) => 400,
        }
    }

    /// The message for the client.
    pub const fn message(&self) -> &'static str {
        match self {
            Self::Method => "only GET and HEAD are answered here",
            Self::Path => "nothing is answered at this path",
            Self::Parameter(why) => why,
        }
    }
}

impl QueryRecord {
    /// `path` is a pattern such as `/hits/{id}`, which the settings have validated; `None` matches every path.
    pub fn new(path: Option<&str>, content_type: &'static str, lines: bool) -> Self {
        let segment = |text: &str| match text.strip_prefix('{').and_then(|it| it.strip_suffix('}'))
        {
            Some(name) => Segment::Named(name.into()),
            None => Segment::Text(text.into()),
        };
        let path = path.map(|path| path.split('/').skip(1).map(segment).collect());
        Self { path, content_type, lines }
    }

    /// Appends the record of a request to `out` as JSON: the parameters of its path and its query, as texts. Duplicate
    /// names are kept; the reader of the record rejects them.
    ///
    /// # Errors
    /// When the request cannot be converted; `out` is then unchanged.
    pub fn record(
        &self,
        method: Method,
        path: &[u8],
        query: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), QueryError> {
        if !matches!(method, Method::Get | Method::Head) {
            return Err(QueryError::Method);
        }
        let mut record = Fields::new().with_case(Case::Exact);
        let (mut name, mut value) = (Vec::new(), Vec::new());
        self.match_path(path, &mut record, &mut value)?;
        for pair in query.unwrap_or_default().split(|&byte| byte == b'&') {
            if pair.is_empty() {
                continue;
            }
            let mut sides = pair.splitn(2, |&byte| byte == b'=');
            let (left, right) =
                (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
            decode(left, Plus::IsBlank, &mut name)?;
            decode(right, Plus::IsBlank, &mut value)?;
            push(&mut record, &name, &value)?;
        }
        json::encode(&record, out).map_err(|_| QueryError::Parameter(NOT_UTF8))
    }

    fn match_path(
        &self,
        path: &[u8],
        record: &mut Fields,
        value: &mut Vec<u8>,
    ) -> Result<(), QueryError> {
        let Some(pattern) = &self.path else { return Ok(()) };
        let mut given = path.split(|&byte| byte == b'/').skip(1);
        for segment in pattern {
            let text = given.next().ok_or(QueryError::Path)?;
            decode(text, Plus::IsItself, value)?;
            match segment {
                Segment::Text(text) if text.as_bytes() == value.as_slice() => {}
                Segment::Named(name) if !value.is_empty() => {
                    push(record, name.as_bytes(), value)?;
                }
                Segment::Text(_) | Segment::Named(_) => return Err(QueryError::Path),
            }
        }
        given.next().map_or(Ok(()), |_| Err(QueryError::Path))
    }
}

const NOT_UTF8: &str = "a parameter is not UTF-8";
const TOO_LARGE: &str = "the parameters are too large";
const ESCAPE: &str = "a `%` has no two hexadecimal digits behind it";

fn push(record: &mut Fields, name: &[u8], value: &[u8]) -> Result<(), QueryError> {
    let pushed = record.append(name, Value::Bytes(value));
    pushed.map(drop).map_err(|_| QueryError::Parameter(TOO_LARGE))
}

/// How to decode `+`: in a query it is a space, in a path it is literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plus {
    IsBlank,
    IsItself,
}

/// Replaces the content of `out` with the percent-decoded `text`.
fn decode(text: &[u8], plus: Plus, out: &mut Vec<u8>) -> Result<(), QueryError> {
    out.clear();
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'%' => {
                let digits = rest.split_at_checked(2).and_then(|(digits, behind)| {
                    let of = |digit: u8| char::from(digit).to_digit(16);
                    let byte = of(digits[0])? << 4 | of(digits[1])?;
                    Some((u8::try_from(byte).ok()?, behind))
                });
                let (byte, behind) = digits.ok_or(QueryError::Parameter(ESCAPE))?;
                out.push(byte);
                rest = behind;
            }
            b'+' if plus == Plus::IsBlank => out.push(b' '),
            byte => out.push(byte),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pattern: Option<&str>, target: &str) -> Result<String, u16> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (target, None),
        };
        let mut out = Vec::new();
        let question = QueryRecord::new(pattern, "text/plain", true);
        let record = question.record(Method::Get, path.as_bytes(), query, &mut out);
        record.map_err(|why| why.status()).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_query_becomes_a_record_of_texts() {
        let any = |target| asked(None, target).unwrap();
        assert_eq!(any("/"), "{}");
        assert_eq!(any("/x?"), "{}");
        assert_eq!(
            any("/?a=1&b=x%20y+z&c&=d&&e=%22%5c"),
            r#"{"a":"1","b":"x y z","c":"","":"d","e":"\"\\"}"#
        );
        assert_eq!(any("/?a=1=2&%61b=%c3%A4"), r#"{"a":"1=2","ab":"ä"}"#);
    }

    #[test]
    fn segments_of_the_path_are_parameters() {
        let hit = |target| asked(Some("/hits/{id}"), target);
        assert_eq!(hit("/hits/7?id2=8").unwrap(), r#"{"id":"7","id2":"8"}"#);
        assert_eq!(hit("/hits/a+b%2fc").unwrap(), r#"{"id":"a+b/c"}"#);
        assert_eq!(hit("/%68its/7").unwrap(), r#"{"id":"7"}"#);
        for none in ["/", "/hits", "/hits/", "/hits/7/", "/hits/7/8", "/hit/7", "//hits/7", "*", ""]
        {
            assert_eq!(hit(none), Err(404), "{none}");
        }
        assert_eq!(asked(Some("/"), "/").unwrap(), "{}");
        assert_eq!(asked(Some("/"), "/x"), Err(404));
        assert_eq!(asked(Some("/hits/"), "/hits/").unwrap(), "{}");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for bad in ["/?a=%", "/?a=%2", "/?a=%zz", "/?%=1", "/?a=%ff", "/?%c3=1"] {
            assert_eq!(asked(None, bad), Err(400), "{bad}");
        }
        assert_eq!(asked(Some("/{id}"), "/%g0"), Err(400));
        let question = QueryRecord::new(None, "text/plain", true);
        for method in [Method::Post, Method::Put, Method::Delete, Method::Options] {
            let mut out = Vec::new();
            assert_eq!(question.record(method, b"/", None, &mut out), Err(QueryError::Method));
        }
    }
}
