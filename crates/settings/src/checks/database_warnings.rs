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
pub(super) fn database_warnings(configuration: &Configuration) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for pool in &configuration.pools {
        let Some(database) = pool.database() else { continue };
        match &database.action {
            Action::Query(query) => {
                names_of_request(pool, "query", &parameters(&query.sql), &mut remarks);
                continue;
            }
            Action::Insert(insert) => ack_names(pool, database, insert, &mut remarks),
            Action::Statement(statement) => {
                names_of_request(pool, "statement", &parameters(statement), &mut remarks);
            }
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

/// Names that begin like those of the request, but are none of them: probably one of them was meant.
fn names_of_request(pool: &Pool, option: &str, names: &[&str], remarks: &mut Vec<Remark>) {
    for name in names.iter().filter(|name| name.starts_with('_') && !OF_REQUEST.contains(*name)) {
        let message = format!(
            "`:{name}` is a value of the record; Roadstead adds `:_at` (the time), `:_id` and `:_client`"
        );
        remarks.push(remark(pool, &[option], message));
    }
}

/// Returns the words after a single colon. Some may be within a string or a comment.
fn parameters(sql: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words: Vec<&str> = Vec::new();
    for (at, _) in sql.match_indices(':') {
        let rest = &sql[at + 1..];
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        if !word.is_empty() && !sql[..at].ends_with(':') && !words.contains(&word) {
            words.push(word);
        }
    }
    words
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
    fn a_name_that_looks_like_one_of_the_request_is_named() {
        let of = |option: &str, sql: &str| {
            warned(&format!("database = \"sqlite:x.db\"\n{option} = \"{sql}\"\n"))
        };
        assert_eq!(of("statement", "insert into t values (:_at, :_id, :_client, :a_b)"), [""; 0]);
        let wrong = of("statement", "insert into t values (:_time, :_time, x::_int4)");
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("pool.p.statement: `:_time` is a value"), "{wrong:?}");
        assert_eq!(of("query", "select * from t where a = :_ID").len(), 1);
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
