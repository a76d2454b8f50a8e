//! Generates the page of all outcomes from the table of causes.

use std::fmt::Write;

use exchange::{Cause, Verdict};

/// Returns the Markdown page, as stored in `docs/outcomes.md`.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# How requests end\n\n\
         Every request ends with a cause and a phase (`receive`, `queue`, `work`, `reply`). The words are the\n\
         same on the wire, in the log and in the metric `roadstead_requests_finished_total{pool, verdict, cause, phase}`.\n\
         They are stable.\n\n\
         A client of a `lines` listener reads, for a request that was not answered:\n\n\
         | verdict | `reply = \"plain\"` | `reply = \"status\"` | what it means |\n|---|---|---|---|\n\
         | refused | `!CODE text` | `!CODE text` | decided before anything took effect; whether sending it again helps depends on the code ([below](#which-requests-to-send-again)) |\n\
         | failed | `!failed CODE text` | `-CODE text` | tried, and it did not take effect |\n\
         | unknown | `!unknown CODE text` | `-CODE text` | it may or may not have taken effect |\n\n\
         The default, `auto`, is `status` on `len1`, `len2`, `len4` and `netstring`, and `plain` elsewhere; on `raw` a request that was\n\
         not answered resets the connection instead. With `status`, replies of workers begin with `+`. In a chain (`then`), `refused` is the word of the pool that\n\
         refused: it did nothing, but the pools before it have done their part. A line that begins with `!` from a program whose pool\n\
         has a `then` refuses the request in the program's own words.\n\n\
         JSON-RPC is the `code` of the error object on listeners of `jsonrpc` and `content-length`; its `data` has `cause` and `verdict`. From -32040 to -32059 the\n\
         request was refused, from -32060 to -32069 it failed, from -32070 to -32079 its outcome is unknown; the codes of the standard are refusals\n\
         (`crates/wire/src/jsonrpc/error.rs`, test `the_code_tells_the_verdict`).\n\n\
         | code | verdict | HTTP | JSON-RPC | meaning |\n|---|---|---|---|---|\n",
    );
    for cause in Cause::ALL.iter().filter(|cause| cause.verdict() != Verdict::Answered) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            cause.as_str(),
            cause.verdict().as_str(),
            gateway::status_of(*cause),
            json_rpc_code(*cause),
            cause.meaning()
        );
    }
    page.push_str(EXAMPLE);
    page
}

/// Returns the cell with the JSON-RPC error code. It is empty if no client can receive the error.
fn json_rpc_code(cause: Cause) -> String {
    match cause.verdict() {
        Verdict::Left => "–".to_owned(),
        _ => wire::jsonrpc::code(cause).to_string(),
    }
}

const EXAMPLE: &str = "\nA request that was answered has the cause `ok` in metrics and in the access log, also if the answer is an HTTP error status or an error of the program.\n\n\
    A request that ended as `left` is only counted, because no client receives a reply; 499 is written to the access log only.\n\n\
    `down` also means that every healthy worker is disabled, drained or has the weight 0. A program pool is down after five failed starts in a row. A program that ends after it was given a request, or is killed\n\
    for what it did with one, has started: its requests end as `died`, `reply`, `garbled` or `deadline` ([rule](guides/programs.md#what-happens-when-a-program-fails)).\n\
    A database that cannot be reached does not make its pool `down`: requests wait in the queue, and end as `waited` after `queue.timeout`.\n\n\
    Over HTTP the body of the answer is `CODE: ` and its meaning, or what was wrong with the record or row, and `Retry-After: 1` goes with 429 and 503. Other bodies:\n\n\
    - A request that breaks a rule of HTTP (400, 413, 414, 417, 431, 501, 505) has the status of its [reason](http1.md), and the body `REASON: ` and a sentence, for example `body-too-long: …`. Its cause is\n\
    \x20 `malformed`, also with 413 and 431; `toolong` stands for frames only.\n\
    - 408 after `request_read_timeout` or `body_rate_min` has a sentence without a code in front of it; 408 after `request_timeout` begins with `incomplete: `. The cause is `incomplete` in both cases.\n\
    - The 503 of a request whose body goes over `bodies_max` has a sentence without a code; its cause is `full`.\n\
    - 405 (with `Allow`), 404, 400 and 415 that a pool of databases answers before a request becomes a record have a sentence without a code; their cause is `record`.\n\n\
    A row that ends as `row`, `record`, `ignored` or `norow` in a pool with a table of [`dead_letter_table`](guides/databases.md#what-counts-as-stored) is kept there as a dead letter. If its client sends it again and it is then stored, and the operator runs\n\
    `ctl dead retry` as well, the row is there twice, unless a `key` prevents that: let either the clients or the operator repeat such rows.\n\n\
    If a limit of size or time is exceeded after a reply has begun, its connection is closed.\n\n\
    The reply to a query begins when it is whole or larger than 1 MiB. Up to there, more than `rows_max` or `reply_max`, and any other error, is the answer of this table.\n\
    Behind that a reply is cut off where it breaks a limit: HTTP closes the connection before the end of the body (in HTTP/1.0 by a reset), so that no client takes it for whole; in\n\
    lines and frames `!failed rows …` stands in place of the `\\.` that ends the rows.\n\n\
    ## Which requests to send again\n\n\
    A request that is refused for its own content is refused again: correct it first. Any other refused request, and one that failed with `database` or `unreached`,\n\
    may be sent again after a pause. In Python, for a client of a `lines` listener:\n\n\
    ```python\n\
    WRONG = {\"!row\", \"!record\", \"!ignored\", \"!norow\", \"!toolong\", \"!malformed\", \"!nomethod\", \"!noroute\",\n\
    \x20        \"!nopool\", \"!denied\", \"!unauthorized\"}\n\n\
    def outcome(line):\n\
    \x20   code = line.split(\" \", 1)[0]\n\
    \x20   if code == \"!unknown\":   return \"unknown\"    # it may have happened: look before you send it again\n\
    \x20   if line.startswith(\"!failed rows \"): return \"rejected\"\n\
    \x20   if code == \"!failed\":    return \"failed\"     # it did not happen: send it again later\n\
    \x20   if code in WRONG:        return \"rejected\"   # do not send it again unchanged\n\
    \x20   if code.startswith(\"!\"): return \"refused\"    # nothing happened: send it again later\n\
    \x20   return \"answered\"\n\
    ```\n\n\
    Of a program whose pool has a `then`, the words behind `!` are its own: whether to send the line again is what they say.\n";
