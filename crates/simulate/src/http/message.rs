//! As much of HTTP/1 as these worlds speak, read without any code of the gateway's.

/// What a request is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Plain,
    /// Of HTTP/1.0; `keeps`: the connection is to go on behind it.
    Old {
        keeps: bool,
    },
    /// It wants the head of the reply alone.
    HeadOnly,
    /// It waits with its body until it is told to go on, for a while.
    Expects,
    /// It wants another protocol; `eager`: and speaks that before it is told that it may.
    Upgrades {
        eager: bool,
    },
}

impl Manner {
    pub(crate) const fn is_old(self) -> bool {
        matches!(self, Self::Old { .. })
    }

    pub(crate) const fn upgrades(self) -> bool {
        matches!(self, Self::Upgrades { .. })
    }
}

/// A request that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) is_post: bool,
    /// It wants the head of the reply alone.
    pub(crate) head_only: bool,
    /// It waits with its body until it is told to go on.
    pub(crate) expects: bool,
    /// It wants another protocol.
    pub(crate) upgrades: bool,
    /// Its body and all of its bytes, once they are there.
    pub(crate) whole: Option<(Vec<u8>, usize)>,
}

/// A reply that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Bytes behind its head, with what frames them.
    pub(crate) raw: usize,
    /// Bytes of it.
    pub(crate) used: usize,
    pub(crate) is_whole: bool,
    /// The connection ends behind it.
    pub(crate) closes: bool,
}

/// A body so far: its bytes, how many of the message they took, and whether it is whole.
type Framed = (Vec<u8>, usize, bool);

/// The request at the beginning of these bytes; none before its head is whole.
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

/// The number of a request whose head was cut off, if so much of it came.
pub(crate) fn begun(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (target, _) = text.split_once("/r/")?.1.split_once(' ')?;
    target.parse().ok()
}

/// The reply at the beginning of these bytes, those of status 1xx before it left out; none before its
/// head is whole. `manner`: of the request. `ended`: nothing more comes.
pub(crate) fn reply(
    bytes: &[u8],
    manner: Manner,
    ended: bool,
) -> Result<Option<Reply>, &'static str> {
    let Some((head, length)) = head(bytes)? else { return Ok(None) };
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status: u16 = status.ok_or("no status line")?;
    let rest = &bytes[length..];
    if status == 101 {
        // What follows is theirs until the end.
        if !manner.upgrades() {
            return Err("another protocol, which nobody asked for");
        }
        let (body, used) = (rest.to_vec(), bytes.len());
        let raw = rest.len();
        return Ok(Some(Reply { status, body, raw, used, is_whole: ended, closes: true }));
    }
    if status / 100 == 1 {
        let next = reply(&bytes[length..], manner, ended)?;
        return Ok(next.map(|next| Reply { used: next.used + length, ..next }));
    }
    let (body, used, is_whole) = if manner == Manner::HeadOnly {
        (Vec::new(), 0, true)
    } else if field(head, "transfer-encoding").is_some() {
        if manner.is_old() {
            return Err("chunks, which HTTP/1.0 does not know");
        }
        chunked(rest)?
    } else if let Some(wanted) = field(head, "content-length") {
        counted(rest, wanted.parse().map_err(|_| "a length that is no number")?)
    } else {
        (rest.to_vec(), rest.len(), ended)
    };
    let says = |word| field(head, "connection").is_some_and(|it| it.eq_ignore_ascii_case(word));
    let closes = says("close") || (manner.is_old() && !says("keep-alive"));
    let (raw, used) = (used, length + used);
    Ok(Some(Reply { status, body, raw, used, is_whole, closes }))
}

/// Whether the first final reply in these bytes changes the protocol.
pub(crate) fn switches(bytes: &[u8], manner: Manner) -> bool {
    matches!(reply(bytes, manner, false), Ok(Some(Reply { status: 101, .. })))
}

/// Whether the first thing in these bytes says that the body may come.
pub(crate) fn continues(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.1 100 ")
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
        if size == 0 {
            // Trailers, and the empty line behind them.
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

/// Writes a body in chunks, and trailers of which none tells anything.
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
        let read = reply(&bytes, Manner::Plain, false).unwrap().unwrap();
        assert_eq!((read.status, &read.body[..], read.used), (200, &b"hello"[..], bytes.len()));
        let cut = reply(&bytes[..bytes.len() - 3], Manner::Plain, true).unwrap().unwrap();
        assert_eq!((cut.is_whole, &cut.body[..]), (false, &b"hello"[..]));
        let bytes = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall";
        assert!(!reply(bytes, Manner::Plain, false).unwrap().unwrap().is_whole);
        assert!(reply(bytes, Manner::Plain, true).unwrap().unwrap().is_whole);
        let alone = reply(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Manner::HeadOnly, false);
        assert!(alone.unwrap().unwrap().is_whole);
    }
}
