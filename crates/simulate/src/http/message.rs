//! As much of HTTP/1 as these worlds speak, read without any code of the gateway's.

/// A request that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) is_post: bool,
    /// Its body and all of its bytes, once they are there.
    pub(super) whole: Option<(Vec<u8>, usize)>,
}

/// A reply that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// Bytes of it.
    pub(super) used: usize,
    pub(super) is_whole: bool,
    /// The connection ends behind it.
    pub(super) closes: bool,
}

/// A body so far: its bytes, how many of the message they took, and whether it is whole.
type Framed = (Vec<u8>, usize, bool);

/// The request at the beginning of these bytes; none before its head is whole.
pub(super) fn request(bytes: &[u8]) -> Result<Option<Request>, &'static str> {
    let Some((head, length)) = head(bytes)? else { return Ok(None) };
    let mut words = head.split(' ');
    let is_post = match words.next() {
        Some("POST") => true,
        Some("GET") => false,
        _ => return Err("a method that nobody used"),
    };
    let id = words.next().and_then(|target| target.strip_prefix("/r/")?.parse().ok());
    let id = id.ok_or("a target that nobody asked for")?;
    let (body, used, is_whole) = if field(head, "transfer-encoding").is_some() {
        chunked(&bytes[length..])?
    } else {
        let wanted = field(head, "content-length").map_or(Ok(0), str::parse);
        counted(&bytes[length..], wanted.map_err(|_| "a length that is no number")?)
    };
    Ok(Some(Request { id, is_post, whole: is_whole.then_some((body, length + used)) }))
}

/// The number of a request whose head was cut off, if so much of it came.
pub(super) fn begun(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (target, _) = text.split_once("/r/")?.1.split_once(' ')?;
    target.parse().ok()
}

/// The reply at the beginning of these bytes, those of status 1xx before it left out; none before its
/// head is whole. `ended`: nothing more comes.
pub(super) fn reply(bytes: &[u8], ended: bool) -> Result<Option<Reply>, &'static str> {
    let Some((head, length)) = head(bytes)? else { return Ok(None) };
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status: u16 = status.ok_or("no status line")?;
    if status / 100 == 1 {
        let next = reply(&bytes[length..], ended)?;
        return Ok(next.map(|next| Reply { used: next.used + length, ..next }));
    }
    let rest = &bytes[length..];
    let (body, used, is_whole) = if field(head, "transfer-encoding").is_some() {
        chunked(rest)?
    } else if let Some(wanted) = field(head, "content-length") {
        counted(rest, wanted.parse().map_err(|_| "a length that is no number")?)
    } else {
        (rest.to_vec(), rest.len(), ended)
    };
    let closes = field(head, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok(Some(Reply { status, body, used: length + used, is_whole, closes }))
}

/// A head without its empty line, and its length with it.
fn head(bytes: &[u8]) -> Result<Option<(&str, usize)>, &'static str> {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| "a head that is no text")?;
    Ok(Some((head, end + 4)))
}

fn field<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    let mut lines = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
}

fn counted(bytes: &[u8], wanted: usize) -> Framed {
    let count = bytes.len().min(wanted);
    (bytes[..count].to_vec(), count, count == wanted)
}

fn chunked(bytes: &[u8]) -> Result<Framed, &'static str> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let rest = &bytes[at..];
        let Some(end) = rest.windows(2).position(|part| part == b"\r\n") else {
            return Ok((body, at, false));
        };
        let size = std::str::from_utf8(&rest[..end]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or("a chunk without a size")?;
        let data = &rest[end + 2..];
        body.extend_from_slice(&data[..data.len().min(size)]);
        if data.len() < size + 2 {
            return Ok((body, at, false));
        }
        if data[size..size + 2] != *b"\r\n" {
            return Err("a chunk without its end");
        }
        at += end + 2 + size + 2;
        if size == 0 {
            return Ok((body, at, true));
        }
    }
}

/// Writes a body in chunks.
pub(super) fn write_chunked(body: &[u8], size: usize, out: &mut Vec<u8>) {
    for part in body.chunks(size.max(1)) {
        out.extend(format!("{:x}\r\n", part.len()).into_bytes());
        out.extend_from_slice(part);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_in_every_framing_and_only_when_they_are_whole() {
        let bytes = b"POST /r/17 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET";
        let whole = Some((b"abc".to_vec(), bytes.len() - 3));
        assert_eq!(request(bytes), Ok(Some(Request { id: 17, is_post: true, whole })));
        assert_eq!(request(&bytes[..30]), Ok(None));
        assert_eq!(begun(&bytes[..30]), Some(17));
        let mut bytes =
            b"HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        write_chunked(b"hello", 2, &mut bytes);
        let read = reply(&bytes, false).unwrap().unwrap();
        assert_eq!((read.status, &read.body[..], read.used), (200, &b"hello"[..], bytes.len()));
        let cut = reply(&bytes[..bytes.len() - 3], true).unwrap().unwrap();
        assert_eq!((cut.is_whole, &cut.body[..]), (false, &b"hello"[..]));
        let bytes = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall";
        assert!(!reply(bytes, false).unwrap().unwrap().is_whole);
        assert!(reply(bytes, true).unwrap().unwrap().is_whole);
    }
}
