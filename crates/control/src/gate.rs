//! Access control: the checks before every route, in one fixed order.
//!
//! 1. `Host` names this daemon. Otherwise a name that an attacker's DNS resolves to this daemon would be accepted (DNS
//!    rebinding).
//! 2. `Origin` and `Sec-Fetch-Site` do not name another site.
//! 3. Authentication: a bearer token, or the peer credentials of a Unix socket. A client on a loopback address without
//!    a token is anonymous.
//! 4. The role that the route requires. A route that is not in the table requires [`Role::Admin`].
//! 5. A request that changes something declares JSON or has the header `Roadstead-Request`. A browser sends neither to
//!    another site without a CORS preflight, which is rejected.
//! 6. The body: no body without authentication. Its size, the size of all bodies together, and the time to receive it
//!    are limited.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use route::Authenticator;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::audit::Audit;
use crate::caller::Caller;
use crate::connection_slots::ConnectionSlot;
use crate::role::Role;
use crate::routes;

/// The header that marks a request as deliberate; its value does not matter.
pub const REQUEST_HEADER: &str = "roadstead-request";
/// The maximum size of a request body, in bytes.
pub(crate) const BODY_MAX: usize = 1 << 20;
/// The maximum size of all request bodies together, in bytes. A body counts until its request is answered.
pub(crate) const BODIES_MAX: usize = 32 << 20;
/// The maximum time to receive a request body, and to wait until the limit of all bodies allows it.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of characters of a path in the audit log.
const PATH_SHOWN: usize = 200;

const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// The peer of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Peer {
    /// TCP: the address of the peer, and the address to which it connected.
    Internet { from: SocketAddr, to: SocketAddr },
    /// A Unix socket. The values are `None` if the system does not know the peer.
    Unix { uid: Option<u32>, pid: Option<i32> },
}

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rejection {
    Coding,
    NoHost,
    Host,
    Origin,
    FetchSite,
    Token,
    Unauthenticated,
    ReadOnly,
    PeerUser,
    ContentType,
    AnonymousBody,
    TooLarge,
    TooMany,
    Slow,
}

impl Rejection {
    fn parts(self) -> (StatusCode, &'static str) {
        match self {
            Self::Coding => (
                StatusCode::BAD_REQUEST,
                "`Transfer-Encoding` is not accepted here; send the body with `Content-Length`",
            ),
            Self::NoHost => (StatusCode::BAD_REQUEST, "exactly one `Host` header is required"),
            Self::Host => (
                StatusCode::FORBIDDEN,
                "`Host` does not name this daemon; add the name to `allowed_hosts` in `[admin]`",
            ),
            Self::Origin => (StatusCode::FORBIDDEN, "requests from another origin are rejected"),
            Self::FetchSite => (StatusCode::FORBIDDEN, "cross-site requests are rejected"),
            Self::Token => (StatusCode::UNAUTHORIZED, "the token is wrong"),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "a bearer token is required"),
            Self::ReadOnly => (
                StatusCode::FORBIDDEN,
                "without a token this address is read-only; use the token of `[admin]`, or a Unix socket",
            ),
            Self::PeerUser => (
                StatusCode::FORBIDDEN,
                "only root, the user of the daemon and members of `group` in `[admin]` are allowed",
            ),
            Self::ContentType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "a change requires `Content-Type: application/json` or the header `Roadstead-Request: 1`",
            ),
            Self::AnonymousBody => {
                (StatusCode::PAYLOAD_TOO_LARGE, "a request without a token has no body here")
            }
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 1 MiB"),
            Self::TooMany => {
                (StatusCode::SERVICE_UNAVAILABLE, "other requests have more than 32 MiB of bodies")
            }
            Self::Slow => (StatusCode::REQUEST_TIMEOUT, "the body was not received in time"),
        }
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let (status, text) = self.parts();
        let mut response = (status, format!("{text}\n")).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"roadstead\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// How a client was identified, for the audit log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Identity {
    Token,
    User(u32),
    Anonymous,
}

/// The configuration and state of the checks.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Accepted host names, in lower case.
    pub(crate) hosts: Vec<String>,
    /// The token, if one is configured.
    pub(crate) token: Option<Authenticator>,
    /// Whether anonymous clients may read. This is the case on a loopback address.
    pub(crate) anonymous: bool,
    /// The user of the daemon.
    pub(crate) user: u32,
    /// Whether the permissions of the Unix socket decide who has access, because they name a group.
    pub(crate) group_has_access: bool,
    /// The process of the daemon. It never connects to its own admin socket on purpose: somebody has led a connection to a
    /// server there.
    pub(crate) own_process: Option<i32>,
    /// The number of bytes that are free for request bodies; initially [`BODIES_MAX`].
    pub(crate) bodies: Semaphore,
    pub(crate) audit: Arc<Audit>,
}

impl Gate {
    /// Performs the checks 1 to 5.
    pub(crate) fn check(
        &self,
        peer: Peer,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        required: Role,
    ) -> Result<Identity, (Identity, Rejection)> {
        let unknown = |rejection| (Identity::Anonymous, rejection);
        // It is unknown whether there was a `Content-Length` too: the HTTP library has removed it.
        if headers.contains_key(header::TRANSFER_ENCODING) {
            return Err(unknown(Rejection::Coding));
        }
        let host = host(headers).ok_or(Rejection::NoHost).map_err(unknown)?;
        let authorities = [Some(host), uri.authority().map(|it| it.as_str())];
        if !authorities.into_iter().flatten().all(|it| self.is_allowed(it, peer)) {
            return Err(unknown(Rejection::Host));
        }
        same_site(headers, host).map_err(unknown)?;
        let (identity, role) = self.authenticate(peer, headers).map_err(unknown)?;
        if role < required {
            return Err((identity, Rejection::ReadOnly));
        }
        if !is_read(method) && !is_deliberate(headers) {
            return Err((identity, Rejection::ContentType));
        }
        Ok(identity)
    }

    /// Whether an authority (`HOST` or `HOST:PORT`) names this daemon. The port is not compared: it differs behind a
    /// forwarded port.
    fn is_allowed(&self, authority: &str, peer: Peer) -> bool {
        let name = without_port(authority).to_ascii_lowercase();
        if let Some(address) = address(&name) {
            // A DNS answer cannot change an address.
            let own = matches!(peer, Peer::Internet { to, .. } if to.ip().to_canonical() == address.to_canonical());
            return own || address.to_canonical().is_loopback() || self.hosts.contains(&name);
        }
        let name = name.strip_suffix('.').unwrap_or(&name);
        name == "localhost" || self.hosts.iter().any(|host| host == name)
    }

    /// Whether the connection alone proves that the client has full access.
    pub(crate) fn trusts(&self, peer: Peer) -> bool {
        match peer {
            Peer::Unix { pid: Some(pid), .. } if self.own_process == Some(pid) => false,
            Peer::Unix { uid: Some(uid), .. } => {
                uid == 0 || uid == self.user || self.group_has_access
            }
            Peer::Unix { uid: None, .. } | Peer::Internet { .. } => false,
        }
    }

    fn authenticate(&self, peer: Peer, headers: &HeaderMap) -> Result<(Identity, Role), Rejection> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        if let Some(value) = given.next() {
            let admits = self.token.as_ref().is_some_and(|guard| guard.admits(value.as_bytes()));
            return match admits && given.next().is_none() {
                true => Ok((Identity::Token, Role::Admin)),
                false => Err(Rejection::Token),
            };
        }
        match peer {
            Peer::Unix { uid: Some(uid), .. } if self.trusts(peer) => {
                Ok((Identity::User(uid), Role::Admin))
            }
            Peer::Unix { .. } => Err(Rejection::PeerUser),
            Peer::Internet { from, .. }
                if self.anonymous && from.ip().to_canonical().is_loopback() =>
            {
                Ok((Identity::Anonymous, Role::Viewer))
            }
            Peer::Internet { .. } => Err(Rejection::Unauthenticated),
        }
    }
}

/// Returns the `Host` header, if there is exactly one.
fn host(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::HOST).iter();
    let first = all.next()?.to_str().ok().filter(|host| !host.is_empty())?;
    all.next().is_none().then_some(first)
}

/// Returns an address that is used as a host. Only an IPv6 address may be in brackets.
fn address(name: &str) -> Option<IpAddr> {
    match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse().ok(),
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|it| it.is_ascii_digit())
                && (!name.contains(':') || name.ends_with(']')) =>
        {
            name
        }
        _ => authority,
    }
}

/// Checks that a request does not come from another site. A browser names the site in at least one of these headers;
/// other clients send neither.
fn same_site(headers: &HeaderMap, host: &str) -> Result<(), Rejection> {
    for value in headers.get_all("sec-fetch-site") {
        if !matches!(value.as_bytes(), b"same-origin" | b"none") {
            return Err(Rejection::FetchSite);
        }
    }
    for value in headers.get_all(header::ORIGIN) {
        let origin = value.to_str().map_err(|_| Rejection::Origin)?;
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host)) {
            return Err(Rejection::Origin);
        }
    }
    Ok(())
}

/// Whether a method changes nothing.
pub(crate) fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Whether a request has a header that a page of another site cannot send without a preflight.
fn is_deliberate(headers: &HeaderMap) -> bool {
    let is_json = |value: &HeaderValue| {
        let media = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
        media.trim_ascii().eq_ignore_ascii_case(b"application/json")
    };
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let json = types.next().is_some_and(is_json) && types.next().is_none();
    json || headers.contains_key(REQUEST_HEADER)
}

/// The middleware before all routes, including those that do not exist.
pub(crate) async fn protect(
    State(gate): State<Arc<Gate>>,
    request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), shown(request.uri().path()));
    let peer = request.extensions().get::<Peer>().copied();
    let (identity, wrong_token, mut response) = match peer {
        Some(peer) => answer(&gate, peer, request, next).await,
        // The server attaches the peer to every connection.
        None => (Identity::Anonymous, false, StatusCode::INTERNAL_SERVER_ERROR.into_response()),
    };
    if !is_read(&method) || wrong_token {
        let write = || audit(peer, identity, &method, &path, response.status());
        match identity {
            Identity::Anonymous => gate.audit.limited(write),
            Identity::Token | Identity::User(_) => write(),
        }
    }
    if identity == Identity::Anonymous {
        // The connection is closed, so that its place is free for the next client.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Returns the identity of the client, whether its token was wrong, and the response.
async fn answer(
    gate: &Gate,
    peer: Peer,
    request: Request,
    next: Next,
) -> (Identity, bool, Response) {
    let (mut parts, body) = request.into_parts();
    let matched = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    let required = matched.map_or(Role::Admin, |path| routes::role(&parts.method, path));
    let checked = gate.check(peer, &parts.method, &parts.uri, &parts.headers, required);
    let identity = match checked {
        Ok(identity) => identity,
        Err((identity, rejection)) => {
            return (identity, rejection == Rejection::Token, rejection.into_response());
        }
    };
    if identity == Identity::Anonymous && !body.is_end_stream() {
        // The body is not read: any client may be anonymous, any number of times.
        return (identity, false, Rejection::AnonymousBody.into_response());
    }
    parts.extensions.insert(identity.role());
    parts.extensions.insert(Caller(identity.described(Some(peer))));
    if let (Identity::Token, Some(place)) =
        (identity, parts.extensions.get::<Arc<ConnectionSlot>>())
    {
        place.trust().await;
    }
    let response = match receive(&gate.bodies, body).await {
        Ok((body, _room)) => next.run(Request::from_parts(parts, body)).await,
        Err(rejection) => rejection.into_response(),
    };
    (identity, false, response)
}

/// Receives a complete body. Returns it with its share of the bytes that all bodies may use.
async fn receive(bodies: &Semaphore, body: Body) -> Result<(Body, SemaphorePermit<'_>), Rejection> {
    // `Content-Length` states the size of a body. Without it, the maximum size is assumed.
    let size = body.size_hint().upper().unwrap_or(BODY_MAX as u64);
    let size = u32::try_from(size).ok().filter(|&size| size as usize <= BODY_MAX);
    let room = bodies.acquire_many(size.ok_or(Rejection::TooLarge)?);
    let room = timeout(BODY_TIMEOUT, room).await.map_err(|_| Rejection::TooMany)?;
    let room = room.expect("it is never closed");
    match timeout(BODY_TIMEOUT, to_bytes(body, BODY_MAX)).await {
        Err(_) => Err(Rejection::Slow),
        Ok(Err(_)) => Err(Rejection::TooLarge),
        Ok(Ok(bytes)) => Ok((Body::from(bytes), room)),
    }
}

/// Logs an attempt to change something, including a rejected one, and a wrong token.
fn audit(peer: Option<Peer>, identity: Identity, method: &Method, path: &str, status: StatusCode) {
    let who = identity.described(peer);
    let status = status.as_u16();
    if status < 400 {
        tracing::info!(status, "admin: {who}: {method} {path}");
    } else {
        tracing::warn!(status, "admin: {who}: {method} {path}: rejected or failed");
    }
}

impl Identity {
    /// Returns the role of a client with this identity.
    const fn role(self) -> Role {
        match self {
            Self::Token | Self::User(_) => Role::Admin,
            Self::Anonymous => Role::Viewer,
        }
    }

    /// The client in the audit log, and the author of a command that machines share.
    fn described(self, peer: Option<Peer>) -> String {
        match (self, peer) {
            (Self::User(uid), Some(Peer::Unix { pid, .. })) => match pid {
                Some(pid) => format!("uid {uid} (process {pid})"),
                None => format!("uid {uid}"),
            },
            (_, Some(Peer::Unix { uid: Some(uid), .. })) => format!("{} (uid {uid})", self.name()),
            (_, Some(Peer::Internet { from, .. })) => format!("{} ({from})", self.name()),
            _ => self.name().to_owned(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::User(_) => "user",
            Self::Anonymous => "no token",
        }
    }
}

/// Returns a path for the log, limited in length and printable.
fn shown(path: &str) -> String {
    path.chars().take(PATH_SHOWN).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests;
