//! Certificates for tests, made by `openssl`, the Debian package of that name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An authority with a certificate for a server.
pub(crate) struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// Makes the certificates. `names` are the names in the server's certificate, such as `IP:127.0.0.1` or
    /// `DNS:example.org`.
    pub(crate) fn make(names: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = Self { folder };
        made.sign("ca", "basicConstraints=critical,CA:TRUE", &[]);
        let authority = [made.path("ca.pem"), made.path("ca.key")];
        let extensions = format!("basicConstraints=critical,CA:FALSE\nsubjectAltName={names}");
        made.sign("server", &extensions, &authority);
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sign(&self, name: &str, extensions: &str, by: &[PathBuf]) {
        let text = format!(
            "[req]\ndistinguished_name=name\nx509_extensions=extensions\nprompt=no\n\
             [name]\nCN=roadstead {name}\n[extensions]\n{extensions}\n"
        );
        let settings = self.path(&format!("{name}.cnf"));
        fs::write(&settings, text).unwrap();
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        command.args(["-nodes", "-days", "2", "-config"]).arg(settings);
        command.arg("-keyout").arg(self.path(&format!("{name}.key")));
        command.arg("-out").arg(self.path(&format!("{name}.pem")));
        if let [certificate, key] = by {
            command.arg("-CA").arg(certificate).arg("-CAkey").arg(key);
        }
        let output = command.output().expect("this test needs openssl: apt-get install openssl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns the certificate of the authority, which a client trusts.
    pub(crate) fn authority(&self) -> PathBuf {
        self.path("ca.pem")
    }

    pub(crate) fn server(&self) -> Vec<u8> {
        read(&self.path("server.pem"))
    }

    pub(crate) fn server_key(&self) -> Vec<u8> {
        read(&self.path("server.key"))
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}
