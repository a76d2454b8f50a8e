//! The options of toys: declared once as rows, and read from a TOML table.

use std::fmt;

use toml::de::{DeTable, DeValue};

/// The value of an option, which also determines the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, in the unit that the meaning of its option states.
    Count(u64),
    /// On or off.
    Switch(bool),
}

impl Value {
    const fn type_name(self) -> &'static str {
        match self {
            Self::Count(_) => "a number that is not negative",
            Self::Switch(_) => "true or false",
        }
    }

    /// Returns a TOML value if it has the same type.
    fn read(self, value: &DeValue<'_>) -> Option<Self> {
        match (self, value) {
            (Self::Count(_), DeValue::Integer(number)) => {
                u64::from_str_radix(number.as_str(), number.radix()).ok().map(Self::Count)
            }
            (Self::Switch(_), DeValue::Boolean(value)) => Some(Self::Switch(*value)),
            _ => None,
        }
    }
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// Its key in the table.
    pub name: &'static str,
    /// Its value if the table does not contain the key.
    pub default: Value,
    /// Its meaning, with the unit.
    pub meaning: &'static str,
}

/// Why a table of options is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// It is not TOML. The text is the reason.
    Syntax(String),
    /// No such option exists.
    Unknown {
        /// The key.
        name: String,
        /// The options that exist.
        known: Vec<&'static str>,
    },
    /// The value has a different type, or is out of range.
    Type {
        /// The option.
        name: &'static str,
        /// What is expected.
        expected: &'static str,
    },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(why) => f.write_str(why),
            Self::Unknown { name, known } => {
                write!(f, "unknown option `{name}`; the options are: {}", known.join(", "))
            }
            Self::Type { name, expected } => write!(f, "`{name}` must be {expected}"),
        }
    }
}

impl std::error::Error for OptionError {}

/// The options of one toy, each with its value.
#[derive(Clone, Debug)]
pub struct Options(Vec<(&'static str, Value)>);

impl Options {
    /// Reads the keys of a TOML document. An absent option has its default value.
    ///
    /// # Errors
    /// The first key that is not in `rows`, or whose value has a different type.
    pub fn read(rows: &'static [OptionRow], text: &str) -> Result<Self, OptionError> {
        let parsed = DeTable::parse(text);
        let table = parsed.map_err(|error| OptionError::Syntax(error.message().to_owned()))?;
        let mut values: Vec<_> = rows.iter().map(|row| (row.name, row.default)).collect();
        for (key, value) in table.get_ref() {
            let Some((name, known)) = values.iter_mut().find(|(name, _)| name == key.get_ref())
            else {
                let known = rows.iter().map(|row| row.name).collect();
                return Err(OptionError::Unknown { name: key.get_ref().to_string(), known });
            };
            let expected = known.type_name();
            *known = known.read(value.get_ref()).ok_or(OptionError::Type { name, expected })?;
        }
        Ok(Self(values))
    }

    /// Returns the value of a number.
    ///
    /// # Panics
    /// If no row declares a number with this name.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Count(count) => count,
            Value::Switch(_) => panic!("`{name}` is no number"),
        }
    }

    /// Returns the value of a switch.
    ///
    /// # Panics
    /// If no row declares a switch with this name.
    #[must_use]
    pub fn switch(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Switch(is_on) => is_on,
            Value::Count(_) => panic!("`{name}` is no switch"),
        }
    }

    fn value(&self, name: &str) -> Value {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.expect("options are read by the names of their rows").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[OptionRow] = &[
        OptionRow { name: "most", default: Value::Count(7), meaning: "a number" },
        OptionRow { name: "loud", default: Value::Switch(false), meaning: "a switch" },
    ];

    #[test]
    fn options_have_defaults_and_values() {
        let options = Options::read(ROWS, "").unwrap();
        assert_eq!((options.count("most"), options.switch("loud")), (7, false));
        let options = Options::read(ROWS, "loud = true\nmost = 0x10\n").unwrap();
        assert_eq!((options.count("most"), options.switch("loud")), (16, true));
    }

    #[test]
    fn unknown_names_and_other_types_are_errors() {
        let error = |text: &str| Options::read(ROWS, text).unwrap_err().to_string();
        assert_eq!(error("mots = 1"), "unknown option `mots`; the options are: most, loud");
        assert_eq!(error("most = -1"), "`most` must be a number that is not negative");
        assert_eq!(error("loud = 1"), "`loud` must be true or false");
        assert!(matches!(Options::read(ROWS, "most ="), Err(OptionError::Syntax(_))));
    }
}
