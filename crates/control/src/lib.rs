//! The admin address.
//!
//! What it is: a small HTTP server on a thread of its own, for metrics, status and single requests.
//! What it knows: the shard's handle. What it must never know: a client's
//! connection, a queue, a worker; the data plane never waits for it.
//!
//! | path | answer |
//! |---|---|
//! | `GET /metrics` | all numbers, Prometheus text format |
//! | `GET /status` | listeners, pools and workers as JSON |
//! | `GET /health` | `ok`, or 503 `draining` |
//! | `POST /reload` | reads the configuration file again; 409 says why it is not taken over |
//! | `POST /recycle/POOL` | replaces the pool's workers, each once another is ready |
//! | `GET /why/ID` | what was decided about a request, and why |
//! | `GET /pools/POOL/why` | what was decided lately |
//! | `POST /pools/POOL/sorry` | `on` or `off` |
//! | `POST /pools/POOL/workers/WORKER/VERB` | `enable`, `disable`, `drain`, or `weight` with a number |
//! | `POST /ask/POOL` | the body goes to the pool as one request; its reply comes back |

#![forbid(unsafe_code)]

mod balance;
mod pages;
mod reload;

use std::io;
use std::os::unix::fs::FileTypeExt;

use gateway::Access;
use settings::Address;
use tokio::net::{TcpListener, UnixListener};

pub use reload::Reload;

/// Opens the admin address and serves it on a thread of its own until the process ends. Returns
/// the address, with the port that the system chose where it was 0. `reload` reads the configuration
/// file again, where there is one.
///
/// # Errors
/// When the address cannot be bound or the thread not be started.
pub fn start(listen: &Address, access: Access, reload: Option<Reload>) -> io::Result<Address> {
    let (bound, socket) = bind(listen)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        if let Err(error) = runtime.block_on(serve(socket, access, reload)) {
            tracing::error!(%error, "the admin address is gone");
        }
    })?;
    Ok(bound)
}

enum Socket {
    Internet(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

fn bind(listen: &Address) -> io::Result<(Address, Socket)> {
    match listen {
        Address::Internet(address) => {
            let socket = std::net::TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok((Address::Internet(socket.local_addr()?), Socket::Internet(socket)))
        }
        Address::Unix(path) => {
            // A file left by a daemon that was killed; one that still answers is another's.
            let nobody = std::os::unix::net::UnixStream::connect(path)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
            // A file that is no socket answers in the same way, and is none of ours.
            let socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
            if nobody && socket {
                std::fs::remove_file(path)?;
            }
            let socket = std::os::unix::net::UnixListener::bind(path)?;
            socket.set_nonblocking(true)?;
            Ok((Address::Unix(path.clone()), Socket::Unix(socket)))
        }
        // The settings have names of servers only.
        Address::Inherited(_) | Address::Named(_) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "only listeners can be handed over"))
        }
    }
}

async fn serve(socket: Socket, access: Access, reload: Option<Reload>) -> io::Result<()> {
    let pages = pages::router(access).merge(reload::routes(reload));
    match socket {
        Socket::Internet(socket) => axum::serve(TcpListener::from_std(socket)?, pages).await,
        Socket::Unix(socket) => axum::serve(UnixListener::from_std(socket)?, pages).await,
    }
}
