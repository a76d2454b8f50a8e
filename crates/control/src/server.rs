//! Accepts connections and serves HTTP/1 on them, within limits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::gate::Peer;
use crate::socket::Socket;

/// Bytes of headers, at most.
const HEADERS_MAX: usize = 64 << 10;
/// Number of headers, at most.
const HEADER_COUNT_MAX: usize = 64;
/// Maximum lifetime of a connection. A client that does not read its reply is disconnected then.
const LIFETIME_MAX: Duration = Duration::from_secs(300);
/// Pause after a failed accept, as when there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at once; further ones wait in the backlog.
    pub(crate) connections: usize,
    /// Maximum time to receive the headers of a request, including idle time before it.
    pub(crate) header_timeout: Duration,
}

enum Listener {
    Internet(TcpListener),
    Unix(UnixListener),
}

/// Serves until the process ends.
pub(crate) async fn serve(socket: Socket, router: Router, limits: Limits) -> io::Result<()> {
    let listener = match socket {
        Socket::Internet(socket) => Listener::Internet(TcpListener::from_std(socket)?),
        Socket::Unix(socket) => Listener::Unix(UnixListener::from_std(socket)?),
    };
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
        let router = router.clone();
        let accepted = match &listener {
            Listener::Internet(listener) => listener.accept().await.and_then(|(stream, from)| {
                let peer = Peer::Internet { from, to: stream.local_addr()? };
                Ok(tokio::spawn(async move {
                    connection(stream, router, peer, limits).await;
                    drop(permit);
                }))
            }),
            Listener::Unix(listener) => listener.accept().await.map(|(stream, _)| {
                let peer = match stream.peer_cred() {
                    Ok(cred) => Peer::Unix { uid: Some(cred.uid()), pid: cred.pid() },
                    Err(_) => Peer::Unix { uid: None, pid: None },
                };
                tokio::spawn(async move {
                    connection(stream, router, peer, limits).await;
                    drop(permit);
                })
            }),
        };
        if accepted.is_err() {
            sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// One connection, to its end.
async fn connection<S>(stream: S, router: Router, peer: Peer, limits: Limits)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(HEADERS_MAX)
        .max_headers(HEADER_COUNT_MAX)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    // A client that breaks its connection is no event of the daemon.
    let _ = timeout(LIFETIME_MAX, served).await;
}

#[cfg(test)]
mod tests;
