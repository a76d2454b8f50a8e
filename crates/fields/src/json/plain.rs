//! A fast parser from plain records into rows. A plain record is one object with exactly one member for each column, in
//! any order, without escapes and nesting. Use [`adopt`](super::adopt) and [`Rows::push_record`] for other records;
//! they also report errors.

use crate::{Case, Rows, Schema, Value};

/// The maximum number of columns for this parser. The values of the columns are stored on the stack.
const COLUMNS_MAX: usize = 32;

/// The maximum length of a record for this parser, in bytes. It is within the limits of every set.
const BYTES_MAX: usize = 16 * 1024;

/// A parser from plain records into rows with one schema.
#[derive(Clone, Debug)]
pub struct Plain {
    /// The names in quotes.
    names: Box<[Box<[u8]>]>,
}

impl Plain {
    /// Creates a parser for rows with this schema. `None` if there are more than 32 columns, names are compared without
    /// case, two names are equal, or a name needs escapes in JSON.
    #[must_use]
    pub fn new(schema: &Schema) -> Option<Self> {
        let names: Vec<&[u8]> = schema.names().collect();
        let escaped = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
        let differs = |(index, name): (usize, &&[u8])| {
            !names[..index].contains(name) && !name.iter().any(escaped)
        };
        let fits = schema.case() == Case::Exact && names.len() <= COLUMNS_MAX;
        if !fits || !names.iter().enumerate().all(differs) {
            return None;
        }
        let quoted = |name: &&[u8]| [b"\"", *name, b"\""].concat().into_boxed_slice();
        Some(Self { names: names.iter().map(quoted).collect() })
    }

    /// Appends the record `text` as a row to `rows`, which must have the schema of this parser. Returns false if the
    /// record is not plain or is invalid. In this case `rows` is unchanged.
    ///
    /// ```
    /// use fields::{Case, Rows, Schema, Value, json::Plain};
    ///
    /// let schema = Schema::new(["at", "path"], Case::Exact);
    /// let plain = Plain::new(&schema).unwrap();
    /// let mut rows = Rows::new(schema);
    /// assert!(plain.push(&mut rows, br#"{"path":"/","at":17}"#));
    /// assert_eq!(rows.value(0, 0), Some(Value::Number(b"17")));
    /// assert!(!plain.push(&mut rows, br#"{"path":"\u002f","at":17}"#));
    /// ```
    pub fn push(&self, rows: &mut Rows, text: &[u8]) -> bool {
        let fits = text.len() <= BYTES_MAX && std::str::from_utf8(text).is_ok();
        fits && (self.push_in_order(rows, text) || self.push_in_any_order(rows, text))
    }

    /// Like [`Self::push`], but for records whose members are in the order of the columns. Most writers keep that
    /// order. Each value is written to its cell immediately.
    fn push_in_order(&self, rows: &mut Rows, text: &[u8]) -> bool {
        let Some(mut rest) = behind(text, b'{') else { return false };
        let mut names = self.names.iter().enumerate();
        let values = std::iter::from_fn(|| {
            let (column, name) = names.next()?;
            let at = if column == 0 { rest } else { behind(rest, b',')? };
            let (value, next) = value(behind(blanks(at).strip_prefix(&**name)?, b':')?)?;
            rest = next;
            Some(value)
        });
        if rows.push(values).is_err() {
            return false;
        }
        let ends = behind(rest, b'}').is_some_and(|rest| blanks(rest).is_empty());
        if !ends {
            rows.truncate(rows.len() - 1);
        }
        ends
    }

    fn push_in_any_order(&self, rows: &mut Rows, text: &[u8]) -> bool {
        let mut found = [Value::Null; COLUMNS_MAX];
        self.read(text, &mut found).is_some()
            && rows.push(found[..self.names.len()].iter().copied()).is_ok()
    }

    /// Finds the value of each column. `None` if `text` contains anything else.
    fn read<'t>(&self, text: &'t [u8], found: &mut [Value<'t>; COLUMNS_MAX]) -> Option<()> {
        let mut rest = behind(text, b'{')?;
        let mut seen = 0_u32;
        for next in 0..self.names.len() {
            if next > 0 {
                rest = behind(rest, b',')?;
            }
            rest = blanks(rest);
            let column = self.column(rest, next)?;
            if seen & 1 << column != 0 {
                return None;
            }
            seen |= 1 << column;
            rest = behind(&rest[self.names[column].len()..], b':')?;
            (found[column], rest) = value(rest)?;
        }
        blanks(behind(rest, b'}')?).is_empty().then_some(())
    }

    /// The column whose name `text` begins with. Usually it is the column after the previous one.
    fn column(&self, text: &[u8], next: usize) -> Option<usize> {
        let is_named = |name: &[u8]| text.starts_with(name);
        if is_named(&self.names[next]) {
            return Some(next);
        }
        self.names.iter().position(|name| is_named(name))
    }
}

/// The text after optional blanks and `byte`.
#[inline]
fn behind(text: &[u8], byte: u8) -> Option<&[u8]> {
    match blanks(text) {
        [first, rest @ ..] if *first == byte => Some(rest),
        _ => None,
    }
}

/// The text after optional blanks. Usually there are no blanks. All blanks are at most a space.
#[inline]
fn blanks(text: &[u8]) -> &[u8] {
    match text.first() {
        Some(..=b' ') => behind_blanks(text),
        _ => text,
    }
}

fn behind_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = text {
        text = rest;
    }
    text
}

/// The bytes that end a plain string or that it must not contain: the quote, the backslash, and control characters.
static STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut byte = 0;
    while byte < b' ' as usize {
        stops[byte] = true;
        byte += 1;
    }
    stops[b'"' as usize] = true;
    stops[b'\\' as usize] = true;
    stops
};

/// Parses a plain value after optional blanks, and returns it with the remaining text.
#[inline]
fn value(text: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let text = blanks(text);
    match text {
        [b'"', inner @ ..] => {
            let end = inner.iter().position(|byte| STOPS[usize::from(*byte)])?;
            (inner[end] == b'"').then(|| (Value::Bytes(&inner[..end]), &inner[end + 1..]))
        }
        [b'-' | b'0'..=b'9', ..] => {
            let (number, rest) = text.split_at(number(text)?);
            Some((Value::Number(number), rest))
        }
        [b'n', b'u', b'l', b'l', rest @ ..] => Some((Value::Null, rest)),
        [b't', b'r', b'u', b'e', rest @ ..] => Some((Value::Json(b"true"), rest)),
        [b'f', b'a', b'l', b's', b'e', rest @ ..] => Some((Value::Json(b"false"), rest)),
        _ => None,
    }
}

/// The length of the number at the beginning of `text` (RFC 8259, section 6), in bytes.
fn number(text: &[u8]) -> Option<usize> {
    let at_least_one = |from: usize| {
        let rest = &text[from..];
        let digits = rest.iter().position(|it| !it.is_ascii_digit()).unwrap_or(rest.len());
        (digits > 0).then_some(digits)
    };
    let mut at = usize::from(text.first() == Some(&b'-'));
    at += if text.get(at) == Some(&b'0') { 1 } else { at_least_one(at)? };
    if text.get(at) == Some(&b'.') {
        at += 1 + at_least_one(at + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        at += at_least_one(at)?;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fields, json};
    use proptest::prelude::*;

    const NAMES: [&str; 3] = ["id", "path", "p"];

    fn plain() -> (Plain, Rows) {
        let schema = Schema::new(NAMES, Case::Exact);
        (Plain::new(&schema).unwrap(), Rows::new(schema))
    }

    fn shown(rows: &Rows) -> String {
        format!("{:?}", rows.iter().collect::<Vec<_>>())
    }

    /// The result of the parser for all records.
    fn general(text: &[u8]) -> Option<String> {
        let (_, mut rows) = plain();
        let mut record = Fields::new();
        json::decode(&mut record, text).ok()?;
        rows.push_record(&record).ok().map(|_| shown(&rows))
    }

    fn straight(text: &str) -> Option<String> {
        let (plain, mut rows) = plain();
        plain.push(&mut rows, text.as_bytes()).then(|| shown(&rows))
    }

    #[test]
    fn plain_records_are_read_as_by_the_way_for_all() {
        for text in [
            r#"{"id":1,"path":"/a","p":null}"#,
            r#"{"p":true,"path":"","id":-0.5e+10}"#,
            "\t{ \"path\" : \"\u{e4}\u{7f}\" ,\n\"p\":false,\r\"id\":0 } ",
            r#"{"id":1E5,"path":"'; drop table hits; --","p":123456789012345678901234567890}"#,
        ] {
            assert_eq!(straight(text), general(text.as_bytes()), "{text}");
            assert!(straight(text).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_less_plain_is_left_alone() {
        for text in [
            "",
            "{}",
            r#"{"id":1,"path":"/a"}"#,
            r#"{"id":1,"path":"/a","p":1,"more":1}"#,
            r#"{"id":1,"id":1,"path":"/a","p":1}"#,
            r#"{"id":1,"path":"/a","path":"/b"}"#,
            r#"{"id":1,"path":"\n","p":1}"#,
            "{\"id\":1,\"path\":\"\n\",\"p\":1}",
            r#"{"id":1,"path":[],"p":1}"#,
            r#"{"id":1,"path":{},"p":1}"#,
            r#"{"id":1,"path":"/a","p":1},"#,
            r#"{"id":1,"path":"/a","p":1"#,
            r#"{"id":1,"path":"/a" "p":1}"#,
            r#"{"id":1,"path":"/a","p":1,}"#,
            r#"{"id":01,"path":"/a","p":1}"#,
            r#"{"id":1.,"path":"/a","p":1}"#,
            r#"{"id":1e,"path":"/a","p":1}"#,
            r#"{"id":-,"path":"/a","p":1}"#,
            r#"{"id":.1,"path":"/a","p":1}"#,
            r#"{"id":nul,"path":"/a","p":1}"#,
            r#"{"id":trues,"path":"/a","p":1}"#,
            r#"{"id":1,"path":"/a,"p":1}"#,
            r#"{"ID":1,"path":"/a","p":1}"#,
        ] {
            assert_eq!(straight(text), None, "{text}");
        }
        let (plain, mut rows) = plain();
        assert!(!plain.push(&mut rows, b"{\"id\":1,\"path\":\"\xff\",\"p\":1}"));
        assert!(rows.is_empty());
    }

    #[test]
    fn a_record_that_is_not_plain_to_its_end_leaves_nothing_behind() {
        let (plain, mut rows) = plain();
        assert!(plain.push(&mut rows, br#"{"id":1,"path":"/a","p":null}"#));
        let whole = r#"{"id":2,"path":"/b","p":3}"#;
        for end in 0..whole.len() {
            assert!(!plain.push(&mut rows, &whole.as_bytes()[..end]), "{end}");
            assert_eq!((rows.len(), rows.value(0, 1)), (1, Some(Value::Bytes(b"/a"))));
        }
        assert!(!plain.push(&mut rows, format!("{whole},").as_bytes()));
        assert!(plain.push(&mut rows, format!(" {whole} ").as_bytes()));
        assert_eq!((rows.len(), rows.value(1, 2)), (2, Some(Value::Number(b"3"))));
    }

    #[test]
    fn columns_that_json_would_write_otherwise_have_no_plain_records() {
        let none = |names: &[&str], case| Plain::new(&Schema::new(names, case)).is_none();
        assert!(none(&["a\"b"], Case::Exact) && none(&["a\\"], Case::Exact));
        assert!(none(&["a", "b", "a"], Case::Exact) && none(&["a"], Case::Ignored));
        let many: Vec<String> = (0..=COLUMNS_MAX).map(|it| it.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(none(&many, Case::Exact) && !none(&many[1..], Case::Exact));
        let nothing = Schema::new([""; 0], Case::Exact);
        let mut rows = Rows::new(nothing.clone());
        assert!(Plain::new(&nothing).unwrap().push(&mut rows, b" { } "));
        assert_eq!(rows.len(), 1);
    }

    proptest! {
        #[test]
        fn what_is_read_straight_is_what_the_way_for_all_reads(
            values in proptest::collection::vec(
                r#"(null|true|false|-?[0-9]{1,3}(\.[0-9]{0,2})?([eE][+-]?[0-9]?)?|"[a-z \\\\"\u{e4}]{0,4}"|\[\])"#,
                3..5,
            ),
            names in proptest::sample::subsequence(vec!["id", "path", "p", "id", "x"], 2..5).prop_shuffle(),
            blank in "[ \t\n]{0,2}",
            cut in 0_usize..80,
            put in proptest::option::of("[{}\",:0-9a]"),
        ) {
            let members = names.iter().zip(&values).map(|(name, value)| format!("{blank}\"{name}\":{value}"));
            let mut text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
            if let Some(put) = put {
                let at = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
                text.insert_str(at, &put);
            }
            if let Some(row) = straight(&text) {
                prop_assert_eq!(Some(row), general(text.as_bytes()));
            }
        }
    }
}
