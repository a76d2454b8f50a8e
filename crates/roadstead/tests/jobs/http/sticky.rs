//! Clients that return to their server: with a cookie of each mode, and with keys of HTTP.

use super::balance::{ctl, named};
use super::{CLOSE, serve_pool, status, talk};
use crate::daemon::{Daemon, becomes, until};
use crate::http_server::{Answer, Server};

fn three() -> [Server; 3] {
    ["a", "b", "c"].map(named)
}

fn pool(servers: &[Server], more: &str) -> String {
    let servers: Vec<String> =
        servers.iter().map(|server| format!("\"127.0.0.1:{}\"", server.port)).collect();
    format!("servers = [{}]\n{more}", servers.join(", "))
}

/// The reply to a request with these lines in its head.
fn ask(daemon: &Daemon, target: &str, lines: &str) -> String {
    let said = talk(daemon, format!("GET {target} HTTP/1.1\r\n{lines}{CLOSE}"));
    assert_eq!(status(&said), "200", "{said}");
    said
}

fn body(reply: &str) -> &str {
    reply.rsplit("\r\n\r\n").next().unwrap_or_default()
}

/// The cookies that a reply sets.
fn cookies(reply: &str) -> Vec<&str> {
    reply.lines().filter_map(|line| line.strip_prefix("Set-Cookie: ")).collect()
}

/// Returns the header line that a client sends back for a cookie.
fn line(cookie: &str) -> String {
    format!("Cookie: other=1; {}\r\n", cookie.split(';').next().unwrap_or_default())
}

fn server(name: &str, set_cookie: &str) -> Answer {
    let length = name.len();
    let text = format!(
        "HTTP/1.1 200 OK\r\nSet-Cookie: x=y\r\n{set_cookie}Content-Length: {length}\r\n\r\n{name}"
    );
    Answer::Bytes(text.into_bytes())
}

#[test]
fn an_inserted_cookie_brings_its_client_back_and_tells_no_address() {
    let servers = three();
    let sticky = "sticky = { cookie = \"worker\", max_age = \"1h\", secure = true, same_site = \"none\", path = \"/app\" }";
    let (_folder, daemon) = serve_pool("", &pool(&servers, sticky));
    let replies: Vec<String> = (0..6).map(|_| ask(&daemon, "/", "")).collect();
    for reply in &replies {
        let [cookie] = cookies(reply)[..] else { panic!("{reply}") };
        let (value, attributes) = cookie.split_once(';').unwrap();
        assert_eq!(attributes, " Path=/app; Max-Age=3600; HttpOnly; Secure; SameSite=None");
        let digits = value.strip_prefix("worker=").unwrap();
        assert!(digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        for _ in 0..3 {
            let again = ask(&daemon, "/", &line(cookie));
            assert_eq!(body(&again), body(reply));
            assert!(cookies(&again).is_empty(), "it knows already: {again}");
        }
    }
    // An invented cookie binds no client.
    let foreign = ask(&daemon, "/", "Cookie: worker=0011223344556677\r\n");
    assert_eq!(cookies(&foreign).len(), 1);
}

#[test]
fn a_client_keeps_its_server_at_weight_0_and_gets_another_when_it_is_gone() {
    let servers = three();
    let sticky = "sticky = { cookie = \"worker\", value = \"signed\", secret = \"file:secret\" }";
    let folder = crate::daemon::folder();
    std::fs::write(folder.path().join("secret"), "0123456789abcdef\n").unwrap();
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         pool = \"main\"\n[pool.main]\n{}\n",
        pool(&servers, sticky)
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let first = ask(&daemon, "/", "");
    let cookie = cookies(&first)[0].to_owned();
    assert_eq!(cookie.split(';').next().unwrap().len(), "worker=".len() + 56);
    let place = ["a", "b", "c"].iter().position(|name| *name == body(&first)).unwrap();
    let name = format!("127.0.0.1:{}", servers[place].port);
    ctl(&daemon, &["weight", "main", &name, "0"]);
    for _ in 0..4 {
        assert_eq!(body(&ask(&daemon, "/", &line(&cookie))), body(&first));
        assert_ne!(body(&ask(&daemon, "/", "")), body(&first));
    }
    // The secret is kept over a restart of the daemon, and so its cookies stay valid.
    assert!(daemon.stop().success());
    let daemon = Daemon::serve(folder.path(), &text);
    assert_eq!(body(&ask(&daemon, "/", &line(&cookie))), body(&first));
    ctl(&daemon, &["disable", "main", &name]);
    let moved = ask(&daemon, "/", &line(&cookie));
    assert_ne!(body(&moved), body(&first));
    assert_eq!(body(&ask(&daemon, "/", &line(cookies(&moved)[0]))), body(&moved));
}

#[test]
fn a_client_whose_server_is_gone_is_refused_where_that_is_wanted() {
    let servers = three();
    let sticky = "sticky = { cookie = \"worker\", redispatch = false }";
    let (_folder, daemon) = serve_pool("", &pool(&servers, sticky));
    let first = ask(&daemon, "/", "");
    let place = ["a", "b", "c"].iter().position(|name| *name == body(&first)).unwrap();
    ctl(&daemon, &["disable", "main", &format!("127.0.0.1:{}", servers[place].port)]);
    let lines = line(cookies(&first)[0]);
    let said = talk(&daemon, format!("GET / HTTP/1.1\r\n{lines}{CLOSE}"));
    assert!(said.contains("gone"), "{said}");
    assert_ne!(status(&said), "200", "{said}");
}

#[test]
fn a_servers_own_cookie_is_rewritten_and_its_others_are_left_alone() {
    let servers = three();
    for (one, name) in servers.iter().zip(["a", "b", "c"]) {
        one.answer("/", server(name, "Set-Cookie: worker=000; Path=/; HttpOnly\r\n"));
    }
    let sticky = "sticky = { cookie = \"worker\", mode = \"rewrite\" }";
    let (_folder, daemon) = serve_pool("", &pool(&servers, sticky));
    let first = ask(&daemon, "/", "");
    let [other, ours] = cookies(&first)[..] else { panic!("{first}") };
    assert_eq!(other, "x=y");
    assert!(ours.ends_with("; Path=/; HttpOnly") && !ours.contains("=000"), "{ours}");
    for _ in 0..4 {
        assert_eq!(body(&ask(&daemon, "/", &line(ours))), body(&first));
    }
}

#[test]
fn a_prefix_is_put_before_a_servers_cookie_and_the_server_never_sees_it() {
    let servers = three();
    for (one, name) in servers.iter().zip(["a", "b", "c"]) {
        one.answer("/", server(name, "Set-Cookie: session=s~1; Path=/\r\n"));
    }
    let sticky = "sticky = { cookie = \"session\", mode = \"prefix\" }";
    let (_folder, daemon) = serve_pool("", &pool(&servers, sticky));
    let first = ask(&daemon, "/", "");
    let cookie = cookies(&first)[1];
    assert!(cookie.ends_with("~s~1; Path=/"), "{cookie}");
    for _ in 0..4 {
        assert_eq!(body(&ask(&daemon, "/", &line(cookie))), body(&first));
    }
    let place = ["a", "b", "c"].iter().position(|name| *name == body(&first)).unwrap();
    let heads = servers[place].heads("/");
    let seen = heads.iter().filter(|head| head.contains("Cookie: other=1; session=s~1\r\n"));
    assert_eq!(seen.count(), 4, "{heads:?}");
    // Two paths; and a cookie of the server with a similar name.
    let pair = cookie.split(';').next().unwrap();
    let both = format!("Cookie: {pair}; {pair}\r\nCookie: session=z~2; {pair}\r\n");
    assert_eq!(body(&ask(&daemon, "/", &both)), body(&first));
    let last = servers[place].heads("/").pop().unwrap();
    let cut = "Cookie: session=s~1; session=s~1\r\nCookie: session=z~2; session=s~1\r\n";
    assert!(last.contains(cut), "{last}");
}

#[test]
fn a_servers_cookie_is_learnt_and_nothing_is_changed() {
    let servers = three();
    for (one, name) in servers.iter().zip(["a", "b", "c"]) {
        one.answer("/login", server(name, &format!("Set-Cookie: session=of-{name}; Path=/\r\n")));
    }
    let sticky = "sticky = { cookie = \"session\", mode = \"passive\" }";
    let (_folder, daemon) = serve_pool("", &pool(&servers, sticky));
    let first = ask(&daemon, "/login", "");
    let cookie = cookies(&first)[1];
    assert_eq!(cookie, format!("session=of-{}; Path=/", body(&first)));
    for _ in 0..4 {
        let again = ask(&daemon, "/", &line(cookie));
        assert_eq!(body(&again), body(&first));
        assert!(cookies(&again).is_empty(), "{again}");
    }
}

#[test]
fn keys_of_http_bind_and_hash() {
    let servers = three();
    for (more, target, lines) in [
        ("sticky = { key = \"header:x-user\" }", "/", "X-User: ann\r\n"),
        ("sticky = { key = \"cookie:user\" }", "/", "Cookie: a=b; user=ann\r\n"),
        ("balance = \"hash\"\nhash = \"header:x-user\"", "/", "X-User: ann\r\n"),
        ("balance = \"hash\"\nhash = \"path\"", "/", ""),
    ] {
        let (_folder, daemon) = serve_pool("", &pool(&servers, more));
        let first = ask(&daemon, target, lines);
        for _ in 0..4 {
            assert_eq!(body(&ask(&daemon, target, lines)), body(&first), "{more}");
        }
    }
    let sticky = "sticky = { key = \"query:user\" }";
    for server in &servers {
        let name = server.port.to_string();
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
        server.answer("/?page=1&user=ann", Answer::Bytes(text.into_bytes()));
    }
    let (_folder, daemon) = serve_pool("", &pool(&servers, sticky));
    let first = ask(&daemon, "/?page=1&user=ann", "");
    for _ in 0..4 {
        assert_eq!(body(&ask(&daemon, "/?page=1&user=ann", "")), body(&first));
    }
}

#[test]
fn a_fallback_page_comes_and_goes_for_a_client_that_stays() {
    let server = named("a");
    let folder = crate::daemon::folder();
    std::fs::write(folder.path().join("sorry.html"), "<p>sorry</p>\n").unwrap();
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         pool = \"main\"\n[pool.main]\nservers = [\"127.0.0.1:{}\"]\nsticky = {{ cookie = \"worker\" }}\n\
         fallback = {{ file = \"sorry.html\", retry_after = \"1500ms\", until = \"50%\" }}\n\
         health_check = {{ check = \"http\", interval = \"20ms\" }}\n",
        server.port
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let cookie = cookies(&ask(&daemon, "/", ""))[0].to_owned();
    let mut client = super::connect(&daemon);
    let get = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", line(&cookie));
    let mut again = |end: &str| {
        use std::io::Write;
        client.write_all(get.as_bytes()).unwrap();
        super::read_until(&mut client, end)
    };
    assert_eq!(status(&again("\r\n\r\na")), "200");
    ctl(&daemon, &["fallback", "main", "on"]);
    let fallback = again("<p>sorry</p>");
    assert_eq!(
        fallback,
        "HTTP/1.1 503 Service Unavailable\r\nCache-Control: no-store\r\nRetry-After: 2\r\n\
         Content-Type: text/html; charset=utf-8\r\nContent-Length: 12\r\n\r\n<p>sorry</p>"
    );
    assert_eq!(daemon.status()["pools"][0]["fallback"]["reason"], "operator");
    ctl(&daemon, &["fallback", "main", "off"]);
    assert_eq!(status(&again("\r\n\r\na")), "200");
    // The fallback starts when no server is left, and ends when the server is back.
    server.answer("/", Answer::Bytes(b"HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\na".to_vec()));
    until("nobody serves", || daemon.metric("roadstead_workers_serving", &[]) == 0);
    assert_eq!(status(&again("<p>sorry</p>")), "503");
    server.answer("/", Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec()));
    let back = || daemon.metric("roadstead_fallback_active", &[]) == 0;
    assert!(becomes(std::time::Duration::from_secs(30), back), "{}", daemon.page("/status"));
    assert_eq!(status(&again("\r\n\r\na")), "200");
}

#[test]
fn a_pool_that_is_fallback_can_send_its_clients_elsewhere() {
    let server = named("a");
    let fallback = "fallback = { redirect = \"https://status.example/?from=app\", status = 307, retry_after = \"off\" }";
    let (_folder, daemon) = serve_pool("", &pool(&[server], fallback));
    ctl(&daemon, &["fallback", "main", "on"]);
    let said = talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "307", "{said}");
    assert!(said.contains("Location: https://status.example/?from=app\r\n"), "{said}");
    assert!(!said.contains("Retry-After"), "{said}");
}

/// Starts two servers that answer `/` with a cookie of their own. The server of the bound client resets `/broken`. Also
/// returns the client's cookie and the index of its server.
fn bound(shards: usize, sticky: &str) -> (tempfile::TempDir, Daemon, [Server; 2], String, usize) {
    let servers = ["a", "b"].map(named);
    for (one, name) in servers.iter().zip(["a", "b"]) {
        one.answer("/", server(name, "Set-Cookie: session=s~1; Path=/\r\n"));
        one.answer("/broken", server(name, "Set-Cookie: session=s~1; Path=/\r\n"));
    }
    let folder = crate::daemon::folder();
    let text = format!(
        "[daemon]\nshards = {shards}\n[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\n\
         listen = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n{}\n",
        pool(&servers, sticky)
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let first = ask(&daemon, "/", "");
    let place = ["a", "b"].iter().position(|name| *name == body(&first)).unwrap();
    let cookie = line(cookies(&first)[1]);
    servers[place].answer("/broken", Answer::Reset);
    (folder, daemon, servers, cookie, place)
}

/// This holds on whichever shard its client is, and whichever shard reads its cookie first.
#[test]
fn a_bound_client_whose_server_fails_it_is_given_another_only_where_it_may_be() {
    let prefix = "cookie = \"session\", mode = \"prefix\"";
    for (shards, more, moves) in [
        (1, "", true),
        (2, "", true),
        (1, ", redispatch = false", false),
        (2, ", redispatch = false", false),
        (2, " }\nqueue = { hold_timeout = \"10s\"", false),
    ] {
        let sticky = format!("sticky = {{ {prefix}{more} }}");
        let (_folder, daemon, servers, cookie, own) = bound(shards, &sticky);
        // Each failure uses two of the twenty retries of the budget.
        for asked in 1..=6 {
            let said = talk(&daemon, format!("GET /broken HTTP/1.1\r\n{cookie}{CLOSE}"));
            let (own, other) = (&servers[own], &servers[1 - own]);
            if moves {
                assert_eq!(status(&said), "200", "{sticky}: {said}");
                assert_eq!(own.heads("/broken").len(), 2 * asked, "it is asked once more");
                assert_eq!(other.heads("/broken").len(), asked);
                // From now on the client is bound to the other server.
                let moved = line(cookies(&said)[1]);
                assert_ne!(moved, cookie);
            } else {
                assert_eq!(status(&said), "502", "{sticky}: {said}");
                assert_eq!(own.heads("/broken").len(), 3 * asked, "{sticky}");
                assert_eq!(other.heads("/broken"), [""; 0], "{sticky}");
            }
        }
        assert!(daemon.stop().success());
    }
}

#[test]
fn a_fallback_page_says_which_request_it_answers_and_why() {
    for shards in [1, 2] {
        let server = named("a");
        let folder = crate::daemon::folder();
        let page = "<style>p { color: red }</style><p>{request_id} {pool} {cause}</p>";
        std::fs::write(folder.path().join("sorry.html"), page).unwrap();
        // Another pool comes first, so that the second of two shards owns this one.
        let text = format!(
            "[daemon]\nshards = {shards}\n[admin]\nlisten = \"127.0.0.1:0\"\n[pool.first]\nprogram = [\"cat\"]\n\
             [listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n\
             servers = [\"127.0.0.1:{}\"]\nfallback = {{ file = \"sorry.html\" }}\n[listener.lines]\n\
             listen = \"127.0.0.1:0\"\npool = \"first\"\n",
            server.port
        );
        let daemon = Daemon::serve(folder.path(), &text);
        ctl(&daemon, &["fallback", "main", "on"]);
        let said = talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
        let start = "<style>p { color: red }</style><p>";
        let body = said.split_once("\r\n\r\n").unwrap().1;
        let id = body.strip_prefix(start).and_then(|rest| rest.strip_suffix(" main fallback</p>"));
        let id = id.unwrap_or_else(|| panic!("{said}"));
        assert!(said.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{said}");
        let why = daemon.page(&format!("/why/{id}"));
        assert!(why.contains("refused: fallback"), "{why}");
    }
}

#[test]
fn a_worker_that_is_out_is_not_listed_as_free() {
    let [a, b] = ["a", "b"].map(named);
    let servers = format!(
        "servers = [{{ address = \"127.0.0.1:{}\", weight = 0 }}, \"127.0.0.1:{}\"]",
        a.port, b.port
    );
    let (_folder, daemon) = serve_pool("", &servers);
    assert_eq!(super::balance::who(&daemon), "b");
    let why = daemon.page("/pools/main/why");
    let free = why.split("free: ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    assert!(!free.contains(&a.port.to_string()), "{why}");
    assert!(why.contains(&format!("out: 127.0.0.1:{} weight 0", a.port)), "{why}");
}

/// The lifetime of a signed cookie is not rounded up to minutes.
#[test]
fn a_signed_cookie_is_good_for_its_lifetime_and_no_longer() {
    let [a, b] = ["a", "b"].map(named);
    let folder = crate::daemon::folder();
    std::fs::write(folder.path().join("secret"), "0123456789abcdef").unwrap();
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         pool = \"main\"\n[pool.main]\nservers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\n\
         sticky = {{ cookie = \"worker\", value = \"signed\", secret = \"file:secret\", lifetime = \"1s\" }}\n",
        a.port, b.port
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let first = ask(&daemon, "/", "");
    let cookie = cookies(&first)[0].to_owned();
    // A client with an expired cookie gets a new one, from the next server.
    let expired = || {
        let said = ask(&daemon, "/", &line(&cookie));
        !said.ends_with(first.chars().last().unwrap())
    };
    assert!(becomes(std::time::Duration::from_secs(20), expired), "it is good for ever");
}
