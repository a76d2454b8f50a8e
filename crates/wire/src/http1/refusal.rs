//! Why a message is rejected: a table of reasons, each with its word, status and rule.
//!
//! The words are stable, because logs, metrics and tests match them.

use std::fmt;

/// The rule that a reason belongs to. The numbers are those of `docs/http1.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule(pub u8);

macro_rules! refusals {
    ($($name:ident $word:literal $status:literal $rule:literal $text:literal),+ $(,)?) => {
        /// Why a message is rejected. The sender caused it, and the following bytes are not read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Refusal {
            $(#[doc = $text] $name),+
        }

        impl Refusal {
            /// All reasons, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word for this reason in logs and metrics.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// The status of the answer to a request that is rejected for this reason. A rejected reply always becomes
            /// a 502.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status),+ }
            }

            /// The rule that the message violates.
            #[must_use]
            pub const fn rule(self) -> Rule {
                match self { $(Self::$name => Rule($rule)),+ }
            }

            /// A description of the reason in one sentence, for people.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }
        }
    };
}

refusals! {
    LengthAndCoding "length-and-coding" 400 1
        "Content-Length and Transfer-Encoding stand in one head.",
    Coding "coding" 501 2
        "A transfer coding other than one `chunked` is not implemented here.",
    CodingRepeated "coding-repeated" 400 2
        "Transfer-Encoding stands in a head more than once, or lists more than one coding.",
    CodingVersion "coding-in-1.0" 400 2
        "HTTP/1.0 has no Transfer-Encoding.",
    Length "length" 400 3
        "Content-Length is not a number of digits alone, or out of all bounds.",
    Lengths "lengths" 400 3
        "Content-Length stands in a head twice with different values.",
    ChunkSize "chunk-size" 400 4
        "The size of a chunk is 1 to 16 hexadecimal digits, and blanks at most behind them.",
    ChunkEnd "chunk-end" 400 4
        "Behind a chunk and behind its size stands CR LF.",
    ChunkExtension "chunk-extension" 400 4
        "The extensions of a chunk are too long or hold a control character.",
    LineFeed "bare-lf" 400 5
        "A line ends with LF alone.",
    CarriageReturn "bare-cr" 400 5
        "A CR stands without its LF.",
    Control "control" 400 6
        "The value of a field holds a control character.",
    FieldName "field-name" 400 6
        "The name of a field is empty or not a token with the colon right behind it.",
    Folded "folded" 400 6
        "A line begins with a blank, as if it continued the one before.",
    NoColon "no-colon" 400 8
        "A line of the head has no colon.",
    RequestLine "request-line" 400 9
        "A request line is a method, a target and a version with one blank between them.",
    Method "method" 400 9
        "A method is a token of at most 32 characters.",
    Target "target" 400 9
        "A target is a path, an address, or `*` for OPTIONS, of visible ASCII without a fragment.",
    Version "version" 505 9
        "The version is not one from HTTP/1.0 to HTTP/1.9.",
    Connect "connect" 501 9
        "CONNECT is not served here.",
    Trace "trace" 501 9
        "TRACE is not allowed on this listener.",
    NoHost "no-host" 400 10
        "A request of HTTP/1.1 has a Host.",
    HostTwice "host-twice" 400 10
        "Host stands in a head more than once.",
    Host "host" 400 10
        "Host is a name or an address, and a port if need be.",
    HostTarget "host-target" 400 10
        "Host is not the one that the target names.",
    Expect "expect" 417 14
        "Nothing but `100-continue` can be expected.",
    UpgradeBody "upgrade-body" 400 15
        "A request with a body asks for another protocol.",
    Switched "switched" 502 15
        "The server changes the protocol, which nobody asked for.",
    Early "early" 502 16
        "A reply is whole before its request is; it goes on, and its link ends.",
    Connection "connection" 400 17
        "Connection names a field without which the message has no meaning.",
    MaxForwards "max-forwards" 400 17
        "Max-Forwards is not a number, or is in a head more than once.",
    StatusLine "status-line" 502 18
        "A status line is a version, three digits and a reason with one blank between them.",
    Interim "interim" 502 18
        "There are too many replies of status 1xx before the final one.",
    Truncated "truncated" 400 18
        "The end came before the body was whole.",
    Bodiless "bodiless" 502 18
        "A reply that cannot have a body tells of one; it goes on without, and its link ends.",
    Unasked "unasked" 502 18
        "A server speaks though nothing was asked, or goes on behind its reply; its link ends.",
    LineTooLong "line-too-long" 414 20
        "The request line is longer than the limit.",
    HeadTooLong "head-too-long" 431 20
        "The head is longer than the limit.",
    TooManyFields "too-many-fields" 431 20
        "The head has more fields than the limit.",
    FieldTooLong "field-too-long" 431 20
        "The name or the value of a field is longer than the limit.",
    Cookies "cookies" 431 20
        "There are more cookies than the limit.",
    BodyTooLong "body-too-long" 413 20
        "The body is longer than the limit.",
    Trailers "trailers" 431 20
        "The trailers are longer than the limit, or hold what no field may.",
    Answer "answer" 502 22
        "A program's answer is no object of a status, headers and a body.",
    AnswerStatus "answer-status" 502 22
        "The status of a program's answer is no number from 200 to 599.",
    AnswerField "answer-field" 502 22
        "A program's answer has a field of the connection or of the length, which are ours to say.",
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Refusal {}
