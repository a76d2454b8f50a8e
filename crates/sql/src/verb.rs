//! The first word of a statement.

use crate::SqlError;

/// Checks that a statement begins with one of `verbs`. Any other statement would not do what it is configured for, or
/// would end the transaction that holds the rows of other clients.
///
/// # Errors
/// When it begins with another word.
pub fn check_verb(sql: &str, verbs: &[&str]) -> Result<(), SqlError> {
    let body = skip_comments(sql);
    let length = body.bytes().take_while(u8::is_ascii_alphabetic).count();
    let verb = body[..length].to_ascii_lowercase();
    if verbs.contains(&verb.as_str()) {
        return Ok(());
    }
    let text = format!("begins with `{verb}`; it must be one of {}", verbs.join(", "));
    Err(SqlError { text, at: None })
}

/// Returns `sql` without the white space and comments at its start.
fn skip_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let comment = if rest.starts_with("--") {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 1)
        } else {
            return rest;
        };
        rest = comment.map_or("", |end| &rest[end + 1..]).trim_start();
    }
}
