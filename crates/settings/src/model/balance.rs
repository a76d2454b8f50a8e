//! Balancing, as it is configured: who is bound to which worker, who is fit, who waits how, and what
//! a pool says when it is sorry. The same for every kind of worker.

use std::fmt;
use std::time::Duration;

use super::retry_on::RetryOn;
use super::secret::Secret;

/// What a pool does beyond giving the next request to the next free worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// Requests that all workers together may have in their hands; none: as many as they have room
    /// for.
    pub slots_max: Option<u32>,
    /// What `schedule = "hash"` goes by.
    pub hash: Key,
    /// Whether clients are bound to workers.
    pub sticky: Option<Sticky>,
    /// How long a new worker takes until it is given its whole share.
    pub slow_start: Duration,
    /// What makes a worker unfit.
    pub health: Health,
    /// What it answers when it is sorry.
    pub sorry: Option<Sorry>,
    /// Those that have the same share a pool evenly; none: whoever came first.
    pub fair: Option<Key>,
    /// Where a request says how urgent it is.
    pub priority: Option<Key>,
    /// What one level of priority is worth in waiting time.
    pub priority_step: Duration,
    /// How long requests wait while no worker is fit.
    pub hold: Duration,
    /// How often a request that a server failed is given to another.
    pub retries: Retries,
    /// Decisions that are kept for `why`.
    pub decisions: u32,
}

/// How often a request that a server had and did not answer is given to another, where that is safe. One that
/// reached nobody costs nothing of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Times that one request is given to a server at most, 1 to 255.
    pub tries: u8,
    /// Percent of the requests that repeats may be in the long run.
    pub share: u32,
    /// Repeats that may be made at once beyond that.
    pub reserve: u32,
    /// On which failures.
    pub on: RetryOn,
}

impl Default for Retries {
    fn default() -> Self {
        Self { tries: 3, share: 10, reserve: 20, on: RetryOn::default() }
    }
}

impl Default for Balance {
    /// What holds where nothing is said; a test keeps it equal to the table.
    fn default() -> Self {
        Self {
            slots_max: None,
            hash: Key::Source,
            sticky: None,
            slow_start: Duration::ZERO,
            health: Health::default(),
            sorry: None,
            fair: None,
            priority: None,
            priority_step: Duration::from_secs(1),
            hold: Duration::ZERO,
            retries: Retries::default(),
            decisions: 256,
        }
    }
}

/// Something that is found in a request or known of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The client's address, without its port.
    Source,
    /// The client's connection, whatever listener it came by. A datagram has none.
    Connection,
    /// The whole request.
    Line,
    /// A word of it, from 1; blanks and tabs stand between.
    Word(u32),
    /// The value of `NAME=value` among its words.
    Field(String),
    /// A member of the JSON object that it is.
    Member(String),
    /// A field of its head, of HTTP.
    Header(String),
    /// A cookie, of HTTP.
    Cookie(String),
    /// The path, of HTTP, without the query.
    Path,
    /// A part of the path, of HTTP, from 1, as it is written; `/` stands between.
    Segment(u32),
    /// A parameter of the query, of HTTP, as it is written.
    Query(String),
}

impl Key {
    /// Whether it is found in requests of HTTP, or in others; none: in both.
    #[must_use]
    pub const fn is_http(&self) -> Option<bool> {
        match self {
            Self::Source | Self::Connection => None,
            Self::Line | Self::Word(_) | Self::Field(_) | Self::Member(_) => Some(false),
            Self::Header(_) | Self::Cookie(_) | Self::Path | Self::Segment(_) | Self::Query(_) => {
                Some(true)
            }
        }
    }
}

impl fmt::Display for Key {
    /// As it is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source => f.write_str("source"),
            Self::Connection => f.write_str("connection"),
            Self::Line => f.write_str("line"),
            Self::Word(number) => write!(f, "word:{number}"),
            Self::Field(name) => write!(f, "field:{name}"),
            Self::Member(name) => write!(f, "member:{name}"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Path => f.write_str("path"),
            Self::Segment(number) => write!(f, "segment:{number}"),
            Self::Query(name) => write!(f, "query:{name}"),
        }
    }
}

/// How clients are bound to workers (`sticky`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sticky {
    /// What a client is known by.
    pub by: KnownBy,
    /// A client that did not ask for so long is no longer bound.
    pub lifetime: Duration,
    /// Clients bound at once.
    pub entries: u32,
    /// What becomes of a client whose worker is gone.
    pub gone: Gone,
}

/// What a client is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// Something that its requests hold anyway.
    Key(Key),
    /// A cookie that says which server is its own.
    Cookie(Cookie),
}

/// A cookie that says which server is a client's own (`sticky.cookie`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Its name.
    pub name: String,
    /// How the client gets it.
    pub mode: CookieMode,
    /// What its value is made of.
    pub value: CookieValue,
    /// What values are made with; none: drawn at each start.
    pub secret: Option<Secret>,
    /// `Path`.
    pub path: String,
    /// `Max-Age`; none: until the client ends.
    pub max_age: Option<Duration>,
    /// `HttpOnly`.
    pub http_only: bool,
    /// `Secure`.
    pub secure: bool,
    /// `SameSite`.
    pub same_site: SameSite,
}

/// How a client gets the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieMode {
    /// One of ours is added.
    Insert,
    /// The value of the server's is replaced.
    Rewrite,
    /// Ours stands before the value of the server's.
    Prefix,
    /// The server's is learnt.
    Passive,
}

/// What a cookie's value is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieValue {
    /// A digest of the server's name.
    Opaque,
    /// The digest, when it was made, and a code over both.
    Signed,
}

/// `SameSite` of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// `Strict`.
    Strict,
    /// `Lax`.
    Lax,
    /// `None`.
    None,
}

/// What becomes of a client whose worker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It is bound to another.
    Reschedule,
    /// Its requests are refused.
    Refuse,
}

/// What makes a worker unfit (`health`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Failed requests in a row; 0: they do not count.
    pub errors: u32,
    /// The share of failed requests that takes a worker out; none: only failures in a row count.
    pub fail_rate: Option<FailRate>,
    /// A request that takes longer counts as failed.
    pub slow: Option<Duration>,
    /// Statuses of replies that count as failed, both ends included.
    pub failing: Option<(u16, u16)>,
    /// How long a worker is left out the first time.
    pub eject: Duration,
    /// How long at most.
    pub eject_max: Duration,
    /// How workers are looked at while nobody asks them; none: not at all.
    pub check: Option<Check>,
}

/// The share of failed requests that takes a worker out (`health.fail_rate`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailRate {
    /// Percent of the requests, 1 to 100.
    pub percent: u32,
    /// The time over which they are counted.
    pub window: Duration,
    /// With fewer requests in the window, the share does not count.
    pub requests_min: u32,
}

/// How workers are looked at while nobody asks them (`health.check`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is done.
    pub probe: Probe,
    /// From one check of a worker to the next.
    pub interval: Duration,
    /// A check that takes longer is a bad one.
    pub timeout: Duration,
    /// Good checks in a row until a worker serves again.
    pub rise: u32,
    /// Bad checks in a row until a worker is left out.
    pub fall: u32,
    /// Whether a new worker serves nobody before its checks were good.
    pub checked_first: bool,
    /// Another port of the server.
    pub port: Option<u16>,
}

/// What one check does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Connects.
    Tcp,
    /// Asks a server.
    Http(HttpProbe),
    /// Sends a line and reads another.
    Line {
        /// What it sends, without a line end.
        send: String,
        /// How a good answer begins.
        expect: String,
    },
    /// Runs a program; exit code 0 is good.
    Program {
        /// Its name and arguments.
        command: Vec<String>,
        /// The user it runs as; without it that of the pool's programs.
        user: Option<String>,
        /// The group it runs as; without it that of the pool's programs.
        group: Option<String>,
    },
}

/// A request of HTTP and what a good reply is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpProbe {
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// The host it names; none: the server's address.
    pub host: Option<String>,
    /// The statuses that are good, both ends included.
    pub status: (u16, u16),
    /// What stands in the body.
    pub body: Option<String>,
}

/// How a worker is looked at, as the word says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// Not at all.
    Off,
    /// It takes a connection.
    Tcp,
    /// It answers a request.
    Http,
    /// It answers a line.
    Line,
    /// A program says so.
    Program,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            check: None,
            errors: 0,
            fail_rate: None,
            slow: None,
            failing: None,
            eject: Duration::from_secs(10),
            eject_max: Duration::from_secs(300),
        }
    }
}

/// What a pool does when it is sorry (`sorry`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorry {
    /// What it answers with.
    pub answer: SorryAnswer,
    /// Percent of its room that may be taken when it is sorry no longer.
    pub until: u32,
    /// How long that must hold.
    pub steady: Duration,
    /// How it says so over HTTP.
    pub http: SorryHttp,
}

/// How a pool says over HTTP that it is sorry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SorryHttp {
    /// The status; none: 503, or 302 where another place is named.
    pub status: Option<u16>,
    /// What the body is; none: as the name of its file ends.
    pub content_type: Option<String>,
    /// When the client may come again; zero: that is not said.
    pub retry_after: Duration,
}

/// What a pool answers with when it is sorry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SorryAnswer {
    /// This.
    Line(String),
    /// What is in this file.
    File(String),
    /// Whatever this pool answers.
    Pool(String),
    /// That the client should ask there, over HTTP.
    Redirect(String),
}
