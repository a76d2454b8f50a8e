//! Detection of HTTP and TLS in the first bytes of a connection for another protocol.
//!
//! A web page can send HTTP requests to any address that its browser can reach, and it determines their bodies. A
//! listener for another protocol would treat each line of such a request, or each frame in it, as a request. With
//! `https`, the page determines fewer of the bytes, but not none: for example, its server has issued the session
//! ticket.
//!
//! The page also determines the method: after DNS rebinding, which makes it a page of the listener's own address, any
//! token (RFC 9110) of any length.

use crate::framing::{Framing, Width};

/// The usual methods, and the beginning of the HTTP/2 preface.
const METHODS: [&[u8]; 10] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
    b"PRI ",
];

const VERSION: &[u8] = b" HTTP/";

/// The type of a handshake record, its major version, and the first message of a client (RFC 8446).
const HANDSHAKE: u8 = 22;
const MAJOR: u8 = 3;
const CLIENT_HELLO: u8 = 1;
const CLIENT_HELLO_AT: usize = 5;

/// The protocol of the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An HTTP request, or the preface of HTTP/2.
    Http,
    /// TLS.
    Tls,
    /// Something else.
    Other,
    /// It depends on the next bytes. These bytes contain no complete frame.
    Undecided,
}

/// Examines the first bytes of a connection until the protocol is known. No byte is searched twice.
#[derive(Debug)]
pub struct HttpStart {
    /// The length prefix of the frames, if they have one.
    prefix: Option<Width>,
    /// The number of bytes of the method with the blank after it; 0: it is not complete.
    method: usize,
    /// The number of bytes that are a method and a part of its target.
    looked: usize,
}

impl HttpStart {
    /// Creates a detector. `None` for a framing whose frames may have any content, including HTTP.
    #[must_use]
    pub const fn new(framing: Framing) -> Option<Self> {
        let prefix = match framing {
            Framing::Len(width) => Some(width),
            Framing::Lines
            | Framing::Nul
            | Framing::Netstring
            | Framing::ContentLength
            | Framing::JsonRpc => None,
            Framing::Raw | Framing::Oneshot => return None,
        };
        Some(Self { prefix, method: 0, looked: 0 })
    }

    /// Examines the bytes. `bytes` are all bytes received so far, beginning with those of earlier calls.
    pub fn look(&mut self, bytes: &[u8]) -> Start {
        if bytes.first() == Some(&HANDSHAKE) {
            return self.look_for_tls(bytes);
        }
        let start = self.look_for_http(bytes);
        // With a length prefix, the bytes may also be a frame, whose client waits for the reply.
        let is_frame = || self.prefix.is_some_and(|width| has_frame(width, bytes));
        if start == Start::Undecided && is_frame() { Start::Other } else { start }
    }

    fn look_for_http(&mut self, bytes: &[u8]) -> Start {
        if self.method == 0 {
            let rest = &bytes[self.looked..];
            self.looked += rest.iter().take_while(|byte| is_of_token(**byte)).count();
            match bytes.get(self.looked) {
                None => return Start::Undecided,
                Some(b' ') if self.looked > 0 => self.looked += 1,
                Some(_) => return Start::Other,
            }
            self.method = self.looked;
            // The bytes after the method may belong to the next frame.
            if self.prefix.is_some() && METHODS.contains(&&bytes[..self.method]) {
                return Start::Http;
            }
        }
        let target = bytes[self.looked..].iter().take_while(|byte| is_of_target(**byte)).count();
        self.looked += target;
        let rest = &bytes[self.looked..];
        if rest.starts_with(VERSION) {
            Start::Http
        } else if VERSION.starts_with(rest) {
            Start::Undecided
        } else {
            Start::Other
        }
    }

    /// Whether the bytes so far begin with one of the usual methods.
    #[must_use]
    pub fn has_usual_method(&self, bytes: &[u8]) -> bool {
        METHODS.iter().any(|method| bytes.starts_with(method))
    }
}

impl HttpStart {
    /// No text begins with two control characters, so two bytes are enough. If the bytes may be a length, six bytes are
    /// examined, which is less than a frame of that length.
    const fn look_for_tls(&self, bytes: &[u8]) -> Start {
        let enough = if self.prefix.is_some() { CLIENT_HELLO_AT + 1 } else { 2 };
        if bytes.len() > 1 && bytes[1] != MAJOR {
            Start::Other
        } else if bytes.len() < enough {
            Start::Undecided
        } else if self.prefix.is_some() && bytes[CLIENT_HELLO_AT] != CLIENT_HELLO {
            Start::Other
        } else {
            Start::Tls
        }
    }
}

/// Whether the bytes begin with a complete frame.
fn has_frame(width: Width, bytes: &[u8]) -> bool {
    let Some((prefix, body)) = bytes.split_at_checked(width.bytes()) else { return false };
    let length = prefix.iter().fold(0, |sum: usize, byte| sum << 8 | usize::from(*byte));
    body.len() >= length
}

/// `tchar` of RFC 9110.
const fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

const fn is_of_target(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Width;
    use crate::{Decoder, OversizePolicy};

    const LENGTHS: [Framing; 3] =
        [Framing::Len(Width::One), Framing::Len(Width::Two), Framing::Len(Width::Four)];

    fn at_once(framing: Framing, bytes: &[u8]) -> Start {
        HttpStart::new(framing).expect("it is looked at").look(bytes)
    }

    /// The first decision, and the number of bytes that it needed.
    fn one_by_one(framing: Framing, bytes: &[u8]) -> (Start, usize) {
        let mut start = HttpStart::new(framing).expect("it is looked at");
        for end in 1..=bytes.len() {
            let found = start.look(&bytes[..end]);
            if found != Start::Undecided {
                return (found, end);
            }
        }
        (Start::Undecided, bytes.len())
    }

    #[test]
    fn requests_are_recognised_at_once_and_byte_by_byte() {
        let requests: [&[u8]; 8] = [
            b"POST / HTTP/1.1\r\nHost: x\r\n\r\nbody\n",
            b"GET http://127.0.0.1:7000/?q=a%20b HTTP/1.0\n",
            b"OPTIONS * HTTP/1.1\r\n",
            b"CONNECT 127.0.0.1:7000 HTTP/1.1\r\n",
            b"DELETE /\xc3\xa4 HTTP/1.1\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"patch / HTTP/1.1\r\n",
            b"PROPFIND-1.a_b|c / HTTP/1.1\r\n",
        ];
        for framing in Framing::ALL.iter().copied() {
            if HttpStart::new(framing).is_none() {
                assert!(matches!(framing, Framing::Raw | Framing::Oneshot));
                continue;
            }
            for request in requests {
                assert_eq!(at_once(framing, request), Start::Http, "{framing:?}");
                let (found, end) = one_by_one(framing, request);
                assert_eq!(found, Start::Http, "{framing:?}");
                assert!(end <= request.iter().position(|&byte| byte == b'\n').unwrap());
            }
        }
    }

    #[test]
    fn lines_that_begin_as_a_request_and_are_none_are_let_through() {
        for text in [
            "GET\n",
            "GET \n",
            "GET key\n",
            "GET a b HTTP/1.1\n",
            "PUT x HTTP\n",
            "GET\t/ HTTP/1.1\n",
            " GET / HTTP/1.1\n",
            "(GET) / HTTP/1.1\n",
            "{\"a\": / HTTP/1.1\n",
            "hello\n",
            "\n",
            "SELECT * FROM t\n",
            "POST /\0 HTTP/1.1",
        ] {
            for framing in [Framing::Lines, Framing::JsonRpc, Framing::Nul] {
                assert_eq!(at_once(framing, text.as_bytes()), Start::Other, "{text:?}");
                assert_eq!(one_by_one(framing, text.as_bytes()).0, Start::Other, "{text:?}");
            }
        }
        for (framing, bytes) in LENGTHS.iter().zip([&b"\x05hello"[..], b"\0\x05", b"\0\0\0\x05"]) {
            assert_eq!(one_by_one(*framing, bytes), (Start::Other, 1));
        }
        // A frame of 33 letters, and one of 33 with a blank.
        for body in ["x".repeat(33), format!("x {}", "y".repeat(31))] {
            let frame = format!("!{body}");
            assert_eq!(one_by_one(LENGTHS[0], frame.as_bytes()), (Start::Other, 34));
        }
    }

    #[test]
    fn tls_is_recognised_and_binary_frames_are_let_through() {
        let hello = b"\x16\x03\x01\x01\x0a\x01\0\x01\x06\x03\x03";
        for framing in [Framing::Lines, Framing::JsonRpc, Framing::Nul].iter().chain(&LENGTHS) {
            assert_eq!(at_once(*framing, hello), Start::Tls, "{framing:?}");
            let (found, end) = one_by_one(*framing, hello);
            assert_eq!((found, end <= 6), (Start::Tls, true), "{framing:?}");
        }
        // A frame of 22 bytes, and text that begins with a control character.
        assert_eq!(at_once(LENGTHS[0], b"\x16\x03\x01\x02\x03\x04"), Start::Other);
        assert_eq!(at_once(LENGTHS[1], b"\x16\x04"), Start::Other);
        assert_eq!(at_once(Framing::Lines, b"\x16hello\n"), Start::Other);
    }

    #[test]
    fn no_frame_is_complete_while_it_is_undecided() {
        for framing in [Framing::Lines, Framing::JsonRpc, Framing::Nul].iter().chain(&LENGTHS) {
            let long = format!("{} ", "M".repeat(300));
            for method in METHODS.into_iter().chain([&b"FOO "[..], b"! ", long.as_bytes()]) {
                let bytes = [method, b"/path HTTP/1.1\r\n"].concat();
                for end in 1..bytes.len() {
                    if at_once(*framing, &bytes[..end]) == Start::Undecided {
                        let mut decoder = Decoder::new(*framing, 1 << 20, OversizePolicy::Skip);
                        let piece = decoder.next(&bytes[..end], &mut 0);
                        let is_frame = matches!(piece, Some(crate::Piece::Frame(_)));
                        assert!(!is_frame, "{framing:?} {end}");
                    }
                }
            }
        }
    }
}
