//! Builds pools of programs: how each is started, how requests are sent to it, and its limits.

use std::time::Duration;

use std::sync::Arc;

use event::StreamLimits;
use exchange::ByWorker;
use settings::Idempotent;

use super::context::unless_zero;
use super::worker_properties::{FailedStarts, WorkerProperties};
use super::{launch, servers};
use crate::error::BuildError;
use backend::programs::{ProgramConfig, ProgramTimeouts, ReplyStreamConfig};
use backend::spawned_http::SpawnedHttpConfig;
use backend::upstream::UpstreamConfig;
use backend::workers::WorkersConfig;
use engine::pool_config::SessionWorkersConfig;

/// Builds the programs of a pool. Each request must be answered within `response_timeout`.
pub(super) fn program(
    program: settings::Program,
    pool: &settings::Pool,
) -> Result<(WorkersConfig, WorkerProperties), BuildError> {
    let (deadline, tagged) = (pool.response_timeout, is_tagged(&program));
    let settings::Program {
        command,
        framing,
        dispatch,
        pipeline,
        alignment,
        carries,
        line_breaks,
        stream,
        reset,
        handshake,
        reply_max,
        cwd,
        env,
        stop_timeout,
        min_uptime,
        wiring,
        bounds,
        recycle,
        socket,
        ready,
        start_timeout,
        first_byte_timeout: first_byte,
        slowlog_timeout: slow,
        send_timeout,
        exit_message: last_words,
    } = program;
    let (program, arguments) = match command.split_first() {
        Some((program, arguments)) => (program.clone(), arguments.to_vec()),
        None => (String::new(), Vec::new()),
    };
    let policy = Box::new(launch::policy(wiring, bounds));
    let is_spawned_http = framing == settings::Framing::Http;
    let framing = wire_framing(framing);
    resets(&pool.name, framing, reset.as_deref())?;
    let own = (dispatch == settings::Dispatch::Session)
        .then(|| SessionWorkersConfig { reset, tells_apart: framing.is_json() });
    let config = ProgramConfig {
        program,
        arguments,
        cwd,
        env: variables(&pool.name, env)?,
        policy,
        framing,
        is_spawned_http,
        alignment: match &carries {
            _ if tagged || is_spawned_http || own.is_some() || framing.ends_with_stream() => None,
            Some(_) => Some(settings::Alignment::Off),
            None => Some(alignment),
        },
        carries,
        rejects_line_breaks: framing == wire::Framing::Lines
            && own.as_ref().is_none_or(|own| own.reset.is_some())
            && line_breaks == settings::LineBreaks::Reject,
        tagged,
        stream: stream.map(|settings::Stream { until, idle_timeout: gap }| ReplyStreamConfig {
            until: until.map(String::into_bytes),
            gap,
        }),
        needs_handshake: handshake == settings::Handshake::Mcp,
        is_shared: pipeline > 1,
        is_own: own.is_some(),
        tries: match pool.idempotent {
            Idempotent::All if own.is_none() => pool.balancing.retries.tries,
            _ => 1,
        },
        watches_memory: recycle.memory_max.is_some(),
        times: ProgramTimeouts {
            start: start_timeout,
            first_byte: unless_zero(first_byte),
            slow: unless_zero(slow),
            send_timeout: unless_zero(send_timeout),
        },
        says_ready: ready == settings::Ready::Line,
        reply_max,
        stop_timeout,
        deadline,
        last_words,
    };
    let recycle = launch::recycling(recycle);
    let program = Arc::new(config);
    let workers = if is_spawned_http {
        let servers = upstream_config(pool);
        WorkersConfig::SpawnedHttp(Box::new(SpawnedHttpConfig { program, servers, socket }))
    } else {
        WorkersConfig::Programs(program)
    };
    let properties = WorkerProperties {
        slots: pipeline,
        min_uptime,
        starts: FailedStarts::REJECT,
        recycle,
        own,
        members: Vec::new(),
    };
    Ok((workers, properties))
}

/// Returns the environment of the programs of a pool, including the variables of the daemon that are passed explicitly.
pub(super) fn variables(
    pool: &str,
    env: Vec<(String, String)>,
) -> Result<Vec<(String, String)>, BuildError> {
    let passed = |(name, value): (String, String)| {
        let Some(from) = settings::passed_variable(&value) else { return Ok((name, value)) };
        let value = std::env::var(from).map_err(|error| BuildError::Variable {
            pool: pool.to_owned(),
            why: format!("`env`: `{name}` gets the variable `{from}`: {error}"),
        })?;
        Ok((name, value))
    };
    env.into_iter().map(passed).collect()
}

/// Checks that the `reset` request has a reply. Only the reply shows that the program has forgotten its client.
pub(super) fn resets(
    pool: &str,
    framing: wire::Framing,
    reset: Option<&str>,
) -> Result<(), BuildError> {
    let Some(reset) = reset.filter(|_| framing.is_json()) else { return Ok(()) };
    let why = match wire::jsonrpc::scan(reset.as_bytes()) {
        Ok(message) if message.is_replied_to(reset.as_bytes()) => return Ok(()),
        Ok(_) => "a program replies to a `method` with an `id` that is not `null`",
        Err(fault) => fault.message(),
    };
    Err(BuildError::Reset { pool: pool.to_owned(), why })
}

/// Whether requests to such a program carry tags.
pub(super) fn is_tagged(program: &settings::Program) -> bool {
    match program.dispatch {
        settings::Dispatch::Auto => wire_framing(program.framing).is_json(),
        settings::Dispatch::InOrder | settings::Dispatch::Session => false,
        settings::Dispatch::Tagged => true,
    }
}

/// Builds how requests are sent to programs that serve HTTP. The duration of a reply is not limited.
fn upstream_config(pool: &settings::Pool) -> UpstreamConfig {
    let deadline = pool.response_timeout;
    let deadline = unless_zero(deadline).unwrap_or(NEVER);
    UpstreamConfig {
        addresses: ByWorker::default(),
        reply: servers::response_limits(pool),
        limits: StreamLimits::default(),
        connect: deadline,
        deadline,
        between: deadline,
        total: None,
        idle: SPAWNED_HTTP_IDLE,
        // The connection is on this host and ends with the process.
        keepalive: None,
        retries: pool.balancing.retries,
        idempotent: pool.idempotent,
        checked: false,
        is_spawned_http: true,
        is_member_shard: false,
    }
}

/// A duration that practically means never.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How long an idle connection to a program is kept. It is shorter than the keep-alive time of common servers, so that
/// the server does not close a connection just when it is used.
const SPAWNED_HTTP_IDLE: Duration = Duration::from_secs(1);

/// Returns the codec of a framing.
pub(super) const fn wire_framing(framing: settings::Framing) -> wire::Framing {
    use wire::Width;
    match framing {
        settings::Framing::Lines => wire::Framing::Lines,
        settings::Framing::Nul => wire::Framing::Nul,
        settings::Framing::Len1 => wire::Framing::Len(Width::One),
        settings::Framing::Len2 => wire::Framing::Len(Width::Two),
        settings::Framing::Len4 => wire::Framing::Len(Width::Four),
        settings::Framing::Netstring => wire::Framing::Netstring,
        settings::Framing::ContentLength => wire::Framing::ContentLength,
        settings::Framing::JsonRpc => wire::Framing::JsonRpc,
        // The output of a program that serves HTTP is not decoded.
        settings::Framing::Raw | settings::Framing::Http => wire::Framing::Raw,
        settings::Framing::Oneshot => wire::Framing::Oneshot,
    }
}

#[cfg(test)]
mod tests {
    use wire::{Framing, Width};

    #[test]
    fn in_json_a_reset_is_a_request_with_an_id() {
        let takes = |framing, reset: &str| super::resets("main", framing, Some(reset)).is_ok();
        for framing in [Framing::JsonRpc, Framing::ContentLength] {
            for id in ["1", "\"r\""] {
                assert!(takes(framing, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#)));
            }
            for reset in [
                r#"{"jsonrpc":"2.0","method":"$/forget"}"#,
                r#"{"jsonrpc":"2.0","id":null,"method":"forget"}"#,
                r#"{"jsonrpc":"2.0","id":"r","result":1}"#,
                r#"[{"jsonrpc":"2.0","id":"r","method":"forget"}]"#,
                "forget",
            ] {
                assert!(!takes(framing, reset), "{reset}");
            }
        }
        assert!(takes(Framing::Lines, "forget") && takes(Framing::Len(Width::Two), "forget"));
    }
}
