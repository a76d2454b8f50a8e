//! The part of HTTP/1 that these worlds use, parsed without any code of the gateway.

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Plain,
    /// HTTP/1.0; `keeps`: with `Connection: keep-alive`.
    Old {
        keeps: bool,
    },
    /// A HEAD request.
    HeadOnly,
    /// A request with `Expect: 100-continue` that waits with its body for some time.
    Expects,
    /// A request to change the protocol; `eager`: the client sends data of the new protocol before the response.
    Upgrades {
        eager: bool,
    },
}

impl RequestKind {
    pub(crate) const fn is_old(self) -> bool {
        matches!(self, Self::Old { .. })
    }

    pub(crate) const fn upgrades(self) -> bool {
        matches!(self, Self::Upgrades { .. })
    }
}

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) is_post: bool,
    /// Whether it is a HEAD request.
    pub(crate) head_only: bool,
    /// Whether it has an `Expect` header.
    pub(crate) expects: bool,
    /// Whether it requests another protocol.
    pub(crate) upgrades: bool,
    /// Its body, and the size of the whole request in bytes, when it is complete.
    pub(crate) whole: Option<(Vec<u8>, usize)>,
}

/// A parsed reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// The number of bytes after its head, including framing.
    pub(crate) raw: usize,
    /// The number of bytes of the whole reply.
    pub(crate) used: usize,
    pub(crate) is_whole: bool,
    /// Whether the connection ends after it.
    pub(crate) closes: bool,
}

/// A body until now: its bytes, the number of bytes consumed, and whether it is complete.
type Framed = (Vec<u8>, usize, bool);

/// Parses the request at the beginning of these bytes. Returns `None` until its head is complete.
pub(crate) fn request(bytes: &[u8]) -> Result<Option<Request>, &'static str> {
    let Some((head, length)) = head(bytes)? else { return Ok(None) };
    let mut words = head.split(' ');
    let (is_post, head_only) = match words.next() {
        Some("POST") => (true, false),
        Some("GET") => (false, false),
        Some("HEAD") => (false, true),
        _ => return Err("a method that nobody used"),
    };
    let expects = field(head, "expect").is_some();
    let upgrades = field(head, "upgrade").is_some();
    let id = words.next().and_then(|target| target.strip_prefix("/r/")?.parse().ok());
    let id = id.ok_or("a target that nobody asked for")?;
    let (body, used, is_whole) = if field(head, "transfer-encoding").is_some() {
        chunked(&bytes[length..])?
    } else {
        let wanted = field(head, "content-length").map_or(Ok(0), str::parse);
        counted(&bytes[length..], wanted.map_err(|_| "a length that is no number")?)
    };
    let whole = is_whole.then_some((body, length + used));
    Ok(Some(Request { id, is_post, head_only, expects, upgrades, whole }))
}

/// Returns the id of a request with an incomplete head, if the id has arrived.
pub(crate) fn begun(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (target, _) = text.split_once("/r/")?.1.split_once(' ')?;
    target.parse().ok()
}

/// Parses the reply at the beginning of these bytes, skipping replies of status 1xx before it. Returns `None` until its
/// head is complete. `request_kind`: the kind of its request. `ended`: no more bytes follow.
pub(crate) fn reply(
    bytes: &[u8],
    request_kind: RequestKind,
    ended: bool,
) -> Result<Option<Reply>, &'static str> {
    let Some((head, length)) = head(bytes)? else { return Ok(None) };
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status: u16 = status.ok_or("no status line")?;
    let rest = &bytes[length..];
    if status == 101 {
        // After a 101 all bytes until the end belong to the new protocol.
        if !request_kind.upgrades() {
            return Err("another protocol, which nobody asked for");
        }
        let (body, used) = (rest.to_vec(), bytes.len());
        let raw = rest.len();
        return Ok(Some(Reply { status, body, raw, used, is_whole: ended, closes: true }));
    }
    if status / 100 == 1 {
        let next = reply(&bytes[length..], request_kind, ended)?;
        return Ok(next.map(|next| Reply { used: next.used + length, ..next }));
    }
    let (body, used, is_whole) = if request_kind == RequestKind::HeadOnly {
        (Vec::new(), 0, true)
    } else if field(head, "transfer-encoding").is_some() {
        if request_kind.is_old() {
            return Err("chunks, which HTTP/1.0 does not know");
        }
        chunked(rest)?
    } else if let Some(wanted) = field(head, "content-length") {
        counted(rest, wanted.parse().map_err(|_| "a length that is no number")?)
    } else {
        (rest.to_vec(), rest.len(), ended)
    };
    let says = |word| field(head, "connection").is_some_and(|it| it.eq_ignore_ascii_case(word));
    let closes = says("close") || (request_kind.is_old() && !says("keep-alive"));
    let (raw, used) = (used, length + used);
    Ok(Some(Reply { status, body, raw, used, is_whole, closes }))
}

/// Whether the first final reply in these bytes changes the protocol.
pub(crate) fn switches(bytes: &[u8], request_kind: RequestKind) -> bool {
    matches!(reply(bytes, request_kind, false), Ok(Some(Reply { status: 101, .. })))
}

/// Whether these bytes begin with `100 Continue`.
pub(crate) fn continues(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.1 100 ")
}

/// Returns the head without its empty line, and its length including the empty line.
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
        if size == 0 {
            // Trailers and the empty line after them.
            let over = rest[end..].windows(4).position(|part| part == b"\r\n\r\n");
            return Ok((body, at + over.map_or(0, |over| end + over + 4), over.is_some()));
        }
        let data = &rest[end + 2..];
        body.extend_from_slice(&data[..data.len().min(size)]);
        if data.len() < size + 2 {
            return Ok((body, at, false));
        }
        if data[size..size + 2] != *b"\r\n" {
            return Err("a chunk without its end");
        }
        at += end + 2 + size + 2;
    }
}

/// Writes a body in chunks, with optional trailers that have no meaning.
pub(crate) fn write_chunked(body: &[u8], size: usize, trailers: bool, out: &mut Vec<u8>) {
    for part in body.chunks(size.max(1)) {
        out.extend(format!("{:x}\r\n", part.len()).into_bytes());
        out.extend_from_slice(part);
        out.extend(b"\r\n");
    }
    let end: &[u8] =
        if trailers { b"0\r\nExpires: never\r\nX-Sum: 12\r\n\r\n" } else { b"0\r\n\r\n" };
    out.extend_from_slice(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_in_every_framing_and_only_when_they_are_whole() {
        let bytes = b"POST /r/17 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET";
        let whole = Some((b"abc".to_vec(), bytes.len() - 3));
        let (is_post, head_only, expects) = (true, false, false);
        let expected = Request { id: 17, is_post, head_only, expects, upgrades: false, whole };
        assert_eq!(request(bytes), Ok(Some(expected)));
        assert_eq!(request(&bytes[..30]), Ok(None));
        assert_eq!(begun(&bytes[..30]), Some(17));
        let mut bytes =
            b"HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        write_chunked(b"hello", 2, true, &mut bytes);
        let read = reply(&bytes, RequestKind::Plain, false).unwrap().unwrap();
        assert_eq!((read.status, &read.body[..], read.used), (200, &b"hello"[..], bytes.len()));
        let cut = reply(&bytes[..bytes.len() - 3], RequestKind::Plain, true).unwrap().unwrap();
        assert_eq!((cut.is_whole, &cut.body[..]), (false, &b"hello"[..]));
        let bytes = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall";
        assert!(!reply(bytes, RequestKind::Plain, false).unwrap().unwrap().is_whole);
        assert!(reply(bytes, RequestKind::Plain, true).unwrap().unwrap().is_whole);
        let alone =
            reply(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", RequestKind::HeadOnly, false);
        assert!(alone.unwrap().unwrap().is_whole);
    }
}
