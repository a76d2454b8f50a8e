//! The head of a request of HTTP, from the session that read it to the worker that gets it.
//!
//! It is neutral: what concerned the connection of its client is removed, and what its route changes is
//! changed, but it is written for no worker yet. Whoever sends it encodes it, once for each attempt.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use block::Counted;
use exchange::Peer;
use wire::http1::{Found, Limits, Method, Refusal, RequestHead, object};

use crate::forwarding::Forwarding;
use crate::json_reply::JsonReply;
use crate::request_meta::{Effect, RequestMeta, ResponseKind};

/// Places that a thread keeps in any case.
const PLACES_MIN: usize = 64;
/// Fields that are written with a head and are not in it.
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
/// After so many requests the most that were in flight at once is counted anew.
const PERIOD: u32 = 4096;

/// A head in a place that is used again, with its memory: it is several times as large as anything else
/// of a request, and would make every queue as large.
#[derive(Debug)]
pub struct HttpRequest(Option<Box<Place>>);

#[derive(Debug, Default)]
struct Place {
    head: RequestHead,
    /// What the route of the request has made of its target; empty: nothing.
    target: Vec<u8>,
    /// What servers are told of the client.
    forwarding: Option<Arc<Forwarding>>,
    /// Its memory, in the account of all that is held.
    counted: Counted,
}

/// The places of a thread that wait for a request. Law: a thread keeps at most as many as it has had requests
/// in flight at once in this period or the last one, and [`PLACES_MIN`].
#[derive(Debug)]
struct Places {
    #[expect(clippy::vec_box, reason = "the boxes move between here and the requests")]
    free: Vec<Box<Place>>,
    in_flight: usize,
    /// The most that were, in this period and in the last one.
    most: [usize; 2],
    /// Requests that were begun in this period.
    begun: u32,
}

thread_local! {
    static PLACES: RefCell<Places> = const {
        RefCell::new(Places { free: Vec::new(), in_flight: 0, most: [0; 2], begun: 0 })
    };
}

impl Places {
    fn take(&mut self) -> Option<Box<Place>> {
        self.begin();
        self.begun += 1;
        if self.begun == PERIOD {
            self.begun = 0;
            self.most = [self.in_flight, self.most[0]];
        }
        self.free.pop()
    }

    fn begin(&mut self) {
        self.in_flight += 1;
        self.most[0] = self.most[0].max(self.in_flight);
    }

    fn give(&mut self, place: Box<Place>) {
        // One that another thread began and that was lost on its way was not counted here.
        self.in_flight = self.in_flight.saturating_sub(1);
        let most = self.most[0].max(self.most[1]).max(PLACES_MIN);
        if self.free.len() < most {
            self.free.push(place);
        } else if self.free.len() > most {
            self.free.pop();
        }
    }
}

impl HttpRequest {
    /// Reads the head that was found, which is all of `bytes`.
    ///
    /// # Errors
    /// When it breaks a rule or passes a limit.
    #[inline]
    pub fn read(bytes: &[u8], found: &Found, limits: &Limits) -> Result<Self, Refusal> {
        let place = PLACES.with_borrow_mut(Places::take).unwrap_or_default();
        let mut read = Self(Some(place));
        read.head_mut().read(bytes, found, limits)?;
        Ok(read)
    }

    fn place(&self) -> &Place {
        self.0.as_ref().expect("a request has its place to its end")
    }

    fn place_mut(&mut self) -> &mut Place {
        self.0.as_mut().expect("a request has its place to its end")
    }

    #[inline]
    pub fn head(&self) -> &RequestHead {
        &self.place().head
    }

    #[inline]
    pub fn head_mut(&mut self) -> &mut RequestHead {
        &mut self.place_mut().head
    }

    /// Its form, once all of it is there.
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

    /// Its route asks for another target, unless this is empty; `target` is then other memory to write to.
    pub fn set_target(&mut self, target: &mut Vec<u8>) {
        let place = self.place_mut();
        place.target.clear();
        if !target.is_empty() {
            std::mem::swap(&mut place.target, target);
        }
    }

    /// The path and the query as they go on.
    pub fn target(&self) -> &[u8] {
        let Place { head, target, .. } = self.place();
        if target.is_empty() { head.path_and_query() } else { target }
    }

    /// The same, apart.
    pub fn target_parts(&self) -> (&[u8], Option<&[u8]>) {
        let target = self.target();
        match target.iter().position(|byte| *byte == b'?') {
            Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
            None => (target, None),
        }
    }

    /// The path as a server is asked for it.
    pub fn path(&self) -> Cow<'_, [u8]> {
        match self.target_parts().0 {
            path @ ([b'/', ..] | b"*") => Cow::Borrowed(path),
            path => Cow::Owned([b"/", path].concat()),
        }
    }

    /// The value of a field that is not in the head, but is written with it for a server.
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

    /// The JSON object that a program is asked with.
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

    /// It goes on from here, and its memory counts. Servers are told of its client by these rules.
    pub fn submitted(mut self, forwarding: &Arc<Forwarding>) -> Self {
        let bytes = self.held();
        let place = self.place_mut();
        place.counted = Counted::new(bytes);
        place.forwarding = Some(Arc::clone(forwarding));
        self
    }

    /// Appends the head as it goes to a server for this client.
    pub fn write(&self, peer: Peer, out: &mut Vec<u8>) {
        let Place { head, target, forwarding, .. } = self.place();
        let Some(forwarding) = forwarding else { return };
        // Whom its client is believed was decided when its claims were removed.
        let from = forwarding.of(peer, head.version, false);
        let target = Some(&target[..]).filter(|target| !target.is_empty());
        head.encode(target, forwarding.host.as_bytes(), &from, out);
    }

    /// It goes to another thread.
    pub fn leave(&self) {
        PLACES.with_borrow_mut(|places| places.in_flight = places.in_flight.saturating_sub(1));
    }

    /// It has come from another thread.
    pub fn arrive(&self) {
        PLACES.with_borrow_mut(Places::begin);
    }

    /// Bytes of memory that it holds: all that was allocated, used or not.
    pub fn held(&self) -> usize {
        let Place { head, target, .. } = self.place();
        size_of::<Place>() + head.held() + target.capacity()
    }

    /// Gives back memory that the head of another request has left here, if that is most of it: what
    /// a queue holds is what it counts, and should be what its requests need.
    pub fn compact(mut self) -> Self {
        let place = self.place_mut();
        if place.head.shrink() | shrink(&mut place.target) {
            let bytes = self.held();
            self.place_mut().counted = Counted::new(bytes);
        }
        self
    }
}

/// Bytes of memory that may be left unused.
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
        // Each field is named, so that one which is added is not forgotten.
        let Place { head, target, forwarding, counted } = &mut *place;
        head.clear();
        target.clear();
        target.shrink_to(UNUSED_MAX);
        *forwarding = None;
        *counted = Counted::default();
        // A thread that is ending keeps none.
        let _ = PLACES.try_with(|places| places.borrow_mut().give(place));
    }
}

impl Clone for HttpRequest {
    /// A copy as another worker is to see it, in a place of its own.
    fn clone(&self) -> Self {
        let Place { head, target, forwarding, .. } = self.place();
        let mut place = PLACES.with_borrow_mut(Places::take).unwrap_or_default();
        place.head = head.clone();
        place.target.extend_from_slice(target);
        place.forwarding.clone_from(forwarding);
        let mut copy = Self(Some(place));
        let bytes = copy.held();
        copy.place_mut().counted = Counted::new(bytes);
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

    fn free() -> usize {
        PLACES.with_borrow(|places| places.free.len())
    }

    #[test]
    fn a_thread_keeps_places_for_as_many_as_were_in_flight() {
        let many = 10 * PLACES_MIN;
        let some = |count| (0..count).map(|_| read("GET / HTTP/1.0\r\n\r\n")).collect::<Vec<_>>();
        drop(some(many));
        assert_eq!(free(), many);
        drop(some(many));
        assert_eq!(free(), many, "the same places again");
        for _ in 0..2 * PERIOD as usize + many {
            drop(some(1));
        }
        assert_eq!(free(), PLACES_MIN, "so many were needed long ago");
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
        assert!(held < size_of::<Place>() + 3 * UNUSED_MAX, "{held}");
    }
}
