//! Serialisation of fields with serde: as a map in the order of the fields, in which a name may occur twice. NULL is
//! written as none. Names and values are written as text if they are UTF-8, otherwise as bytes. Numbers are written as
//! numbers if they fit in 64 bits.

use std::fmt;

use serde_core::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_core::ser::{Serialize, SerializeMap, Serializer};

use crate::{Fields, Value};

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.len()))?;
        for field in self {
            map.serialize_entry(&Text(field.name), &Shown(field.value))?;
        }
        map.end()
    }
}

struct Text<'a>(&'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => to.serialize_str(text),
            Err(_) => to.serialize_bytes(self.0),
        }
    }
}

struct Shown<'a>(Value<'a>);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let number = match self.0 {
            Value::Null => return to.serialize_none(),
            Value::Bytes(bytes) => return Text(bytes).serialize(to),
            Value::Number(_) => self.0.text().unwrap_or_default(),
            Value::Json(b"true") => return to.serialize_bool(true),
            Value::Json(b"false") => return to.serialize_bool(false),
            Value::Json(text) => return Text(text).serialize(to),
        };
        if let Ok(integer) = number.parse() {
            return to.serialize_i64(integer);
        }
        // A double is written only if it converts back to the same digits.
        match number.parse::<f64>() {
            Ok(real) if real.is_finite() && real.to_string() == number => to.serialize_f64(real),
            _ => to.serialize_str(number),
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    /// Creates a set whose names are compared byte by byte.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Map)
    }
}

struct Map;

impl<'de> Visitor<'de> for Map {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::new();
        while let Some((name, value)) = map.next_entry::<Read, Read>()? {
            let Read::Bytes(name) = name else {
                return Err(serde_core::de::Error::custom("a name is text"));
            };
            let added = fields.append(
                &name,
                match &value {
                    Read::Null => Value::Null,
                    Read::Bytes(bytes) => Value::Bytes(bytes),
                    Read::Number(digits) => Value::Number(digits.as_bytes()),
                },
            );
            added.map_err(serde_core::de::Error::custom)?;
        }
        Ok(fields)
    }
}

enum Read {
    Null,
    Bytes(Vec<u8>),
    Number(String),
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none, text, bytes, a number, true or false")
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read::Null)
    }

    fn visit_none<E>(self) -> Result<Read, E> {
        Ok(Read::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Read, D::Error> {
        Read::deserialize(from)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Read, E> {
        Ok(Read::Number(u8::from(value).to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Read, E> {
        Ok(Read::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Read, E> {
        Ok(Read::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Read, E> {
        Ok(Read::Number(value.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Read, E> {
        Ok(Read::Bytes(text.into()))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Read, E> {
        Ok(Read::Bytes(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_goes_through_json() {
        let text = r#"{"s":"x","e":"","n":null,"i":-12,"r":1.5,"s":"again"}"#;
        let fields: Fields = serde_json::from_str(text).unwrap();
        assert_eq!(format!("{fields:?}"), r#"[s="x", e="", n=NULL, i=-12, r=1.5, s="again"]"#);
        assert_eq!(serde_json::to_string(&fields).unwrap(), text);
    }

    #[test]
    fn a_number_that_a_double_would_round_is_text() {
        let fields = Fields::from_iter([("a", Value::Number(b"0.10000000000000000001"))]);
        assert_eq!(serde_json::to_string(&fields).unwrap(), r#"{"a":"0.10000000000000000001"}"#);
        assert!(serde_json::from_str::<Fields>(r#"{"a":[1]}"#).is_err());
    }
}
