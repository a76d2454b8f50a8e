//! A peer of `xtask bench loop`: an echo server with tokio, one task per connection, like tokio's own example. It is in
//! this crate because only this crate may use the runtime.

use std::io::ErrorKind;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

fn main() -> std::io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(serve())
}

async fn serve() -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    let listener: TcpListener = socket.listen(4096)?;
    println!("ready {{\"listeners\":{{\"main\":\"{}\"}}}}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(echo(stream));
    }
}

/// The buffer is on the stack and not in the task, so that an idle connection does not hold it.
async fn echo(stream: TcpStream) {
    while stream.readable().await.is_ok() {
        // Longer than any message of the benchmark. It is small because it is zeroed each time, which must cost
        // nothing.
        let mut room = [0; 1 << 10];
        match stream.try_read(&mut room) {
            Ok(0) => return,
            // Bytes that the socket does not accept are lost, as with the other peers.
            Ok(count) => drop(stream.try_write(&room[..count])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
