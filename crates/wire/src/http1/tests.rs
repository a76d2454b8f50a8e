//! Tests of the state machines against the rules, one test for each rule, for requests and for replies. Then tests of
//! properties that hold for all messages, however their bytes are split.

mod bodies;
mod cut;
mod forwarded;
mod places;
mod replies;
mod requests;

use super::*;

/// Reads a request in the same way as a session.
fn request(bytes: &[u8]) -> Result<(RequestHead, usize), Refusal> {
    request_within(bytes, &Limits::REQUEST)
}

fn request_within(bytes: &[u8], limits: &Limits) -> Result<(RequestHead, usize), Refusal> {
    let found = HeadScan::default().next(bytes, limits)?.expect("the head is whole");
    let mut head = RequestHead::default();
    head.read(&bytes[found.head.clone()], &found, limits)?;
    Ok((head, found.head.end))
}

/// The reason for which a request is rejected, in its head or in its body.
fn refused(bytes: &[u8]) -> Refusal {
    match request(bytes) {
        Err(refusal) => refusal,
        Ok((head, end)) => body_refused(&mut Body::new(head.body, &Limits::REQUEST), &bytes[end..]),
    }
}

fn body_refused(body: &mut Body, mut bytes: &[u8]) -> Refusal {
    loop {
        match body.run(bytes, &Limits::REQUEST) {
            Err(refusal) => return refusal,
            Ok(run) if run == Run::default() => return body.end().unwrap_err(),
            Ok(run) => bytes = &bytes[run.pass + run.drop..],
        }
    }
}

const GET: RequestInfo = RequestInfo { method: Method::Get, upgrades: Upgrades::NONE };

/// The protocols that a server may switch to for a request with this protocol.
fn switching(protocol: &str) -> Upgrades {
    let text = format!("GET / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: {protocol}\n\n");
    request(&wire(&text)).unwrap().0.switches_to()
}

fn reply(bytes: &[u8], asked: RequestInfo) -> Result<(ReplyHead, usize), Refusal> {
    let limits = Limits::REPLY;
    let found = HeadScan::default().next(bytes, &limits)?.expect("the head is whole");
    let mut head = ReplyHead::default();
    head.read(&bytes[found.head.clone()], &found, asked, &limits)?;
    Ok((head, found.head.end))
}

fn reply_refused(bytes: &[u8]) -> Refusal {
    match reply(bytes, GET) {
        Err(refusal) => refusal,
        Ok((head, end)) => body_refused(&mut Body::new(head.body, &Limits::REPLY), &bytes[end..]),
    }
}

/// The lines as written in the source, with CR LF.
fn wire(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

#[test]
fn every_reason_has_a_word_a_status_and_a_rule_of_its_own_kind() {
    let mut words: Vec<&str> = Refusal::ALL.iter().map(|one| one.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Refusal::ALL.len());
    for refusal in Refusal::ALL {
        assert!((400..506).contains(&refusal.status()), "{refusal:?}");
        assert!(!reason(refusal.status()).is_empty(), "{refusal:?}");
        assert!((1..=22).contains(&refusal.rule().0), "{refusal:?}");
        assert!(refusal.message().ends_with('.'));
    }
}

#[test]
fn the_page_names_every_reason() {
    let page = include_str!("../../../../docs/http1.md");
    for refusal in Refusal::ALL {
        let (word, rule) = (refusal.as_str(), refusal.rule().0);
        let row = format!("| `{word}` | {} | {rule} | {} |", refusal.status(), refusal.message());
        assert!(page.contains(&row), "docs/http1.md lacks: {row}");
    }
}
