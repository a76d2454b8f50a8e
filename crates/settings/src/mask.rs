//! What of a configuration no error shows: errors are logged, and a log is read by more people than the file.
//!
//! A secret does not belong into a configuration, but it stands in some: as a variable of a program, in the
//! address of a database, as a field of HTTP, or as an option that should have named a place. What is hidden keeps its
//! length in bytes, so that spans of the text hold.

use std::ops::Range;

/// Options that name the place of a secret.
const SECRETS: [&str; 5] = ["password", "secret", "token", "bearer", "basic"];
/// Tables of which every value may be one: variables of a program, fields of requests and responses.
const TABLES: [&str; 3] = ["env", "set", "add"];
/// What a value begins with that is a place and no secret.
const PLACES: [&str; 2] = ["env:", "file:"];
/// Behind these a password stands in an address.
const PARAMETERS: [&str; 3] = ["password=", "passwd=", "pwd="];

/// A line of a configuration, with the byte `at` on it, without its secrets.
pub(crate) fn line(source: &str, at: usize, line: &str) -> String {
    let start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    // What is open from an earlier line says what the line is about.
    let begin = statement(&source[..start]);
    let text = &source[begin..start + line.len()];
    part(text, is_env(&source[..at])).split_off(start - begin)
}

/// Where the statement begins that goes on behind this text; its end where nothing is open.
fn statement(text: &str) -> usize {
    let (mut at, mut depth, mut begin) = (0, 0_usize, 0);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match c {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => {
                let length = word(text, at).1 - at;
                // A text without its end ends with its line, unless it may have several.
                let is_long = ["\"\"\"", "'''"].iter().any(|quotes| rest.starts_with(quotes));
                let line = rest[..length].find('\n').filter(|_| !is_long);
                line.unwrap_or(length)
            }
            _ => c.len_utf8(),
        };
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            '\n' if depth == 0 || is_header(&text[at..]) => (begin, depth) = (at, 0),
            _ => {}
        }
    }
    begin
}

/// Whether a text begins with the header of a table, before which nothing is open.
fn is_header(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let name = line.trim_end().strip_prefix('[').and_then(|line| line.strip_suffix(']'));
    let is_bare = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '[' | ']');
    name.is_some_and(|name| name.contains(|c: char| c.is_alphabetic()) && name.chars().all(is_bare))
}

/// A part of a configuration without its secrets. `in_env`: it stands in a table of variables.
fn part(text: &str, in_env: bool) -> String {
    let mut hidden = addresses(text);
    hidden.extend(values(text, in_env));
    blank(text, hidden)
}

/// A text of ours that may repeat a value.
pub(crate) fn message(text: &str) -> String {
    blank(text, addresses(text))
}

/// Whether what stands behind this text is in a table of variables or fields.
fn is_env(before: &str) -> bool {
    let headers = before.lines().rev().map(str::trim).filter(|line| line.starts_with('['));
    let mut headers = headers.filter_map(|line| line.trim_start_matches('[').split(']').next());
    headers.next().is_some_and(|name| TABLES.contains(&last_part(name)))
}

fn blank(text: &str, mut hidden: Vec<Range<usize>>) -> String {
    hidden.sort_by_key(|range| range.start);
    let mut hidden = hidden.into_iter().peekable();
    let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
    for (at, c) in text.char_indices() {
        while let Some(range) = hidden.next_if(|range| range.start <= at) {
            end = end.max(range.end);
        }
        match at < end {
            true => (0..c.len_utf8()).for_each(|_| shown.push('*')),
            false => shown.push(c),
        }
    }
    shown
}

/// Passwords in addresses: of `scheme://USER:PASSWORD@HOST`, and as parameters.
fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    for (at, _) in text.match_indices("://") {
        let start = at + "://".len();
        let rest = &text[start..];
        // A password may have an `@` or a slash in it that should have been escaped.
        let address = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let Some(host) = address.rfind('@') else { continue };
        let colon = address[..host].find(':');
        found.extend(colon.map(|colon| start + colon + 1..start + host));
    }
    let lower = text.to_ascii_lowercase();
    for parameter in PARAMETERS {
        for (at, _) in lower.match_indices(parameter) {
            let start = at + parameter.len();
            let rest = &text[start..];
            let length = rest.find(|c| ends(c) || c == '&').unwrap_or(rest.len());
            found.push(start..start + length);
        }
    }
    found
}

/// Values of options and variables that may be secrets.
fn values(text: &str, in_env: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // What the next value belongs to, and the braces that are open since such a table began.
    let (mut name, mut is_next_value, mut env) = (String::new(), false, usize::from(in_env));
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let (word, next) = word(text, at);
        match c {
            '=' => is_next_value = true,
            // A comment. Behind a word it may be a part of a value without quotes.
            '#' if text[..at].ends_with(char::is_whitespace) => {
                // An array goes on behind it.
                if let Some(length) = text[at..].find('\n') {
                    at += length;
                    continue;
                }
                is_next_value = false;
            }
            ',' => is_next_value = is_next_value && !env_is_open(env, in_env),
            '{' if TABLES.contains(&last_part(&name)) || env > 0 => {
                (env, is_next_value) = (env + 1, false);
            }
            '{' => is_next_value = false,
            '}' => env = env.saturating_sub(1).max(usize::from(in_env)),
            _ if word.is_empty() => {}
            _ => {
                let value = &text[word.clone()];
                let is_name = text[next..].trim_start().starts_with('=');
                if is_name {
                    (name, is_next_value) = (value.to_owned(), false);
                } else if is_next_value
                    && (env > 0 || is_secret(&name))
                    && !PLACES.iter().any(|place| value.starts_with(place))
                {
                    found.push(word);
                }
            }
        }
        at = next;
    }
    found
}

const fn env_is_open(env: usize, in_env: bool) -> bool {
    env > in_env as usize
}

/// The word that begins at a place, without its quotes, and where to go on; empty for anything else.
fn word(text: &str, at: usize) -> (Range<usize>, usize) {
    let rest = &text[at..];
    let c = rest.chars().next().unwrap_or_default();
    let is_bare =
        |c: char| !c.is_whitespace() && !matches!(c, '=' | ',' | '{' | '}' | '[' | ']' | '#');
    match c {
        '"' | '\'' => {
            let quotes = &rest[..(rest.len() - rest.trim_start_matches(c).len()).min(3)];
            let quotes = if quotes.len() == 3 { quotes } else { &rest[..1] };
            let (start, mut is_escaped) = (at + quotes.len(), false);
            let end = text[start..].char_indices().find(|(inner, found)| {
                let ends = !is_escaped && text[start + inner..].starts_with(quotes);
                is_escaped = c == '"' && *found == '\\' && !is_escaped;
                ends
            });
            match end {
                Some((end, _)) => (start..start + end, start + end + quotes.len()),
                None => (start..text.len(), text.len()),
            }
        }
        _ if is_bare(c) => {
            let length = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
            (at..at + length, at + length)
        }
        _ => (at..at, at + c.len_utf8()),
    }
}

/// Whether an option or a variable of this name may be a secret: variables are written in capitals.
fn is_secret(name: &str) -> bool {
    let parts = name.rsplit_once('.');
    let last = last_part(name);
    let is_variable = last.len() > 1
        && last.bytes().any(|byte| byte.is_ascii_uppercase())
        && !last.bytes().any(|byte| byte.is_ascii_lowercase());
    is_variable
        || SECRETS.contains(&last)
        || parts.is_some_and(|(of, _)| TABLES.contains(&last_part(of)))
}

fn last_part(name: &str) -> &str {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_passwords_and_tokens_are_hidden_and_places_are_not() {
        for (text, shown) in [
            (r#"env={PASSWORD="HUNTER2", X=5}"#, r#"env={PASSWORD="*******", X=*}"#),
            (r#"env = { a = "x", B = "env:B" } # c"#, r#"env = { a = "*", B = "env:B" } # c"#),
            (
                r#"env = { "A B" = 'it"s', C = "\"d" } x"#,
                r#"env = { "A B" = '****', C = "***" } x"#,
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
            (r#"program = ["a", "B=c"]"#, r#"program = ["a", "B=c"]"#),
            ("query = \"select 1\"", "query = \"select 1\""),
            ("=", "="),
            ("AB = \"\"\"b\"ü", "AB = \"\"\"****"),
            (
                r#"request_headers = { set = { Authorization = "Bearer x", X = 5 } }"#,
                r#"request_headers = { set = { Authorization = "********", X = * } }"#,
            ),
            ("request_headers.add.Cookie = 'xy'", "request_headers.add.Cookie = '**'"),
            ("AB = \"\"", "AB = \"\""),
            ("\"", "\""),
        ] {
            assert_eq!(part(text, false), shown);
            assert_eq!(part(text, false).len(), text.len());
        }
        assert_eq!(part("a = \"b\", c", true), "a = \"*\", *");
    }

    #[test]
    fn a_secret_on_a_later_line_of_its_value_is_hidden() {
        for (text, shown) in [
            ("[pool.p.env]\nY = \"\"\"\nHUSH\"\"\" z", "****\"\"\" *"),
            ("[pool.p]\npassword = '''\na\nb = HUSH", "********"),
            ("token = [ # [\n  \"file:/x\",\n  \"hush\",", "  \"****\","),
            ("env = {\n  A = \"hush\",", "  A = \"****\","),
            ("[x.request_headers.set]\nAuthorization = \"hush\"", "Authorization = \"****\""),
            // Nothing is open before these.
            ("env = { A = \"b\" }\nlisten = \":80\"", "listen = \":80\""),
            ("env = { A = \"b\n[pool.p]\nlisten = \":80\"", "listen = \":80\""),
            ("# it's {\nlisten = \":80\"", "listen = \":80\""),
            ("a = \"\"\"\"\"\"\nlisten = \":80\"", "listen = \":80\""),
            ("query = \"\"\"\nselect 1", "select 1"),
        ] {
            let last = text.rsplit('\n').next().unwrap();
            assert_eq!(line(text, text.len(), last), shown, "{text}");
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

    #[test]
    fn a_table_of_variables_is_known_by_its_header() {
        assert!(is_env("[pool.x]\na = 1\n[pool.x.env]\nB = 2\n"));
        assert!(is_env("[pool.x.env] # those\n"));
        assert!(!is_env("[pool.x.env]\n[pool.y]\n"));
        assert!(!is_env("[[listener.x.route]]\n"));
        assert!(!is_env(""));
    }
}
