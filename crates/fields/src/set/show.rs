//! Formatting of fields for people. Secret values are replaced. The encoders write them, because their output is data.

use std::fmt;

use super::{Fields, Format};
use crate::value::HIDDEN;

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Writes a line `name: value` for each field. For NULL: `name:`.
impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.format("", ": ").fmt(f)
    }
}

impl Fields {
    /// Formats a line for each field: `lead`, name, `separator`, value.
    ///
    /// ```
    /// let fields = fields::Fields::from_iter([("a", "1"), ("b", "2")]);
    /// assert_eq!(fields.format("  ", " = ").to_string(), "  a = 1\n  b = 2\n");
    /// ```
    #[must_use]
    pub const fn format<'a>(&'a self, lead: &'a str, separator: &'a str) -> Format<'a> {
        Format { fields: self, lead, separator }
    }
}

impl fmt::Display for Format<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for field in self.fields {
            let name = String::from_utf8_lossy(field.name);
            write!(f, "{}{name}", self.lead)?;
            match field.value.bytes() {
                None => f.write_str(self.separator.trim_end())?,
                Some(_) if field.sensitive => write!(f, "{}{HIDDEN}", self.separator)?,
                Some(bytes) => {
                    // Without the tab, a line end in a value would look like the start of another field.
                    let text = String::from_utf8_lossy(bytes).replace('\n', "\n\t");
                    write!(f, "{}{text}", self.separator)?;
                }
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}
