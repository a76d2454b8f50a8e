//! Types of SQLite, by their names.

use crate::column::Takes;

/// Returns what a column with this type accepts. The name of the type is in upper case.
#[must_use]
pub fn sqlite_takes(of: &str) -> Takes {
    let has = |part: &str| of.contains(part);
    if of == "JSON" {
        Takes::JsonOfNumbers
    } else if has("INT") {
        Takes::Number
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        Takes::Text
    } else if has("BLOB") {
        Takes::Bytes
    } else if of.is_empty() {
        Takes::Any
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        Takes::Double
    } else {
        Takes::Number
    }
}
