//! A JSON parser (RFC 8259) that validates and returns positions, without storing values.

use std::ops::Range;

use super::Fault;
use super::measure::Measure;

/// The maximum nesting of objects and arrays in a message, including the message itself.
pub const DEPTH_MAX: usize = 128;

/// A parser position in a text in UTF-8.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    measure: Measure,
    /// The beginning of the name of the last member.
    name_at: usize,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Object,
    Array,
    String,
    Number,
    Null,
    Bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(Self { bytes, at: 0, measure: Measure::default(), name_at: 0 }),
            Err(error) => Err(Fault::Syntax(error.valid_up_to())),
        }
    }

    /// The current position.
    pub(super) const fn place(&self) -> usize {
        self.at
    }

    /// The depth and the numbers of the text read so far.
    pub(super) const fn measure(&self) -> Measure {
        self.measure
    }

    /// The range of the last member, whose name begins at `name_at`, including one adjacent comma if there is one.
    pub(super) fn member_from(&mut self, name_at: usize) -> Range<usize> {
        let end = self.at;
        self.blank();
        let blank_to = std::mem::replace(&mut self.at, end);
        if self.bytes.get(blank_to) == Some(&b',') {
            return name_at..blank_to + 1;
        }
        let before = self.bytes[..name_at].trim_ascii_end();
        let start = if before.ends_with(b",") { before.len() - 1 } else { name_at };
        start..end
    }

    /// The beginning of the name of the last member.
    pub(super) const fn name_at(&self) -> usize {
        self.name_at
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    const fn wrong(&self) -> Fault {
        Fault::Syntax(self.at)
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn takes(&mut self, byte: u8) -> bool {
        let takes = self.peek() == Some(byte);
        self.at += usize::from(takes);
        takes
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.takes(byte) { Ok(()) } else { Err(self.wrong()) }
    }

    /// The type of the next value, by its first byte.
    pub(super) fn value_type(&mut self) -> Result<ValueType, Fault> {
        self.blank();
        Ok(match self.peek() {
            Some(b'{') => ValueType::Object,
            Some(b'[') => ValueType::Array,
            Some(b'"') => ValueType::String,
            Some(b'-' | b'0'..=b'9') => ValueType::Number,
            Some(b'n') => ValueType::Null,
            Some(b't' | b'f') => ValueType::Bool,
            _ => return Err(self.wrong()),
        })
    }

    /// Checks that only white space is left.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.blank();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.wrong()) }
    }

    /// Parses the next value, which is nested in `depth` others. Returns its type and its range.
    pub(super) fn value(&mut self, depth: usize) -> Result<(ValueType, Range<usize>), Fault> {
        let value_type = self.value_type()?;
        let start = self.at;
        match value_type {
            ValueType::Object => {
                self.object(depth, |reader, _| reader.value(depth + 1).map(drop))?;
            }
            ValueType::Array => self.array(depth)?,
            ValueType::String => {
                self.string()?;
            }
            ValueType::Number => self.number()?,
            ValueType::Null => self.word(b"null")?,
            ValueType::Bool => {
                self.word(if self.peek() == Some(b't') { b"true" } else { b"false" })?;
            }
        }
        Ok((value_type, start..self.at))
    }

    /// Parses the next object. `member` is called with each name as written, including its quotes, and must read the
    /// value.
    pub(super) fn object(
        &mut self,
        depth: usize,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.enter(depth)?;
        self.blank();
        if self.takes(b'}') {
            return Ok(());
        }
        loop {
            self.blank();
            let name = self.string()?;
            self.blank();
            self.expect(b':')?;
            self.name_at = name.start;
            member(self, &self.bytes[name])?;
            self.blank();
            if !self.takes(b',') {
                return self.expect(b'}');
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Fault> {
        self.enter(depth)?;
        self.blank();
        if self.takes(b']') {
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.blank();
            if !self.takes(b',') {
                return self.expect(b']');
            }
        }
    }

    /// Skips the opening bracket and checks the depth.
    fn enter(&mut self, depth: usize) -> Result<(), Fault> {
        self.at += 1;
        self.measure.depth = self.measure.depth.max(depth + 1);
        if depth < DEPTH_MAX { Ok(()) } else { Err(Fault::Deep) }
    }

    fn string(&mut self) -> Result<Range<usize>, Fault> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(start..self.at);
                }
                Some(b'\\') => self.escape()?,
                Some(0x20..) => self.at += 1,
                Some(..0x20) | None => return Err(self.wrong()),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.wrong());
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.wrong()),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.takes(b'-');
        if !self.takes(b'0') {
            self.digits()?;
        }
        if self.takes(b'.') {
            self.digits()?;
        }
        if self.takes(b'e') || self.takes(b'E') {
            let _sign = self.takes(b'+') || self.takes(b'-');
            self.digits()?;
        }
        self.measure.add_number(&self.bytes[start..self.at]);
        Ok(())
    }

    /// Reads at least one digit.
    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.wrong()) }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.wrong())
    }
}

/// The characters of a valid string that is given with its quotes. Unpaired surrogates become U+FFFD.
pub(super) fn characters(written: &[u8]) -> impl Iterator<Item = char> {
    let inner = written.get(1..written.len().saturating_sub(1)).unwrap_or_default();
    let mut rest = std::str::from_utf8(inner).unwrap_or_default().chars();
    std::iter::from_fn(move || {
        let first = rest.next()?;
        if first != '\\' {
            return Some(first);
        }
        Some(match rest.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let unit = (0..4).filter_map(|_| rest.next()?.to_digit(16));
                let unit = unit.fold(0, |sum, digit| sum << 4 | digit);
                char::from_u32(unit).unwrap_or('\u{fffd}')
            }
            other => other,
        })
    })
}

/// The content of a string in ASCII without escapes. Nearly all names have this form.
fn plain(written: &[u8]) -> Option<&[u8]> {
    let inner = written.get(1..written.len().saturating_sub(1))?;
    let is_plain = inner.iter().all(|&byte| byte.is_ascii() && byte != b'\\');
    is_plain.then_some(inner)
}

/// Whether a string as written is equal to `name`. Names must not contain characters outside the Basic Multilingual
/// Plane.
pub(super) fn is_string(written: &[u8], name: &str) -> bool {
    if let Some(inner) = plain(written) {
        return inner == name.as_bytes();
    }
    characters(written).eq(name.chars())
}

/// Whether a string is equal to `name` for parsers that ignore case, or whose strings end at a NUL. Two characters
/// outside ASCII are treated as letters: the long s and the Kelvin sign.
pub(super) fn is_string_ignoring_case(written: &[u8], name: &str) -> bool {
    if let Some(inner) = plain(written) {
        return inner.eq_ignore_ascii_case(name.as_bytes());
    }
    let seen = characters(written).take_while(|&character| character != '\0');
    seen.map(fold).eq(name.chars().map(fold))
}

/// Whether a string begins with `start` for parsers that ignore case.
pub(super) fn starts_ignoring_case(written: &[u8], start: &str) -> bool {
    if let Some(inner) = plain(written) {
        return inner
            .get(..start.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(start.as_bytes()));
    }
    let count = start.chars().count();
    characters(written).take(count).map(fold).eq(start.chars().map(fold))
}

const fn fold(character: char) -> char {
    match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}
