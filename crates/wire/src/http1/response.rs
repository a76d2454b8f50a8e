//! Responses of handlers as heads of replies.
//!
//! A response becomes the head of a reply, which is parsed by the rules for servers, like the answer of a program
//! ([`object`]). Rules that are checked before have separate reasons.

use exchange::{Response, Slice};
use fields::http1::is_generated;

use super::encode::{line, write_decimal};
use super::grammar::{text_length, token_length};
use super::object;
use super::status::reason;
use super::{Method, Refusal, ReplyHead};

/// Converts the response to a request with this method.
///
/// # Errors
/// If the response contains something that a handler must not send.
pub fn read(response: Response, method: Method) -> Result<(ReplyHead, Slice), Refusal> {
    let Response { status, headers, body } = response;
    if !(200..=599).contains(&status) {
        return Err(Refusal::AnswerStatus);
    }
    let has_body = !matches!(status, 204 | 304);
    if !has_body && !body.is_empty() {
        return Err(Refusal::Answer);
    }
    let mut head = b"HTTP/1.1 ".to_vec();
    write_decimal(u64::from(status), &mut head);
    head.push(b' ');
    head.extend_from_slice(reason(status).as_bytes());
    head.extend_from_slice(b"\r\n");
    let mut typed = false;
    for (name, value) in &headers {
        if name.is_empty() || token_length(name.as_bytes()) < name.len() {
            return Err(Refusal::FieldName);
        }
        if is_generated(name.as_bytes()) {
            return Err(Refusal::AnswerField);
        }
        // Line ends are rejected as well, because a value must not begin another line.
        if text_length(value) < value.len() {
            return Err(Refusal::Control);
        }
        typed |= name.eq_ignore_ascii_case("content-type");
        line(name.as_bytes(), value, &mut head);
    }
    if has_body && !typed && !body.is_empty() {
        line(b"Content-Type", object::TEXT.as_bytes(), &mut head);
    }
    object::finish(head, has_body, body, method)
}

#[cfg(test)]
mod tests {
    use fields::Lookup;

    use super::*;

    #[test]
    fn a_response_becomes_a_head_and_a_body() {
        let response = Response::new(201).header("X-A", "1").header("x-a", "2").body("made");
        let (head, body) = read(response.clone(), Method::Post).unwrap();
        assert_eq!((head.status, &body[..]), (201, &b"made"[..]));
        let text: Vec<String> = head
            .fields
            .fields()
            .map(|field| String::from_utf8_lossy(field.name).to_ascii_lowercase())
            .collect();
        assert!(text.iter().filter(|name| *name == "x-a").count() == 2, "{text:?}");
        assert!(text.iter().any(|name| name == "content-type"), "{text:?}");
        let (_, body) = read(response, Method::Head).unwrap();
        assert!(body.is_empty(), "HEAD has no body");
        assert!(read(Response::new(204), Method::Get).is_ok());
    }

    #[test]
    fn what_a_handler_must_not_send_is_refused() {
        let ok = || Response::new(200);
        for (response, refusal) in [
            (Response::new(199), Refusal::AnswerStatus),
            (Response::new(600), Refusal::AnswerStatus),
            (Response::new(304).body("x"), Refusal::Answer),
            (ok().header("", "x"), Refusal::FieldName),
            (ok().header("a b", "x"), Refusal::FieldName),
            (ok().header("Content-Length", "1"), Refusal::AnswerField),
            (ok().header("X", "a\r\nY: b"), Refusal::Control),
        ] {
            assert_eq!(read(response.clone(), Method::Get).err(), Some(refusal), "{response:?}");
        }
    }
}
