//! Options of one kind of worker, in a separate table and in the short form.

use settings::{Configuration, Source, parse};

fn right(pool: &str) -> Configuration {
    let text = format!("[listener.main]\nlisten = \":7000\"\nPROTOCOLpool = \"a\"\n{pool}");
    let http = pool.contains("servers");
    let text = text.replace("PROTOCOL", if http { "protocol = \"http\"\n" } else { "" });
    let source = Source { name: "roadstead.toml".into(), text };
    parse(&source, &|_| None).unwrap_or_else(|errors| panic!("{errors}"))
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
