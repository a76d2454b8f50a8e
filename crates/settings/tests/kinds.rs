//! Options of one kind of worker, in a separate table and in the short form.

use settings::{Configuration, Diagnostics, Source, parse};

fn read(pool: &str) -> Result<Configuration, Diagnostics> {
    let text = format!("[listener.main]\nlisten = \":7000\"\nPROTOCOLpool = \"a\"\n{pool}");
    let http = pool.contains("servers");
    let text = text.replace("PROTOCOL", if http { "protocol = \"http\"\n" } else { "" });
    parse(&Source { name: "roadstead.toml".into(), text }, &|_| None)
}

fn right(pool: &str) -> Configuration {
    read(pool).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_table_and_the_short_form_are_the_same() {
    for (table, short) in [
        (
            "[pool.a]\nworkers = 2\n[pool.a.program]\ncommand = [\"cat\"]\nframing = \"nul\"\n\
             recycle = { max_requests = 9 }\n",
            "[pool.a]\nworkers = 2\nprogram = [\"cat\"]\nframing = \"nul\"\nrecycle.max_requests = 9\n",
        ),
        (
            "[pool.a]\nmax_concurrent = 9\n[pool.a.upstream]\nservers = [\"127.0.0.1:1\"]\n\
             connect_timeout = \"1s\"\n",
            "[pool.a]\nmax_concurrent = 9\nservers = [\"127.0.0.1:1\"]\nconnect_timeout = \"1s\"\n",
        ),
        (
            "[pool.a.database]\nurl = \"sqlite:a.db\"\nstatement = \"x\"\nbatch = { rows = 3 }\n",
            "[pool.a]\ndatabase = \"sqlite:a.db\"\nstatement = \"x\"\nbatch.rows = 3\n",
        ),
        (
            "[pool.a.database]\nurl = \"postgres://me@db/a\"\nquery = \"x\"\nconnect_timeout = \"1s\"\n",
            "[pool.a]\ndatabase = \"postgres://me@db/a\"\nquery = \"x\"\nconnect_timeout = \"1s\"\n",
        ),
    ] {
        assert_eq!(right(table), right(short), "{table}");
    }
}

#[test]
fn each_server_and_the_pool_have_limits_of_one_name() {
    let read = right(
        "[pool.a]\nmax_concurrent = 30\n[pool.a.upstream]\nmax_concurrent = 20\n\
         servers = [\"127.0.0.1:1\", { address = \"127.0.0.1:2\", max_concurrent = 5 }]\n",
    );
    let pool = &read.pools[0];
    let servers = pool.servers().expect("it has servers");
    let own: Vec<_> = servers.servers.iter().map(|server| server.concurrent_max).collect();
    assert_eq!(pool.balancing.concurrent_max, Some(30));
    assert_eq!((servers.concurrent_max, own), (20, vec![None, Some(5)]));
    // Next to the short form.
    let read = right("[pool.a]\nservers = [\"127.0.0.1:1\"]\nupstream.max_concurrent = 20\n");
    assert_eq!(read.pools[0].servers().expect("it has servers").concurrent_max, 20);
}

#[test]
fn what_does_not_belong_to_a_kind_is_said() {
    let program = "[pool.a.program]\ncommand = [\"cat\"]\n";
    for (pool, word, message, suggestion) in [
        (
            format!("{program}statement = \"x\"\n"),
            "statement",
            "`[pool.a.program]` has no option `statement`",
            "it is an option of `[pool.NAME.database]`",
        ),
        (
            format!("{program}queue = {{ max_requests = 5 }}\n"),
            "queue",
            "`[pool.a.program]` has no option `queue`",
            "it is an option of `[pool.NAME]`",
        ),
        (
            format!("{program}pipelin = 5\n"),
            "pipelin",
            "`[pool.a.program]` has no option `pipelin`",
            "write `pipeline` instead of `pipelin`",
        ),
        (
            format!("{program}grace = \"1s\"\n"),
            "grace",
            "`[pool.a.program]` has no option `grace`",
            "write `stop_timeout` instead of `grace`",
        ),
        (
            "[pool.a.program]\nframing = \"nul\"\n".to_owned(),
            "program",
            "`[pool.a.program]` has no `command`",
            "add `command = [\"perl\", \"parse.pl\"]`",
        ),
        (
            "[pool.a]\nservers = [\"127.0.0.1:1\"]\nkeepalive_timeout = \"1s\"\n[pool.a.upstream]\n\
             keepalive_timeout = \"2s\"\n"
                .to_owned(),
            "keepalive_timeout",
            "`keepalive_timeout` is given twice",
            "keep one of the two",
        ),
    ] {
        let errors = read(&pool).expect_err(&pool);
        assert_eq!(errors.iter().count(), 1, "{errors}");
        let error = errors.iter().next().expect("there is one");
        assert_eq!((error.word.as_str(), error.message.as_str()), (word, message));
        assert_eq!(error.suggestion.as_deref(), Some(suggestion));
    }
}
