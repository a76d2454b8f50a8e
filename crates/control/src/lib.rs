//! The admin address.
//!
//! What it is: a small HTTP server on a separate thread, for metrics, status and commands. What it depends on: the
//! handle to the shards. What it must never depend on: a client's connection, a queue, a worker; the data plane never
//! waits for it.
//!
//! The routes are in `routes.rs`, each with the role that it requires. Every request first passes the same checks in
//! the same order: `gate.rs`. docs/admin-api.md describes who has access.

#![forbid(unsafe_code)]

mod audit;
mod balance;
mod caller;
mod cluster;
mod connection_slots;
mod gate;
mod pages;
mod reload;
mod role;
mod routes;
mod server;
mod shared_command;
mod shared_page;
mod socket;
mod token_file;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use gateway::Access;
use route::{AuthFault, Authenticator};
use settings::Address;

use gate::Gate;
use token_file::TokenFile;

pub use cluster::{
    Cluster, CommandFailure, CommandReply, FailureKind, SharedCommand, SharedCommands,
};
pub use gate::REQUEST_HEADER;
pub use reload::Reload;
pub use token_file::local_token;

/// The settings of the admin address.
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// The address to listen on.
    pub listen: Address,
    /// The bearer token for full access.
    pub token: Option<String>,
    /// The id of the group whose members have full access through the Unix socket.
    pub group: Option<u32>,
    /// Host names accepted in addition to the default ones.
    pub allowed_hosts: Vec<String>,
    /// The maximum number of connections.
    pub max_connections: u32,
    /// The maximum time to receive the headers of a request.
    pub header_timeout: Duration,
}

/// Why the admin address cannot be opened.
#[derive(Debug)]
pub enum AdminError {
    /// The token cannot be used.
    Token(AuthFault),
    /// Other hosts or users can reach the address, and no token is configured.
    Open,
    /// The address cannot be bound, or the thread cannot be started.
    System(io::Error),
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(fault) => write!(f, "the `token` {fault}"),
            Self::Open => f.write_str("it is not local and has no `token`"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AdminError {}

impl From<io::Error> for AdminError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Checks whether a token can be used.
///
/// # Errors
/// The reason why it cannot be used.
pub fn check_token(token: &str) -> Result<(), AuthFault> {
    guard(token).map(drop)
}

fn guard(token: &str) -> Result<Authenticator, AuthFault> {
    let mut guard = Authenticator::new("roadstead")?;
    guard.token(token)?;
    Ok(guard)
}

/// A running admin address.
#[derive(Debug)]
pub struct Admin {
    /// The address, with the port that the system chose if the port was 0.
    pub address: Address,
    /// The file is removed when this is dropped.
    _token_file: Option<TokenFile>,
    /// The file is removed when this is dropped.
    _socket_file: Option<event::BoundFile>,
}

/// Opens the admin address and serves it on a separate thread until the process ends. `reload` reads the configuration
/// file again; `None`: the daemon has no configuration file. `cluster`: `None` if it has none.
///
/// # Errors
/// The address cannot be bound, the token cannot be used, or the thread cannot be started.
pub fn start(
    settings: AdminSettings,
    access: Access,
    reload: Option<Reload>,
    cluster: Option<Cluster>,
) -> Result<Admin, AdminError> {
    let AdminSettings { listen, token, group, allowed_hosts, max_connections, header_timeout } =
        settings;
    if !listen.is_local() && token.is_none() {
        return Err(AdminError::Open);
    }
    let mut token = token.as_deref().map(guard).transpose().map_err(AdminError::Token)?;
    let (address, socket, socket_file) = socket::bind(&listen, group)?;
    let mut token_file = None;
    if let (None, Address::Internet(bound)) = (&token, &address) {
        match TokenFile::create(*bound) {
            Ok(file) => {
                tracing::info!("admin: the token is in {}", file.path().display());
                token = Some(guard(file.token()).map_err(AdminError::Token)?);
                token_file = Some(file);
            }
            Err(error) => {
                tracing::warn!("admin: no token file, so {address} is read-only: {error}");
            }
        }
    }
    let gate = Arc::new(Gate {
        hosts: allowed_hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
        token,
        anonymous: listen.is_local(),
        user: rustix::process::geteuid().as_raw(),
        group_has_access: group.is_some(),
        own_process: i32::try_from(std::process::id()).ok(),
        bodies: tokio::sync::Semaphore::new(gate::BODIES_MAX),
        audit: Arc::default(),
    });
    let connections = max_connections as usize;
    let anonymous = server::anonymous_max();
    let limits = server::Limits { connections, anonymous, header_timeout };
    let routes = routes::router(routes::App { access, reload, cluster, shared: Arc::default() });
    let router = protected(routes, Arc::clone(&gate));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        if let Err(error) = runtime.block_on(server::serve(socket, router, gate, limits)) {
            tracing::error!(%error, "the admin address is gone");
        }
    })?;
    Ok(Admin { address, _token_file: token_file, _socket_file: socket_file })
}

/// Returns the routes with the checks before them.
fn protected(routes: Router, gate: Arc<Gate>) -> Router {
    routes.layer(middleware::from_fn_with_state(gate, gate::protect))
}
