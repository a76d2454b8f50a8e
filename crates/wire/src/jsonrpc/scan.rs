//! Reads a message once and returns the positions of its ids.

use std::ops::Range;

use super::fault::Fault;
use super::json::{DEPTH_MAX, Reader, ValueType, is_string, is_string_ignoring_case};
use super::measure::{Measure, SHARED_DEPTH_MAX};
use super::message::{ID_MAX, Message, Task, Tokens};

type Place = Option<Range<usize>>;

const _: () = assert!(SHARED_DEPTH_MAX * 2 <= DEPTH_MAX, "replies may have twice as many levels");

impl Measure {
    /// Measures one JSON value.
    ///
    /// # Errors
    /// If the text is not JSON, or has more than [`DEPTH_MAX`] levels.
    pub fn of(text: &[u8]) -> Result<Self, Fault> {
        let mut reader = Reader::new(text)?;
        reader.value(0)?;
        reader.end()?;
        Ok(reader.measure())
    }
}

/// Finds the parts of the message in this frame.
///
/// The whole frame is validated as JSON in UTF-8. The member `jsonrpc` is not required, because some servers omit it
/// ([`Message::is_version_2`]).
///
/// # Errors
/// If the frame is not one message, or if two parsers could interpret it differently.
pub fn scan(frame: &[u8]) -> Result<Message, Fault> {
    let mut reader = Reader::new(frame)?;
    match reader.value_type()? {
        ValueType::Object => {}
        ValueType::Array => return Err(Fault::Batch),
        _ => return Err(Fault::NotObject),
    }
    let mut message = Message::default();
    reader.object(0, |reader, name| member(reader, name, &mut message))?;
    reader.end()?;
    message.measure = reader.measure();
    check(&message)?;
    Ok(message)
}

/// Reads a member of the message.
fn member(reader: &mut Reader<'_>, name: &[u8], message: &mut Message) -> Result<(), Fault> {
    match checked_name(name, &["jsonrpc", "id", "method", "params", "result", "error"])? {
        Some("jsonrpc") => once(&mut message.version, reader.value(1)?.1),
        Some("id") => {
            let (value_type, place) = reader.value(1)?;
            if !is_id(value_type) {
                return Err(Fault::Id);
            }
            once(&mut message.id, short(place)?)
        }
        Some("method") => {
            let (value_type, place) = reader.value(1)?;
            if value_type != ValueType::String {
                return Err(Fault::Method);
            }
            once(&mut message.method, place)
        }
        Some("params") => {
            let place = params(reader, &mut message.tokens, &mut message.task)?;
            once(&mut message.params, place)
        }
        Some("result") => once(&mut message.result, reader.value(1)?.1),
        Some("error") => once(&mut message.error, reader.value(1)?.1),
        _ => reader.value(1).map(drop),
    }
}

fn params(
    reader: &mut Reader<'_>,
    tokens: &mut Tokens,
    task: &mut Task,
) -> Result<Range<usize>, Fault> {
    if reader.value_type()? != ValueType::Object {
        return Ok(reader.value(1)?.1);
    }
    let start = reader.place();
    let mut has_meta = false;
    reader.object(1, |reader, name| {
        if let Some(name) = checked_name(name, &["_meta", "workDoneToken", "partialResultToken"])? {
            let place = match name {
                "_meta" if std::mem::replace(&mut has_meta, true) => return Err(Fault::Duplicate),
                "_meta" => return meta(reader, tokens),
                "workDoneToken" => &mut tokens.work_done,
                _ => &mut tokens.partial_result,
            };
            return token(reader, place, 2);
        }
        let place = match name {
            name if is_string(name, "progressToken") => &mut tokens.progress,
            name if is_string(name, "requestId") => &mut tokens.request_id,
            name if is_string(name, "id") => &mut tokens.cancelled_id,
            name if is_string(name, "token") => &mut tokens.token,
            name if is_string_ignoring_case(name, "task") => {
                let name_at = reader.name_at();
                reader.value(2)?;
                *task = match task {
                    Task::None if is_string(name, "task") => {
                        Task::Member(reader.member_from(name_at))
                    }
                    _ => Task::Ambiguous,
                };
                return Ok(());
            }
            _ => return reader.value(2).map(drop),
        };
        token(reader, place, 2)
    })?;
    Ok(start..reader.place())
}

fn meta(reader: &mut Reader<'_>, tokens: &mut Tokens) -> Result<(), Fault> {
    if reader.value_type()? != ValueType::Object {
        return reader.value(2).map(drop);
    }
    reader.object(2, |reader, name| match checked_name(name, &["progressToken"])? {
        Some(_) => token(reader, &mut tokens.meta_progress, 3),
        None => reader.value(3).map(drop),
    })
}

/// The checked name that is equal to `written`. A name that differs only in case is an error.
fn checked_name<'n>(written: &[u8], names: &[&'n str]) -> Result<Option<&'n str>, Fault> {
    for name in names {
        if is_string(written, name) {
            return Ok(Some(name));
        }
        if is_string_ignoring_case(written, name) {
            return Err(Fault::Case);
        }
    }
    Ok(None)
}

/// Reads a value, and stores its position if its type is that of a token.
fn token(reader: &mut Reader<'_>, place: &mut Place, depth: usize) -> Result<(), Fault> {
    let (value_type, found) = reader.value(depth)?;
    if is_id(value_type) { once(place, short(found)?) } else { Ok(()) }
}

const fn is_id(value_type: ValueType) -> bool {
    matches!(value_type, ValueType::String | ValueType::Number | ValueType::Null)
}

fn short(place: Range<usize>) -> Result<Range<usize>, Fault> {
    if place.len() <= ID_MAX { Ok(place) } else { Err(Fault::IdLong) }
}

fn once(place: &mut Place, found: Range<usize>) -> Result<(), Fault> {
    match place.replace(found) {
        None => Ok(()),
        Some(_) => Err(Fault::Duplicate),
    }
}

/// Checks that the members form a valid message.
fn check(message: &Message) -> Result<(), Fault> {
    let answers = message.result.is_some() || message.error.is_some();
    match (&message.method, &message.id) {
        (Some(_), _) if answers => Err(Fault::Method),
        (Some(_), _) => Ok(()),
        (None, Some(_)) if answers => Ok(()),
        (None, _) => Err(Fault::Nothing),
    }
}
