//! Routes through the daemon: which server receives which requests, and what no server may receive.

use super::*;

/// A daemon with these routes before two servers, `a` and `b`.
fn routed(listener: &str) -> (Server, Server, tempfile::TempDir, Daemon) {
    let folder = folder();
    let (a, b, daemon) = routed_in(folder.path(), listener);
    (a, b, folder, daemon)
}

fn routed_in(folder: &std::path::Path, listener: &str) -> (Server, Server, Daemon) {
    let reply = b"HTTP/1.1 200 OK\r\nServer: x\r\nX-From: b\r\nContent-Length: 1\r\n\r\nb";
    let a = Server::start(&[]);
    let b = Server::start(&[("/reply", Answer::Bytes(reply.to_vec()))]);
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         {listener}\n[pool.a]\nservers = [\"127.0.0.1:{}\"]\n[pool.b]\nservers = [\"127.0.0.1:{}\"]\n",
        a.port, b.port
    );
    let daemon = Daemon::serve(folder, &text);
    (a, b, daemon)
}

/// Sends a request, closes, and returns the complete reply.
fn ask(daemon: &Daemon, line: &str, lines: &str) -> String {
    talk(daemon, format!("{line} HTTP/1.1\r\nConnection: close\r\n{lines}\r\n"))
}

fn get(daemon: &Daemon, target: &str) -> String {
    ask(daemon, &format!("GET {target}"), "Host: a\r\n")
}

/// Returns the targets that a server received.
fn targets(server: &Server) -> Vec<String> {
    let target =
        |seen: crate::http_server::Seen| seen.head.split(' ').nth(1).unwrap_or_default().to_owned();
    server.seen().into_iter().map(target).collect()
}

#[test]
fn the_first_route_that_fits_says_who_answers() {
    let (a, b, _folder, daemon) = routed(
        r#"route = [
            { host = ["*.example.org"], prefix = "/api", method = ["GET"], pool = "b" },
            { header = [{ name = "x-beta", equals = "1" }], pool = "b" },
            { pattern = "/img/*.png", pool = "b" },
            { host = ["www.example.org"], pool = "a" },
        ]"#,
    );
    let host = |line: &str, lines: &str| status(&ask(&daemon, line, lines)).to_owned();
    assert_eq!(host("GET /api/1", "Host: X.Example.org:81\r\n"), "200");
    assert_eq!(host("POST /api/2", "Host: www.example.org\r\nContent-Length: 0\r\n"), "200");
    assert_eq!(host("GET /apis/3", "Host: www.example.org\r\n"), "200");
    assert_eq!(host("GET http://www.example.org/4", "Host: www.example.org\r\n"), "200");
    assert_eq!(host("GET /5", "Host: other\r\nX-Beta: 1\r\n"), "200");
    assert_eq!(host("GET /img/6.png", "Host: other\r\n"), "200");
    let nowhere = ask(&daemon, "GET /img/x/7.png", "Host: other\r\n");
    assert_eq!(status(&nowhere), "404");
    assert!(
        nowhere.ends_with("noroute: No route of the listener matches the request.\n"),
        "{nowhere}"
    );
    assert_eq!(targets(&a), ["/api/2", "/apis/3", "/4"]);
    assert_eq!(targets(&b), ["/api/1", "/5", "/img/6.png"]);
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["noroute"]), 1);
}

#[test]
fn no_spelling_passes_a_route_by() {
    let (a, b, _folder, daemon) =
        routed("pool = \"a\"\nroute = [{ prefix = \"/admin\", pool = \"b\" }]");
    for (target, expected) in [
        ("/admin", "/admin"),
        ("//admin/1", "/admin/1"),
        ("/./admin/2?q=/../x", "/admin/2?q=/../x"),
        ("/x/../admin/3", "/admin/3"),
        ("/%61dmin/4", "/admin/4"),
        ("/x/%2e%2E/admin/5", "/admin/5"),
        ("/admin;v=1/6", "/admin;v=1/6"),
        ("http://a//admin/7", "/admin/7"),
    ] {
        assert_eq!(status(&get(&daemon, target)), "200", "{target}");
        assert_eq!(targets(&b).last().map(String::as_str), Some(expected), "{target}");
    }
    for (target, word) in [
        ("/x/..%2fadmin", "path-separator"),
        ("/%2fadmin", "path-separator"),
        ("/\\admin", "path-separator"),
        ("/%252e%252e/admin", "path-twice"),
        ("/x/%25%32%65%25%32%65/admin", "path-twice"),
        ("/..;/admin", "path-parameters"),
        ("/;/admin", "path-parameters"),
        ("/../admin", "path-above"),
        ("/%c0%ae%c0%ae/admin", "path-overlong"),
        ("/admin%00", "path-control"),
        ("/%zz", "path-percent"),
    ] {
        let said = get(&daemon, target);
        assert_eq!(status(&said), "400", "{target}: {said}");
        assert!(said.contains(word), "{target}: {said}");
    }
    assert_eq!(targets(&a), [""; 0], "nothing has come to the other server");
    assert_eq!(status(&get(&daemon, "/Admin")), "200", "case counts");
    assert_eq!(targets(&a), ["/Admin"]);
}

#[test]
fn a_path_that_is_encoded_twice_does_not_pass_a_guarded_route() {
    let folder = folder();
    std::fs::write(folder.path().join("tokens"), "0123456789abcdef0123\n").unwrap();
    for guard in [
        "pool = \"a\"\nauthenticate = { bearer = [\"file:tokens\"] }",
        "respond = { status = 403 }",
    ] {
        let listener = format!(
            "[[listener.main.route]]\nprefix = \"/admin\"\n{guard}\n\
             [[listener.main.route]]\npool = \"b\"\n"
        );
        let (_a, b, daemon) = routed_in(folder.path(), &listener);
        for target in ["/%2561dmin", "/%25%36%31dmin/x", "/x/..//%2561dmin?y"] {
            let said = get(&daemon, target);
            assert_eq!(status(&said), "400", "{guard} {target}: {said}");
            assert!(said.contains("path-twice: "), "{said}");
        }
        assert_eq!(status(&get(&daemon, "/100%25?q=%2561")), "200");
        assert_eq!(targets(&b), ["/100%25?q=%2561"]);
    }
    // Without a protected path, nothing can be bypassed.
    let open = "[[listener.main.route]]\nprefix = \"/admin\"\npool = \"a\"\n\
                [[listener.main.route]]\npool = \"b\"\n";
    let (_a, b, daemon) = routed_in(folder.path(), open);
    assert_eq!(status(&get(&daemon, "/%2561dmin")), "200");
    assert_eq!(targets(&b), ["/%2561dmin"]);
}

#[test]
fn what_a_server_takes_for_a_protected_path_needs_its_credentials() {
    let folder = folder();
    std::fs::write(folder.path().join("tokens"), "0123456789abcdef0123\n").unwrap();
    let listener = "[[listener.main.route]]\npath = \"/Admin/Help\"\npool = \"b\"\n\
         [[listener.main.route]]\nprefix = \"/admin\"\npool = \"a\"\nauthenticate = { bearer = [\"file:tokens\"] }\n\
         [[listener.main.route]]\npath = \"/$metadata\"\nrespond = { status = 403 }\n\
         [[listener.main.route]]\nprefix = \"/x\"\nmethod = [\"POST\"]\nrespond = { status = 403 }\n\
         [[listener.main.route]]\npool = \"b\"\n";
    let (a, b, daemon) = routed_in(folder.path(), listener);
    let likely = [
        "/ADMIN",
        "/admin%3Fx",
        "/admin%23",
        "/admin.",
        "/admin%20",
        "/admin;x",
        "/admin/%2e/",
        "//admin/",
    ];
    for target in likely {
        assert_eq!(status(&get(&daemon, target)), "401", "{target}");
        let lines = "Host: a\r\nAuthorization: Bearer 0123456789abcdef0123\r\n";
        assert_eq!(status(&ask(&daemon, &format!("GET {target}"), lines)), "200", "{target}");
    }
    assert_eq!(targets(&a).len(), likely.len(), "with credentials they go on");
    assert_eq!(status(&get(&daemon, "/%24metadata/")), "403");
    assert_eq!(status(&ask(&daemon, "post /x", "Host: a\r\nContent-Length: 0\r\n")), "403");
    assert_eq!(targets(&b), [""; 0], "nothing came to the other server");
    for target in ["/Admin/Help", "/admins", "/admin/%2e%2e/", "/wiki/C%23", "/What%3F"] {
        assert_eq!(status(&get(&daemon, target)), "200", "{target}");
    }
    let expected = ["/Admin/Help", "/admins", "/", "/wiki/C%23", "/What%3F"];
    assert_eq!(targets(&b), expected);
}

#[test]
fn of_what_is_public_nothing_but_its_very_path_is() {
    let folder = folder();
    std::fs::write(folder.path().join("tokens"), "0123456789abcdef0123\n").unwrap();
    let listener = "pool = \"a\"\nauthenticate = { bearer = [\"file:tokens\"] }\n\
         [[listener.main.route]]\nprefix = \"/public\"\npublic = true\npool = \"b\"\n";
    let (_a, b, daemon) = routed_in(folder.path(), listener);
    for target in ["/PUBLIC", "/public%3F", "/public.", "/admin", "/public/%2e%2e/admin"] {
        assert_eq!(status(&get(&daemon, target)), "401", "{target}");
    }
    assert_eq!(status(&get(&daemon, "/public/x%3Fy")), "200");
    assert_eq!(targets(&b), ["/public/x%3Fy"]);
}

#[test]
fn the_last_hop_asks_for_credentials_too() {
    let folder = folder();
    std::fs::write(folder.path().join("tokens"), "0123456789abcdef0123\n").unwrap();
    let listener = "allow_trace = true\n[[listener.main.route]]\nprefix = \"/admin\"\npool = \"a\"\n\
         authenticate = { bearer = [\"file:tokens\"] }\n[[listener.main.route]]\npool = \"b\"\n\
         response_headers = { set = { X-Route = \"rest\" } }\n";
    let (_a, _b, daemon) = routed_in(folder.path(), listener);
    for method in ["OPTIONS", "TRACE"] {
        let lines = "Host: a\r\nMax-Forwards: 0\r\n";
        let said = ask(&daemon, &format!("{method} /admin"), lines);
        assert_eq!(status(&said), "401", "{method}: {said}");
        let lines = format!("{lines}Authorization: Bearer 0123456789abcdef0123\r\n");
        assert_eq!(status(&ask(&daemon, &format!("{method} /admin"), &lines)), "200");
        let said = ask(&daemon, &format!("{method} /"), &lines);
        assert!(said.contains("X-Route: rest\r\n"), "{method}: {said}");
    }
}

#[test]
fn an_upgrade_is_removed_where_it_is_not_allowed() {
    let (a, _b, _folder, daemon) = routed(
        r#"allow_upgrade = false
        [[listener.main.route]]
        prefix = "/ws"
        pool = "a"
        allow_upgrade = true
        [[listener.main.route]]
        pool = "a""#,
    );
    let ask = |target: &str, protocol: &str| {
        let line = format!("GET {target} HTTP/1.1");
        let fields = format!("Connection: close, upgrade\r\nUpgrade: {protocol}");
        let request = format!("{line}\r\nHost: a\r\n{fields}\r\nProxy: http://evil\r\n\r\n");
        assert_eq!(status(&talk(&daemon, request)), "200", "{target}");
        a.heads(target).pop().unwrap().to_lowercase()
    };
    assert!(!ask("/plain", "websocket").contains("upgrade"));
    assert!(ask("/ws/a", "websocket").contains("\r\nupgrade: websocket\r\n"));
    let mixed = ask("/ws/b", "h2c, websocket");
    assert!(mixed.contains("\r\nupgrade: websocket\r\n") && !mixed.contains("h2c"), "{mixed}");
    let h2c = ask("/ws/c", "h2c");
    assert!(!h2c.contains("upgrade") && !h2c.contains("proxy"), "{h2c}");
}

#[test]
fn targets_are_rewritten_and_heads_are_changed_both_ways() {
    let (_a, b, _folder, daemon) = routed(
        r#"request_headers = { remove = ["X-Debug"], set = { "X-Env" = "prod" } }
        response_headers = { remove = ["Server"] }
        [[listener.main.route]]
        prefix = "/api"
        pool = "b"
        rewrite = { strip = "/api" }
        request_headers = { set = { Host = "internal:8080" }, append = { Via = "1.1 here" } }
        response_headers = { set = { "X-From" = "us" }, append = { "X-More" = "1" } }
        [[listener.main.route]]
        prefix = "/old"
        pool = "b"
        rewrite = { strip = "/old", add = "/new" }
        [[listener.main.route]]
        pool = "b"
        rewrite = { to = "/{host}{path}" }"#,
    );
    let said = ask(
        &daemon,
        "GET /api/reply",
        "Host: a\r\nX-Debug: 1\r\nx-env: a\r\nX-Env: b\r\nVia: 1.0 b\r\n",
    );
    let head = b.heads("/reply").pop().unwrap();
    for line in [
        "Host: internal:8080\r\n",
        "X-Env: prod\r\n",
        "Via: 1.0 b\r\n",
        "Via: 1.1 here\r\n",
        "X-Forwarded-Host: a\r\n",
    ] {
        assert_eq!(head.matches(line).count(), 1, "{line} in {head}");
    }
    assert!(!head.contains("X-Debug") && !head.contains("x-env: a"), "{head}");
    assert!(said.contains("X-From: us\r\n") && said.contains("X-More: 1\r\n"), "{said}");
    assert!(!said.contains("Server:") && said.ends_with("\r\n\r\nb"), "{said}");
    for (target, expected) in
        [("/api?x=1", "/?x=1"), ("/old/a?b", "/new/a?b"), ("/else//?c", "/a/else/?c")]
    {
        get(&daemon, target);
        assert_eq!(targets(&b).last().map(String::as_str), Some(expected));
    }
    for host in ["...", "..;a", ".:80"] {
        let said = ask(&daemon, "GET /else", &format!("Host: {host}\r\n"));
        assert!(status(&said) == "400" && said.contains("path-host"), "{host}: {said}");
    }
    assert_eq!(targets(&b).len(), 4, "no host leads out of its folder");
}

#[test]
fn redirects_and_fixed_answers_ask_nobody_and_keep_the_connection() {
    let (a, _b, _folder, daemon) = routed(
        r#"response_headers = { set = { "X-Frame" = "deny" } }
        [[listener.main.route]]
        prefix = "/old"
        redirect = { to = "https://{host}/new{rest}{query}", status = 301 }
        [[listener.main.route]]
        prefix = "/safe"
        redirect = { to = "https://{host}{rest}" }
        [[listener.main.route]]
        path = "/robots.txt"
        respond = { body = "none", type = "text/x" }
        [[listener.main.route]]
        pool = "a""#,
    );
    let said = talk(
        &daemon,
        "GET /old/x?y=1 HTTP/1.1\r\nHost: a.b:80\r\n\r\nHEAD /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n\
         GET /robots.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    let fixed =
        "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nX-Frame: deny\r\nContent-Length: 4\r\n\r\n";
    let expected = format!(
        "HTTP/1.1 301 Moved Permanently\r\nLocation: https://a.b/new/x?y=1\r\nX-Frame: deny\r\nContent-Length: 0\r\n\r\n\
         {fixed}{fixed}none"
    );
    assert!(said.starts_with(&expected), "{said}");
    assert!(said[expected.len()..].starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    assert_eq!(targets(&a), ["/x"]);
    // Without a host, the first segment would become one, chosen by the author of the link.
    for asked in [
        "GET /safe/evil.example/ HTTP/1.0\r\n\r\n",
        "GET /safe/evil.example/ HTTP/1.1\r\nHost: ...\r\n\r\n",
    ] {
        let said = talk(&daemon, asked);
        assert!(status(&said) == "400" && said.contains("path-host"), "{said}");
        assert!(!said.contains("Location"), "{said}");
    }
    // A body that is not read is not interpreted as a request.
    let post = "POST /robots.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 28\r\n\r\nGET /canary HTTP/1.1\r\n\r\n";
    let said = talk(&daemon, post);
    assert!(
        said.contains("Connection: close\r\n") && said.matches("HTTP/1.1 ").count() == 1,
        "{said}"
    );
    assert_eq!(targets(&a), ["/x"]);
}

/// How often a line stands in the head of a reply.
fn lines(said: &str, line: &str) -> usize {
    let head = said.split("\r\n\r\n").next().unwrap_or_default();
    head.split("\r\n").filter(|other| *other == line).count()
}

#[test]
fn what_replies_get_is_got_by_answers_of_ours_too() {
    let folder = folder();
    let [file, down] = [folder.path().join("rows.db"), folder.path().join("nobody.sock")];
    rusqlite::Connection::open(&file)
        .unwrap()
        .execute_batch("create table t (a integer); insert into t values (1), (2)")
        .unwrap();
    let text = format!(
        r#"[listener.main]
        listen = "127.0.0.1:0"
        protocol = "http"
        body_max = "1KiB"
        response_headers = {{ set = {{ X-All = "1" }} }}
        [[listener.main.route]]
        prefix = "/down"
        pool = "down"
        response_headers = {{ remove = ["Retry-After"], set = {{ X-Route = "1", content-type = "text/x" }} }}
        [[listener.main.route]]
        prefix = "/sorry"
        pool = "fallback"
        response_headers = {{ append = {{ X-Route = "1" }}, remove = ["Cache-Control"] }}
        [[listener.main.route]]
        prefix = "/rows"
        pool = "rows"
        response_headers = {{ set = {{ X-Route = "1" }} }}
        [[listener.main.route]]
        prefix = "/program"
        pool = "program"
        response_headers = {{ set = {{ X-Route = "1" }} }}
        [[listener.main.route]]
        prefix = "/closed"
        pool = "down"
        authenticate = {{ bearer = ["file:{tokens}"] }}
        response_headers = {{ set = {{ X-Route = "1" }}, remove = ["X-All"] }}
        [pool.down]
        servers = ["unix:{down}"]
        queue = {{ timeout = "10ms" }}
        [pool.fallback]
        servers = ["unix:{down}"]
        fallback = {{ line = "later" }}
        [pool.rows]
        database = "sqlite:{file}"
        query = "select a from t"
        [pool.program]
        program = ["sed", "-u", "s/.*/fine/"]
        framing = "lines"
        "#,
        tokens = folder.path().join("tokens").display(),
        down = down.display(),
        file = file.display(),
    );
    std::fs::write(folder.path().join("tokens"), "0123456789abcdef0123\n").unwrap();
    let daemon = Daemon::serve(folder.path(), &text);
    let (all, route) = ("X-All: 1", "X-Route: 1");
    for (target, expected, with) in [
        ("/down", "503", [1, 1]),
        ("/sorry", "503", [1, 1]),
        ("/rows", "200", [1, 1]),
        ("/rows?a=1&a=2", "400", [1, 1]),
        ("/closed", "401", [0, 1]),
        ("/program", "200", [1, 1]),
        // For these requests the route is unknown.
        ("/nowhere", "404", [1, 0]),
        ("/a%zz", "400", [1, 0]),
    ] {
        let said = get(&daemon, target);
        assert_eq!(status(&said), expected, "{target}: {said}");
        assert_eq!([lines(&said, all), lines(&said, route)], with, "{target}: {said}");
    }
    let down = get(&daemon, "/down");
    assert_eq!(lines(&down, "content-type: text/x"), 1, "what is set stands once: {down}");
    assert!(!down.contains("Content-Type") && !down.contains("Retry-After"), "{down}");
    let fallback = get(&daemon, "/sorry");
    assert!(!fallback.contains("Cache-Control") && fallback.contains("Retry-After"), "{fallback}");
    // A body that violates a rule after its route was found, and a head before that.
    let post = |target: &str, body: &str| {
        let head = "HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        talk(&daemon, format!("POST {target} {head}{body}"))
    };
    for target in ["/down", "/program"] {
        let said = post(target, "zz\r\n");
        assert_eq!((status(&said), lines(&said, route)), ("400", 1), "{said}");
    }
    let said = talk(&daemon, "GET / HTTP/1.1\r\n\r\n");
    assert_eq!([lines(&said, all), lines(&said, route)], [1, 0], "{said}");
}

#[test]
fn a_client_that_reads_no_answers_is_not_read() {
    let body = "x".repeat(100_000);
    let (_a, _b, _folder, daemon) = routed(&format!(
        "send_max = \"1MiB\"\nsend_timeout = \"off\"\nroute = [{{ respond = {{ body = \"{body}\" }} }}]"
    ));
    let count = 500;
    let mut client = connect(&daemon);
    let mut writer = client.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for _ in 0..count {
            writer.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        }
        writer.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    });
    sending.join().unwrap();
    let said = rest(&mut client);
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), count + 1);
}

/// `ops` with the password `correct horse`, as `sha256sum` has it.
const OPS: &str = "ops:11b78eb048dc73c5a347094aa8bb96bc36e586d6ddefd72c6ddc2abd0386f9bc";
/// `ops:correct horse` and `ops:wrong horse` in Base64.
const RIGHT: &str = "Authorization: Basic b3BzOmNvcnJlY3QgaG9yc2U=\r\n";
const WRONG: &str = "Authorization: Basic b3BzOndyb25nIGhvcnNl\r\n";
const TOKEN: &str = "Authorization: Bearer 0123456789abcdef0123\r\n";

#[test]
fn who_has_no_credentials_is_turned_away_and_they_do_not_go_on() {
    let folder = folder();
    std::fs::write(folder.path().join("users"), format!("# people\n{OPS}\n")).unwrap();
    std::fs::write(folder.path().join("tokens"), "0123456789abcdef0123\nanother-token-0123\n")
        .unwrap();
    let at = |name: &str| format!("file:{}", folder.path().join(name).display());
    let (a, b, daemon) = routed_in(
        folder.path(),
        &format!(
            "authenticate = {{ basic = \"{}\", realm = \"the office\" }}\nroute = [\n\
             {{ path = \"/public\", pool = \"a\", public = true }},\n\
             {{ prefix = \"/api\", pool = \"b\", authenticate = {{ bearer = [\"{}\"], forward = true }} }},\n\
             {{ prefix = \"/in\", pool = \"a\" }} ]",
            at("users"),
            at("tokens")
        ),
    );
    let of = |target: &str, lines: &str| {
        ask(&daemon, &format!("GET {target}"), &format!("Host: a\r\n{lines}"))
    };
    let said = of("/in", "");
    assert_eq!(status(&said), "401");
    assert!(
        said.contains("WWW-Authenticate: Basic realm=\"the office\", charset=\"UTF-8\"\r\n"),
        "{said}"
    );
    for (target, lines, expected) in [
        ("/public", "", "200"),
        ("/in", RIGHT, "200"),
        ("/in", WRONG, "401"),
        ("/in", TOKEN, "401"),
        ("/in", &format!("{RIGHT}{RIGHT}"), "401"),
        ("/%69n/../in", "", "401"),
        ("/api", TOKEN, "200"),
        ("/api", RIGHT, "401"),
        // A client that is not authorized does not learn which paths exist.
        ("/nothing", "", "401"),
        ("/nothing", RIGHT, "404"),
    ] {
        assert_eq!(status(&of(target, lines)), expected, "{target} {lines}");
    }
    assert!(of("/api", "").contains("WWW-Authenticate: Bearer realm=\"roadstead\"\r\n"));
    let heads = [a.heads("/in"), a.heads("/public"), b.heads("/api")].map(|heads| heads.concat());
    assert!(!heads[0].contains("Authorization") && heads[2].contains(TOKEN), "{heads:?}");
    let log = crate::daemon::read_log(folder.path());
    for secret in ["b3BzOmN", "b3BzOnd", "0123456789abcdef", "another-token"] {
        assert!(!log.contains(secret), "{log}");
    }
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["unauthorized"]), 8);
}
