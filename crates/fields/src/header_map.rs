//! Conversion between fields and `http::HeaderMap`.
//!
//! A `HeaderMap` preserves neither the spelling of names nor the order of fields with different names. Conversion to a
//! `HeaderMap` changes names to lower case. Conversion back groups the fields with the same name.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{EncodeError, EncodeReason, FieldError, Fields};

impl TryFrom<&Fields> for HeaderMap {
    type Error = EncodeError;

    /// NULL fields are omitted.
    fn try_from(fields: &Fields) -> Result<Self, EncodeError> {
        let too_many = |index| EncodeError { index, reason: EncodeReason::Name };
        let mut map = Self::try_with_capacity(fields.len()).map_err(|_| too_many(fields.len()))?;
        for (index, field) in fields.iter().enumerate() {
            let Some(value) = field.value.bytes() else { continue };
            let name = HeaderName::from_bytes(field.name)
                .map_err(|_| EncodeError { index, reason: EncodeReason::Name })?;
            let mut value = HeaderValue::from_bytes(value)
                .map_err(|_| EncodeError { index, reason: EncodeReason::Value })?;
            value.set_sensitive(field.sensitive);
            map.try_append(name, value).map_err(|_| too_many(index))?;
        }
        Ok(map)
    }
}

impl TryFrom<&HeaderMap> for Fields {
    type Error = FieldError;

    /// Creates header fields with the default limits of a head.
    fn try_from(map: &HeaderMap) -> Result<Self, FieldError> {
        let mut fields = Self::headers();
        for (name, value) in map {
            let index = fields.append(name.as_str(), value.as_bytes())?;
            fields.set_sensitive(index, value.is_sensitive());
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn a_head_goes_there_and_back() {
        let mut fields = Fields::headers();
        for (name, value) in [("Host", "x"), ("Set-Cookie", "a"), ("Set-Cookie", "b")] {
            fields.append(name, value).unwrap();
        }
        fields.append("Gone", Value::Null).unwrap();
        let index = fields.append("Authorization", "secret").unwrap();
        fields.set_sensitive(index, true);
        let map = HeaderMap::try_from(&fields).unwrap();
        assert!(map["authorization"].is_sensitive());
        let back = Fields::try_from(&map).unwrap();
        assert_eq!(back.len(), 4);
        assert!(!format!("{back:?}").contains("secret"));
        let cookies: Vec<_> = back.get_all("set-cookie").filter_map(Value::text).collect();
        assert_eq!(cookies, ["a", "b"]);
    }

    #[test]
    fn what_is_no_header_is_named() {
        let fields = Fields::from_iter([("a", "1"), ("b c", "2")]);
        let error = HeaderMap::try_from(&fields).unwrap_err();
        assert_eq!(error, EncodeError { index: 1, reason: EncodeReason::Name });
        let fields = Fields::from_iter([("a", "1\n")]);
        let error = HeaderMap::try_from(&fields).unwrap_err();
        assert_eq!(error, EncodeError { index: 0, reason: EncodeReason::Value });
    }
}
