use super::super::Added;
use super::*;

fn request(text: &str, body: &[u8]) -> String {
    let limits = Limits::REQUEST;
    let found = HeadScan::default().next(text.as_bytes(), &limits).unwrap().unwrap();
    let mut head = RequestHead::default();
    head.read(text.as_bytes(), &found, &limits).unwrap();
    let mut out = Vec::new();
    open(&head, head.path_and_query(), Some("::ffff:10.0.0.1".parse().unwrap()), &mut out);
    close(body, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_request_is_one_line_of_json() {
    assert_eq!(
        request(
            "GET /a%20b?x=1&y=\"2\" HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nCookie: a=1\r\nx-a: \"2\r\nCookie: b\r\n\r\n",
            b""
        ),
        r#"{"method":"GET","path":"/a%20b","query":"x=1&y=\"2\"","client":"10.0.0.1","headers":{"host":"h","x-a":"1, \"2","cookie":"a=1; b"},"body":""}"#
    );
    let put = |body: &[u8]| {
        let said = request("PUT / HTTP/1.1\r\nHost: h\r\nX: \u{ff}\r\n\r\n", body);
        assert!(!said.contains(['\n', '\0']), "{said}");
        said.split_once(r#""body":"#).unwrap().1.to_owned()
    };
    assert_eq!(put("ä\n\0".as_bytes()), r#""ä\n\u0000"}"#);
    assert_eq!(put(b"\xff\x00"), r#""/wA=","base64":true}"#);
}

#[test]
fn a_text_becomes_a_reply() {
    let (mut head, body) = plain(&Slice::from("abc"), Method::Get).unwrap();
    let sending = head.prepare(super::super::Version::Http11);
    let mut out = Vec::new();
    head.encode(sending, super::super::Version::Http11, true, Added::default(), &mut out);
    let expected =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n\r\n";
    assert_eq!((&out[..], &body[..]), (expected.as_bytes(), &b"abc"[..]));
    assert!(plain(&Slice::from("abc"), Method::Head).unwrap().1.is_empty());
}

fn answered(answer: &str, method: Method) -> Result<String, &'static str> {
    let (mut head, body) = read(answer.as_bytes(), method).map_err(Refusal::as_str)?;
    let sending = head.prepare(super::super::Version::Http11);
    let mut out = Vec::new();
    head.encode(sending, super::super::Version::Http11, true, Added::default(), &mut out);
    out.extend_from_slice(&body);
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn an_answer_becomes_a_reply() {
    let get = |answer| answered(answer, Method::Get).unwrap();
    assert_eq!(get("{}"), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(
        get(r#" {"status":404,"body":"\u00e4\ud83d\ude00"}"#),
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 6\r\n\r\nä😀"
    );
    assert_eq!(
        get(r#"{"headers":{"content-type":"a/b","X":7,"Set-Cookie":["a=1","b=2"]},"body":"x"}"#),
        "HTTP/1.1 200 OK\r\ncontent-type: a/b\r\nX: 7\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\
         Content-Length: 1\r\n\r\nx"
    );
    assert_eq!(
        get(r#"{"body":"YWI=","base64":true}"#),
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 2\r\n\r\nab"
    );
    assert_eq!(get(r#"{"status":204}"#), "HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(get(r#"{"status":205}"#), "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n");
    let head = answered(r#"{"body":"abc"}"#, Method::Head).unwrap();
    assert!(head.ends_with("Content-Length: 3\r\n\r\n"), "{head}");
}

#[test]
fn what_a_program_must_not_say_has_a_reason() {
    for (answer, reason) in [
        ("{", "answer"),
        ("{} {}", "answer"),
        (r#"{"status":200,"status":404}"#, "answer"),
        (r#"{"statu":200}"#, "answer"),
        (r#"{"body":7}"#, "answer"),
        (r#"{"body":null}"#, "answer"),
        (r#"{"body":"*","base64":true}"#, "answer"),
        (r#"{"body":"a","base64":1}"#, "answer"),
        (r#"{"status":204,"body":"a"}"#, "answer"),
        (r#"{"status":205,"body":"a"}"#, "answer"),
        (r#"{"status":304,"body":"a"}"#, "answer"),
        (r#"{"headers":["a"]}"#, "answer"),
        (r#"{"headers":{"a":null}}"#, "answer"),
        (r#"{"headers":{"a":{}}}"#, "answer"),
        (r#"{"headers":{"a":[["b"]]}}"#, "answer"),
        (r#"{"headers":{"a":"1","A":"2"}}"#, "answer"),
        (r#"{"status":199}"#, "answer-status"),
        (r#"{"status":101}"#, "answer-status"),
        (r#"{"status":600}"#, "answer-status"),
        (r#"{"status":"200"}"#, "answer-status"),
        (r#"{"status":200.5}"#, "answer-status"),
        (r#"{"status":-1}"#, "answer-status"),
        (r#"{"headers":{"Content-Length":"1"}}"#, "answer-field"),
        (r#"{"headers":{"transfer-encoding":"chunked"}}"#, "answer-field"),
        (r#"{"headers":{"Connection":"close"}}"#, "answer-field"),
        (r#"{"headers":{"upgrade":"x"}}"#, "answer-field"),
        (r#"{"headers":{"":"1"}}"#, "field-name"),
        (r#"{"headers":{"a b":"1"}}"#, "field-name"),
        (r#"{"headers":{"a:":"1"}}"#, "field-name"),
        (r#"{"headers":{"a\r\nb":"1"}}"#, "field-name"),
        (r#"{"headers":{"a":"1\r\nSet-Cookie: b"}}"#, "control"),
        (r#"{"headers":{"a":["1","2\n"]}}"#, "control"),
        (r#"{"headers":{"a":"\u0000"}}"#, "control"),
    ] {
        assert_eq!(answered(answer, Method::Get), Err(reason), "{answer}");
    }
    let many: Vec<String> = (0..101).map(|it| format!("\"a{it}\":1")).collect();
    let many = format!("{{\"headers\":{{{}}}}}", many.join(","));
    assert_eq!(answered(&many, Method::Get), Err("too-many-fields"));
    let long = format!("{{\"headers\":{{\"a\":\"{}\"}}}}", "x".repeat(40 << 10));
    assert!(answered(&long, Method::Get).is_err());
}
