//! Finds the kind and the id of a message that is too long to be buffered. Its bytes are read once as they arrive, and
//! only its id is stored. The id may be anywhere in the message.
//!
//! Programs write the id at the beginning of a reply (`{"jsonrpc":"2.0","id":7,"result":…}`) or at its end
//! (`{"result":…,"jsonrpc":"2.0","id":7}`). An id in a string or in a nested value, which a client may have chosen, is
//! not the id of the message. Anything but one JSON object with at most one id is [`Skimmed::Unknown`].
//!
//! ```text
//!         {                 "name"           :           value            }
//!   Open ───► NameOrClose ─────────► Colon ─────► Value ───────► Comma ────────► Closed
//!                  ▲                                               │ ,
//!                  └──────────────────── Name ◄────────────────────┘
//! ```

use memchr::memchr2;

use super::message::ID_MAX;

/// The kind of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skimmed {
    /// The reply to the request with this id, as written.
    Reply(Vec<u8>),
    /// A request with this id, as written.
    Request(Vec<u8>),
    /// A notification.
    Notification,
    /// The kind is not certain.
    Unknown,
}

/// Finds the kind of an invalid frame. After an id and a `result` or an `error` were read, the rest of a reply need not
/// be JSON. Before that, nested values need not be JSON, and `NaN` and `Infinity` are accepted as values.
///
/// ```
/// use wire::jsonrpc::{Skimmed, skim};
///
/// let reply = |id: &str| Skimmed::Reply(id.into());
/// assert_eq!(skim(br#"{"jsonrpc":"2.0","id":7,"result":Infinity}"#), reply("7"));
/// assert_eq!(skim(br#"{"result":[NaN],"id":"a"}"#), reply("\"a\""));
/// assert_eq!(skim(br#"{"result":Infinity"#), Skimmed::Unknown);
/// ```
#[must_use]
pub fn skim(frame: &[u8]) -> Skimmed {
    let mut skim = Skim::default();
    skim.begin();
    skim.feed(frame);
    skim.finish();
    skim.take_result().unwrap_or(Skimmed::Unknown)
}

/// A reader of consecutive messages.
#[derive(Debug, Default)]
pub(crate) struct Skim {
    at: At,
    /// Whether the last byte was the backslash of an escape.
    escaped: bool,
    /// Whether the position is in a string of a nested value.
    quoted: bool,
    /// The number of open objects and arrays in a member. `arrays` has one bit for each of the first [`KINDS_MAX`] of
    /// them, which is set for an array. Deeper ones are only counted.
    depth: usize,
    arrays: u128,
    /// The current name or the id, truncated to the useful length.
    text: Vec<u8>,
    member: Member,
    seen: Seen,
    id: Option<Vec<u8>>,
    result: ResultState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Open,
    NameOrClose,
    Name,
    InName,
    Colon,
    Value,
    InString,
    InScalar,
    Nested,
    Comma,
    Closed,
    Broken,
}

/// The members that are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Member {
    #[default]
    Other,
    Id,
    Method,
    /// `result` or `error`.
    Outcome,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    id: bool,
    method: bool,
    outcome: bool,
}

/// Whether the caller has received the result for the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResultState {
    /// There is no message, or its result was returned.
    #[default]
    Yes,
    /// The message may continue.
    NotYet,
    /// The message is complete.
    Due,
}

/// The maximum depth at which a closing bracket is compared with its opening one.
const KINDS_MAX: usize = u128::BITS as usize;

/// The maximum length of the names that are evaluated.
const NAME_MAX: usize = 8;

impl Skim {
    /// Begins a message.
    pub(crate) fn begin(&mut self) {
        *self = Self { result: ResultState::NotYet, ..Self::default() };
    }

    /// Reads more bytes of the message.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut from = 0;
        while self.result == ResultState::NotYet && self.at != At::Broken && !self.is_reply() {
            // Most bytes are in strings.
            let in_string = self.at == At::Nested && self.quoted
                || self.at == At::InString && self.member != Member::Id;
            if in_string && !self.escaped {
                let rest = bytes.get(from..).unwrap_or_default();
                from += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            }
            let Some(&byte) = bytes.get(from) else { return };
            self.at = self.next(byte);
            from += 1;
        }
    }

    /// Whether the message is a reply with an id. The rest of such a message is not read.
    const fn is_reply(&self) -> bool {
        self.seen.outcome && !self.seen.method && self.id.is_some()
    }

    /// Ends the message.
    pub(crate) fn finish(&mut self) {
        if self.result == ResultState::NotYet {
            self.result = ResultState::Due;
        }
    }

    /// Returns the kind of the message once, as soon as it is certain.
    pub(crate) fn take_result(&mut self) -> Option<Skimmed> {
        if self.result == ResultState::Yes {
            return None;
        }
        let ended = self.result == ResultState::Due;
        let Seen { method, outcome, .. } = self.seen;
        let verdict = match (self.at, self.id.take()) {
            (At::Broken, _) => Skimmed::Unknown,
            _ if method && outcome => Skimmed::Unknown,
            (_, Some(id)) if outcome => Skimmed::Reply(id),
            (at, _) if ended && at != At::Closed => Skimmed::Unknown,
            (_, Some(id)) if method => Skimmed::Request(id),
            _ if ended && method && !self.seen.id => Skimmed::Notification,
            _ if ended => Skimmed::Unknown,
            (_, id) => {
                self.id = id;
                return None;
            }
        };
        self.result = ResultState::Yes;
        Some(verdict)
    }

    fn next(&mut self, byte: u8) -> At {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match (self.at, byte) {
            (At::InName, _) => self.in_name(byte),
            (At::InString, _) => self.in_string(byte),
            (At::InScalar, b',' | b'}') => {
                self.end_value();
                self.next_member(byte)
            }
            (At::InScalar, _) if is_blank => self.end_value(),
            (At::InScalar, _) => self.keep(byte, ID_MAX, At::InScalar),
            (At::Nested, _) => self.nested(byte),
            (at, _) if is_blank => at,
            (At::Open, b'{') => At::NameOrClose,
            (At::NameOrClose | At::Name, b'"') => {
                self.text.clear();
                At::InName
            }
            (At::NameOrClose, b'}') => At::Closed,
            (At::Colon, b':') => At::Value,
            (At::Value, _) => self.value(byte),
            (At::Comma, b',' | b'}') => self.next_member(byte),
            _ => At::Broken,
        }
    }

    const fn next_member(&self, byte: u8) -> At {
        match (self.at, byte) {
            (At::Broken, _) => At::Broken,
            (_, b',') => At::Name,
            _ => At::Closed,
        }
    }

    fn keep(&mut self, byte: u8, most: usize, at: At) -> At {
        if self.text.len() <= most {
            self.text.push(byte);
        }
        at
    }

    fn in_name(&mut self, byte: u8) -> At {
        match byte {
            b'"' => self.end_name(),
            // The name may be one of the evaluated names, written with escapes.
            b'\\' | ..0x20 => At::Broken,
            _ => self.keep(byte, NAME_MAX, At::InName),
        }
    }

    fn end_name(&mut self) -> At {
        let is = |name: &str| self.text.eq_ignore_ascii_case(name.as_bytes());
        let (member, exact) = match () {
            () if is("id") => (Member::Id, self.text == b"id"),
            () if is("method") => (Member::Method, self.text == b"method"),
            () if is("result") => (Member::Outcome, self.text == b"result"),
            () if is("error") => (Member::Outcome, self.text == b"error"),
            () => (Member::Other, true),
        };
        let seen = match member {
            Member::Other => false,
            Member::Id => std::mem::replace(&mut self.seen.id, true),
            Member::Method => std::mem::replace(&mut self.seen.method, true),
            Member::Outcome => std::mem::replace(&mut self.seen.outcome, true),
        };
        self.member = member;
        if seen || !exact { At::Broken } else { At::Colon }
    }

    fn value(&mut self, byte: u8) -> At {
        self.text.clear();
        match byte {
            b'{' | b'[' if self.member == Member::Id => At::Broken,
            b'{' | b'[' => {
                (self.depth, self.quoted) = (0, false);
                self.nested(byte)
            }
            b'"' => self.keep(byte, ID_MAX, At::InString),
            b't' | b'f' if self.member == Member::Id => At::Broken,
            // Many libraries write `NaN` and `Infinity`.
            b'N' | b'I' if self.member == Member::Id => At::Broken,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'N' | b'I' => {
                self.keep(byte, ID_MAX, At::InScalar)
            }
            _ => At::Broken,
        }
    }

    fn in_string(&mut self, byte: u8) -> At {
        if self.member == Member::Id {
            self.keep(byte, ID_MAX, At::InString);
        }
        match (std::mem::take(&mut self.escaped), byte) {
            (false, b'"') => self.end_value(),
            (false, b'\\') => {
                self.escaped = true;
                At::InString
            }
            _ => At::InString,
        }
    }

    fn end_value(&mut self) -> At {
        if self.member == Member::Id {
            if self.text.len() > ID_MAX {
                return At::Broken;
            }
            self.id = Some(std::mem::take(&mut self.text));
        }
        At::Comma
    }

    fn nested(&mut self, byte: u8) -> At {
        if self.quoted {
            match (std::mem::take(&mut self.escaped), byte) {
                (false, b'"') => self.quoted = false,
                (false, b'\\') => self.escaped = true,
                _ => {}
            }
            return At::Nested;
        }
        match byte {
            b'"' => self.quoted = true,
            // The depth is not limited, because an id after a deeply nested value must be found.
            b'{' | b'[' => {
                if self.depth < KINDS_MAX {
                    self.arrays = self.arrays << 1 | u128::from(byte == b'[');
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth <= KINDS_MAX {
                    if (self.arrays & 1 == 1) != (byte == b']') {
                        return At::Broken;
                    }
                    self.arrays >>= 1;
                }
                self.depth -= 1;
                if self.depth == 0 {
                    return At::Comma;
                }
            }
            _ => {}
        }
        At::Nested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for a message that arrives in parts of `step` bytes, and the number of bytes that were needed.
    fn skim(message: &str, step: usize) -> (Skimmed, usize) {
        let mut skim = Skim::default();
        skim.begin();
        let mut fed = 0;
        for part in message.as_bytes().chunks(step) {
            skim.feed(part);
            fed += part.len();
            if let Some(told) = skim.take_result() {
                skim.feed(b"}");
                skim.finish();
                assert_eq!(skim.take_result(), None, "once");
                return (told, fed);
            }
        }
        skim.finish();
        (skim.take_result().expect("the end is certain"), fed)
    }

    fn reply(id: &str) -> Skimmed {
        Skimmed::Reply(id.into())
    }

    #[test]
    fn the_id_of_a_message_is_found_wherever_it_stands() {
        let request = |id: &str| Skimmed::Request(id.into());
        for (message, told) in [
            (r#"{"result":{"x":[1,{"id":9}]},"jsonrpc":"2.0","id":7}"#, reply("7")),
            (r#"{"result":"xx","id":7,"jsonrpc":"2.0"}"#, reply("7")),
            (r#" {"jsonrpc" : "2.0" , "id" : "a\"b" , "error" : {} } "#, reply(r#""a\"b""#)),
            (r#"{"result":null,"id":null}"#, reply("null")),
            (r#"{"result":-1.5e3,"id":7 }"#, reply("7")),
            (r#"{"method":"a","params":{"result":1,"id":7},"id":0}"#, request("0")),
            (r#"{"id":0,"method":"a","params":["xx"]}"#, request("0")),
            (r#"{"method":"a","params":{"id":7}}"#, Skimmed::Notification),
        ] {
            for step in [1, 2, 7, message.len()] {
                assert_eq!(skim(message, step).0, told, "{message} in parts of {step}");
            }
        }
    }

    #[test]
    fn what_may_be_chosen_by_a_client_is_no_id() {
        for message in [
            // An id in a string, in a name, and in nested values.
            r#"{"result":"\",\"id\":7}"}"#,
            r#"{"result":"\\\",\"id\":7}"}"#,
            r#"{"result":1,"x,\"id":7}"#,
            r#"{"result":{"id":7}}"#,
            r#"{"result":[{"id":7},"id",7]}"#,
            r#"{"result":1,"x":{"y":[],"id":7}}"#,
            // A duplicate id, an id in another case or with escapes, and an invalid id.
            r#"{"result":1,"id":7,"id":8}"#,
            r#"{"id":8,"id":7,"result":1}"#,
            r#"{"result":1,"ID":7}"#,
            r#"{"result":1,"\u0069d":7}"#,
            r#"{"result":1,"id":[7]}"#,
            r#"{"result":1,"id":true}"#,
            // Not one message.
            r#"{"method":"a","result":1,"id":7}"#,
            r#"[{"result":1,"id":7}]"#,
            r#"xxxx,"id":7}"#,
            r#"{"result":"xxx,"id":7}"#,
            r#"{"result":[},"id":7}"#,
            r#"{"result":{]},"id":7}"#,
            r#"{"result":1},"id":7}"#,
            r#"{"result":1 2,"id":7}"#,
            r#"{"result":,"id":7}"#,
            r#"{"result":1,"id":}"#,
            r#"{"result":1,"i"#,
            r#"{"result":1}"#,
            r#"{"id":7}"#,
            "{}",
            "",
        ] {
            let whole = skim(message, message.len().max(1)).0;
            // The rest of a reply with an id is not read.
            let expected = match message {
                r#"{"result":1,"id":7,"id":8}"# => vec![Skimmed::Unknown, reply("7")],
                _ => vec![Skimmed::Unknown],
            };
            assert!(expected.contains(&whole), "{message}: {whole:?}");
            for step in [1, 2, 3] {
                let told = skim(message, step).0;
                assert!(expected.contains(&told), "{message} in parts of {step}: {told:?}");
            }
        }
        let long = format!(r#"{{"result":1,"id":"{}"}}"#, "x".repeat(ID_MAX));
        assert_eq!(skim(&long, 100).0, Skimmed::Unknown);
    }

    #[test]
    fn the_id_is_found_behind_a_value_of_any_depth() {
        for depth in [1, 127, 128, 129, 130, 5000] {
            let value = format!("{}\"]\"{}", "[{\"a\":".repeat(depth), "}]".repeat(depth));
            for message in [
                format!(r#"{{"result":{value},"id":7}}"#),
                format!(r#"{{"id":7,"result":{value}}}"#),
                format!(r#"{{"x":{value},"error":{value},"id":7}}"#),
            ] {
                assert_eq!(skim(&message, 100).0, reply("7"), "{depth} levels");
            }
            let unfinished = format!(r#"{{"result":[{value},"id":7}}"#);
            assert_eq!(skim(&unfinished, 100).0, Skimmed::Unknown, "{depth} levels");
        }
    }

    #[test]
    fn nothing_is_waited_for_that_would_change_nothing() {
        for (message, told, most) in [
            ("xxxxxxxxxx", Skimmed::Unknown, 1),
            (r#"{"id":7,"result":"xxxxxxxx"}"#, reply("7"), 16),
            (r#"{"id":7,"method":"xxxxxxx"}"#, Skimmed::Request(b"7".into()), 16),
            (r#"{"method":"a","error":"xxxxxxx"}"#, Skimmed::Unknown, 22),
        ] {
            let (verdict, fed) = skim(message, 1);
            assert_eq!(verdict, told, "{message}");
            assert!(fed <= most, "{message}: {fed}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_message_that_is_read_whole_is_the_same_when_it_is_skimmed(
            parts in proptest::collection::vec(0_usize..12, 0..8), step in 1_usize..30,
        ) {
            const PARTS: [&str; 12] = [
                r#""jsonrpc":"2.0""#, r#""id":7"#, r#""id":"a\\\"b""#, r#""id":null"#, r#""method":"m""#,
                r#""params":{"id":1}"#, r#""result":[{"id":2},"\""]"#, r#""error":{"x":"id"}"#, r#""x":-1"#,
                r#""y":true"#, r#""id":{}"#, r#""z":"{\"id\":5,""#,
            ];
            let members: Vec<_> = parts.iter().map(|&part| PARTS[part]).collect();
            let message = format!("{{{}}}", members.join(","));
            let told = skim(&message, step).0;
            // `Unknown` is never wrong.
            if let (Ok(read), true) = (super::super::scan(message.as_bytes()), told != Skimmed::Unknown) {
                let id = read.id.clone().map(|place| message.as_bytes()[place].to_vec());
                let expected = match (read.method.is_some(), id) {
                    (true, Some(id)) => Skimmed::Request(id),
                    (true, None) => Skimmed::Notification,
                    (false, Some(id)) => Skimmed::Reply(id),
                    (false, None) => Skimmed::Unknown,
                };
                proptest::prop_assert_eq!(told, expected, "{}", message);
            }
        }
    }
}
