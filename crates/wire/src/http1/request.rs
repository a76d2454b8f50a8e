//! The head of a request.

use std::ops::Range;

use fields::{Fields, Name, NameSet, Value, http1, known};

use super::encode::decimal;
use super::grammar::{elements, is_authority, target_length, token_length};
use super::head::{Found, KEPT_BYTES, KEPT_FIELDS};
use super::semantics::{self, Connection, Version};
use super::{BodyKind, Limits, Method, Refusal, Upgrades, upgrades};

/// Fields that most requests of programs do not have.
const RARE_FIELDS: NameSet = NameSet::of(&[&known::EXPECT, &known::UPGRADE, &known::COOKIE]);

const MAX_FORWARDS: Name = Name::new("max-forwards");
/// Fields that a client sends but that its scripts cannot read.
const CREDENTIALS: [Name; 3] = [known::AUTHORIZATION, known::COOKIE, known::PROXY_AUTHORIZATION];

/// The maximum amount of memory that may remain unused, in bytes.
const UNUSED_MAX: usize = 1024;

/// The maximum length of a method, in characters.
const METHOD_MAX: usize = 32;

/// The positions of the parts of a request line.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) method_end: usize,
    pub(super) target: Range<usize>,
    /// The beginning of the path in the target. For an absolute target without a path: the end of the target.
    path: usize,
    /// The authority in an absolute target.
    pub(super) authority: Range<usize>,
}

/// A request without its body. The parsed head is copied into this value, which can be reused for many heads without
/// allocation.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// The request line with its line end, followed by a [host that is kept](Self::store_host).
    pub(super) line: Vec<u8>,
    pub(super) method: Method,
    pub(super) places: Places,
    /// The version of the request.
    pub version: Version,
    /// The fields of the head, in their order and spelling.
    pub fields: Fields,
    /// The body after the head.
    pub body: BodyKind,
    /// Whether the head has exactly one length, in canonical form.
    pub(super) length_is_plain: bool,
    /// The length with which a chunked body is forwarded, instead of in chunks.
    pub(super) length_instead: Option<usize>,
    /// The connection options of the request.
    pub connection: Connection,
    /// Whether the client waits for 100 (Continue) before it sends the body.
    pub expects_continue: bool,
    /// Whether the client requests a switch to another protocol, with a method that allows it.
    pub upgrade: bool,
}

impl Default for RequestHead {
    /// Creates an empty value, into which a head can be read.
    fn default() -> Self {
        Self {
            line: Vec::new(),
            method: Method::Other,
            places: Places::default(),
            version: Version::Http11,
            fields: Fields::headers(),
            body: BodyKind::None,
            length_is_plain: false,
            length_instead: None,
            connection: Connection::default(),
            expects_continue: false,
            upgrade: false,
        }
    }
}

impl RequestHead {
    /// Parses the head that [`HeadScan`](super::HeadScan) found. `head` is exactly this head. The previous content is
    /// replaced.
    ///
    /// # Errors
    /// If the head violates a rule or exceeds a limit. In this case the content is undefined.
    pub fn read(&mut self, head: &[u8], found: &Found, limits: &Limits) -> Result<(), Refusal> {
        self.reset();
        let (line, lines) = found.split(head);
        let method_end = token_length(line);
        if method_end == 0 || method_end > METHOD_MAX {
            return Err(Refusal::Method);
        }
        let start = method_end + 1;
        let end = start + target_length(line.get(start..).unwrap_or_default());
        if line[method_end..].first() != Some(&b' ') || line.get(end) != Some(&b' ') {
            return Err(wrong_line(line, method_end, end));
        }
        let version = &line[end + 1..];
        if version.iter().any(|byte| matches!(byte, b' ' | b'\t')) {
            return Err(Refusal::RequestLine);
        }
        self.version = Version::read(version)?;
        self.method = Method::of(&line[..method_end]);
        let target = Target::read(&line[start..end], self.method, &line[..method_end])?;
        self.places.method_end = method_end;
        self.places.target = start..end;
        self.places.path = start + target.path;
        self.places.authority = start + target.authority.start..start + target.authority.end;
        self.line.extend_from_slice(&head[..line.len() + 2]);

        self.fields.set_limits(limits.of_fields());
        http1::copy(&mut self.fields, lines).map_err(|error| semantics::reason_of(error, lines))?;
        self.connection = semantics::connection(&self.fields, self.version)?;
        self.check_host()?;
        self.check_body(limits)?;
        self.check_rest(limits)
    }

    /// Removes the content, and frees memory that most heads do not need.
    pub fn clear(&mut self) {
        self.reset();
        self.fields.recycle(KEPT_FIELDS, KEPT_BYTES);
        self.line.shrink_to(KEPT_BYTES);
    }

    /// The allocated memory in bytes, in addition to the size of the value, whether used or not.
    #[must_use]
    pub fn held(&self) -> usize {
        self.line.capacity() + self.fields.bytes_held()
    }

    /// Frees unused memory, if it is the larger part. Returns whether memory was freed.
    pub fn shrink(&mut self) -> bool {
        let used = self.line.len() + self.fields.bytes_used();
        let is_large = self.held() > 2 * used + UNUSED_MAX;
        if is_large {
            self.line.shrink_to_fit();
            self.fields.shrink_to(0, 0);
        }
        is_large
    }

    /// Removes the content and keeps the memory. All fields are listed, so that the compiler requires new fields to be
    /// handled here. `fields` is not cleared, because the copy of the next lines replaces it.
    fn reset(&mut self) {
        let Self {
            line,
            method,
            places,
            version,
            fields: _,
            body,
            length_is_plain,
            length_instead,
            connection,
            expects_continue,
            upgrade,
        } = self;
        line.clear();
        *method = Method::Other;
        *places = Places::default();
        *version = Version::Http11;
        (*body, *length_is_plain, *length_instead) = (BodyKind::None, false, None);
        *connection = Connection::default();
        (*expects_continue, *upgrade) = (false, false);
    }

    /// Sets the length with which a chunked body is forwarded.
    pub fn set_length(&mut self, length: usize) {
        self.length_instead = Some(length);
    }

    /// Whether the body is forwarded in the chunks in which it was received.
    #[must_use]
    pub fn sends_chunks(&self) -> bool {
        self.body == BodyKind::Chunked && self.length_instead.is_none()
    }

    /// Treats the request as complete: removes `Upgrade` and `Expect`, because its body was received and it must not
    /// switch to another protocol.
    pub fn mark_complete(&mut self) {
        (self.upgrade, self.expects_continue) = (false, false);
        self.fields.remove(&known::UPGRADE);
        self.fields.remove(&known::EXPECT);
    }

    fn check_host(&self) -> Result<(), Refusal> {
        let Some(host) = self.fields.get(&known::HOST).and_then(Value::bytes) else {
            return if self.version == Version::Http11 { Err(Refusal::NoHost) } else { Ok(()) };
        };
        if !self.fields.is_unique(&known::HOST) {
            return Err(Refusal::HostTwice);
        }
        if !is_authority(host) {
            return Err(Refusal::Host);
        }
        let named = &self.line[self.places.authority.clone()];
        if named.is_empty() || named.eq_ignore_ascii_case(host) {
            return Ok(());
        }
        let port = self.default_port();
        let same = without_port(named, port).eq_ignore_ascii_case(without_port(host, port));
        if same { Ok(()) } else { Err(Refusal::HostTarget) }
    }

    /// The default port of the scheme of an absolute target.
    fn default_port(&self) -> &'static [u8] {
        let is_secure = self.line[self.places.target.start..]
            .get(..5)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"));
        if is_secure { b":443" } else { b":80" }
    }

    fn check_body(&mut self, limits: &Limits) -> Result<(), Refusal> {
        let framing = semantics::framing(&self.fields, self.version)?;
        self.length_is_plain = framing.is_some_and(|framing| framing.is_plain);
        self.body = framing.map_or(BodyKind::None, |framing| framing.body);
        match self.body {
            BodyKind::Length(length) if length > limits.body => Err(Refusal::BodyTooLong),
            _ => Ok(()),
        }
    }

    fn check_rest(&mut self, limits: &Limits) -> Result<(), Refusal> {
        if !self.fields.may_have_any(RARE_FIELDS) {
            return Ok(());
        }
        if let Some(expected) = self.fields.get(&known::EXPECT).and_then(Value::bytes) {
            let is_known = expected.eq_ignore_ascii_case(b"100-continue");
            if !is_known || !self.fields.is_unique(&known::EXPECT) {
                return Err(Refusal::Expect);
            }
            // In HTTP/1.0 the field is ignored (RFC 9110 §10.1.1).
            self.expects_continue = self.version == Version::Http11 && self.body.is_some();
        }
        if self.fields.contains(&known::UPGRADE) {
            // No protocol can follow a reply without a body, so `Upgrade` is ignored for HEAD (RFC 9110 §7.8).
            self.upgrade = self.connection.upgrade
                && self.method != Method::Head
                && self.version == Version::Http11
                && self.forwarded_upgrades().next().is_some();
            if self.upgrade && self.body.is_some() {
                return Err(Refusal::UpgradeBody);
            }
        }
        if self.fields.contains(&known::COOKIE) {
            let cookies = self.fields.get_all(&known::COOKIE).filter_map(Value::bytes);
            let pairs: usize = cookies.map(|one| 1 + memchr::memchr_iter(b';', one).count()).sum();
            if pairs > limits.cookies {
                return Err(Refusal::Cookies);
            }
        }
        Ok(())
    }

    /// The method of the request.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The method in its original spelling.
    #[must_use]
    pub fn method_bytes(&self) -> &[u8] {
        &self.line[..self.places.method_end]
    }

    /// The request line as it was received, for logs.
    #[must_use]
    pub fn line_bytes(&self) -> &[u8] {
        &self.line[..self.places.target.end + " HTTP/1.1".len()]
    }

    /// The target to forward: path and query. It is empty for an absolute target without a path, and `*` for OPTIONS
    /// `*`.
    #[must_use]
    pub fn path_and_query(&self) -> &[u8] {
        &self.line[self.places.path..self.places.target.end]
    }

    /// The path, without the query.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        let both = self.path_and_query();
        memchr::memchr(b'?', both).map_or(both, |mark| &both[..mark])
    }

    /// The query after `?`, if there is one.
    #[must_use]
    pub fn query(&self) -> Option<&[u8]> {
        let both = self.path_and_query();
        memchr::memchr(b'?', both).map(|mark| &both[mark + 1..])
    }

    /// The host of the request, with its port: from the target, or otherwise from `Host`. Empty for an HTTP/1.0 request
    /// without a host.
    #[must_use]
    pub fn host(&self) -> &[u8] {
        let named = &self.line[self.places.authority.clone()];
        if !named.is_empty() {
            return named;
        }
        self.fields.get(&known::HOST).and_then(Value::bytes).unwrap_or_default()
    }

    /// Stores the host that the client sent, so that [`Self::host`] returns it even if the field is changed.
    pub fn store_host(&mut self) {
        if self.places.authority.is_empty() {
            let host = self.fields.get(&known::HOST).and_then(Value::bytes).unwrap_or_default();
            let start = self.line.len();
            self.line.extend_from_slice(host);
            self.places.authority = start..start + host.len();
        }
    }

    /// Decrements `Max-Forwards` (RFC 9110 §7.6.2), which applies to TRACE and OPTIONS only. Returns false if the
    /// request must be answered here.
    ///
    /// # Errors
    /// If the field is not a number, or occurs twice.
    pub fn decrement_max_forwards(&mut self) -> Result<bool, Refusal> {
        let Some(digits) = self.fields.get(&MAX_FORWARDS).and_then(Value::bytes) else {
            return Ok(true);
        };
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        if !is_number || !self.fields.is_unique(&MAX_FORWARDS) {
            return Err(Refusal::MaxForwards);
        }
        let left = digits.iter().fold(0_u64, |number, digit| {
            number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        });
        let Some(left) = left.checked_sub(1) else { return Ok(false) };
        let (digits, start) = decimal(left);
        self.fields.set_limits(fields::Limits::MAX);
        let written = self.fields.replace_all(&MAX_FORWARDS, &digits[start..]);
        debug_assert!(written.is_ok(), "a number is a value: {written:?}");
        Ok(true)
    }

    /// Appends the head as it was received, for an answer to TRACE. Fields that scripts of the client must not see are
    /// omitted (RFC 9110 §9.3.8).
    pub fn write_trace(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.line_bytes());
        out.extend_from_slice(b"\r\n");
        for field in self.fields.iter() {
            let is = |name: &Name| field.name.eq_ignore_ascii_case(name.as_str().as_bytes());
            if !CREDENTIALS.iter().any(is) {
                super::encode::line(field.name, field.value.bytes_or_empty(), out);
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Ignores the request to switch to another protocol (allowed by RFC 9110 §7.8).
    pub const fn ignore_upgrade(&mut self) {
        self.upgrade = false;
    }

    /// The protocols in `Upgrade`.
    pub(super) fn upgrades(&self) -> impl Iterator<Item = &[u8]> {
        let values = self.fields.get_all(&known::UPGRADE).filter_map(Value::bytes);
        values.flat_map(elements)
    }

    /// The protocols in `Upgrade` that are forwarded to a server.
    pub(super) fn forwarded_upgrades(&self) -> impl Iterator<Item = &[u8]> {
        let may_begin = |protocol: &&[u8]| upgrades::may_begin(protocol);
        self.upgrades().filter(may_begin).take(upgrades::FORWARDED_MAX)
    }

    /// The protocols that the server may switch to, if [`Self::upgrade`] is set.
    #[must_use]
    pub fn switches_to(&self) -> Upgrades {
        Upgrades::of(self.forwarded_upgrades())
    }

    /// Whether the request line can be forwarded unchanged.
    pub(super) fn keeps_request_line(&self) -> bool {
        self.places.path == self.places.target.start
            && self.line[self.places.target.end..].starts_with(VERSION)
    }
}

/// The end of request lines that this proxy writes.
pub(super) const VERSION: &[u8] = b" HTTP/1.1\r\n";

/// An authority without a redundant port: an empty port, or the default port of its scheme.
fn without_port<'a>(authority: &'a [u8], default: &[u8]) -> &'a [u8] {
    let shorter = authority.strip_suffix(default).or_else(|| authority.strip_suffix(b":"));
    shorter.unwrap_or(authority)
}

/// The reason for rejecting a line that cannot be split correctly.
fn wrong_line(line: &[u8], method_end: usize, target_end: usize) -> Refusal {
    match (line.get(method_end), line.get(target_end)) {
        (Some(b' '), Some(&byte)) if byte != b'\t' => Refusal::Target,
        (None | Some(b' ' | b'\t'), _) => Refusal::RequestLine,
        _ => Refusal::Method,
    }
}

/// The positions of the parts of a target.
struct Target {
    path: usize,
    authority: Range<usize>,
}

impl Target {
    fn read(target: &[u8], method: Method, name: &[u8]) -> Result<Self, Refusal> {
        if name == b"CONNECT" {
            return Err(Refusal::Connect);
        }
        match target {
            [] => return Err(Refusal::RequestLine),
            [b'/', ..] => return Ok(Self { path: 0, authority: 0..0 }),
            b"*" if method == Method::Options => return Ok(Self { path: 0, authority: 0..0 }),
            _ => {}
        }
        let scheme = ["http://", "https://"].into_iter().find(|scheme| {
            target
                .get(..scheme.len())
                .is_some_and(|front| front.eq_ignore_ascii_case(scheme.as_bytes()))
        });
        let start = scheme.ok_or(Refusal::Target)?.len();
        let rest = &target[start..];
        let length = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        if !is_authority(&rest[..length]) {
            return Err(Refusal::Target);
        }
        Ok(Self { path: start + length, authority: start..start + length })
    }
}
