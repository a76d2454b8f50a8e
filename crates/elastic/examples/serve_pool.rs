//! A minimal TCP server on a thread pool: `serve_pool BYTES`, measured by `xtask bench threads`. Each client that
//! connects receives BYTES bytes.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an example is a whole program, the crate itself is not"
)]

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

use elastic::{Sizing, ThreadPool, ThreadPoolSettings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes = std::env::args().nth(1).map_or(Ok(0), |text| text.parse())?;
    let reply: Arc<[u8]> = vec![b'x'; bytes].into();
    let settings = ThreadPoolSettings::new("answers", Sizing::prefork(2, 200, 20));
    let pool = ThreadPool::new(settings, move || {
        let reply = Arc::clone(&reply);
        Ok(Box::new(move |mut client: TcpStream| {
            // An error means that the client has left; it is ignored.
            let _ = client.write_all(&reply);
        }))
    })?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("ready {{\"listeners\":{{\"main\":\"{}\"}}}}", listener.local_addr()?);
    loop {
        let (client, _) = listener.accept()?;
        if let Err(refused) = pool.submit(client) {
            // The connection is dropped here, which closes it.
            eprintln!("{refused}");
        }
    }
}
