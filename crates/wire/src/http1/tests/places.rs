//! Reused heads: no content of a head may appear in the next one.

use super::*;

const REQUESTS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://h:1/p?q HTTP/1.0\r\nConnection: keep-alive, x\r\nX: 1\r\n\r\n",
    b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"POST /up HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"PUT /longer/path HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: \r\n\r\n",
];

const REPLIES: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.0 404 Nowhere to be found\r\nConnection: keep-alive\r\nX: 1\r\nY: 2\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"HTTP/1.1 204 \r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    b"HTTP/1.1 103 Hints\r\nConnection: close\r\n\r\n",
];

fn found(bytes: &[u8], limits: &Limits) -> Found {
    HeadScan::default().next(bytes, limits).unwrap().unwrap()
}

#[test]
fn a_place_shows_nothing_of_the_head_that_it_had_before() {
    let limits = Limits::REQUEST;
    for (first, second) in
        REQUESTS.iter().flat_map(|one| REQUESTS.iter().map(move |two| (one, two)))
    {
        for clears in [true, false] {
            let (mut place, mut fresh) = (RequestHead::default(), RequestHead::default());
            if place.read(first, &found(first, &limits), &limits).is_ok() {
                place.store_host();
            }
            if clears {
                place.clear();
            }
            let read = place.read(second, &found(second, &limits), &limits);
            assert_eq!(read, fresh.read(second, &found(second, &limits), &limits));
            if read.is_ok() {
                assert_eq!(format!("{place:?}"), format!("{fresh:?}"));
                place.fields.check();
            }
        }
    }
}

#[test]
fn nor_of_the_reply() {
    let limits = Limits::REPLY;
    let asked = RequestInfo { method: Method::Get, upgrades: switching("websocket") };
    for (first, second) in REPLIES.iter().flat_map(|one| REPLIES.iter().map(move |two| (one, two)))
    {
        for clears in [true, false] {
            let (mut place, mut fresh) = (ReplyHead::default(), ReplyHead::default());
            let _ = place.read(first, &found(first, &limits), asked, &limits);
            if clears {
                place.clear();
            }
            let read = place.read(second, &found(second, &limits), asked, &limits);
            assert_eq!(read, fresh.read(second, &found(second, &limits), asked, &limits));
            if read.is_ok() {
                assert_eq!(format!("{place:?}"), format!("{fresh:?}"));
                place.fields.check();
            }
        }
    }
}

#[test]
fn a_place_keeps_little_memory() {
    let limits = Limits::REQUEST;
    let long =
        [b"GET /", &[b'x'; 8000][..], b" HTTP/1.1\r\nHost: a\r\nX: ", &[b'y'; 8000], b"\r\n\r\n"];
    let (long, short) = (long.concat(), REQUESTS[0]);
    let mut place = RequestHead::default();
    for bytes in [&long[..], short] {
        place.read(bytes, &found(bytes, &limits), &limits).unwrap();
        place.clear();
    }
    assert!(place.fields.bytes_held() <= 4096 + 128 * 16, "{}", place.fields.bytes_held());
    assert!(place.line.capacity() <= 4096);
}
