//! Changes of a forwarded head: fields to remove, to set and to append.

use std::fmt;

use fields::{AsName, Fields, Limits, http1};

use crate::rule::FieldName;

/// The maximum length of a value to set or append, in bytes.
pub const EDIT_VALUE_MAX: usize = 4096;

/// Why a change of a head is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditFault {
    /// The text is not a valid field name.
    Name,
    /// The field determines where a message ends or how its connection is used.
    Ours,
    /// The value has a control character, or a blank at its beginning or end.
    Value,
    /// The value is longer than [`EDIT_VALUE_MAX`].
    Long,
    /// The value is not a host with an optional port.
    Host,
}

impl fmt::Display for EditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("is not the name of a field"),
            Self::Ours => f.write_str("is written anew for each message, and cannot be changed"),
            Self::Value => f.write_str("has a control character, or a blank at its end"),
            Self::Long => write!(f, "has a value of more than {EDIT_VALUE_MAX} bytes"),
            Self::Host => f.write_str("is not a host, with or without a port"),
        }
    }
}

/// Changes of a head. First fields are removed, then fields are set, then fields are appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Remove(FieldName),
    Set(FieldName, Box<[u8]>),
    Append(FieldName, Box<[u8]>),
}

impl Edits {
    /// Creates an empty list of changes.
    #[must_use]
    pub const fn none() -> Self {
        Self { steps: Vec::new() }
    }

    /// Removes all fields with this name.
    ///
    /// # Errors
    /// If the name is invalid or the field must not be changed.
    pub fn remove(&mut self, name: &str) -> Result<(), EditFault> {
        self.steps.push(Step::Remove(checked(name)?));
        Ok(())
    }

    /// Replaces all fields with this name by one field.
    ///
    /// # Errors
    /// If the field is invalid or must not be changed.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), EditFault> {
        let name = checked(name)?;
        check_value(&name, value)?;
        self.steps.push(Step::Set(name, value.as_bytes().into()));
        Ok(())
    }

    /// Appends a field with this name.
    ///
    /// # Errors
    /// As for [`Self::set`], and if the field is Host, because a head has only one Host field.
    pub fn append(&mut self, name: &str, value: &str) -> Result<(), EditFault> {
        let name = checked(name)?;
        check_value(&name, value)?;
        if is_host(&name) {
            return Err(EditFault::Ours);
        }
        self.steps.push(Step::Append(name, value.as_bytes().into()));
        Ok(())
    }

    /// Appends the changes of `other`.
    pub fn then(&mut self, other: &Self) {
        self.steps.extend(other.steps.iter().cloned());
    }

    /// Whether there are no changes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether a change affects Host.
    #[must_use]
    pub fn changes_host(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Remove(name) | Step::Set(name, _) | Step::Append(name, _) => is_host(name),
        })
    }

    /// Applies the changes to a head. The limits for heads of a peer no longer apply to this head, because the appended
    /// fields come from the configuration.
    pub fn apply(&self, fields: &mut Fields) {
        if self.steps.is_empty() {
            return;
        }
        let unlimited = std::mem::take(fields).with_limits(Limits::MAX);
        *fields = unlimited;
        for step in &self.steps {
            // Names and values were validated by `remove`, `set` and `append`.
            let done = match step {
                Step::Remove(name) => {
                    fields.remove(name);
                    drop_alike(fields, name);
                    Ok(0)
                }
                Step::Set(name, value) => {
                    drop_alike(fields, name);
                    fields.replace_all(name, &**value)
                }
                Step::Append(name, value) => fields.append(name, &**value),
            };
            debug_assert!(done.is_ok(), "a field of our own can be one: {done:?}");
        }
    }

    /// Applies the changes to header lines that we wrote: `name: value`, each line with CR LF.
    #[must_use]
    pub fn rewrite(&self, lines: &[u8]) -> Vec<u8> {
        let mut fields = Fields::headers().with_limits(Limits::MAX);
        for line in lines.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let colon = line.iter().position(|&byte| byte == b':');
            let Some((name, value)) = colon.map(|colon| line.split_at(colon)) else { continue };
            let taken = fields.append(name, value[1..].trim_ascii());
            debug_assert!(taken.is_ok(), "a line of our own is a field: {taken:?}");
        }
        self.apply(&mut fields);
        let mut lines = Vec::new();
        for field in fields.iter() {
            let value = field.value.bytes().unwrap_or_default();
            [field.name, b": ", value, b"\r\n"].iter().for_each(|part| lines.extend(*part));
        }
        lines
    }
}

/// Removes fields that many servers treat as this field: in their environment variables, `X_User`, `X.User` and
/// `X-User` have the same name.
fn drop_alike(fields: &mut Fields, name: &FieldName) {
    let name = name.as_name();
    let goes = |other: &[u8]| !other.eq_ignore_ascii_case(name) && is_alike(other, name);
    if fields.iter().any(|field| goes(field.name)) {
        fields.retain(|field| !goes(field.name));
    }
}

/// Whether two names are equal, apart from case and from the characters that are neither letters nor digits.
fn is_alike(one: &[u8], other: &[u8]) -> bool {
    let dashed =
        |byte: u8| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' };
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| dashed(*one) == dashed(*other))
}

fn is_host(name: &FieldName) -> bool {
    name.as_name().eq_ignore_ascii_case(b"host")
}

fn checked(name: &str) -> Result<FieldName, EditFault> {
    let checked = FieldName::new(name).ok_or(EditFault::Name)?;
    // Fields with similar names would be removed together with this field.
    if http1::GENERATED_FIELDS.iter().any(|ours| is_alike(ours.as_bytes(), name.as_bytes())) {
        return Err(EditFault::Ours);
    }
    Ok(checked)
}

fn check_value(name: &FieldName, value: &str) -> Result<(), EditFault> {
    let blank = |c: Option<char>| matches!(c, Some(' ' | '\t'));
    if value.len() > EDIT_VALUE_MAX {
        return Err(EditFault::Long);
    }
    let control = value.bytes().any(|byte| byte < 32 && byte != b'\t' || byte == 127);
    if control || blank(value.chars().next()) || blank(value.chars().next_back()) {
        return Err(EditFault::Value);
    }
    let host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if is_host(name) && (value.is_empty() || !value.bytes().all(host)) {
        return Err(EditFault::Host);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fields::Value;

    fn edits() -> Edits {
        let mut edits = Edits::none();
        edits.remove("X-Debug").unwrap();
        edits.set("x-env", "prod").unwrap();
        edits.append("Via", "1.1 here").unwrap();
        edits
    }

    fn all<'a>(fields: &'a Fields, name: &'a str) -> Vec<&'a [u8]> {
        fields.get_all(name).filter_map(Value::bytes).collect()
    }

    #[test]
    fn fields_go_are_set_and_are_added() {
        let mut fields = Fields::headers();
        for (name, value) in [
            ("x-debug", "1"),
            ("X-Env", "a"),
            ("via", "1.1 there"),
            ("X-DEBUG", "2"),
            ("X-Env", "b"),
        ] {
            fields.append(name, value).unwrap();
        }
        edits().apply(&mut fields);
        fields.check();
        assert_eq!(all(&fields, "x-debug"), [b""; 0]);
        assert_eq!(all(&fields, "X-Env"), [b"prod"]);
        assert_eq!(all(&fields, "Via"), [&b"1.1 there"[..], b"1.1 here"]);
    }

    #[test]
    fn lines_of_our_own_are_changed_likewise() {
        assert_eq!(edits().rewrite(b""), b"x-env: prod\r\nVia: 1.1 here\r\n");
        let lines = b"X-DEBUG: a\r\nLocation: https://a/b:c\r\nX-Env: a\r\nEmpty: \r\n";
        let changed = edits().rewrite(lines);
        let expected: &[u8] =
            b"Location: https://a/b:c\r\nx-env: prod\r\nEmpty: \r\nVia: 1.1 here\r\n";
        assert_eq!(changed.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn what_servers_take_for_the_same_field_goes_too() {
        let mut fields = Fields::headers();
        for name in ["x_env", "X_DEBUG", "x_other", "X_Env"] {
            fields.append(name, "theirs").unwrap();
        }
        edits().apply(&mut fields);
        fields.check();
        let names: Vec<_> = fields.iter().map(|field| field.name.to_vec()).collect();
        assert_eq!(names, [&b"x_other"[..], b"x-env", b"Via"]);
    }

    #[test]
    fn a_name_with_an_underscore_covers_the_same_name_with_a_dash() {
        let mut edits = Edits::none();
        edits.remove("X_User").unwrap();
        edits.set("SM_USER", "ours").unwrap();
        let spellings = ["x-user", "X_USER", "X.User", "sm-user", "SM_User", "SM~USER", "SMUSER"];
        let mut fields = Fields::headers();
        for name in spellings {
            fields.append(name, "theirs").unwrap();
        }
        edits.apply(&mut fields);
        fields.check();
        let lines: String = spellings.iter().map(|name| format!("{name}: theirs\r\n")).collect();
        let changed = edits.rewrite(lines.as_bytes());
        assert_eq!(changed.escape_ascii().to_string(), "SM_USER: ours\\r\\nSMUSER: theirs\\r\\n");
        let names: Vec<_> = fields.iter().map(|field| field.name.to_vec()).collect();
        assert_eq!(names, [&b"SM_USER"[..], b"SMUSER"]);
    }

    #[test]
    fn what_we_add_is_not_held_to_the_limits_of_a_peer() {
        let limits = Limits { fields: 1, ..Limits::default() };
        let mut fields = Fields::headers().with_limits(limits);
        fields.append("a", "b").unwrap();
        edits().apply(&mut fields);
        assert_eq!(fields.len(), 3);
    }

    #[test]
    fn what_frames_a_message_cannot_be_changed() {
        let mut edits = Edits::none();
        for name in http1::GENERATED_FIELDS {
            assert_eq!(edits.set(name, "1"), Err(EditFault::Ours));
            assert_eq!(edits.remove(&name.to_uppercase()), Err(EditFault::Ours));
            assert_eq!(edits.remove(&name.replace('-', "_")), Err(EditFault::Ours));
        }
        assert_eq!(edits.set("a b", ""), Err(EditFault::Name));
        assert_eq!(edits.set("", ""), Err(EditFault::Name));
        assert_eq!(edits.set("a", "b\r\nc: d"), Err(EditFault::Value));
        assert_eq!(edits.append("a", "b "), Err(EditFault::Value));
        assert_eq!(edits.append("a", &"b".repeat(EDIT_VALUE_MAX + 1)), Err(EditFault::Long));
        assert_eq!(edits.append("Host", "a"), Err(EditFault::Ours));
        assert_eq!(edits.set("Host", "a b"), Err(EditFault::Host));
        assert!(edits.is_empty() && !edits.changes_host());
        edits.set("host", "internal:8080").unwrap();
        assert!(edits.changes_host());
    }
}
