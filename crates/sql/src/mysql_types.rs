//! Types of MySQL and MariaDB, by their names.

use crate::EnumValues;
use crate::column::{Compared, Takes};

/// The digits that a double keeps of any decimal number.
const DOUBLE_DIGITS: u32 = 15;

/// The types that text and numbers never fit.
pub const MYSQL_SHAPES: [&str; 8] = [
    "geometry",
    "geometrycollection",
    "linestring",
    "multilinestring",
    "multipoint",
    "multipolygon",
    "point",
    "polygon",
];

/// A column as the catalogue of the server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MysqlColumn {
    /// The name.
    pub name: String,
    /// The type, without a length.
    pub of: String,
    /// The number of characters or bytes, decimal places, bits, or digits of a fraction of a second.
    pub size: Option<u32>,
    /// The number of digits of a number.
    pub precision: Option<u32>,
    /// The declaration of an `enum` or a `set`.
    pub words: Option<String>,
    /// A check marks it as JSON.
    pub is_json: bool,
}

impl MysqlColumn {
    /// Returns what the column accepts.
    #[must_use]
    pub fn takes(&self) -> Takes {
        // `float(7,2)` and `double(10,2)` round; without a length they do not.
        let rounded = |of: Takes| match self.size {
            Some(places) => Takes::Rounded(Box::new(of), places),
            None => of,
        };
        let size = self.size.unwrap_or(0);
        match &*self.of {
            _ if self.is_json => Takes::Json,
            "enum" | "set" => Takes::Word(self.words()),
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => Takes::Integer,
            "year" => Takes::Year,
            "float" => rounded(Takes::Single),
            "double" => rounded(Takes::Double),
            "decimal" => Takes::ShortDecimal(size),
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
                Takes::Bytes
            }
            "json" => Takes::Json,
            "char" | "varchar" => Takes::Limited(size as usize),
            "tinytext" | "text" => Takes::LimitedBytes(size as usize),
            "date" => Takes::Date,
            "time" => Takes::Time(size),
            "datetime" | "timestamp" => Takes::Utc(size),
            "bit" => Takes::Bits(size.clamp(1, 64)),
            _ => Takes::Text,
        }
    }

    /// Returns what a value that is compared with the column must be, so that the server compares it exactly.
    #[must_use]
    pub fn compared(&self) -> Takes {
        const FRACTION_DIGITS: u32 = 6;
        Takes::Compared(match &*self.of {
            "tinyint" | "bit" => Compared::Integer { booleans: true },
            "smallint" | "mediumint" | "int" | "bigint" => Compared::Integer { booleans: false },
            "float" | "double" => Compared::Double,
            "decimal" => {
                Compared::Decimal { is_short: self.precision.is_some_and(|it| it <= DOUBLE_DIGITS) }
            }
            "date" => Compared::Time(Box::new(Takes::Date)),
            "time" => Compared::Time(Box::new(Takes::Time(FRACTION_DIGITS))),
            "datetime" | "timestamp" => Compared::Time(Box::new(Takes::Utc(FRACTION_DIGITS))),
            "enum" | "set" => Compared::Word(self.words()),
            // The server compares JSON values.
            "json" => return Takes::Any,
            "year" => return Takes::Year,
            _ => Compared::Text,
        })
    }

    fn words(&self) -> EnumValues {
        EnumValues::of_type(self.words.as_deref().unwrap_or_default())
    }
}
