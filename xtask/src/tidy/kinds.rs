//! Rules about names that only a few files may use: the kinds of workers, and protocols.
//!
//! A kind of worker is added where the kinds are listed and in its own files. No other code depends on the kind of a
//! worker. The code that stores requests and chooses their workers does not depend on a protocol.

use super::file::File;
use super::finding::Finding;
use super::lexer;
use super::test_code::test_lines;

/// Enums of kinds, and the files that may name their variants: the lists of kinds, and the files of each kind. A name
/// that ends in `/` is a folder.
const KINDS: [(&str, &[&str]); 3] = [
    (
        "Worker",
        &[
            "crates/gateway/src/build/workers.rs",
            "crates/settings/src/fill.rs",
            "crates/settings/src/model/pool.rs",
            "crates/settings/src/reload.rs",
        ],
    ),
    (
        "WorkersConfig",
        &[
            "crates/backend/src/backends.rs",
            "crates/gateway/src/build/program.rs",
            "crates/gateway/src/build/workers.rs",
            "crates/toys/src/build.rs",
            "crates/backend/src/workers.rs",
        ],
    ),
    (
        "StreamPurpose",
        &[
            "crates/backend/src/spawned_http.rs",
            "crates/backend/src/spawned_http/",
            "crates/flow/src/stream_owner.rs",
            "crates/backend/src/programs/",
            "crates/backend/src/upstream.rs",
            "crates/backend/src/upstream/",
        ],
    ),
];

/// Code that must not depend on a protocol: exchanges and pools.
const PLAIN: [&str; 4] = [
    "crates/exchange/src/",
    "crates/engine/src/exchanges.rs",
    "crates/flow/src/request_meta.rs",
    "crates/pool/src/",
];
/// Parts of names that refer to a protocol, in lower case.
const PROTOCOLS: [&str; 4] = ["http", "json_rpc", "jsonrpc", "mcp"];

/// Returns the findings in one file.
pub(super) fn check(file: &File, code: &str) -> Vec<Finding> {
    let may = |files: &[&str]| files.iter().any(|name| is_in(&file.path, name));
    let plain = may(&PLAIN);
    let closed: Vec<&str> =
        KINDS.into_iter().filter(|(_, files)| !may(files)).map(|(name, _)| name).collect();
    let lines = code.lines().zip(test_lines(&file.path, code)).enumerate();
    let mut findings = Vec::new();
    for (index, (code, _)) in lines.filter(|(_, (_, in_test))| !in_test) {
        let mut find = |text: String| findings.push(Finding::new(&file.path, index + 1, text));
        for name in closed.iter().filter(|name| names_a_kind(code, name)) {
            find(format!("a branch on the kind of worker (`{name}::…`): ask the worker instead"));
        }
        let protocol = PROTOCOLS.iter().find(|name| plain && code.to_lowercase().contains(**name));
        if let Some(name) = protocol {
            find(format!("`{name}` in what knows of no protocol: say what it means for a request"));
        }
    }
    findings
}

fn is_in(path: &str, name: &str) -> bool {
    if name.ends_with('/') { path.starts_with(name) } else { path == name }
}

/// Returns whether one variant of this enum is named, or all are imported.
fn names_a_kind(code: &str, name: &str) -> bool {
    let is_variant = |c: char| c.is_ascii_uppercase() || "{*".contains(c);
    lexer::after_each(code, name)
        .filter_map(|rest| rest.strip_prefix("::"))
        .any(|rest| rest.starts_with(is_variant))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        check(&file, &lexer::views(text).code).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nobody_asks_of_which_kind_a_worker_is() {
        let code = "let workers = plan.open(pool);\nworkers.start(cx, worker);\n\
                    // WorkersConfig::Upstream\nmatch it { WorkersConfig::OffShard => 1 }\n\
                    Way::Worker(id);\nuse settings::Worker::*;\nStreamPurpose::Link(link)\n";
        let found = findings("crates/gateway/src/shard.rs", code);
        let lines: Vec<_> = found.iter().map(|it| it.split(':').nth(1).unwrap()).collect();
        assert_eq!(lines, ["4", "6", "7"], "{found:?}");
        let found = findings("crates/backend/src/workers.rs", code);
        assert_eq!(found.len(), 2, "settings' own kinds, and streams: {found:?}");
        let tests = format!("#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert_eq!(findings("crates/gateway/src/shard.rs", &tests).len(), 0);
    }

    #[test]
    fn exchanges_and_pools_know_of_no_protocol() {
        let code = "use wire::http1::Method;\n// HTTP\nlet a = \"http\";\nconst HTTP: u8 = 1;\n";
        assert_eq!(findings("crates/engine/src/exchanges.rs", code).len(), 2);
        assert_eq!(findings("crates/pool/src/queue.rs", code).len(), 2);
        assert_eq!(findings("crates/flow/src/json_reply.rs", code).len(), 0);
    }
}
