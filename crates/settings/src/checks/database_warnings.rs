//! Warnings about options of a database pool that are valid but probably not intended.

use std::time::Duration;

use crate::model::{
    Action, Configuration, Database, Framing, InputFormat, Insert, Pool, Protocol, Target,
};
use crate::nearest::nearest;
use crate::quantities::duration_text;
use crate::remarks::Remark;

/// The default of `retry_timeout`. Who leaves it does not expect rows to wait for an outage.
const RETRY_DEFAULT: Duration = Duration::from_secs(10);

/// The names in `ack` that are no values of the record.
const OF_REQUEST: [&str; 4] = ["_at", "_id", "_client", "rows"];

/// Returns a remark for each timeout that ends a row before its `retry_timeout`, and for each name in `ack` that is not
/// a column.
#[must_use]
pub fn database_warnings(configuration: &Configuration) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for pool in &configuration.pools {
        let Some(database) = pool.database() else { continue };
        match &database.action {
            Action::Query(_) => continue,
            Action::Insert(insert) => ack_names(pool, database, insert, &mut remarks),
            Action::Statement(_) => {}
        }
        json_rpc(configuration, pool, database, &mut remarks);
        // An error of a file is not retried.
        if !matches!(database.target, Target::Sqlite(_)) && !database.retry_timeout.is_zero() {
            timeouts(pool, database, &mut remarks);
        }
    }
    remarks
}

fn remark(pool: &Pool, option: &[&str], message: String) -> Remark {
    let path = ["pool", &pool.name].into_iter().chain(option.iter().copied());
    Remark { path: path.map(str::to_owned).collect(), message }
}

fn timeouts(pool: &Pool, database: &Database, remarks: &mut Vec<Remark>) {
    let (retry, lock) = (database.retry_timeout, database.lock_timeout);
    let (response, queued) = (pool.response_timeout, pool.queue.timeout);
    let is_raised = retry > RETRY_DEFAULT;
    if response <= retry.saturating_add(lock) {
        let option = if is_raised { "retry_timeout" } else { "response_timeout" };
        let message = format!(
            "`response_timeout` ({}) ends rows with an unknown outcome (`!unknown deadline`) before `retry_timeout` ({}) and \
             `lock_timeout` ({}) have passed; set it to more than their sum",
            duration_text(response),
            duration_text(retry),
            duration_text(lock)
        );
        remarks.push(remark(pool, &[option], message));
    }
    if is_raised && queued < retry {
        let message = format!(
            "during an outage only rows that a worker has taken wait for `retry_timeout` ({}); rows in the queue are \
             rejected (`!waited`) after `queue.timeout` ({}); write `queue = {{ timeout = \"{}\" }}`",
            duration_text(retry),
            duration_text(queued),
            duration_text(retry)
        );
        remarks.push(remark(pool, &["retry_timeout"], message));
    }
}

/// A client of JSON-RPC cannot assign another reply to its request.
fn json_rpc(
    configuration: &Configuration,
    pool: &Pool,
    database: &Database,
    remarks: &mut Vec<Remark>,
) {
    let is_json =
        |protocol| matches!(protocol, Protocol::Frames(Framing::JsonRpc | Framing::ContentLength));
    let mut listeners = configuration.listeners.iter();
    let listener =
        listeners.find(|it| it.pool.as_ref() == Some(&pool.name) && is_json(it.protocol));
    if let (Some(listener), false) = (listener, is_response(&database.ack)) {
        let message = format!(
            "`ack` is not a JSON-RPC response, which clients of the listener `{}` expect; write \
             `{{{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":\"ok\"}}}}` (`\"{{id}}\"` for ids that are strings)",
            listener.name
        );
        remarks.push(remark(pool, &["ack"], message));
    }
}

/// Whether an acknowledgement has the members of a JSON-RPC response.
fn is_response(ack: &str) -> bool {
    let mut text = ack.trim();
    let Some(rest) = text.strip_prefix("{{") else { return false };
    text = rest.trim_start();
    let has = |member: &str| {
        let mut places = text.match_indices(member).map(|(at, _)| &text[at + member.len()..]);
        places.any(|after| after.trim_start().starts_with(':'))
    };
    text.ends_with("}}")
        && has("\"jsonrpc\"")
        && has("\"id\"")
        && (has("\"result\"") || has("\"error\""))
}

/// A record may have values that only `ack` uses, so an unknown name is not an error. In TSV it is one, found elsewhere.
fn ack_names(pool: &Pool, database: &Database, insert: &Insert, remarks: &mut Vec<Remark>) {
    if database.input_format == InputFormat::Tsv {
        return;
    }
    let columns = || insert.columns.iter().map(String::as_str);
    let mut names = names(&database.ack);
    names.retain(|name| !OF_REQUEST.contains(name) && columns().all(|column| column != *name));
    for name in names {
        let meant = nearest(name, columns());
        let meant =
            meant.map_or_else(String::new, |meant| format!("; did you mean `{{{meant}}}`?"));
        let message = format!(
            "`ack` names `{name}`, which is not among `columns`: a record without it is rejected (`!row`){meant}"
        );
        remarks.push(remark(pool, &["ack"], message));
    }
}

/// Returns the names in braces. `{{` and `}}` are single braces.
fn names(template: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('{') {
            rest = after;
        } else if let Some((name, after)) = rest.split_once('}') {
            names.push(name);
            rest = after;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    fn warned(pool: &str) -> Vec<String> {
        let text = format!(
            "[listener.l]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"p\"\n[pool.p]\n{pool}"
        );
        let source = Source { name: "x.toml".into(), text };
        let configuration = crate::parse(&source, &|_| None).expect("it is valid");
        let remarks = database_warnings(&configuration);
        remarks.into_iter().map(|it| format!("{}: {}", it.path.join("."), it.message)).collect()
    }

    fn of(database: &str, more: &str) -> Vec<String> {
        warned(&format!(
            "database = \"{database}\"\ninsert = {{ table = \"t\", columns = [\"id\", \"path\"] }}\n{more}\n"
        ))
    }

    #[test]
    fn timeouts_that_end_a_row_before_its_retries_are_named() {
        let server = |more| of("postgres://me@db/hits", more);
        for silent in [
            "",
            "retry_timeout = \"off\"\nresponse_timeout = \"1s\"",
            "retry_timeout = \"5m\"\nresponse_timeout = \"6m\"\nqueue = { timeout = \"5m\" }",
            "retry_timeout = \"1s\"\nqueue = { timeout = \"100ms\" }",
        ] {
            assert_eq!(server(silent), [""; 0], "{silent}");
        }
        let both = server("retry_timeout = \"5m\"");
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[0].starts_with("pool.p.retry_timeout: `response_timeout` (30s)"), "{both:?}");
        assert!(both[1].contains("write `queue = { timeout = \"5m\" }`"), "{both:?}");
        let short = server("response_timeout = \"15s\"");
        assert!(short[0].starts_with("pool.p.response_timeout: "), "{short:?}");
        assert_eq!(of("sqlite:x.db", "retry_timeout = \"5m\"").len(), 0, "a file");
        let query =
            "database = \"mysql://me@db/hits\"\nquery = \"select 1\"\nresponse_timeout = \"1s\"\n";
        assert_eq!(warned(query).len(), 0, "it stores nothing");
    }

    #[test]
    fn an_acknowledgement_that_is_no_response_of_json_rpc_is_named() {
        let warned = |ack: &str| {
            let text = format!(
                "[listener.l]\nlisten = \"127.0.0.1:0\"\nprotocol = \"jsonrpc\"\npool = \"p\"\n[pool.p]\n\
                 database = \"sqlite:x.db\"\nstatement = \"delete from t where id = :id\"\nack = '{ack}'\n"
            );
            let source = Source { name: "x.toml".into(), text };
            let configuration = crate::parse(&source, &|_| None).expect("it is valid");
            database_warnings(&configuration).len()
        };
        assert_eq!(warned("ok"), 1);
        assert_eq!(warned("ok {id}"), 1);
        assert_eq!(warned("{{\"jsonrpc\":\"2.0\",\"id\":{id}}}"), 1);
        assert_eq!(warned("{{\"jsonrpc\":\"2.0\", \"id\" : {id},\"result\":\"ok\"}}"), 0);
        assert_eq!(of("sqlite:x.db", "ack = \"ok {id}\"").len(), 0, "the listener has lines");
    }

    #[test]
    fn a_name_in_the_acknowledgement_that_is_no_column_is_named() {
        let ack = |text: &str| of("sqlite:x.db", &format!("ack = \"{text}\""));
        assert_eq!(ack("ok {id} {path} {_id} {rows} {{idd}}").len(), 0);
        let wrong = ack("ok {idd} {seq}");
        assert!(wrong[0].starts_with("pool.p.ack: `ack` names `idd`"), "{wrong:?}");
        assert!(wrong[0].ends_with("did you mean `{id}`?"), "{wrong:?}");
        assert!(wrong[1].ends_with("(`!row`)"), "{wrong:?}");
        assert_eq!(of("sqlite:x.db", "ack = \"{x}\"\ninput_format = \"tsv\"").len(), 0);
    }
}
