//! Connections and logins: encryption, passwords of each kind, Unix sockets.

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use database::{Action, Database, DatabaseError, Host, Job, Query, Secret, Server as To, Tls};
use exchange::{Factory, Stop};

use crate::certificates::Certificates;
use crate::place::{batch, options_of, serve, serve_until};
use crate::server::{Kind, Server};

/// A server with certificates and with users who log in by different methods.
struct Guarded {
    server: Server,
    certificates: Certificates,
}

/// The login method of each user: `scram` and `md5` with a password of that kind, `plain` with a plain-text password,
/// `tls` and `scram_tls` only over TLS.
const ACCESS: &str = "local all all trust\n\
    hostssl all scram_tls 127.0.0.1/32 scram-sha-256\nhostssl all tls 127.0.0.1/32 trust\n\
    host all scram 127.0.0.1/32 scram-sha-256\nhost all md5 127.0.0.1/32 md5\n\
    host all plain 127.0.0.1/32 password\nhost all roadstead 127.0.0.1/32 trust\n";

fn guarded(kind: Kind) -> &'static Guarded {
    static POSTGRES: OnceLock<Guarded> = OnceLock::new();
    static MARIADB: OnceLock<Guarded> = OnceLock::new();
    let one = if kind == Kind::Postgres { &POSTGRES } else { &MARIADB };
    one.get_or_init(|| guard(kind))
}

fn guard(kind: Kind) -> Guarded {
    let certificates = Certificates::make("IP:127.0.0.1");
    let mut server = Server::prepare_forever(kind);
    let certificate = server.give("server.pem", &certificates.server());
    let key = server.give("server.key", &certificates.server_key());
    let (certificate, key) = (certificate.display(), key.display());
    match kind {
        Kind::Postgres => {
            server.give("data/pg_hba.conf", ACCESS.as_bytes());
            server.set(&[
                "ssl=on",
                &format!("ssl_cert_file={certificate}"),
                &format!("ssl_key_file={key}"),
                &format!("unix_socket_directories={}", server.folder().display()),
            ]);
            server.restart();
            for (user, encryption) in [
                ("scram", "scram-sha-256"),
                ("scram_tls", "scram-sha-256"),
                ("md5", "md5"),
                ("plain", "md5"),
            ] {
                let make = format!(
                    "set password_encryption = '{encryption}'; \
                     create role {user} login password 'hunter2'"
                );
                server.run("postgres", &make);
            }
            server.run("postgres", "create role tls login");
        }
        Kind::Mariadb => {
            server.set(&[&format!("ssl-cert={certificate}"), &format!("ssl-key={key}")]);
            server.restart();
            for user in [
                "native identified via mysql_native_password using password('hunter2')",
                "native_tls identified by 'hunter2' require ssl",
                "tls require ssl",
            ] {
                server.run("mysql", &format!("create user {user}"));
            }
            for user in ["native", "native_tls", "tls"] {
                server.run("mysql", &format!("grant all on test.* to {user}"));
            }
        }
    }
    server.database("test");
    Guarded { server, certificates }
}

impl Guarded {
    fn to(&self, user: &str, password: Option<&str>, tls: Tls) -> To {
        To {
            host: Host::Internet("127.0.0.1".to_owned(), self.server.port),
            user: user.to_owned(),
            password: password.map(|it| Secret::new(it.to_owned())),
            database: "test".to_owned(),
            tls,
            connect_timeout: Duration::from_secs(10),
        }
    }

    fn tls(&self) -> Tls {
        Tls::On(Some(self.certificates.authority()))
    }

    /// Returns a query, with this login, that reports whether its own connection is encrypted.
    fn query(&self, to: To) -> Database {
        let sql = match self.server.kind {
            Kind::Postgres => {
                "select ssl::int as tls from pg_stat_ssl where pid = pg_backend_pid()"
            }
            Kind::Mariadb => {
                "select variable_value <> '' as tls from information_schema.session_status \
                 where variable_name = 'Ssl_cipher'"
            }
        };
        self.with(to, sql)
    }

    fn with(&self, to: To, sql: &str) -> Database {
        let job = Job::new(Action::Query(Query::new(sql)));
        options_of(self.server.kind, to, job).unwrap()
    }

    /// Whether the connection is encrypted. The login must succeed.
    fn is_encrypted(&self, to: To) -> bool {
        let mut handler = self.query(to).open().unwrap_or_else(|error| panic!("{error}"));
        serve(&mut handler, ["{}"]) == [r#"[{"tls":1}]"#]
    }

    /// Returns the reason why the login is denied.
    fn denied(&self, to: To) -> String {
        match self.query(to).check() {
            Err(DatabaseError::Denied(_, why)) => why.to_string(),
            other => panic!("{other:?}"),
        }
    }
}

const RIGHT: Option<&str> = Some("hunter2");

#[test]
fn postgres_takes_passwords_of_each_kind() {
    let it = guarded(Kind::Postgres);
    for user in ["scram", "md5", "plain"] {
        assert!(!it.is_encrypted(it.to(user, RIGHT, Tls::Off)), "{user}");
        assert!(it.is_encrypted(it.to(user, RIGHT, it.tls())), "{user}");
        let why = it.denied(it.to(user, Some("wrong"), Tls::Off));
        assert!(why.contains("password authentication failed"), "{user}: {why}");
        assert!(!why.contains("hunter2") && !why.contains("wrong"), "{why}");
        let why = it.denied(it.to(user, None, Tls::Off));
        assert!(why.contains("password"), "{user}: {why}");
    }
}

#[test]
fn mariadb_takes_a_password() {
    let it = guarded(Kind::Mariadb);
    assert!(!it.is_encrypted(it.to("native", RIGHT, Tls::Off)));
    for password in [Some("wrong"), None] {
        let why = it.denied(it.to("native", password, Tls::Off));
        assert!(why.contains("Access denied"), "{why}");
    }
}

#[test]
fn whoever_must_come_encrypted_is_let_in_only_so() {
    for (kind, users) in [
        (Kind::Postgres, [("tls", None), ("scram_tls", RIGHT)]),
        (Kind::Mariadb, [("tls", None), ("native_tls", RIGHT)]),
    ] {
        let it = guarded(kind);
        for (user, password) in users {
            assert!(it.is_encrypted(it.to(user, password, it.tls())), "{kind:?} {user}");
            it.denied(it.to(user, password, Tls::Off));
        }
    }
}

#[test]
fn a_server_that_cannot_prove_who_it_is_gets_no_password() {
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let it = guarded(kind);
        let user = if kind == Kind::Postgres { "scram" } else { "native" };
        // Another authority, those of the system, and a name that the certificate does not have.
        let stranger = Certificates::make("IP:127.0.0.1");
        for tls in [Tls::On(Some(stranger.authority())), Tls::On(None)] {
            let why = it.denied(it.to(user, RIGHT, tls));
            assert!(why.contains("certificate"), "{kind:?}: {why}");
        }
        let port = it.server.port;
        let host = Host::Internet("localhost".to_owned(), port);
        let why = it.denied(To { host, ..it.to(user, RIGHT, it.tls()) });
        assert!(why.contains("certificate"), "{kind:?}: {why}");
        let nothing = tempfile::NamedTempFile::new().unwrap();
        let why = it.denied(it.to(user, RIGHT, Tls::On(Some(nothing.path().to_owned()))));
        assert!(why.contains("no certificates"), "{kind:?}: {why}");
    }
}

#[test]
fn a_server_without_tls_is_not_spoken_to_in_the_clear_instead() {
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let plain = Server::start(kind, &[]);
        plain.database("test");
        let it = guarded(kind);
        let user = if kind == Kind::Postgres { "roadstead" } else { "root" };
        let host = Host::Internet("127.0.0.1".to_owned(), plain.port);
        let why = it.denied(To { host, ..it.to(user, None, it.tls()) });
        assert!(why.contains("TLS") || why.contains("SSL"), "{kind:?}: {why}");
    }
}

#[test]
fn a_query_over_tls_can_be_stopped() {
    for (kind, sql) in [
        (Kind::Postgres, "select pg_sleep(3600)::text as never"),
        (Kind::Mariadb, "select sleep(3600) as never"),
    ] {
        let it = guarded(kind);
        let mut handler = it.with(it.to("tls", None, it.tls()), sql).open().unwrap();
        let stop = Stop::default();
        let stopper = thread::spawn({
            let stop = stop.clone();
            move || stop.request()
        });
        let answers = serve_until(handler.as_mut(), &batch(["{}"]), &stop);
        stopper.join().unwrap();
        assert!(answers[0].starts_with("!database stopped"), "{answers:?}");
    }
}

#[test]
fn a_socket_in_the_file_system_is_a_way_in() {
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let it = guarded(kind);
        let folder = it.server.folder();
        let (path, user) = match kind {
            Kind::Postgres => (folder.to_owned(), "roadstead"),
            Kind::Mariadb => (folder.join("socket"), "root"),
        };
        let host = Host::Socket(path, it.server.port);
        assert!(!it.is_encrypted(To { host, ..it.to(user, None, Tls::Off) }), "{kind:?}");
    }
}
