//! Clients on separate threads.

use crate::shell::Failure;
use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// Returns the results of this number of threads.
pub(super) fn on_threads<T: Send>(
    count: usize,
    act: impl Fn(usize) -> io::Result<T> + Sync,
) -> Result<Vec<T>, Failure> {
    thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = (0..count).map(|who| scope.spawn(move || act(who))).collect();
        let joined = threads.into_iter().map(|it| it.join().expect("a client does not panic"));
        joined.map(|result| result.map_err(Failure::at("a client"))).collect()
    })
}

/// Opens a connection with timeouts that sends each line immediately.
pub(super) fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}
