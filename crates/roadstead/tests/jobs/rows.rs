//! Rows of a query as lines: one line per row, and `\.` after the last.

use rusqlite::Connection;

use crate::daemon::{Daemon, folder, one_pool};

fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Starts a daemon that answers `{"count": N}` with this number of rows of an empty SQLite database.
fn counting(listener: &str, pool: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let file = folder.path().join("rows.db");
    Connection::open(&file).unwrap().execute_batch("create table t (x)").unwrap();
    let sql = "with recursive n (x) as (select 1 union all select x + 1 from n) \
        select x, case x when 3 then null else 'some text that makes a row longer' end as filler \
        from n limit :count";
    let pool = format!(
        "database = \"sqlite:{}\"\nquery = \"{sql}\"\nrows_max = 1000000\nreply_max = \"1GiB\"\n{pool}\n",
        file.display()
    );
    let daemon = Daemon::serve(folder.path(), &one_pool(listener, &pool));
    (folder, daemon)
}

#[test]
fn each_row_is_a_line_and_the_last_line_says_that_it_is_the_end() {
    let (_folder, daemon) = counting("", "output_format = \"tsv\"\nworkers = 2\n");
    let mut client = daemon.connect();
    client.send("{\"count\":3}\n{\"count\":0}\n{}\n{\"count\":1}\n");
    client.finish();
    let filler = "some text that makes a row longer";
    assert_eq!(
        client.rest(),
        [
            &*format!("1\t{filler}"),
            &format!("2\t{filler}"),
            "3\t\\N",
            "\\.",
            "\\.",
            "!row the record has no `count`",
            &format!("1\t{filler}"),
            "\\.",
        ]
    );
    let (_folder, daemon) = counting("", "output_format = \"lines\"\n");
    let mut client = daemon.connect();
    client.send("{\"count\":1}\n");
    assert_eq!(client.line(), format!("{{\"x\":1,\"filler\":\"{filler}\"}}"));
    assert_eq!(client.line(), "\\.");
}

#[test]
fn replies_of_many_rows_keep_the_order_of_their_requests() {
    // The second query runs on another worker while the first reply is sent, and its reply waits.
    let (_folder, daemon) =
        counting("reply_held_max = \"64MiB\"\n", "output_format = \"tsv\"\nworkers = 2\n");
    let mut client = daemon.connect();
    client.send("{\"count\":30000}\n{\"count\":20000}\n{\"count\":1}\n");
    client.finish();
    let lines = client.rest();
    let ends: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| *line == "\\.").map(|(at, _)| at).collect();
    assert_eq!(ends, [30_000, 50_001, 50_003]);
    for (at, line) in lines[..30_000].iter().chain(&lines[30_001..50_001]).enumerate() {
        let number = at % 30_000 + 1;
        assert!(line.starts_with(&format!("{number}\t")), "{at}: {line}");
    }
}

#[test]
fn rows_come_as_the_client_takes_them_and_are_never_held_whole() {
    let (_folder, daemon) = counting("", "output_format = \"lines\"\nworkers = 2\n");
    let mut warm = daemon.connect();
    assert!(warm.ask("{\"count\":1}").starts_with('{'));
    assert_eq!(warm.line(), "\\.");
    let before = resident(daemon.pid());
    let mut slow = daemon.connect();
    slow.send("{\"count\":400000}\n");
    // The client reads nothing yet and its worker waits for it, while another worker serves another client.
    for _ in 0..100 {
        assert!(warm.ask("{\"count\":1}").starts_with('{'));
        assert_eq!(warm.line(), "\\.");
    }
    let held = resident(daemon.pid()).saturating_sub(before);
    let mut bytes = 0;
    for number in 1..=400_000 {
        let line = slow.line();
        assert!(line.starts_with(&format!("{{\"x\":{number},")), "{line}");
        bytes += line.len() + 1;
    }
    assert_eq!(slow.line(), "\\.");
    assert!(bytes > 20 << 20 && held < bytes / 2, "{held} bytes are held of a reply of {bytes}");
    // Clients that disconnect free their workers.
    for _ in 0..4 {
        daemon.connect().send("{\"count\":400000}\n");
    }
    assert!(warm.ask("{\"count\":1}").starts_with('{'));
}

#[test]
fn rows_that_end_early_end_otherwise() {
    let (_folder, daemon) = counting("", "output_format = \"tsv\"\n");
    let mut client = daemon.connect();
    client.send("{\"count\":1000001}\n{\"count\":1}\n");
    client.finish();
    let lines = client.rest();
    let end = lines.iter().position(|line| !line.contains('\t')).unwrap();
    assert_eq!(&*lines[end], "!failed rows more than 1000000 rows");
    assert!(end > 900_000, "{end} rows were on their way");
    assert_eq!(lines[end + 2..], ["\\."]);
}

#[test]
fn other_framings_have_a_frame_for_each_row() {
    for (framing, request, expected) in [
        (
            "netstring",
            "11:{\"count\":2},",
            "35:1\tsome text that makes a row longer,35:2\tsome text that makes a row longer,2:\\.,",
        ),
        ("len1", "\u{b}{\"count\":1}", "#1\tsome text that makes a row longer\u{2}\\."),
    ] {
        let folder = folder();
        let file = folder.path().join("rows.db");
        Connection::open(&file).unwrap().execute_batch("create table t (x)").unwrap();
        let pool = format!(
            "database = \"sqlite:{}\"\noutput_format = \"tsv\"\nquery = \"with recursive n (x) as (select 1 union all \
             select x + 1 from n) select x, 'some text that makes a row longer' from n limit :count\"\n",
            file.display()
        );
        let configuration =
            one_pool("reply = \"plain\"\n", &pool).replace("\"lines\"", &format!("\"{framing}\""));
        let daemon = Daemon::serve(folder.path(), &configuration);
        let mut client = daemon.connect();
        client.send(request);
        let reply = String::from_utf8(client.bytes(expected.len())).unwrap();
        assert_eq!(reply, expected, "{framing}");
    }
}

#[test]
fn a_row_that_no_frame_can_carry_ends_its_reply_alone() {
    let folder = folder();
    let file = folder.path().join("rows.db");
    Connection::open(&file).unwrap().execute_batch("create table t (x)").unwrap();
    let pool = format!(
        "database = \"sqlite:{}\"\noutput_format = \"tsv\"\nquery = \"select 'a' union all select \
         printf('%.*c', :length, 'x') union all select 'b'\"\n",
        file.display()
    );
    let configuration = one_pool("reply = \"plain\"\n", &pool).replace("\"lines\"", "\"len1\"");
    let daemon = Daemon::serve(folder.path(), &configuration);
    let mut client = daemon.connect();
    client.send("\u{e}{\"length\":300}\u{c}{\"length\":2}");
    assert_eq!(client.bytes(2), b"\x01a");
    let length = usize::from(client.bytes(1)[0]);
    let refused = String::from_utf8(client.bytes(length)).unwrap();
    assert!(refused.starts_with("!unknown reply "), "{refused}");
    assert_eq!(client.bytes(10), b"\x01a\x02xx\x01b\x02\\.");
}
