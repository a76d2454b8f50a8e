//! A server of lines whose handler echoes each line. It shows the cost of Roadstead and a handler thread alone. It
//! serves until it is stopped.
//!
//! ```text
//! cargo run --release --example handler_echo
//! ```

use roadstead::embed::{Configuration, Embed, ListenerBuilder, PoolBuilder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let configuration = Configuration::builder()
        .listener("main", ListenerBuilder::lines("127.0.0.1:0").pool("echo"))
        .pool("echo", PoolBuilder::handler("echo").workers(1..=1))
        .build()?;
    let server = Embed::new(configuration)
        .answering("echo", || Ok(|request: &roadstead::embed::Request| request.body.clone().into()))
        .start()?;
    let address = server.address("main").ok_or("there is a listener")?;
    println!("ready {{\"listeners\":{{\"main\":\"{address}\"}}}}");
    loop {
        std::thread::park();
    }
}
