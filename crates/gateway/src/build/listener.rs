//! Builds the configuration of listeners.

use exchange::{ListenerId, PoolId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use event::StreamLimits;
use settings::{FrameOver, HalfClose, LastLine, Protocol, ReplyStyle};
use wire::Marks;

use super::context::unless_zero;
use super::{program, routes};
use crate::error::BuildError;
use flow::forwarding::Forwarding;
use frontend::bodies::{Bodies, BodyLimits};
use frontend::connection::ConnectionConfig;
use frontend::listener::{ConnectConfig, DatagramConfig, FramesConfig, HttpConfig, ListenerConfig};
use frontend::protocol::ProtocolConfig;
use observe::access_log::LoggedListener;

/// The maximum number of bytes that a frame adds to its reply.
const MARKS_SLACK: usize = 256;
/// The number of bytes of a reply that are read from its worker even if the client does not read. Most replies are
/// complete with that, and free their worker.
const REPLY_BUFFERED: usize = 64 << 10;
/// The maximum number of bytes that a worker may deliver in one turn before it is paused. These bytes are not
/// attributed to a slow client.
const TURN_SLACK: usize = 384 << 10;
/// The maximum number of received bytes that may wait in addition to one line: the bytes that arrive after it in the
/// same turn.
const HOLD_SLACK: usize = 512 << 10;

pub(crate) fn listener(
    listener: settings::Listener,
    (id, bodies): (ListenerId, &Arc<Bodies>),
    places: &BTreeMap<String, PoolId>,
) -> Result<ListenerConfig, BuildError> {
    let settings::Listener {
        name,
        listen: _,  // The caller binds the socket.
        backlog: _, // The same.
        tcp_keepalive_interval: _,
        protocol,
        pool,
        reply,
        half_close,
        last_line,
        connections_max,
        frame_max,
        frame_over,
        in_flight_max,
        reply_held_max,
        send_max,
        idle_timeout: idle,
        first_request_timeout,
        request_read_timeout: read,
        send_timeout,
        send_rate_min,
        access_log,
        addresses,
        http,
    } = listener;
    let place =
        |pool: &str| places.get(pool).copied().ok_or_else(|| BuildError::NoPool(pool.to_owned()));
    let rest = pool.as_deref().map(place).transpose()?;
    let first = http.routes.iter().find_map(settings::Route::pool).map(place).transpose()?;
    let pool = rest.or(first).or_else(|| places.values().copied().min()).unwrap_or(PoolId::NONE);
    let frames = |framing| FramesConfig {
        framing,
        over: match frame_over {
            FrameOver::Skip => wire::OversizePolicy::Skip,
            FrameOver::End => wire::OversizePolicy::End,
        },
        marks: match reply {
            ReplyStyle::Auto if is_binary(framing) => Marks::Status,
            ReplyStyle::Auto | ReplyStyle::Plain => Marks::Plain,
            ReplyStyle::Status => Marks::Status,
        },
        resets: reply == ReplyStyle::Auto && framing == wire::Framing::Raw,
        accepts_last: last_line == LastLine::Accept,
        frame_max,
        in_flight_max: in_flight_max as usize,
        reply_held_max,
        send_max,
        read: unless_zero(read),
    };
    let (recv_buffer_max, protocol_config): (usize, Arc<dyn ProtocolConfig>) = match protocol {
        Protocol::Frames(framing) => {
            let framing = program::wire_framing(framing);
            (framing.recv_buffer_max(frame_max), Arc::new(frames(framing)))
        }
        Protocol::Connect => (0, Arc::new(ConnectConfig)),
        Protocol::Datagrams => (0, Arc::new(DatagramConfig)),
        Protocol::Http => {
            let mut config = http_plan(http, &name, unless_zero(read), rest, places)?;
            config.bodies = Arc::clone(bodies);
            (0, Arc::new(config))
        }
    };
    let is_http = protocol == Protocol::Http;
    let logged = access_log.then(|| LoggedListener { name: name.clone(), speaks_http: is_http });
    let connection = ConnectionConfig {
        id,
        pool,
        keeps_half_closed: half_close == HalfClose::Keep,
        idle: unless_zero(idle),
        first_request_timeout: unless_zero(first_request_timeout),
        send_timeout: unless_zero(send_timeout),
        send_rate_min,
        reply_buffered: if is_http { REPLY_BUFFERED } else { REPLY_BUFFERED.min(send_max / 4) },
        limits: StreamLimits {
            // An incomplete frame, and the bytes after it that one read may deliver.
            recv_buffer_max: recv_buffer_max.saturating_add(HOLD_SLACK),
            send_high: send_max / 4,
            send_low: send_max / 16,
            // A reply of that size may follow output that is just small enough not to pause the worker.
            send_max: send_max
                .saturating_add(send_max / 4)
                .saturating_add(MARKS_SLACK)
                .max(if is_http { send_max / 4 + REPLY_BUFFERED + TURN_SLACK } else { 0 }),
            progress_after: unless_zero(send_timeout).map(progress_after),
        },
        logged: logged.map(Arc::new),
        protocol: Arc::clone(&protocol_config) as _,
    };
    Ok(ListenerConfig {
        name,
        connections_max,
        datagram_max: frame_max,
        addresses,
        connection: Arc::new(connection),
        protocol_config,
    })
}

/// Returns how long output has waited when the kernel is first asked what its client has acknowledged. By then a client
/// that reads nothing has acknowledged all that it will: the last bytes after a delay of 40 ms, and the bytes of window
/// probes after a few hundred milliseconds.
fn progress_after(send_timeout: Duration) -> Duration {
    (send_timeout / 4).min(Duration::from_secs(1))
}

fn http_plan(
    http: settings::HttpListener,
    name: &str,
    read: Option<Duration>,
    pool: Option<PoolId>,
    places: &BTreeMap<String, PoolId>,
) -> Result<HttpConfig, BuildError> {
    let settings::HttpListener {
        head_max,
        body_max,
        bodies_max,
        body_rate_min,
        tunnel_timeout: tunnel_idle,
        forwarded,
        via,
        allow_trace,
        allow_upgrade,
        trusted,
        routes,
        authenticate,
        request,
        reply,
    } = http;
    let routing_settings =
        routes::RoutingSettings { routes, authenticate, request, reply, allow_upgrade };
    let routing = routing_settings.routing(name, pool, places)?;
    let limits = wire::http1::Limits {
        head: head_max,
        line: wire::http1::Limits::REQUEST.line.min(head_max),
        body: body_max as u64,
        ..wire::http1::Limits::REQUEST
    };
    let forwarded = match forwarded {
        settings::Forwarded::Off => wire::http1::Forwarded::Nothing,
        settings::Forwarded::Legacy => wire::http1::Forwarded::Legacy,
        settings::Forwarded::Standard => wire::http1::Forwarded::Standard,
    };
    Ok(HttpConfig {
        limits,
        bodies: Arc::default(),
        body_limits: BodyLimits { all: bodies_max, one: body_max },
        body_rate_min,
        tunnel_idle: unless_zero(tunnel_idle),
        forwarding: Arc::new(Forwarding {
            fields: forwarded,
            // The validation of the settings has already parsed it.
            via: via.and_then(|name| wire::http1::Via::new(&name)).unwrap_or_default(),
            host: name.to_owned(),
        }),
        allow_trace,
        allow_upgrade,
        trusted,
        read,
        routing,
    })
}

/// Whether replies may contain any bytes, so that an error cannot be distinguished from a reply by its content.
const fn is_binary(framing: wire::Framing) -> bool {
    matches!(framing, wire::Framing::Len(_) | wire::Framing::Netstring)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pause of the worker takes effect only in the next turn.
    #[test]
    fn what_a_worker_brings_in_one_turn_has_room() {
        let a_turn = event::LoopSettings::default().read_budget + block::CAPACITY_POOLED_MAX;
        assert!(a_turn < TURN_SLACK, "{a_turn} bytes");
    }
}
