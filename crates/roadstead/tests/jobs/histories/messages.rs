//! Clients of message protocols with programs that clients share.

use super::{Clean, Stage, rounds};
use crate::daemon::{Daemon, folder};
use crate::framings::serve;

/// A client protocol, and the messages of dirty and clean clients.
struct Case {
    protocol: &'static str,
    scripts: &'static [&'static [u8]],
    clean: &'static [&'static [u8]],
    is_whole: fn(&[u8], &[u8]) -> bool,
}

/// Returns whether the reply is the request.
fn is_echo(request: &[u8], reply: &[u8]) -> bool {
    reply.len() >= request.len()
}

fn is_line(_: &[u8], reply: &[u8]) -> bool {
    reply.ends_with(b"\n")
}

/// Returns whether the reply is a head with a length, and this number of bytes.
fn is_counted(_: &[u8], reply: &[u8]) -> bool {
    let text = String::from_utf8_lossy(reply);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.strip_prefix("Content-Length: ").expect("a length");
    body.len() >= length.parse().expect("a number")
}

const TEXTS: &[Case] = &[
    Case {
        protocol: "lines",
        scripts: &[b"dirty\n", b"dirty\r\n", b"\n", b"\r\n", b"no end", b"a\0b\n", &[b'x'; 5000]],
        clean: &[b"clean\n", b"a clean line of several words\n", b"\n"],
        is_whole: is_echo,
    },
    Case {
        protocol: "nul",
        scripts: &[b"dirty\0", b"\0", b"no end", b"dirt\ry\0", &[b'x'; 5000]],
        clean: &[b"clean\0", b"a clean text\0", b"\0"],
        is_whole: is_echo,
    },
    Case {
        protocol: "len1",
        scripts: &[b"\x05dirty", b"\0", b"\xffdirty", b"\x01", b"\x05dirt\xff"],
        clean: &[b"\x05clean", b"\x0ca clean text", b"\0"],
        is_whole: is_echo,
    },
    Case {
        protocol: "len2",
        scripts: &[b"\0\x05dirty", b"\0\0", b"\0\x80dirty", b"\0", b"\xff\xffdirty"],
        clean: &[b"\0\x05clean", b"\0\x0ca clean text", b"\0\0"],
        is_whole: is_echo,
    },
    Case {
        protocol: "len4",
        scripts: &[
            b"\0\0\0\x05dirty",
            b"\0\0\0\0",
            b"\0\0\x10\0dirty",
            b"\0\0",
            b"\xff\xff\xff\xffx",
        ],
        clean: &[b"\0\0\0\x05clean", b"\0\0\0\x0ca clean text", b"\0\0\0\0"],
        is_whole: is_echo,
    },
    Case {
        protocol: "netstring",
        scripts: &[b"5:dirty,", b"0:,", b"9:dirty", b"5", b"05:dirty,", b"5:dirty;", b"nonsense"],
        clean: &[b"5:clean,", b"12:a clean text,", b"0:,"],
        is_whole: is_echo,
    },
];

const MESSAGES: &[Case] = &[
    Case {
        protocol: "jsonrpc",
        scripts: &[
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"who\":\"dirty\"}}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"one\",\"method\":\"m\",\"params\":[1]}\n",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
            b"nonsense\n",
            b"{\"id\":{}}\n",
            b"\n",
        ],
        clean: &[
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"who\":\"clean\"}}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"one\",\"method\":\"m\"}\n",
        ],
        is_whole: is_line,
    },
    Case {
        protocol: "content-length",
        scripts: &[
            b"Content-Length: 41\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"dirty\"}",
            b"Content-Length: 34\r\nX: y\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"dirty\"}",
            b"Content-Length: 8\r\n\r\nnonsense",
            b"Content-Length: 400\r\n\r\n{\"jsonrpc\":\"2.0\"",
            b"Content-Length: x\r\n\r\n",
            b"\r\n",
        ],
        clean: &[
            b"Content-Length: 41\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"clean\"}",
            b"Content-Length: 45\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":\"one\",\"method\":\"clean\"}",
        ],
        is_whole: is_counted,
    },
];

/// Answers every request with its method and parameters, and nothing else.
const PROGRAM: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and "method" in asked:
        result = [asked["method"], asked.get("params")]
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

fn play(case: &Case, program: &[&str], pool: &str, count: usize) {
    let scripts: Vec<Vec<u8>> = case.scripts.iter().map(|it| it.to_vec()).collect();
    let clean = case.clean.iter().map(|it| Clean { bytes: it.to_vec(), is_split: true });
    let clean: Vec<Clean> = clean.collect();
    let stage = |daemon: &Daemon| Stage {
        address: daemon.address().to_owned(),
        scripts: &scripts,
        clean: &clean,
        received: &Vec::new,
        is_whole: case.is_whole,
    };
    let (one, other) = (folder(), folder());
    // Replies are the bytes of the program.
    let protocol = format!("{}\"\nreply = \"plain", case.protocol);
    let fresh = serve(one.path(), &protocol, program, pool);
    let reference = stage(&fresh).reference();
    let dirty = serve(other.path(), &protocol, program, pool);
    if let Err(what) = stage(&dirty).play(count, &reference) {
        panic!("{}: {what}", case.protocol);
    }
}

#[test]
fn no_history_of_messages_changes_the_bytes_of_another_client() {
    for case in TEXTS {
        play(case, &["cat"], "workers = 2", rounds(100));
    }
}

#[test]
fn no_history_of_calls_changes_the_bytes_of_another_client() {
    for case in MESSAGES {
        let pool = "framing = \"jsonrpc\"\ndispatch = \"tagged\"\nworkers = 1";
        play(case, &["python3", "-c", PROGRAM], pool, rounds(200));
    }
}
