//! Serves a configuration file without the rest of the daemon: no supervisor, no admin address, no access log. It is
//! meant for pools of servers, and for tools that cannot examine a process with a supervisor, such as valgrind.
//!
//! ```text
//! cargo run --release --example serve_file -- FILE
//! ```

use roadstead::embed::Embed;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: serve_file FILE")?;
    let server = Embed::from_text(&std::fs::read_to_string(file)?)
        .map_err(|diagnostics| diagnostics.to_string())?
        .start()?;
    let address = server.address("main").ok_or("it has a listener named main")?;
    println!("ready {{\"listeners\":{{\"main\":\"{address}\"}}}}");
    loop {
        std::thread::park();
    }
}
