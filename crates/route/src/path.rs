//! Paths in canonical form, for comparison and forwarding.
//!
//! The canonical form includes all normalisations of RFC 3986 §6.2.2 (percent signs, dots) and two more that servers
//! apply: repeated slashes become one slash, and the parameters of a segment (`;name=value`, §3.3) are forwarded but
//! not compared, because some servers remove them before they compare. A path that servers could read differently is
//! rejected: an encoded slash or backslash, a control character, an encoding that becomes a dot or a slash when it is
//! decoded twice, overlong UTF-8.

macro_rules! faults {
    ($($name:ident $word:literal $text:literal),+ $(,)?) => {
        /// Why a path is rejected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PathFault {
            $(#[doc = $text] $name),+
        }

        impl PathFault {
            /// All faults, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word for this fault in logs and answers. It is stable.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// A description of the fault in one sentence, for people.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }
        }
    };
}

faults! {
    Start "path-start"
        "A path begins with a slash.",
    Percent "path-percent"
        "Behind a percent sign stand two hexadecimal digits.",
    Separator "path-separator"
        "A path has neither a backslash nor an encoded slash or backslash.",
    Control "path-control"
        "A path has neither a control character nor an encoded one.",
    Twice "path-twice"
        "A path is not encoded twice.",
    Overlong "path-overlong"
        "A path has no overlong form of UTF-8.",
    Above "path-above"
        "The dots of a path do not lead above its root.",
    Parameters "path-parameters"
        "Parameters do not stand behind a segment that is empty or of dots.",
    Host "path-host"
        "A host that becomes part of a path, or of where a client is sent, is a name.",
}

/// A path in canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    bytes: &'a [u8],
    plain: &'a [u8],
    is_changed: bool,
}

impl<'a> Path<'a> {
    /// Reads a path without its query. Most paths are already canonical and are borrowed unchanged. Other paths are
    /// written to `scratch`, which becomes at most twice as long as the path.
    ///
    /// An empty path, which occurs only in an absolute target, becomes `/`.
    ///
    /// # Errors
    /// If the path has more than one possible interpretation.
    pub fn read(raw: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<Self, PathFault> {
        if raw.is_empty() {
            return Ok(Self { bytes: b"/", plain: b"/", is_changed: true });
        }
        if raw[0] != b'/' {
            return Err(PathFault::Start);
        }
        if is_canonical(raw) {
            return Ok(Self { bytes: raw, plain: raw, is_changed: false });
        }
        scratch.clear();
        write(raw, scratch)?;
        let length = scratch.len();
        if scratch.iter().any(|byte| matches!(byte, b';' | b'%')) {
            write_plain(scratch);
        }
        let scratch: &'a [u8] = scratch;
        let (bytes, plain) = scratch.split_at(length);
        let plain = if plain.is_empty() { bytes } else { plain };
        Ok(Self { bytes, plain, is_changed: bytes != raw })
    }

    /// The path for forwarding.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The path for comparison: without the parameters of its segments.
    #[must_use]
    pub const fn plain(&self) -> &'a [u8] {
        self.plain
    }

    /// Whether the path was not canonical when it was received.
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Whether an encoded percent sign stands before two hexadecimal digits, as in `/%2561dmin`. A server that decodes
    /// the path twice reads a different path, which may be below a different prefix.
    #[must_use]
    pub fn has_encoded_escape(&self) -> bool {
        let signs = self.bytes.windows(5).filter(|part| part.starts_with(b"%25"));
        signs.into_iter().any(|part| part[3..].iter().all(u8::is_ascii_hexdigit))
    }

    /// Whether the path is `prefix` or is below it. `prefix` has no slash at its end.
    #[must_use]
    pub fn is_below(&self, prefix: &[u8]) -> bool {
        is_below(self.plain, prefix)
    }

    /// The rest of the path after its first `segments` segments. It is empty or begins with a slash.
    #[must_use]
    pub fn after_segments(&self, segments: usize) -> &'a [u8] {
        let mut slashes = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.nth(segments).map_or(b"", |(place, _)| &self.bytes[place..])
    }
}

/// Whether `path` is `prefix` or is below it. A prefix never matches a part of a segment.
pub(crate) fn is_below(path: &[u8], prefix: &[u8]) -> bool {
    path.starts_with(prefix) && matches!(path.get(prefix.len()), None | Some(b'/'))
}

/// Whether the path is already canonical. May return false for a canonical path.
fn is_canonical(raw: &[u8]) -> bool {
    let mut before = 0;
    for &byte in raw {
        let odd = !CANONICAL[byte as usize] || before == b'/' && matches!(byte, b'/' | b'.');
        if odd {
            return false;
        }
        before = byte;
    }
    true
}

/// Visible ASCII characters without a special meaning in a path.
const CANONICAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 33_u8;
    while byte < 127 {
        table[byte as usize] = !matches!(byte, b'%' | b'\\' | b';' | b'?' | b'#');
        byte += 1;
    }
    table
};

/// Writes all segments in canonical form.
fn write(raw: &[u8], out: &mut Vec<u8>) -> Result<(), PathFault> {
    let mut ends_open = false;
    for segment in raw[1..].split(|&byte| byte == b'/') {
        let start = out.len();
        out.push(b'/');
        write_segment(segment, out)?;
        let written = &out[start + 1..];
        check_twice(written)?;
        let name = name_length(written);
        let has_parameters = name < written.len();
        ends_open = true;
        match &written[..name] {
            b"" | b"." | b".." if has_parameters => return Err(PathFault::Parameters),
            b"" | b"." => out.truncate(start),
            b".." => {
                let parent = out[..start].iter().rposition(|&byte| byte == b'/');
                out.truncate(parent.ok_or(PathFault::Above)?);
            }
            _ => ends_open = false,
        }
    }
    if ends_open {
        out.push(b'/');
    }
    Ok(())
}

/// The length of a segment without its parameters, in bytes. An encoded semicolon is data, but some servers decode the
/// path before they split off parameters. Therefore it is treated like a semicolon that is not encoded.
fn name_length(segment: &[u8]) -> usize {
    let is_end = |place: &usize| segment[*place..].starts_with(b"%3B") || segment[*place] == b';';
    (0..segment.len()).find(is_end).unwrap_or(segment.len())
}

/// Appends the path again, without the parameters of its segments.
fn write_plain(out: &mut Vec<u8>) {
    let (end, mut start) = (out.len(), 0);
    while start < end {
        let segment = &out[start + 1..end];
        let length = segment.iter().position(|&byte| byte == b'/').unwrap_or(segment.len());
        let name = name_length(&segment[..length]);
        out.extend_from_within(start..=start + name);
        start += 1 + length;
    }
}

fn write_segment(segment: &[u8], out: &mut Vec<u8>) -> Result<(), PathFault> {
    let mut rest = segment;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            match byte {
                b'\\' => return Err(PathFault::Separator),
                33..127 => out.push(byte),
                _ => return Err(PathFault::Control),
            }
            continue;
        }
        let (decoded, behind) = encoded(rest).ok_or(PathFault::Percent)?;
        match decoded {
            b'/' | b'\\' => return Err(PathFault::Separator),
            0..32 | 127 => return Err(PathFault::Control),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(decoded);
            }
            _ => {
                check_overlong(decoded, behind)?;
                out.push(b'%');
                out.extend(rest[..2].iter().map(u8::to_ascii_uppercase));
            }
        }
        rest = behind;
    }
    Ok(())
}

/// Decodes the byte after a percent sign, and returns it with the remaining bytes.
fn encoded(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (&[high, low], behind) = bytes.split_first_chunk()?;
    Some((digit(high)? << 4 | digit(low)?, behind))
}

/// Rejects encoded bytes that would change the path when it is decoded a second time. The forwarded form is checked,
/// because the digits after a percent sign may themselves have been encoded.
fn check_twice(written: &[u8]) -> Result<(), PathFault> {
    let signs = written.windows(3).enumerate().filter(|(_, sign)| *sign == b"%25");
    for (place, _) in signs {
        let again = encoded(&written[place + 3..]).map(|(byte, _)| byte);
        if let Some(0..33 | b'.' | b'/' | b'\\' | b'%' | b';' | 127) = again {
            return Err(PathFault::Twice);
        }
    }
    Ok(())
}

/// Rejects encoded bytes that would change the path for a server that accepts overlong UTF-8.
fn check_overlong(decoded: u8, behind: &[u8]) -> Result<(), PathFault> {
    let next = || behind.strip_prefix(b"%").and_then(encoded).map(|(byte, _)| byte);
    let overlong = match decoded {
        0xc0 | 0xc1 => matches!(next(), Some(0x80..=0xbf)),
        0xe0 => matches!(next(), Some(0x80..=0x9f)),
        0xf0 => matches!(next(), Some(0x80..=0x8f)),
        _ => false,
    };
    if overlong { Err(PathFault::Overlong) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
