//! HTTP messages as JSON objects, for programs that do not support HTTP.
//!
//! | request | meaning |
//! |---|---|
//! | `method`, `path`, `query` | text, unchanged; `query` is the part after `?` |
//! | `headers` | an object; names in lower case, values of the same name joined |
//! | `body` | text; if the bytes are not UTF-8: base64, with `"base64": true` |
//! | `client` | the address of the client, if it has one |
//!
//! | answer | meaning | default |
//! |---|---|---|
//! | `status` | 200 to 599 | 200 |
//! | `headers` | an object; a value is a text, a number, or a list of these | none |
//! | `body` | text, or base64 with `"base64": true` | none |
//!
//! An answer becomes the head of a reply, which is parsed by the rules for servers. Therefore a program cannot send
//! anything that a server could not send. Rules that are checked before have separate reasons.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exchange::Slice;
use fields::Lookup;
use fields::http1::is_generated;
use serde_core::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::encode::{line, write_decimal};
use super::grammar::{text_length, token_length};
use super::status::reason;
use super::{HeadScan, Limits, Method, Refusal, ReplyHead, RequestHead, RequestInfo, Upgrades};
use crate::jsonrpc::{is_one_line, write_one_line};

/// The content type of a text.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";
/// The maximum number of members of an object in an answer. The cost of the check for duplicate names is quadratic in
/// this number.
const MEMBERS_MAX: usize = 200;

/// Writes the object of a request up to its body, which [`close`] writes. `target` is the forwarded path and query.
pub fn open(head: &RequestHead, target: &[u8], client: Option<IpAddr>, out: &mut Vec<u8>) {
    let mut sides = target.splitn(2, |&byte| byte == b'?');
    out.extend_from_slice(b"{\"method\":");
    string(&String::from_utf8_lossy(head.method_bytes()), out);
    for name in ["path", "query"] {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        string(&String::from_utf8_lossy(sides.next().unwrap_or_default()), out);
    }
    if let Some(client) = client {
        out.extend_from_slice(b",\"client\":");
        string(&client.to_canonical().to_string(), out);
    }
    out.extend_from_slice(b",\"headers\":{");
    let mut is_first = true;
    for (index, field) in head.fields.fields().enumerate() {
        let same = |other: &[u8]| other.eq_ignore_ascii_case(field.name);
        if head.fields.fields().take(index).any(|earlier| same(earlier.name)) {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        let name = String::from_utf8_lossy(field.name).to_ascii_lowercase();
        let between = if name == "cookie" { "; " } else { ", " };
        let values: Vec<Cow<'_, str>> = head
            .fields
            .fields()
            .skip(index)
            .filter(|other| same(other.name))
            .filter_map(|other| other.value.bytes())
            .map(String::from_utf8_lossy)
            .collect();
        string(&name, out);
        out.push(b':');
        string(&values.join(between), out);
    }
    out.extend_from_slice(b"},\"body\":");
}

/// Writes the body and the end of the object of a request.
pub fn close(body: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(body) {
        Ok(text) => string(text, out),
        Err(_) => {
            string(&STANDARD.encode(body), out);
            out.extend_from_slice(b",\"base64\":true");
        }
    }
    out.push(b'}');
}

/// Whether an answer is an object. Otherwise it is a text.
#[must_use]
pub fn is_object(answer: &[u8]) -> bool {
    answer.trim_ascii_start().first() == Some(&b'{')
}

/// Parses the object with which a program answered a request with this method.
///
/// # Errors
/// If the answer is not such an object, or contains something that a program must not send.
pub fn read(answer: &[u8], method: Method) -> Result<(ReplyHead, Slice), Refusal> {
    let members: Members<'_> = serde_json::from_slice(answer).map_err(|_| Refusal::Answer)?;
    let (mut status, mut headers, mut body) = (200, None, Cow::Borrowed(""));
    let mut is_base64 = false;
    for (name, value) in members.0 {
        match &*name {
            "status" => status = read_status(value)?,
            "headers" => headers = Some(value),
            "body" => body = text(value)?,
            "base64" => is_base64 = parse(value)?,
            _ => return Err(Refusal::Answer),
        }
    }
    let body = match is_base64 {
        true => Slice::from(&*STANDARD.decode(&*body).map_err(|_| Refusal::Answer)?),
        false => Slice::from(body.as_bytes()),
    };
    // A 205 has an empty body, whose length is stated (RFC 9110 §15.3.6).
    if matches!(status, 204 | 205 | 304) && !body.is_empty() {
        return Err(Refusal::Answer);
    }
    let has_body = !matches!(status, 204 | 304);
    let mut head = b"HTTP/1.1 ".to_vec();
    write_decimal(u64::from(status), &mut head);
    head.push(b' ');
    head.extend_from_slice(reason(status).as_bytes());
    head.extend_from_slice(b"\r\n");
    let typed = headers.map_or(Ok(false), |headers| write_headers(headers, &mut head))?;
    if has_body && !typed && !body.is_empty() {
        let kind = if is_base64 { "application/octet-stream" } else { TEXT };
        line(b"Content-Type", kind.as_bytes(), &mut head);
    }
    finish(head, has_body, body, method)
}

/// Converts a text answer of a program to a reply with a head.
///
/// # Errors
/// Never caused by the text.
pub fn plain(answer: &Slice, method: Method) -> Result<(ReplyHead, Slice), Refusal> {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    line(b"Content-Type", TEXT.as_bytes(), &mut head);
    finish(head, true, answer.clone(), method)
}

/// Completes a head and parses it by the rules for servers.
pub(super) fn finish(
    mut head: Vec<u8>,
    has_body: bool,
    body: Slice,
    method: Method,
) -> Result<(ReplyHead, Slice), Refusal> {
    if has_body {
        head.extend_from_slice(b"Content-Length: ");
        write_decimal(body.len() as u64, &mut head);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    let found = HeadScan::default().next(&head, &Limits::REPLY)?.ok_or(Refusal::Answer)?;
    let asked = RequestInfo { method, upgrades: Upgrades::NONE };
    let mut reply = ReplyHead::default();
    reply.read(&head, &found, asked, &Limits::REPLY)?;
    reply.is_forwarded = false;
    Ok((reply, if method == Method::Head { Slice::default() } else { body }))
}

fn read_status(value: &RawValue) -> Result<u16, Refusal> {
    let status = serde_json::from_str(value.get()).map_err(|_| Refusal::AnswerStatus)?;
    if (200..=599).contains(&status) { Ok(status) } else { Err(Refusal::AnswerStatus) }
}

/// Writes the lines of the head. Returns true if one is the content type.
fn write_headers(headers: &RawValue, out: &mut Vec<u8>) -> Result<bool, Refusal> {
    let members: Members<'_> = parse(headers)?;
    let mut typed = false;
    for (name, value) in members.0 {
        if name.is_empty() || token_length(name.as_bytes()) < name.len() {
            return Err(Refusal::FieldName);
        }
        if is_generated(name.as_bytes()) {
            return Err(Refusal::AnswerField);
        }
        typed |= name.eq_ignore_ascii_case("content-type");
        if value.get().starts_with('[') {
            for value in parse::<Vec<&RawValue>>(value)? {
                write_header(&name, value, out)?;
            }
        } else {
            write_header(&name, value, out)?;
        }
    }
    Ok(typed)
}

fn write_header(name: &str, value: &RawValue, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let is_number = value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let value = if is_number { Cow::Borrowed(value.get()) } else { text(value)? };
    // Line ends are rejected as well, because a value must not begin another line.
    if text_length(value.as_bytes()) < value.len() {
        return Err(Refusal::Control);
    }
    line(name.as_bytes(), value.as_bytes(), out);
    Ok(())
}

fn text(value: &RawValue) -> Result<Cow<'_, str>, Refusal> {
    // A text without escapes is borrowed.
    match value.get().as_bytes() {
        [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => {
            Ok(Cow::Borrowed(&value.get()[1..value.get().len() - 1]))
        }
        _ => parse::<String>(value).map(Cow::Owned),
    }
}

fn parse<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Result<T, Refusal> {
    serde_json::from_str(value.get()).map_err(|_| Refusal::Answer)
}

fn string(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    // Writing text to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, text);
    // U+2028 and similar characters are escaped, so that every reader treats the object as one line.
    if !is_one_line(&out[start..]) {
        let written = out.split_off(start);
        write_one_line(&written, out);
    }
}

/// The members of an object in their order. Each name occurs once; case is ignored.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members: Vec<(String, &'de RawValue)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
            let is_known = members.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name));
            if is_known || members.len() == MEMBERS_MAX {
                return Err(A::Error::custom("a name twice, or too many"));
            }
            members.push((name, value));
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests;
