//! Accepts connections and serves HTTP/1 on them, within limits.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::gate::{Gate, Peer};
use crate::socket::Socket;

/// The maximum size of the headers, in bytes.
const HEADERS_MAX: usize = 64 << 10;
/// The maximum number of headers.
const HEADER_COUNT_MAX: usize = 64;
/// The maximum lifetime of a connection. A client that does not read its reply is disconnected then.
const LIFETIME_MAX: Duration = Duration::from_secs(300);
/// The maximum number of concurrent connections of unauthenticated clients, if the limit of open files allows it.
const ANONYMOUS_MAX: usize = 1024;
/// Unauthenticated connections may use one part in this many of the open files.
const DESCRIPTORS_SHARE: u64 = 8;
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The maximum number of concurrent connections of authenticated clients.
    pub(crate) connections: usize,
    /// The maximum number of concurrent connections of other clients.
    pub(crate) anonymous: usize,
    /// The maximum time to receive the headers of a request, including idle time before it.
    pub(crate) header_timeout: Duration,
}

enum Listener {
    Internet(TcpListener),
    Unix(UnixListener),
}

enum Stream {
    Internet(TcpStream),
    Unix(UnixStream),
}

/// Returns the maximum number of connections of unauthenticated clients. Workers have priority for descriptors.
pub(crate) fn anonymous_max() -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let share = descriptors
        .map_or(usize::MAX, |all| usize::try_from(all / DESCRIPTORS_SHARE).unwrap_or(usize::MAX));
    share.min(ANONYMOUS_MAX)
}

impl Listener {
    /// Whether a connection waits to be accepted. Without a free descriptor accept(2) fails even if no connection
    /// waits.
    fn has_connection(&self) -> bool {
        let fd = match self {
            Self::Internet(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        };
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

/// Opens a reserve descriptor. It is released to accept a connection when no other descriptor is free.
fn reserve() -> Option<std::fs::File> {
    std::fs::File::open("/dev/null").ok()
}

fn lacks_descriptor(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

/// Serves until the process ends.
pub(crate) async fn serve(
    socket: Socket,
    router: Router,
    gate: Arc<Gate>,
    limits: Limits,
) -> io::Result<()> {
    let listener = match socket {
        Socket::Internet(socket) => Listener::Internet(TcpListener::from_std(socket)?),
        Socket::Unix(socket) => Listener::Unix(UnixListener::from_std(socket)?),
    };
    let places = ConnectionSlots::new(limits.connections, limits.anonymous);
    let mut reserved = reserve();
    loop {
        let accepted = match &listener {
            Listener::Internet(listener) => listener.accept().await.and_then(|(stream, from)| {
                let peer = Peer::Internet { from, to: stream.local_addr()? };
                Ok((Stream::Internet(stream), peer))
            }),
            Listener::Unix(listener) => listener.accept().await.map(|(stream, _)| {
                let peer = match stream.peer_cred() {
                    Ok(cred) => Peer::Unix { uid: Some(cred.uid()), pid: cred.pid() },
                    Err(_) => Peer::Unix { uid: None, pid: None },
                };
                (Stream::Unix(stream), peer)
            }),
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                let has_room = lacks_descriptor(&error)
                    && listener.has_connection()
                    && (places.close_oldest() || reserved.take().is_some());
                match has_room {
                    // The connection ends when its task runs.
                    true => yield_now().await,
                    false => sleep(ACCEPT_PAUSE).await,
                }
                continue;
            }
        };
        let is_trusted = gate.trusts(peer);
        let place = match is_trusted {
            true => places.take_trusted().await,
            false => places.take_anonymous(),
        };
        if reserved.is_none() {
            reserved = reserve();
        }
        let router = router.clone();
        tokio::spawn(async move {
            match stream {
                Stream::Internet(stream) => connection(stream, router, peer, place, limits).await,
                Stream::Unix(stream) => connection(stream, router, peer, place, limits).await,
            }
        });
    }
}

/// Serves one connection to its end.
async fn connection<S>(
    stream: S,
    router: Router,
    peer: Peer,
    place: Arc<ConnectionSlot>,
    limits: Limits,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = router.layer(Extension(peer)).layer(Extension(Arc::clone(&place)));
    let service = TowerToHyperService::new(router);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(HEADERS_MAX)
        .max_headers(HEADER_COUNT_MAX)
        // Nothing is rendered for an anonymous client that has disconnected.
        .half_close(place.is_trusted())
        .serve_connection(TokioIo::new(stream), service);
    // A client that breaks its connection is not worth a log line.
    tokio::select! {
        biased;
        () = place.closed() => {}
        _ = timeout(LIFETIME_MAX, served) => {}
    }
}

#[cfg(test)]
mod tests;
