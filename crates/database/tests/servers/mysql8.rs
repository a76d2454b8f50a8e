//! Password authentication of MySQL 8, which MariaDB does not have: `caching_sha2_password`. The server is a script,
//! because Debian has no MySQL. Its messages follow the protocol manual of MySQL.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use database::{Action, DatabaseError, Host, Job, Query, Secret, Server as To, Tls};

use crate::place::options_of;
use crate::server::Kind;

/// Twenty random bytes, the same each time.
const NONCE: [u8; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)) NONCE), for `hunter2`.
const PROOF: &str = "04917479a40a673ae2388df86966d1b73768b4452df9a624881d93be865dc44c";

const MORE: u8 = 1;
const KNOWN: u8 = 3;
const ALL_OF_IT: u8 = 4;
const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
const QUERY: u8 = 3;

/// The server's side of one connection.
struct Script {
    stream: TcpStream,
    number: u8,
}

impl Script {
    fn say(&mut self, packet: &[u8]) {
        let length = u32::try_from(packet.len()).unwrap().to_le_bytes();
        let head = [length[0], length[1], length[2], self.number];
        self.stream.write_all(&[&head, packet].concat()).unwrap();
        self.number = self.number.wrapping_add(1);
    }

    fn hear(&mut self) -> Vec<u8> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).unwrap();
        let mut packet = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8];
        self.stream.read_exact(&mut packet).unwrap();
        self.number = head[3].wrapping_add(1);
        packet
    }

    /// Sends the greeting, and returns the client's proof of its password.
    fn greet(&mut self) -> Vec<u8> {
        // Protocol 4.1, a database at login, transactions, several results, plugins.
        let able = 0x000f_a20f_u32.to_le_bytes();
        let mut hello = b"\x0a8.0.36\0\x07\0\0\0".to_vec();
        hello.extend_from_slice(&NONCE[..8]);
        hello.extend_from_slice(&[0, able[0], able[1], 45, 2, 0, able[2], able[3], 21]);
        hello.extend_from_slice(&[0; 10]);
        hello.extend_from_slice(&NONCE[8..]);
        hello.extend_from_slice(b"\0caching_sha2_password\0");
        self.say(&hello);
        let answer = self.hear();
        assert!(answer.windows(7).all(|it| it != b"hunter2"), "no password in the clear");
        let user = &answer[32..];
        assert!(user.starts_with(b"me\0"), "{user:?}");
        let proof = &user[4..][..usize::from(user[3])];
        proof.to_vec()
    }
}

/// Serves one connection with `script`. Returns the result of the client and that of the script.
fn served<T: Send + 'static>(
    script: impl FnOnce(&mut Script) -> T + Send + 'static,
) -> (Result<(), DatabaseError>, T) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server: JoinHandle<T> = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        script(&mut Script { stream, number: 0 })
    });
    let to = To {
        host: Host::Internet("127.0.0.1".to_owned(), port),
        user: "me".to_owned(),
        password: Some(Secret::new("hunter2".to_owned())),
        database: "test".to_owned(),
        tls: Tls::Off,
        connect_timeout: Duration::from_secs(20),
    };
    let job = Job::new(Action::Query(Query::new("select 1 as one")));
    let came = options_of(Kind::Mariadb, to, job).unwrap().check();
    (came, server.join().unwrap())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn who_is_known_is_let_in_by_the_proof() {
    let (came, (proof, first)) = served(|script| {
        let proof = script.greet();
        script.say(&[MORE, KNOWN]);
        script.say(&OK);
        (proof, script.hear())
    });
    assert_eq!(hexadecimal(&proof), PROOF);
    assert_eq!(first[0], QUERY, "it is in, and goes on");
    // The script ends there, as a server that stops does.
    assert!(matches!(came, Err(DatabaseError::Unreachable(..))), "{came:?}");
}

#[test]
fn who_is_not_known_yet_sends_the_password_for_the_server_alone_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    let openssl = |arguments: &[&str]| {
        let out = Command::new("openssl").args(arguments).arg(&key).output();
        let out = out.expect("this test needs openssl: apt-get install openssl");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    };
    openssl(&[
        "genpkey",
        "-quiet",
        "-algorithm",
        "RSA",
        "-pkeyopt",
        "rsa_keygen_bits:2048",
        "-out",
    ]);
    let public = openssl(&["pkey", "-pubout", "-in"]);
    let (_, (asked, sent, first)) = served(move |script| {
        script.greet();
        script.say(&[MORE, ALL_OF_IT]);
        let asked = script.hear();
        script.say(&[&[MORE], &public[..]].concat());
        let sent = script.hear();
        script.say(&OK);
        (asked, sent, script.hear())
    });
    assert_eq!(asked, [2], "it asks for the server's key and sends nothing else");
    let mut decrypt = Command::new("openssl")
        .args(["pkeyutl", "-decrypt", "-pkeyopt", "rsa_padding_mode:oaep", "-inkey"])
        .arg(&key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    decrypt.stdin.take().unwrap().write_all(&sent).unwrap();
    let hidden = decrypt.wait_with_output().unwrap().stdout;
    let said: Vec<u8> = hidden.iter().zip(NONCE).map(|(byte, chance)| byte ^ chance).collect();
    assert_eq!(String::from_utf8_lossy(&said), "hunter2\0");
    assert_eq!(first[0], QUERY, "it is in, and goes on");
}

#[test]
fn who_is_denied_hears_why() {
    let (came, ()) = served(|script| {
        script.greet();
        script.say(b"\xff\x15\x04#28000Access denied for user 'me'");
    });
    match came {
        Err(DatabaseError::Denied(_, why)) => assert!(why.contains("Access denied"), "{why}"),
        other => panic!("{other:?}"),
    }
}
