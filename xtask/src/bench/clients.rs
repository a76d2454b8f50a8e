//! Clients on threads of their own.

use crate::shell::Failure;
use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// What each of so many threads gives.
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

/// A connection that does not wait for ever, and sends each line at once.
pub(super) fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}
