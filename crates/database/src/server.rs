//! The common parts of servers: their address, a runtime on the handler's thread, and waits that can be stopped.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "tls")]
use std::path::Path;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use exchange::Stop;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::DatabaseError;
use crate::fault::{Blame, Fault};

/// The interval at which a handler that waits for a server checks whether to stop.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The maximum time that a server may take to cancel a running statement, before the connection is dropped.
const CANCEL_WAIT: Duration = Duration::from_secs(2);

/// The time without data from a server after which TCP keepalive probes check the connection. An unresponsive
/// connection is then detected within minutes.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(60);

/// A database on a server, and its login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The address of the server.
    pub host: Host,
    /// The user name on the server.
    pub user: String,
    /// The password, if one is needed.
    pub password: Option<Secret>,
    /// The name of the database.
    pub database: String,
    /// Whether the connection is encrypted.
    pub tls: Tls,
    /// The maximum time to connect and to log in.
    pub connect_timeout: Duration,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name or an IP address, and a port.
    Internet(String, u16),
    /// A Unix socket; for PostgreSQL the directory of the socket, and its port.
    Socket(PathBuf, u16),
}

/// Whether the connection to a server is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not encrypted.
    Off,
    /// Encrypted. The server must prove its identity with a certificate that these roots have signed: those of a PEM
    /// file, or those of the system.
    On(Option<PathBuf>),
}

/// A text that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns a secret with this text.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Internet(host, port) => write!(f, "{host}:{port}")?,
            Host::Socket(path, _) => write!(f, "{}", path.display())?,
        }
        write!(f, "/{}", self.database)
    }
}

/// Returns the message about a server setting because of which a power failure may lose rows.
pub(crate) fn doubt(setting: &str, value: impl fmt::Display, safe: &str) -> String {
    format!(
        "the server has `{setting} = {value}`: rows that were acknowledged may be lost when it crashes \
         or its machine loses power; set it to {safe} there, or say `durability = \"normal\"` here if that \
         may be"
    )
}

/// Returns a runtime for one connection, on the thread that uses it.
fn runtime(server: &str) -> Result<Runtime, DatabaseError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| DatabaseError::Unreachable(server.to_owned(), error.to_string().into()))
}

/// Runs `work`, which opens a connection to `server`, within its time limit. Returns the runtime of the connection as
/// well. If the driver panics because of the server's data, the connection has failed.
pub(crate) fn connect<T>(
    server: &Server,
    work: impl Future<Output = Result<T, DatabaseError>>,
) -> Result<(Runtime, T), DatabaseError> {
    let runtime = runtime(&server.to_string())?;
    let wait = server.connect_timeout;
    let late = |_| {
        let text = format!("no answer within {wait:?}");
        DatabaseError::Unreachable(server.to_string(), text.into())
    };
    let connect = || runtime.block_on(async { timeout(wait, work).await.map_err(late) });
    // The state that a panic leaves behind is dropped with the runtime.
    let opened = catch_unwind(AssertUnwindSafe(connect)).map_err(|_| {
        let text = "the driver panicked at what the server sent";
        DatabaseError::Unreachable(server.to_string(), text.into())
    })???;
    Ok((runtime, opened))
}

/// Waits for `work`. When `stop` is requested, `cancel` asks the server to end it. `None` if the work does not end even
/// then: the connection cannot be used any more.
pub(crate) fn until<T>(
    runtime: &Runtime,
    stop: &Stop,
    work: impl Future<Output = T>,
    cancel: impl Future<Output = ()>,
) -> Option<T> {
    runtime.block_on(async {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = timeout(STOP_CHECK_INTERVAL, work.as_mut()).await {
                return Some(done);
            }
            if stop.requested() {
                break;
            }
        }
        // The effect of the cancellation shows in the work.
        let _ = timeout(CANCEL_WAIT, cancel).await;
        timeout(CANCEL_WAIT, work).await.ok()
    })
}

/// As [`until`], for statements of the settings. A server may receive a cancellation after its statement has ended, and
/// end the next one. So the connection is dropped after a cancellation, whatever the result of the work.
pub(crate) fn stoppable<T>(
    runtime: &Runtime,
    stop: &Stop,
    work: impl Future<Output = Result<T, Fault>>,
    cancel: impl Future<Output = ()>,
) -> Result<T, Fault> {
    let is_sent = Cell::new(false);
    let cancel = async {
        is_sent.set(true);
        cancel.await;
    };
    match until(runtime, stop, work, cancel) {
        Some(_) if is_sent.get() => Err(Fault::new(Blame::Lost, "stopped while a statement ran")),
        Some(done) => done,
        None => Err(Fault::new(Blame::Lost, "the server did not end a statement that was stopped")),
    }
}

/// As [`until`], for requests that a server answers immediately.
#[cfg(feature = "mysql")]
pub(crate) fn answer<T, E>(
    runtime: &Runtime,
    stop: &Stop,
    work: impl Future<Output = Result<T, E>>,
    of: impl FnOnce(&E) -> Fault,
) -> Result<T, Fault> {
    match until(runtime, stop, work, async {}) {
        Some(done) => done.map_err(|error| of(&error)),
        None => Err(Fault::new(Blame::Lost, "the server did not answer")),
    }
}

/// Sets the cryptography provider of the whole process, unless one is set already. Drivers that use the process default
/// would otherwise find none.
#[cfg(all(feature = "mysql", feature = "tls"))]
pub(crate) fn crypto() {
    // A provider that was set before is accepted.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}

/// Returns the error for encrypted connections without TLS support.
#[cfg(not(feature = "tls"))]
pub(crate) fn without_tls(server: &str) -> DatabaseError {
    let text = "`tls`: this program was built without TLS (the feature `tls`)";
    DatabaseError::Denied(server.to_owned(), text.into())
}

/// Returns the root certificates for a server, each in DER. A user who can write their file decides which server
/// is trusted, so its owner and mode are checked.
#[cfg(feature = "tls")]
pub(crate) fn roots(server: &str, file: Option<&Path>) -> Result<Vec<Vec<u8>>, DatabaseError> {
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    let (certificates, why): (Vec<CertificateDer<'_>>, _) = match file {
        Some(file) => {
            let read = paths::read(file).and_then(|(bytes, found)| {
                paths::check_author(&found)?;
                Ok(bytes)
            });
            match read {
                Ok(bytes) => {
                    (CertificateDer::pem_slice_iter(&bytes).filter_map(Result::ok).collect(), None)
                }
                Err(error) => (Vec::new(), Some(error.to_string())),
            }
        }
        None => {
            let loaded = rustls_native_certs::load_native_certs();
            (loaded.certs, loaded.errors.first().map(ToString::to_string))
        }
    };
    if certificates.is_empty() {
        let place = file.map_or_else(|| "the system".to_owned(), |file| file.display().to_string());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("no certificates for TLS in {place}{why}");
        return Err(DatabaseError::Denied(server.to_owned(), text.into()));
    }
    Ok(certificates.iter().map(|it| it.as_ref().to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.text(), "hunter2");
    }

    #[cfg(feature = "tls")]
    #[test]
    fn certificates_that_another_user_can_have_led_to_stand_for_no_server() {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("ca.pem"), folder.path().join("link"));
        let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        std::fs::write(&path, pem).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mode = |path: &Path, mode| set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let found = |path: &Path| roots("db", Some(path)).map_err(|error| error.to_string());
        mode(folder.path(), 0o755);
        assert_eq!(found(&link), Ok(vec![b"\x30\0".to_vec()]));
        mode(folder.path(), 0o777);
        assert!(found(&link).unwrap_err().contains("symbolic link"));
        mode(&path, 0o666);
        assert!(found(&path).unwrap_err().contains("others can write it"));
        std::fs::write(&path, "").unwrap();
        mode(&path, 0o600);
        assert!(found(&path).unwrap_err().contains("no certificates for TLS in"));
    }

    #[test]
    fn a_driver_that_panics_has_not_connected() {
        let server = Server {
            host: Host::Internet("db".to_owned(), 1),
            user: "app".to_owned(),
            password: None,
            database: "app".to_owned(),
            tls: Tls::Off,
            connect_timeout: Duration::from_secs(10),
        };
        let odd = || -> Result<(), DatabaseError> { panic!("an odd value") };
        let refused = connect(&server, async {
            tokio::task::yield_now().await;
            odd()
        });
        let refused = refused.unwrap_err();
        assert!(refused.is_for_now(), "{refused}");
        assert!(refused.to_string().contains("panicked"), "{refused}");
    }

    #[test]
    fn whoever_waits_can_be_stopped() {
        let runtime = runtime("nowhere").unwrap();
        let stop = Stop::default();
        assert_eq!(until(&runtime, &stop, async { 7 }, async {}), Some(7));
        stop.request();
        let (done, wait) = tokio::sync::oneshot::channel::<()>();
        let cancel = async { drop(done) };
        assert!(until(&runtime, &stop, wait, cancel).is_some_and(|it| it.is_err()));
    }

    #[test]
    fn a_connection_is_given_up_behind_a_cancellation_also_where_its_statement_had_ended() {
        let runtime = runtime("nowhere").unwrap();
        let stop = Stop::default();
        assert_eq!(stoppable(&runtime, &stop, async { Ok(7) }, async {}), Ok(7));
        stop.request();
        let (ended, wait) = tokio::sync::oneshot::channel();
        let work = async { wait.await.map_err(|_| Fault::stopped()) };
        let fault = stoppable(&runtime, &stop, work, async { ended.send(7).unwrap() }).unwrap_err();
        assert!(fault.blame.spoils_connection(), "{fault:?}");
    }
}
