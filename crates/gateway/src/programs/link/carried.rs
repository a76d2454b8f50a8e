//! What of a request its reply must carry (`match`).

use fields::Fields;
use settings::Carried;

use crate::wish::words;

/// Finds it in messages.
#[derive(Debug)]
pub(super) struct Finder {
    what: Carried,
    fields: Fields,
    of_request: Vec<u8>,
}

impl Finder {
    pub(super) fn new(what: Carried) -> Self {
        Self { what, fields: Fields::new(), of_request: Vec::new() }
    }

    /// Whether a message has it, and it is not empty.
    pub(super) fn is_in(&mut self, message: &[u8]) -> bool {
        find(&self.what, &mut self.fields, message).is_some_and(|found| !found.is_empty())
    }

    /// Whether a reply carries what its request has.
    pub(super) fn is_answered_by(&mut self, request: &[u8], reply: &[u8]) -> bool {
        let Self { what, fields, of_request } = self;
        of_request.clear();
        of_request.extend_from_slice(find(what, fields, request).unwrap_or_default());
        !of_request.is_empty() && find(what, fields, reply) == Some(of_request)
    }
}

fn find<'a>(what: &Carried, fields: &'a mut Fields, message: &'a [u8]) -> Option<&'a [u8]> {
    match what {
        Carried::Word(number) => {
            let nth = usize::try_from(*number).ok()?.checked_sub(1)?;
            words(message).nth(nth).map(|place| &message[place])
        }
        Carried::Member(name) => {
            fields.clear();
            fields::json::decode(fields, message).ok()?;
            fields.get(name.as_bytes())?.bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_that_carries_what_the_request_has() {
        let word = |number| Finder::new(Carried::Word(number));
        let id = || Finder::new(Carried::Member("id".to_owned()));
        for (mut finder, request, reply, due) in [
            (word(1), "7 get x", "7 found", true),
            (word(1), "7 get x", " 7", true),
            (word(1), "7 get x", "70 found", false),
            (word(1), "7 get x", "DEBUG 7", false),
            (word(2), "get 7", "ok 7", true),
            (word(2), "get", "ok", false),
            (id(), r#"{"id":7,"x":1}"#, r#"{"y":2,"id":7}"#, true),
            (id(), r#"{"id":"a"}"#, r#"{"id":"\u0061"}"#, true),
            (id(), r#"{"id":7}"#, r#"{"id":8}"#, false),
            (id(), r#"{"id":7}"#, "cache miss", false),
            (id(), r#"{"x":7}"#, r#"{"x":7}"#, false),
        ] {
            let seen = finder.is_answered_by(request.as_bytes(), reply.as_bytes());
            assert_eq!(seen, due, "{request} {reply}");
        }
        assert!(word(2).is_in(b"get 7") && !word(3).is_in(b"get 7"));
        assert!(id().is_in(br#"{"id":7}"#) && !id().is_in(b"7") && !id().is_in(br#"{"id":""}"#));
    }
}
