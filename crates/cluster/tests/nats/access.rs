//! Users of the NATS servers that come and go, encrypted connections, and credentials.

use std::path::{Path, PathBuf};

use cluster::{State, TlsFiles};
use nkeys::KeyPair;

use crate::certificates::Certificates;
use crate::daemon::{Daemon, client, config, settings, under_requests, wait_for};
use crate::faults::HEALED;
use crate::nats::Nats;
use crate::{AGREED_SOON, SOON, bind_and_wait, wait_for_agreement, wait_until_same};

/// Two daemons that are in sync.
fn in_sync(daemons: [Daemon; 2]) -> [Daemon; 2] {
    for daemon in &daemons {
        assert!(daemon.cluster.wait_in_sync(SOON * 2), "{:?}", daemon.cluster.status());
    }
    daemons
}

fn trouble(daemon: &Daemon) -> String {
    daemon.cluster.status().trouble.unwrap_or_default()
}

#[test]
fn an_encrypted_connection_needs_certificates_that_both_sides_trust() {
    let Some(mut nats) = Nats::prepare(1) else { return };
    let [site, other] = [(); 2].map(|()| Certificates::make("IP:127.0.0.1"));
    let folder = nats.folder().to_owned();
    let file = |name: &str, bytes: Vec<u8>| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    // The daemons have the certificate of the server.
    let pair = |name: &str, made: &Certificates| {
        let certificate = file(&format!("{name}.pem"), made.server());
        (certificate, file(&format!("{name}.key"), made.server_key()))
    };
    let (pair_of_site, pair_of_other) = (pair("site", &site), pair("other", &other));
    nats.lines = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}\n",
        pair_of_site.0.display(),
        pair_of_site.1.display(),
        site.authority().display(),
    );
    nats.run_all();
    let start = |machine: &str, ca: PathBuf, certificate: Option<&(PathBuf, PathBuf)>| {
        let tls = Some(TlsFiles { ca: Some(ca), certificate: certificate.cloned() });
        let config = cluster::ClusterConfig { tls, ..config(machine, &nats.urls()) };
        Daemon::start_with(config, settings())
    };
    let good = |name| start(name, site.authority(), Some(&pair_of_site));
    let daemons = in_sync(["one", "two"].map(good));
    bind_and_wait(&daemons, 0..10);
    let others = [
        ("another authority of the server", start("a", other.authority(), Some(&pair_of_site))),
        ("another authority of the daemon", start("b", site.authority(), Some(&pair_of_other))),
        ("no certificate", start("c", site.authority(), None)),
        ("no file", start("d", folder.join("missing.pem"), None)),
    ];
    for (why, daemon) in &others {
        wait_for(why, AGREED_SOON, || trouble(daemon).contains("cannot connect"));
        println!("{why}: {}", trouble(daemon));
        assert_eq!(daemon.state(), State::Connecting, "{why}");
        daemon.bind(client(100), 1);
        assert_eq!(daemon.find(client(100)), Some(1));
    }
}

/// Who signs users, and what the servers need to know of it.
struct Site {
    operator: KeyPair,
    account: KeyPair,
    system: KeyPair,
    user: KeyPair,
}

impl Site {
    fn new() -> Self {
        Self {
            operator: KeyPair::new_operator(),
            account: KeyPair::new_account(),
            system: KeyPair::new_account(),
            user: KeyPair::new_user(),
        }
    }

    /// The configuration of a server. Tokens of the user that were issued before `revoked` are not valid.
    fn lines(&self, revoked: u64) -> String {
        let account = |storage: i32| {
            serde_json::json!({
                "type": "account", "version": 2, "default_permissions": { "pub": {}, "sub": {} },
                "limits": {
                    "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
                    "wildcards": true, "conn": -1, "leaf": -1, "streams": storage,
                    "consumer": storage, "mem_storage": storage, "disk_storage": storage,
                },
            })
        };
        let mut claims = account(-1);
        if let Some(last) = revoked.checked_sub(1) {
            claims["revocations"] = serde_json::json!({ self.user.public_key(): last });
        }
        let operator = serde_json::json!({ "type": "operator", "version": 2 });
        format!(
            "operator: {}\nsystem_account: {}\nresolver: MEMORY\n\
             resolver_preload: {{ {}: {}, {}: {} }}\n",
            token(&self.operator, &self.operator, 1, &operator),
            self.system.public_key(),
            self.account.public_key(),
            token(&self.operator, &self.account, 1, &claims),
            self.system.public_key(),
            token(&self.operator, &self.system, 1, &account(0)),
        )
    }

    /// Writes the file of the user.
    fn write_credentials(&self, path: &Path, issued: u64, denied: &[&str]) {
        let claims = serde_json::json!({
            "type": "user", "version": 2, "pub": { "deny": denied }, "sub": {},
            "subs": -1, "data": -1, "payload": -1,
        });
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            token(&self.account, &self.user, issued, &claims),
            self.user.seed().unwrap(),
        );
        std::fs::write(path, text).unwrap();
    }
}

/// A signed token: the header, the claims and the signature, each in base64url.
fn token(issuer: &KeyPair, subject: &KeyPair, issued: u64, claims: &serde_json::Value) -> String {
    let header = serde_json::json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let body = serde_json::json!({
        "jti": "test", "iat": issued, "iss": issuer.public_key(), "name": "test",
        "sub": subject.public_key(), "nats": claims,
    });
    let [header, body] = [header, body].map(|it| base64url(it.to_string().as_bytes()));
    let text = format!("{header}.{body}");
    let signature = issuer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", base64url(&signature))
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let byte = |at: usize| usize::from(part.get(at).copied().unwrap_or(0));
        let bits = (0..3).fold(0, |bits, at| bits << 8 | byte(at));
        let digits = (0..=part.len()).map(|digit| DIGITS[bits >> (18 - 6 * digit) & 63]);
        text.extend(digits.map(char::from));
    }
    text
}

#[test]
fn a_user_that_is_revoked_or_loses_its_permissions_agrees_once_it_has_them_again() {
    let Some(mut nats) = Nats::prepare(3) else { return };
    let site = Site::new();
    nats.lines = site.lines(0);
    nats.run_all();
    let file = nats.folder().join("daemon.creds");
    site.write_credentials(&file, 10, &[]);
    let start = |name: &str| {
        let credentials = Some(file.clone());
        let config = cluster::ClusterConfig { credentials, ..config(name, &nats.urls()) };
        Daemon::start_with(config, settings())
    };
    let daemons = in_sync(["one", "two"].map(start));
    let [one, two] = &daemons;
    bind_and_wait(&daemons, 0..100);
    let mut bound = 100;
    let faults: [(&[&str], u64, &str); 2] =
        [(&[], 20, "authorization"), (&["$KV.>"], 40, "permissions")];
    for (denied, revoked, reason) in faults {
        under_requests(&daemons, 0..bound, || {
            if !denied.is_empty() {
                site.write_credentials(&file, revoked, denied);
            }
            nats.reload(site.lines(revoked));
            (bound..bound + 50).for_each(|number| one.bind(client(number), 1));
            (bound + 25..bound + 75).for_each(|number| two.bind(client(number), 2));
            wait_for("the reason is shown", AGREED_SOON, || {
                daemons.iter().any(|it| trouble(it).to_lowercase().contains(reason))
            });
            // A server that had not read its configuration yet may have stored some.
            assert!((bound..bound + 50).all(|number| one.find(client(number)).is_some()));
            // A new token of the user is valid, and all older ones are not.
            site.write_credentials(&file, revoked + 10, &[]);
            nats.reload(site.lines(revoked + 10));
        });
        bound += 75;
        wait_until_same(&daemons, 0..bound, HEALED);
    }
    wait_for_agreement(&daemons, bound);
}
