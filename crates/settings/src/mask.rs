//! Masks the parts of a configuration that no error shows: errors are logged, and more people read a log than the file.
//!
//! A secret should not be in a configuration, but some configurations contain one: as a variable or an argument of a
//! program, in the address of a database, as an HTTP field, in a misspelt option. So a value is shown only if its
//! option is known to contain no secret ([`Shows`]), and a word that is neither the name of an option nor a value is
//! hidden. Hidden text keeps its length in bytes and its lines, so that spans of the text stay valid.
//!
//! The running time is linear in the length of a text with any content, because the text may come from an untrusted
//! author.

mod target;

use std::ops::Range;

use crate::options::Shows;
use crate::shown as options;
use crate::source::COMMAND;

/// Prefixes of values that name a place and are not secrets.
const PLACES: [&str; 2] = ["env:", "file:"];
/// Words of a value that are shorter than this number of bytes are hidden only in quotes.
const WORD_MIN: usize = 4;
/// Parameters in an address that are followed by a password.
const PARAMETERS: [&str; 3] = ["password=", "passwd=", "pwd="];

/// Returns a configuration with its secrets masked.
pub(crate) fn source(text: &str) -> String {
    let mut hidden = addresses(text);
    hidden.extend(values(text));
    blank(text, hidden)
}

/// Returns a message, which may repeat a value, with passwords masked.
pub(crate) fn message(text: &str) -> String {
    blank(text, addresses(text))
}

/// Returns a message with a part of a value masked, also if the message contains the part truncated, escaped, or
/// unescaped.
pub(crate) fn piece(text: &str, piece: &str) -> String {
    let read = unescaped(piece);
    let short = |piece: &str, length: usize| piece.chars().take(length).collect::<String>();
    let mut text = text.to_owned();
    for form in [piece, &read] {
        let form = form.trim();
        let escaped = form.escape_default().to_string();
        for form in [form, &escaped, &short(form, 80), &short(form, 60)] {
            if form.len() >= WORD_MIN {
                text = text.replace(form, &"*".repeat(form.chars().count()));
            } else if !form.is_empty() {
                // Within words it would match by chance.
                let stars = "*".repeat(form.chars().count());
                for quote in ['`', '"', '\''] {
                    let hidden = format!("{quote}{stars}{quote}");
                    text = text.replace(&format!("{quote}{form}{quote}"), &hidden);
                }
                text = text.replace(&format!("= {form} "), &format!("= {stars} "));
            }
        }
    }
    text
}

/// Returns a text with the escapes of TOML resolved.
fn unescaped(text: &str) -> String {
    let (mut read, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        read.push_str(&rest[..at]);
        let code = rest[at + 1..].chars().next().unwrap_or('\\');
        rest = rest.get(at + 1 + code.len_utf8()..).unwrap_or_default();
        let digits = match code {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let number = rest.get(..digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match (code, number.and_then(char::from_u32)) {
            ('x' | 'u' | 'U', Some(c)) => {
                read.push(c);
                rest = &rest[digits..];
            }
            ('n', _) => read.push('\n'),
            ('t', _) => read.push('\t'),
            ('r', _) => read.push('\r'),
            ('b', _) => read.push('\u{8}'),
            ('f', _) => read.push('\u{c}'),
            ('e', _) => read.push('\u{1b}'),
            _ => read.push(code),
        }
    }
    read.push_str(rest);
    read
}

fn blank(text: &str, mut hidden: Vec<Range<usize>>) -> String {
    hidden.sort_by_key(|range| range.start);
    let mut hidden = hidden.into_iter().peekable();
    let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
    for (at, c) in text.char_indices() {
        while let Some(range) = hidden.next_if(|range| range.start <= at) {
            end = end.max(range.end);
        }
        match at < end && !matches!(c, '\n' | '\r') {
            true => (0..c.len_utf8()).for_each(|_| shown.push('*')),
            false => shown.push(c),
        }
    }
    shown
}

/// Returns the spans of passwords in addresses: in `scheme://USER:PASSWORD@HOST`, and as parameters.
fn addresses(text: &str) -> Vec<Range<usize>> {
    const SCHEME: &str = "://";
    let mut found = Vec::new();
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    let mut from = 0;
    while let Some(at) = text[from..].find(SCHEME) {
        let start = from + at + SCHEME.len();
        let rest = &text[start..];
        // A password may contain an `@` or a slash that should have been escaped, so everything up to the next blank
        // counts as a part of the address.
        let address = &rest[..rest.find(ends).unwrap_or(rest.len())];
        from = start + address.len();
        let Some(host) = address.rfind('@') else { continue };
        let colon = address[..host].find(':');
        found.extend(colon.map(|colon| start + colon + 1..start + host));
    }
    let lower = text.to_ascii_lowercase();
    for parameter in PARAMETERS {
        let mut from = 0;
        while let Some(at) = lower[from..].find(parameter) {
            let start = from + at + parameter.len();
            let rest = &text[start..];
            from = start + rest.find(|c| ends(c) || c == '&').unwrap_or(rest.len());
            found.push(start..from);
        }
    }
    found
}

/// Returns the spans of the values of options and variables that may be secrets.
fn values(text: &str) -> Vec<Range<usize>> {
    let mut scan = Scan {
        text,
        hidden: Vec::new(),
        in_table: false,
        in_header: false,
        is_command: text.starts_with(COMMAND),
        now: ScanState::default(),
    };
    scan.line_begins(0);
    scan.run(0..text.len(), false);
    scan.hidden
}

/// The state of a scan within a statement.
#[derive(Clone, Copy, Debug, Default)]
struct ScanState {
    /// The number of open brackets and braces.
    depth: usize,
    /// The number of braces opened since the start of a table whose values are hidden.
    table: usize,
    /// The name is that of a table with hidden values, which begins with the next brace.
    is_table: bool,
    /// What is shown of the value of this name.
    shows: Shows,
    /// The name was followed by an equals sign.
    is_value: bool,
    /// A word of the value has been read.
    has_word: bool,
    /// The scan is just after a comma, a brace or the start of a line, so a name may follow.
    may_be_name: bool,
    /// A hidden value has no end on its line.
    is_cut: bool,
    /// The start of a name that has been read only in part.
    name_begin: Option<usize>,
}

struct Scan<'a> {
    text: &'a str,
    hidden: Vec<Range<usize>>,
    /// The section is a table whose values are hidden.
    in_table: bool,
    /// The scan is in the name of a section.
    in_header: bool,
    /// The text is a command line, with words that are neither names nor values.
    is_command: bool,
    now: ScanState,
}

impl Scan<'_> {
    fn run(&mut self, range: Range<usize>, in_comment: bool) {
        let mut at = range.start;
        while let Some(c) = self.text[at..range.end].chars().next() {
            let next = at + c.len_utf8();
            let now = &mut self.now;
            if !matches!(c, ' ' | '\t') && is_delimiter(c) {
                now.name_begin = None;
            }
            match c {
                '\n' => {
                    self.line_begins(next);
                    at = next;
                    continue;
                }
                '#' if !in_comment => {
                    at = self.comment(at, next);
                    continue;
                }
                '=' => (now.is_value, now.may_be_name) = (true, false),
                ',' => now.may_be_name = true,
                '{' | '[' => {
                    now.depth += 1;
                    if c == '{' {
                        now.table += usize::from(now.table > 0 || now.is_table);
                        *now =
                            ScanState { depth: now.depth, table: now.table, ..ScanState::begin() };
                    }
                }
                '}' | ']' => {
                    self.in_header &= c != ']' || self.text[next..].starts_with(']');
                    now.depth = now.depth.saturating_sub(1);
                    now.table -= usize::from(c == '}' && now.table > 0);
                }
                _ => {}
            }
            at = match is_delimiter(c) {
                true => next,
                false => self.word(at, range.end, in_comment),
            };
        }
    }

    /// Starts a line. Open brackets and values continue on the next line, unless it is a header.
    fn line_begins(&mut self, at: usize) {
        let line = self.text[at..].split('\n').next().unwrap_or_default();
        let is_rest = self.now.is_cut
            && !line.trim().is_empty()
            && !line.trim_start().starts_with('[')
            && !line.trim_end_matches(['=', '"', '\'']).contains('=');
        let is_new = self.now.depth == 0 && !is_rest || is_header(line);
        if is_new {
            self.now = ScanState::begin();
        }
        self.now.may_be_name = true;
        self.in_header = is_new && line.trim_start().starts_with('[');
        if let Some(name) = line.trim_start().strip_prefix('[') {
            let name = name.trim_start_matches('[').split(']').next().unwrap_or_default();
            let is_table = options::is_table(last_part(name));
            // In a text that cannot be parsed, a header may follow an apparently open bracket.
            self.in_table = is_table || self.in_table && !is_new;
        }
    }

    /// Scans a comment, which may contain a secret too. Returns its end.
    fn comment(&mut self, at: usize, next: usize) -> usize {
        let rest = &self.text[at..];
        let end = at + rest.find('\n').unwrap_or(rest.len());
        let before = self.now;
        // After a word, the `#` may be a part of a value without quotes.
        if self.text[..at].chars().next_back().is_none_or(char::is_whitespace) {
            self.now = ScanState { table: before.table, ..ScanState::begin() };
        }
        self.run(next..end, true);
        self.now = before;
        end
    }

    /// Scans a word. Returns the position where the scan continues.
    fn word(&mut self, at: usize, end: usize, in_comment: bool) -> usize {
        let Word { inner, next, resume } = word(&self.text[..end], at);
        let behind = self.text[next..end].trim_start_matches([' ', '\t']).chars().next();
        let now = &mut self.now;
        let begin = now.name_begin.unwrap_or(at);
        let value = &self.text[inner.clone()];
        // The parts of a name may be separated by blanks.
        let is_part = behind == Some('.') || self.text[..next].ends_with('.');
        let may_go_on = is_part && (now.may_be_name || now.name_begin.is_some());
        now.name_begin = may_go_on.then_some(begin);
        // After a hidden value, text that looks like a name may be a part of the value.
        let is_value = now.is_value && !now.may_be_name && now.shows != Shows::Whole;
        let (mut from, mut in_target) = (None, Vec::new());
        if behind == Some('=') && !is_value {
            let name = &self.text[begin..next];
            (now.shows, now.is_table) = shows(name, self.is_command);
            (now.is_value, now.has_word, now.is_cut) = (false, false, false);
        } else if now.is_value {
            let in_table = self.in_table || now.table > 0;
            let shows = if in_table { Shows::Place } else { now.shows };
            if shows == Shows::Target && !now.has_word {
                in_target = hidden_in_target(value);
            } else {
                from = hidden_from(shows, value, now.has_word);
            }
            let is_cut = inner.start > at && inner.end == next;
            (now.has_word, now.is_cut) =
                (true, now.is_cut || is_cut && (from.is_some() || !in_target.is_empty()));
        } else if !(in_comment || self.in_header || self.is_command || may_go_on) {
            // The meaning of the word is unknown. Only the name of an option without its value is shown.
            from = (!now.may_be_name || !options::is_name(value)).then_some(0);
        }
        self.hidden.extend(from.map(|from| inner.start + from..inner.end));
        let in_text = |part: Range<usize>| inner.start + part.start..inner.start + part.end;
        self.hidden.extend(in_target.into_iter().map(in_text));
        self.now.may_be_name = false;
        resume
    }
}

/// Returns the position from which a word of a value is hidden. `is_later`: another word precedes it in the value.
fn hidden_from(shows: Shows, value: &str, is_later: bool) -> Option<usize> {
    let is_place = PLACES.iter().any(|place| value.starts_with(place));
    match shows {
        Shows::Whole => None,
        _ if names_variable(value) => None,
        Shows::Place | Shows::Program if is_place => None,
        Shows::Program if !is_later => value.find(char::is_whitespace),
        Shows::Path if !is_later => value.find('?').map(|at| at + 1),
        Shows::Place | Shows::Program | Shows::Path | Shows::Target | Shows::Nothing => Some(0),
    }
}

/// Returns the address of a database with the parts masked that may be a password. `word` may be in quotes.
pub(crate) fn target(word: &str) -> String {
    let quotes = word.len() - word.trim_start_matches(['"', '\'']).len();
    let inner = hidden_in_target(word[quotes..].trim_end_matches(['"', '\'']));
    let parts = inner.into_iter().map(|part| part.start + quotes..part.end + quotes);
    blank(word, parts.collect())
}

/// Returns the parts of the address of a database that are hidden.
fn hidden_in_target(value: &str) -> Vec<Range<usize>> {
    if names_variable(value) { Vec::new() } else { target::hidden(value) }
}

/// Whether a value is the name of a variable, which is not a secret.
fn names_variable(value: &str) -> bool {
    let Some(name) = value.strip_prefix(PLACES[0]) else { return false };
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl ScanState {
    /// Returns the state in which a name is expected.
    fn begin() -> Self {
        Self { may_be_name: true, ..Self::default() }
    }
}

/// Whether a line is certainly the header of a section, so that no bracket or value is open before it.
fn is_header(line: &str) -> bool {
    let name = line.trim_end().strip_prefix('[').and_then(|line| line.strip_suffix(']'));
    let is_bare = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '[' | ']');
    name.is_some_and(|name| name.contains(|c: char| c.is_alphabetic()) && name.chars().all(is_bare))
}

/// Whether this character ends a word without quotes.
fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || matches!(c, '=' | ',' | '{' | '}' | '[' | ']' | '#')
}

struct Word {
    /// The word without its quotes.
    inner: Range<usize>,
    /// The position after the word.
    next: usize,
    /// Where the scan continues. A multi-line text without an end may have included the rest of the file.
    resume: usize,
}

/// Returns the word that begins at a position.
fn word(text: &str, at: usize) -> Word {
    let rest = &text[at..];
    let c = rest.chars().next().unwrap_or_default();
    if !matches!(c, '"' | '\'') {
        let end = at + rest.find(is_delimiter).unwrap_or(rest.len());
        return Word { inner: at..end, next: end, resume: end };
    }
    let is_long = rest.starts_with(if c == '"' { "\"\"\"" } else { "'''" });
    let quotes = &rest[..if is_long { 3 } else { 1 }];
    let start = at + quotes.len();
    let mut is_escaped = false;
    let end = text[start..].char_indices().find(|(inner, found)| {
        let is_cut = !is_long && *found == '\n';
        let ends = !is_escaped && text[start + inner..].starts_with(quotes);
        is_escaped = c == '"' && *found == '\\' && !is_escaped;
        ends || is_cut
    });
    match end.map(|(end, _)| start + end) {
        Some(end) if text[end..].starts_with('\n') => {
            Word { inner: start..end, next: end, resume: end }
        }
        Some(end) => {
            // A multi-line text may end with two more quotes before the closing ones.
            let more = text[end + quotes.len()..].chars().take(2).take_while(|next| *next == c);
            let more = if is_long { more.count() } else { 0 };
            let next = end + more + quotes.len();
            Word { inner: start..end + more, next, resume: next }
        }
        None => {
            let resume = start + text[start..].find('\n').unwrap_or(text.len() - start);
            Word { inner: start..text.len(), next: text.len(), resume }
        }
    }
}

/// Returns what is shown of a value of this name, and whether the name is a table of variables.
fn shows(name: &str, is_command: bool) -> (Shows, bool) {
    let in_table = name.split('.').any(|part| options::is_table(unquoted(part)));
    let shows = match last_part(name) {
        _ if in_table => Shows::Place,
        last if is_command && last.starts_with("--") => Shows::Whole,
        last => options::shows(last),
    };
    (shows, in_table)
}

fn last_part(name: &str) -> &str {
    unquoted(name.rsplit('.').next().unwrap_or(name))
}

fn unquoted(part: &str) -> &str {
    part.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_passwords_and_tokens_are_hidden_and_places_are_not() {
        let cases = [
            (r#"env={PASSWORD="HUNTER2", X=5}"#, r#"env={PASSWORD="*******", X=*}"#),
            (r#"env = { a = "x", B = "env:B" } # c"#, r#"env = { a = "*", B = "env:B" } # c"#),
            (
                r#"env = { "A B" = 'it"s', C = "\"d" } x"#,
                r#"env = { "A B" = '****', C = "***" } *"#,
            ),
            ("env.a = \"xy\"", "env.a = \"**\""),
            ("PASSWORD = \"HUNTER2", "PASSWORD = \"*******"),
            ("PASSWORD = HUNTER2 # x", "PASSWORD = ******* # x"),
            ("PASSWORD = a b#c, d", "PASSWORD = * *#*, *"),
            ("  API_KEY = \"\"\"ü\"\"\"", "  API_KEY = \"\"\"**\"\"\""),
            ("password = \"hush\"", "password = \"****\""),
            ("password = \"env:DB\"", "password = \"env:DB\""),
            (r#"bearer = ["file:/x", "hush"]"#, r#"bearer = ["file:/x", "****"]"#),
            (r#"pool.x.env = { a = "b" }"#, r#"pool.x.env = { a = "*" }"#),
            (r#"key = "header:X", listen = ":80""#, r#"key = "header:X", listen = ":80""#),
            (r#"program = ["a", "B=c", 5]"#, r#"program = ["a", "***", *]"#),
            ("program = \"a --b c\"", "program = \"a******\""),
            ("program = a --b=c", "program = a ***=*"),
            (
                r#"health_check = { command = ["a", "-p", "b"], path = "/h?a=b", zz = 1 }"#,
                r#"health_check = { command = ["a", "**", "*"], path = "/h?***", zz = * }"#,
            ),
            (
                r#"header = [{ name = "x-key", equals = "hush" z }]"#,
                r#"header = [{ name = "x-key", equals = "****" * }]"#,
            ),
            ("query = \"select 1\"", "query = \"select 1\""),
            ("table = \"t\"\nworkers = \"x\"", "table = \"t\"\nworkers = \"x\""),
            ("pasword = \"hush\"", "pasword = \"****\""),
            (
                "respond = { status = 200, body = \"hush\" }",
                "respond = { status = 200, body = \"****\" }",
            ),
            ("password: hush", "********* ****"),
            ("listen \":80\"", "listen \"***\""),
            ("[pool.main] hush", "[pool.main] ****"),
            ("roadstead run --workers x --env A=b", "roadstead run --workers x --env A=*"),
            ("=", "="),
            ("AB = \"\"\"b\"ü", "AB = \"\"\"****"),
            (
                r#"request_headers = { append = { Authorization = "Bearer x", X = 5 } }"#,
                r#"request_headers = { append = { Authorization = "********", X = * } }"#,
            ),
            ("request_headers.append.Cookie = 'xy'", "request_headers.append.Cookie = '**'"),
            ("a.append = { \"X-Key\" = \"b\" z", "a.append = { \"X-Key\" = \"*\" *"),
            ("\"a\" . set . 'b.c' = \"d\"", "\"a\" . set . 'b.c' = \"*\""),
            ("env = [\"A=b\"]", "env = [\"***\"]"),
            ("env = { a = [1, \"b\"], c = 2 }", "env = { a = [*, \"*\"], c = * }"),
            ("x = 5 password = \"b\"", "x = * ******** = \"*\""),
            ("PASSWORD = a=b", "PASSWORD = *=*"),
            ("token = [\"a.\", 'b']", "token = [\"**\", '*']"),
            ("# PASSWORD = \"b\"", "# PASSWORD = \"*\""),
            ("AB = \"\"", "AB = \"\""),
            ("\"", "\""),
        ];
        let masked = cases.map(|(text, _)| source(text));
        assert_eq!(masked, cases.map(|(_, shown)| shown));
        assert_eq!(masked.map(|text| text.len()), cases.map(|(text, _)| text.len()));
    }

    #[test]
    fn a_secret_on_a_later_line_of_its_value_is_hidden() {
        let cases = [
            ("[pool.p.env]\nY = \"\"\"\nHUSH\"\"\" z", "****\"\"\" *"),
            ("[pool.p]\npassword = '''\na\nb = HUSH", "********"),
            ("token = [ # [\n  \"file:/x\",\n  \"hush\",", "  \"****\","),
            ("env = {\n  A = \"hush\",", "  A = \"****\","),
            ("[x.request_headers.set]\nAuthorization = \"hush\"", "Authorization = \"****\""),
            ("[request_headers.append] # x\nA = \"\"\"\nhush\"\"\" z", "****\"\"\" *"),
            ("request_headers.append.A = \"\"\"\nhush\"\"\" z", "****\"\"\" *"),
            ("append = {\nA.b = \"hush\" z", "A.b = \"****\" *"),
            ("program = [\n\"a\", # b\n\"hush\" z", "\"****\" *"),
            ("[pool.p.env]\n# x\n[pool.q]\nlisten = \"b\"", "listen = \"b\""),
            ("[pool.p.env\na = \"hush\"", "a = \"****\""),
            ("x = {\n[\"pool\".p.\"env\"]\na = \"hush\"", "a = \"****\""),
            ("x = \"\"\"\npassword = \"hush\" z", "*******************"),
            ("password = \"a\nhush\"", "*****"),
            ("password = \"a\n\nlisten = \":80\"", "listen = \":80\""),
            // No bracket or value is open before these.
            ("env = { A = \"b\" }\nlisten = \":80\"", "listen = \":80\""),
            ("env = { A = \"b\n[pool.p]\nlisten = \":80\"", "listen = \":80\""),
            ("# it's {\nlisten = \":80\"", "listen = \":80\""),
            ("a = \"\"\"\"\"\"\nlisten = \":80\"", "listen = \":80\""),
            ("query = \"\"\"\nselect 1", "****** *"),
        ];
        let last = cases.map(|(text, _)| source(text).rsplit('\n').next().unwrap().to_owned());
        assert_eq!(last, cases.map(|(_, shown)| shown));
    }

    #[test]
    fn a_password_in_the_address_of_a_database_is_hidden() {
        for (value, shown) in [
            ("postgres://u@h:5432/d", "postgres://u@h:5432/d"),
            ("postgres://u:a'b <c>`d@h/d", "postgres://u:*********@h/d"),
            ("postgres://u:a@b/c:d@h/d", "postgres://u:*******@h/d"),
            ("postgres://u:a?b@h/d", "postgres://u:*******"),
            ("postgres://u@h/d?x=HUSH", "postgres://u@h/d?******"),
            ("postgres://u:HUSH", "postgres://u:****"),
            ("postgres:HUSH@h/d", "*****************"),
            ("postgres:/u:HUSH@h/d", "********************"),
            ("postgres:/u:HUSH", "postgres:*******"),
            ("postgres://u\\u003aHUSH@h/d", "postgres:*****************"),
            ("HUSH@h/d", "********"),
            ("sqlite:/a b.db", "sqlite:/a b.db"),
            ("hits.db", "hits.db"),
        ] {
            assert_eq!(target(value), shown);
            assert_eq!(
                source(&format!("database = \"{value}\"")),
                format!("database = \"{shown}\"")
            );
        }
    }

    #[test]
    fn a_password_in_an_address_is_hidden_wherever_it_is_repeated() {
        for (text, shown) in [
            ("write \"mysql://u:PW@h/d\" and", "write \"mysql://u:**@h/d\" and"),
            ("mariadb://u:P@/W@h/d", "mariadb://u:****@h/d"),
            ("`postgres://u@h:5432/d`", "`postgres://u@h:5432/d`"),
            ("http://h:80/a and x:y@z", "http://h:80/a and x:y@z"),
            ("the unknown option `?Password=PW`", "the unknown option `?Password=**`"),
            ("a://u:p@h b://v:q@i", "a://u:*@h b://v:*@i"),
        ] {
            assert_eq!(message(text), shown);
        }
    }

    /// With quadratic time this would take minutes.
    #[test]
    fn the_time_is_linear_in_the_length_of_a_text() {
        for (begin, piece, end) in [
            ("a=\"", "://", "\""),
            ("a=\"", "://a:b@", "\""),
            ("a=\"", "password=", "\""),
            ("a=", "{", ""),
            ("a=", "{env=", ""),
            ("", "a.", "b=1"),
            ("", "a .", "b=1"),
            ("", "a=[", ""),
            ("", "a=\"\n", ""),
            ("", "a=\"\"\"\n", ""),
            ("", "\"\"\"\\", ""),
            ("env=\"\"\"\n", "\\\"\"\"\n", ""),
            ("a=[\n", "[b\n", ""),
            ("", "\"", ""),
            ("x ", "'", ""),
            ("", "# ", ""),
            ("", "#\n", ""),
            ("a=", " ", ""),
            ("[", "[", "\n"),
        ] {
            let text = format!("{begin}{}{end}", piece.repeat(1_000_000 / piece.len()));
            assert_eq!(source(&text).len(), text.len());
            assert_eq!(message(&text).len(), text.len());
        }
    }
}
