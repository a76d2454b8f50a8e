//! An HTTP server whose handler sees method, target and header fields, and answers with a status, header fields and a
//! body. It serves until it is stopped.
//!
//! ```text
//! cargo run --example handler_http
//! curl -i http://127.0.0.1:PORT/hello?name=you
//! curl -i --data-binary @FILE http://127.0.0.1:PORT/length
//! ```

use std::time::Duration;

use roadstead::embed::{
    Configuration, Embed, Head, ListenerBuilder, PoolBuilder, Request, Response,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let configuration = Configuration::builder()
        .listener("main", ListenerBuilder::http("127.0.0.1:0").pool("site"))
        .pool("site", PoolBuilder::handler("site").workers(2..=2))
        .build()?;
    let server = Embed::new(configuration).responding("site", || Ok(respond)).start()?;
    server.ready(Duration::from_secs(10))?;
    let address = server.address("main").ok_or("there is a listener")?;
    println!("ready {{\"listeners\":{{\"main\":\"{address}\"}}}}");
    loop {
        std::thread::park();
    }
}

fn respond(request: &Request) -> Response {
    let Some(head) = request.head() else { return Response::new(500) };
    match (head.method(), head.path()) {
        ("GET" | "HEAD", b"/hello") => hello(head),
        ("POST", b"/length") => Response::new(200).body(format!("{} bytes\n", request.body.len())),
        (_, b"/length") => Response::new(405).header("Allow", "POST"),
        _ => Response::new(404).body("there are /hello and /length\n"),
    }
}

fn hello(head: &Head) -> Response {
    let query = String::from_utf8_lossy(head.query().unwrap_or_default());
    let name = query.strip_prefix("name=").unwrap_or("stranger");
    let agent = head.header("User-Agent").map(String::from_utf8_lossy).unwrap_or_default();
    Response::new(200)
        .header("Cache-Control", "no-store")
        .body(format!("hello, {name}, with {agent}\n"))
}
