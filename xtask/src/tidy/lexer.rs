//! Separates Rust source into code and comments, so that a rule about one is not affected by the other or by a string.
//!
//! Both views keep the lines of the source, with spaces in place of the rest. Pure. Accepts any text: invalid Rust is
//! split in some way and never causes a panic.

/// The two views of one source.
#[derive(Debug)]
pub(super) struct Views {
    /// Code; comments and the contents of strings are blank.
    pub(super) code: String,
    /// Comments and documentation; everything else is blank.
    pub(super) comments: String,
}

/// The view that a character belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Text,
}

/// Splits a source.
pub(super) fn views(source: &str) -> Views {
    let mut reader = Reader {
        rest: source,
        before: ' ',
        views: Views { code: String::new(), comments: String::new() },
    };
    while !reader.rest.is_empty() {
        reader.next();
    }
    reader.views
}

struct Reader<'a> {
    rest: &'a str,
    /// The character before `rest`.
    before: char,
    views: Views,
}

impl Reader<'_> {
    /// Reads one comment, one literal or one character of code.
    fn next(&mut self) {
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            return self.take(end, Kind::Comment);
        }
        if self.rest.starts_with("/*") {
            return self.take(block_comment(self.rest), Kind::Comment);
        }
        if !is_word(self.before)
            && let Some((quote, end)) = raw_string(self.rest)
        {
            self.take(quote, Kind::Code);
            return self.take(end - quote, Kind::Text);
        }
        if self.rest.starts_with('"') {
            return self.take(quoted(self.rest, '"'), Kind::Text);
        }
        if self.rest.starts_with('\'') && is_character(self.rest) {
            return self.take(quoted(self.rest, '\''), Kind::Text);
        }
        let length = self.rest.chars().next().map_or(0, char::len_utf8);
        self.take(length, Kind::Code);
    }

    fn take(&mut self, length: usize, kind: Kind) {
        let (taken, rest) = self.rest.split_at(length);
        for character in taken.chars() {
            let blank = if character == '\n' { '\n' } else { ' ' };
            self.views.code.push(if kind == Kind::Code { character } else { blank });
            self.views.comments.push(if kind == Kind::Comment { character } else { blank });
            self.before = character;
        }
        self.rest = rest;
    }
}

/// Returns the length of a block comment. Block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut place = 0;
    while place < text.len() {
        let rest = &text.as_bytes()[place..];
        if rest.starts_with(b"/*") {
            depth += 1;
            place += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            place += 2;
            if depth == 0 {
                return place;
            }
        } else {
            place += 1;
        }
    }
    text.len()
}

/// Returns the position of the quote and the length of a raw string (`r"…"`, `br#"…"#`), if one begins here.
fn raw_string(text: &str) -> Option<(usize, usize)> {
    let start = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let hashes = start.len() - start.trim_start_matches('#').len();
    let inside = start[hashes..].strip_prefix('"')?;
    let quote = text.len() - inside.len() - 1;
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = inside
        .find(&closing)
        .map_or(text.len(), |place| text.len() - inside.len() + place + closing.len());
    Some((quote, end))
}

/// Returns the length of a literal with escapes, including its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return place + character.len_utf8();
        }
    }
    text.len()
}

/// Returns whether a `'` begins a character and not a lifetime.
fn is_character(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// Returns whether a character may be part of a name.
pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the lines, counted from 1, that contain a name as a whole word.
pub(super) fn lines_with<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.lines().enumerate().filter(move |(_, line)| has_word(line, name)).map(|(at, _)| at + 1)
}

/// Returns whether a line contains a name as a whole word.
pub(super) fn has_word(line: &str, name: &str) -> bool {
    after_each(line, name).any(|rest| !rest.starts_with(is_word))
}

/// Returns what follows each place where a name begins a word.
pub(super) fn after_each<'a>(line: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(name)
        .filter(|(place, _)| !line[..*place].ends_with(is_word))
        .map(|(place, _)| &line[place + name.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code() {
        let source =
            "let a = \"unsafe \\\" // no\"; // unsafe\n/* unsafe /* nested */ */ unsafe {}\n";
        let views = views(source);
        assert_eq!(lines_with(&views.code, "unsafe").collect::<Vec<_>>(), [2]);
        assert!(views.comments.contains("// unsafe"));
        assert!(!views.comments.contains("// no"));
        assert_eq!(views.code.lines().count(), source.lines().count());
    }

    #[test]
    fn raw_strings_end_where_they_end() {
        let views = views("let a = r#\"todo!( \" // \"#; b(); let c = br\"x\\\"; d();");
        assert!(!views.code.contains("todo"));
        assert!(views.code.contains("b();") && views.code.contains("d();"), "{}", views.code);
        assert_eq!(views.comments.trim(), "");
    }

    #[test]
    fn lifetimes_are_no_characters() {
        let views = views("fn f<'a>(x: &'a str) { let q = '\"'; let e = '\\''; g() } // end");
        assert!(views.code.contains("g()"), "{}", views.code);
        assert_eq!(views.comments.trim(), "// end");
    }

    #[test]
    fn any_text_is_taken() {
        for text in ["\"", "'", "'\\", "r#\"", "/*", "/* /*", "é'é", "b'", "r", "\"\\"] {
            let views = views(text);
            assert_eq!(views.code.chars().count(), text.chars().count(), "{text}");
        }
    }

    #[test]
    fn a_word_is_whole() {
        assert!(has_word("unsafe {", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(!has_word("not_unsafe", "unsafe"));
    }
}
