//! Requests that contain another one: a length, a coding, a line end or a target can be misinterpreted.

/// Returns the request that must not be seen, of attempt `number`.
pub(super) fn canary(number: usize) -> String {
    format!("GET /{number}/canary HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// The lines that attempts begin with; `@` is the target.
const LINES: [&str; 3] = ["POST @ HTTP/1.1", "GET @ HTTP/1.1", "POST @ HTTP/1.0"];

/// Returns all attempts for request `number`, with the first `lines` of the lines. Each ends with a complete separate
/// request.
pub(super) fn attempts(number: usize, lines: usize) -> Vec<String> {
    let (canary, target) = (canary(number), format!("/{number}/first"));
    let bodies = bodies(&canary);
    let mut all = Vec::new();
    for line in LINES.iter().take(lines) {
        let head = |fields: &str| format!("{line}\r\nHost: a\r\n{fields}\r\n\r\n");
        all.extend(heads(canary.len()).iter().map(|fields| head(fields) + &canary));
        let coded = CODINGS.iter().flat_map(|coding| {
            let head = head(coding);
            bodies.iter().map(move |body| head.clone() + body)
        });
        all.extend(coded);
    }
    all.extend(wholes(&canary));
    all.into_iter().map(|attempt| attempt.replace('@', &target)).collect()
}

/// Fields that say how long a body is, when `length` bytes follow.
fn heads(length: usize) -> Vec<String> {
    vec![
        format!("Content-Length: {length}"),
        format!("Content-Length : {length}"),
        format!("Content-Length: +{length}"),
        format!("Content-Length: -{length}"),
        format!("Content-Length: 0{length}"),
        format!("Content-Length: {length}, {length}"),
        format!("Content-Length: {length}\r\nContent-Length: {length}"),
        format!("Content-Length: {length}\r\nContent-Length: 0"),
        format!("Content-Length: 0\r\nContent-Length: {length}"),
        format!("Content-Length:\u{b}{length}"),
        format!("Content-Length: \u{a0}{length}"),
        format!("Content-Length: {length}_0"),
        format!("Content-Length: {length} 0"),
        format!("Content-Length: {length};0"),
        format!("Content-Length: 0x{length:x}"),
        format!("Content-Length:\r\n {length}"),
        format!("Content-Length: {length}\r\nConnection: close, Content-Length"),
        format!("Content-Length: {length}\r\nConnection: Host"),
        format!("\u{0}Content-Length: {length}"),
        format!("Content-Length\u{0}: {length}"),
        format!("X: y\nContent-Length: {length}"),
        format!("X: y\rContent-Length: {length}"),
        format!("Content_Length: {length}"),
        format!("Content-Length\r\nX: {length}"),
        "Content-Length:".to_owned(),
        "Content-Length: 0".to_owned(),
        "Content-Length: 18446744073709551616".to_owned(),
        "Connection: upgrade\r\nUpgrade: h2c".to_owned(),
        format!("Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: {length}"),
        "Expect: 100-continue\r\nContent-Length: 0".to_owned(),
        format!("Expect: 200-ok\r\nContent-Length: {length}"),
        "Host: b".to_owned(),
        "X: y".to_owned(),
    ]
}

const CODINGS: [&str; 20] = [
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding: chunked,",
    "Transfer-Encoding:\u{b}chunked",
    "Transfer-Encoding: \u{a0}chunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding\u{0}: chunked",
    "Transfer_Encoding: chunked",
    "X: y\nTransfer-Encoding: chunked",
    "X: y\rTransfer-Encoding: chunked",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding",
    "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Content-Length: 5\r\nTransfer-Encoding: chunked",
];

/// Returns the bytes after a head that announces chunks.
fn bodies(canary: &str) -> Vec<String> {
    let length = canary.len();
    vec![
        format!("0\r\n\r\n{canary}"),
        format!("00\r\n\r\n{canary}"),
        format!("0;x\n\r\n\r\n{canary}"),
        format!("0\n\n{canary}"),
        format!("0\r\r\n\r\n{canary}"),
        format!("5\r\nabcde0\r\n\r\n{canary}"),
        format!("5\r\nabcde\n0\r\n\r\n{canary}"),
        format!("{length:x};\r\n{canary}\r\n0\r\n\r\n"),
        format!("{length:x};x=\"\r\n\"\r\n{canary}\r\n0\r\n\r\n"),
        format!("0x0\r\n\r\n{canary}"),
        format!("0 \r\n\r\n{canary}"),
        format!(" 0\r\n\r\n{canary}"),
        format!("+0\r\n\r\n{canary}"),
        format!("\r\n0\r\n\r\n{canary}"),
        format!("10000000000000000\r\n\r\n{canary}"),
        format!("0\r\nContent-Length: 5\r\n\r\n{canary}"),
        format!("0\r\nTransfer-Encoding: chunked\r\n\r\n{canary}"),
        format!("0\r\nX: y\n\r\n{canary}"),
        format!("0\r\n X: y\r\n\r\n{canary}"),
    ]
}

/// Returns heads that are unusual as a whole; `@` is the target.
fn wholes(canary: &str) -> Vec<String> {
    vec![
        format!("GET @ HTTP/1.1\nHost: a\n\n{canary}"),
        format!("GET @\r\n\r\n{canary}"),
        format!("GET @ HTTP/0.9\r\n\r\n{canary}"),
        format!("GET @ HTTP/2.0\r\nHost: a\r\n\r\n{canary}"),
        format!("GET @ HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("GET @\tHTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("GET  @ HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("GET @#x HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("GET @\u{0} HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("GET http://a@ HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("GET http://b@ HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("GET @ HTTP/1.1\r\n\r\n{canary}"),
        format!("GET @ HTTP/1.1\r\n Host: a\r\n\r\n{canary}"),
        format!("GET @ HTTP/1.1\r\nHost: a\r\nX\r\n\r\n{canary}"),
        format!("GET @ HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n{canary}"),
        format!("GET @ HTTP/1.1\r\nHost: a\r\nX: y\r\n\n{canary}"),
        format!("\r\nGET @ HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("\r\n\r\nGET @ HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("HEAD @ HTTP/1.1\r\nHost: a\r\n\r\n{canary}"),
        format!("HEAD @ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde{canary}"),
        format!("DELETE @ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde{canary}"),
    ]
}
