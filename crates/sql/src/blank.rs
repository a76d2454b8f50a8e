//! What stands beside a value and is no part of it.

/// Whether databases skip this letter beside a number or a time (`isspace`).
#[must_use]
pub const fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t'..='\r')
}
