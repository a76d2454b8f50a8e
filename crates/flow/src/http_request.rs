//! The head of an HTTP request, between the client's session and a worker.
//!
//! Hop-by-hop headers are removed and the changes of the route are applied, but the head is not encoded yet. The
//! backend encodes it once for each attempt.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use block::CountedBytes;
use exchange::{Head, Peer};
use fields::Lookup;
use wire::http1::{Found, Limits, Method, Refusal, RequestHead, object};

use crate::forwarding::Forwarding;
use crate::json_reply::JsonReply;
use crate::recycler::Recycler;
use crate::request_meta::{Effect, RequestMeta, ResponseKind};

/// Header fields that are added when a head is encoded.
const ADDED: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "forwarded",
    "via",
];

/// A boxed head whose memory is reused. A head is several times as large as the rest of a request, so it is not
/// stored in the queues themselves.
#[derive(Debug)]
pub struct HttpRequest(Option<Box<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    head: RequestHead,
    /// The target that the route has set; empty: the target of the head.
    target: Vec<u8>,
    /// The forwarding headers to add.
    forwarding: Option<Arc<Forwarding>>,
    /// The share of this place in the global memory count.
    counted: CountedBytes,
}

thread_local! {
    /// The unused places of a thread.
    static UNUSED: RefCell<Recycler<Box<Stored>>> = const { RefCell::new(Recycler::new()) };
}

impl HttpRequest {
    /// Parses the head that `found` describes, which is all of `bytes`.
    ///
    /// # Errors
    /// When the head violates HTTP or exceeds a limit.
    #[inline]
    pub fn read(bytes: &[u8], found: &Found, limits: &Limits) -> Result<Self, Refusal> {
        let place = UNUSED.with_borrow_mut(Recycler::take).unwrap_or_default();
        let mut read = Self(Some(place));
        read.head_mut().read(bytes, found, limits)?;
        Ok(read)
    }

    fn stored(&self) -> &Stored {
        self.0.as_ref().expect("a request has its place to its end")
    }

    fn stored_mut(&mut self) -> &mut Stored {
        self.0.as_mut().expect("a request has its place to its end")
    }

    /// The parsed head.
    #[inline]
    pub fn head(&self) -> &RequestHead {
        &self.stored().head
    }

    /// The parsed head, for changes by a route.
    #[inline]
    pub fn head_mut(&mut self) -> &mut RequestHead {
        &mut self.stored_mut().head
    }

    /// The properties of the request, with a complete body.
    pub fn meta(&self) -> RequestMeta {
        let method = self.head().method();
        let expects = match method {
            Method::Head => ResponseKind::HeadOnly,
            _ => ResponseKind::Reply,
        };
        let effect = match method {
            method if method.is_safe() => Effect::None,
            method if method.is_idempotent() => Effect::Once,
            _ => Effect::Unknown,
        };
        let json_reply = Some(JsonReply::of_http(method));
        RequestMeta { effect, expects, json_reply, ..RequestMeta::default() }
    }

    /// Replaces the target, unless `target` is empty. `target` receives the old buffer, for reuse.
    pub fn set_target(&mut self, target: &mut Vec<u8>) {
        let place = self.stored_mut();
        place.target.clear();
        if !target.is_empty() {
            std::mem::swap(&mut place.target, target);
        }
    }

    /// The path and the query that are forwarded.
    pub fn target(&self) -> &[u8] {
        let Stored { head, target, .. } = self.stored();
        if target.is_empty() { head.path_and_query() } else { target }
    }

    /// The path and the query of [`Self::target`], without the `?`.
    pub fn target_parts(&self) -> (&[u8], Option<&[u8]>) {
        let target = self.target();
        match target.iter().position(|byte| *byte == b'?') {
            Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
            None => (target, None),
        }
    }

    /// The path that is sent to a server. It starts with `/`, or is `*`.
    pub fn path(&self) -> Cow<'_, [u8]> {
        match self.target_parts().0 {
            path @ ([b'/', ..] | b"*") => Cow::Borrowed(path),
            path => Cow::Owned([b"/", path].concat()),
        }
    }

    /// The value of a header field that is not in the head, but is added when the head is encoded for a server.
    pub fn added_field(&self, peer: Peer, name: &[u8]) -> Option<Vec<u8>> {
        if !ADDED.iter().any(|added| name.eq_ignore_ascii_case(added.as_bytes())) {
            return None;
        }
        let mut written = Vec::new();
        self.write(peer, &mut written);
        written.split(|byte| *byte == b'\n').find_map(|line| {
            let (found, value) = line.split_at_checked(name.len())?;
            let value = value.strip_prefix(b":").filter(|_| found.eq_ignore_ascii_case(name))?;
            Some(value.trim_ascii().to_vec())
        })
    }

    /// The request as a JSON object, for a program.
    pub fn object(&self, peer: Peer, body: &[u8]) -> Vec<u8> {
        let client = match peer {
            Peer::Internet(address) => Some(address.ip()),
            Peer::Local | Peer::Inside => None,
        };
        let mut out = Vec::new();
        object::open(self.head(), self.target(), client, &mut out);
        object::close(body, &mut out);
        out
    }

    /// The head of the request, for a handler.
    pub fn plain_head(&self) -> Head {
        let head = self.head();
        let mut plain = Head::new(head.method_bytes(), self.target());
        for field in head.fields.fields() {
            if let Some(value) = field.value.bytes() {
                plain.push(field.name, value);
            }
        }
        plain
    }

    /// Prepares the request for submission: sets its forwarding headers, and adds its memory to the global count.
    pub fn submitted(mut self, forwarding: &Arc<Forwarding>) -> Self {
        let bytes = self.held();
        let place = self.stored_mut();
        place.counted = CountedBytes::new(bytes);
        place.forwarding = Some(Arc::clone(forwarding));
        self
    }

    /// Appends the encoded head for a server.
    pub fn write(&self, peer: Peer, out: &mut Vec<u8>) {
        let Stored { head, target, forwarding, .. } = self.stored();
        let Some(forwarding) = forwarding else { return };
        // Untrusted forwarding headers of the client were already removed.
        let from = forwarding.of(peer, head.version, false);
        let target = Some(&target[..]).filter(|target| !target.is_empty());
        head.encode(target, forwarding.host.as_bytes(), &from, out);
    }

    /// Updates the accounting of this thread: the request goes to another one.
    pub fn leave(&self) {
        UNUSED.with_borrow_mut(Recycler::leave);
    }

    /// Updates the accounting of this thread: the request came from another one.
    pub fn arrive(&self) {
        UNUSED.with_borrow_mut(Recycler::arrive);
    }

    /// Allocated memory in bytes, whether used or not.
    pub fn held(&self) -> usize {
        let Stored { head, target, .. } = self.stored();
        size_of::<Stored>() + head.held() + target.capacity()
    }

    /// Frees unused memory of an earlier head, if it is the larger part. Queues count allocated memory, so it should be
    /// close to the size of the request.
    pub fn compact(mut self) -> Self {
        let place = self.stored_mut();
        if place.head.shrink() | shrink(&mut place.target) {
            let bytes = self.held();
            self.stored_mut().counted = CountedBytes::new(bytes);
        }
        self
    }
}

/// Unused bytes that a buffer may keep.
const UNUSED_MAX: usize = 1024;

fn shrink(bytes: &mut Vec<u8>) -> bool {
    let is_large = bytes.capacity() > 2 * bytes.len() + UNUSED_MAX;
    if is_large {
        bytes.shrink_to_fit();
    }
    is_large
}

impl Drop for HttpRequest {
    fn drop(&mut self) {
        let Some(mut place) = self.0.take() else { return };
        // Each field is named, so that a new one cannot be forgotten.
        let Stored { head, target, forwarding, counted } = &mut *place;
        head.clear();
        target.clear();
        target.shrink_to(UNUSED_MAX);
        *forwarding = None;
        *counted = CountedBytes::default();
        // During thread exit the thread-local may be gone; the place is then freed.
        let _ = UNUSED.try_with(|places| places.borrow_mut().give(place));
    }
}

impl Clone for HttpRequest {
    /// A copy of the head as another worker receives it, with its own memory count.
    fn clone(&self) -> Self {
        let Stored { head, target, forwarding, .. } = self.stored();
        let mut place = UNUSED.with_borrow_mut(Recycler::take).unwrap_or_default();
        place.head = head.clone();
        place.target.extend_from_slice(target);
        place.forwarding.clone_from(forwarding);
        let mut copy = Self(Some(place));
        let bytes = copy.held();
        copy.stored_mut().counted = CountedBytes::new(bytes);
        copy
    }
}

#[cfg(test)]
mod tests {
    use wire::http1::HeadScan;

    use super::*;

    fn read(text: &str) -> HttpRequest {
        let found = HeadScan::default().next(text.as_bytes(), &Limits::REQUEST).unwrap().unwrap();
        HttpRequest::read(text.as_bytes(), &found, &Limits::REQUEST).unwrap()
    }

    #[test]
    fn nothing_of_a_request_is_left_for_the_next() {
        let mut first = read("GET /a HTTP/1.1\r\nHost: a\r\nCookie: secret=1\r\n\r\n");
        first.set_target(&mut b"/changed".to_vec());
        assert_eq!(first.target(), b"/changed");
        drop(first.submitted(&Arc::default()));
        let next = read("GET /b HTTP/1.0\r\n\r\n");
        assert_eq!((next.target(), next.head().fields.len()), (&b"/b"[..], 0));
        let mut out = Vec::new();
        next.submitted(&Arc::default()).write(Peer::Inside, &mut out);
        assert!(!out.windows(6).any(|part| part == b"secret"), "{}", out.escape_ascii());
    }

    #[test]
    fn what_waits_holds_no_more_than_its_requests_need() {
        let long = "x".repeat(3000);
        drop(read(&format!("GET /{long} HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n")));
        let small = read("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(small.held() > 6000, "{}", small.held());
        let held = small.submitted(&Arc::default()).compact().held();
        assert!(held < size_of::<Stored>() + 3 * UNUSED_MAX, "{held}");
    }
}
