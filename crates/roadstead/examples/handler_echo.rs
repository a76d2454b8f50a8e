//! A server of lines whose handler echoes each line. It shows the cost of Roadstead and a handler thread alone. It
//! serves until it is stopped.
//!
//! ```text
//! cargo run --release --example handler_echo
//! ```

use roadstead::embed::Embed;

const CONFIGURATION: &str = "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"echo\"\n\
    [pool.echo]\nhandler = \"echo\"\nworkers = 1\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Embed::from_text(CONFIGURATION)?
        .answering("echo", || Ok(|request: &roadstead::embed::Request| request.body.clone().into()))
        .start()?;
    let address = server.address("main").ok_or("there is a listener")?;
    println!("ready {{\"listeners\":{{\"main\":\"{address}\"}}}}");
    loop {
        std::thread::park();
    }
}
