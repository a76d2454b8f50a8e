//! White space next to a value.

/// Whether databases skip this character next to a number or a time (`isspace`).
#[must_use]
pub const fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t'..='\r')
}
