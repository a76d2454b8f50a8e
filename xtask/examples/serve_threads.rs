//! Servers that send N bytes on each connection and close it, for comparison in `xtask bench threads`: `serve_threads
//! bare|connection|threadpool|rayon BYTES`.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{SendFlags, SocketFlags, acceptfrom_with, send};

/// The maximum number of threads, the same as for the others.
const THREADS: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(kind), Some(bytes)) = (words.next(), words.next()) else {
        return Err("serve_threads bare|connection|threadpool|rayon BYTES".into());
    };
    let reply: Arc<[u8]> = vec![b'x'; bytes.parse()?].into();
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    rustix::net::listen(&listener, 4096)?;
    println!("ready {{\"listeners\":{{\"main\":\"{}\"}}}}", listener.local_addr()?);
    match kind.as_str() {
        "bare" => Ok(bare(&listener, &reply)?),
        "connection" => each(&listener, |stream| {
            let reply = Arc::clone(&reply);
            std::thread::spawn(move || answer(stream, &reply));
        }),
        "threadpool" => {
            let pool = threadpool::ThreadPool::new(THREADS);
            each(&listener, |stream| {
                let reply = Arc::clone(&reply);
                pool.execute(move || answer(stream, &reply));
            })
        }
        "rayon" => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build()?;
            each(&listener, |stream| {
                let reply = Arc::clone(&reply);
                pool.spawn(move || answer(stream, &reply));
            })
        }
        other => Err(format!("no server is called {other}").into()),
    }
}

fn each(
    listener: &TcpListener,
    mut serve: impl FnMut(TcpStream),
) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        serve(listener.accept()?.0);
    }
}

fn answer(mut stream: TcpStream, reply: &[u8]) {
    // Errors are ignored, because the client may close the connection.
    let _ = stream.write_all(reply);
}

/// The minimal server: a loop over epoll that watches a connection only if its reply does not fit into the kernel's
/// buffer.
fn bare(listener: &TcpListener, reply: &[u8]) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let data = |fd: RawFd| EventData::new_u64(fd.unsigned_abs().into());
    epoll::add(&poll, listener, data(listener.as_raw_fd()), EventFlags::IN)?;
    let mut waiting: Vec<Option<(OwnedFd, usize)>> = Vec::new();
    let mut reports = Vec::with_capacity(1024);
    loop {
        reports.clear();
        match epoll::wait(&poll, spare_capacity(&mut reports), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for report in &reports {
            let place = usize::try_from(report.data.u64()).expect("it is a descriptor");
            if place != listener.as_raw_fd().unsigned_abs() as usize {
                if let Some((fd, sent)) = waiting.get_mut(place).and_then(Option::take) {
                    waiting[place] = send_from(fd, sent, reply);
                }
                continue;
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            while let Ok((fd, _)) = acceptfrom_with(listener, flags) {
                let Some((fd, sent)) = send_from(fd, 0, reply) else { continue };
                let place = fd.as_raw_fd().unsigned_abs() as usize;
                epoll::add(&poll, &fd, data(fd.as_raw_fd()), EventFlags::OUT | EventFlags::ET)?;
                if place >= waiting.len() {
                    waiting.resize_with(place + 1, || None);
                }
                waiting[place] = Some((fd, sent));
            }
        }
    }
}

/// Continues to send. Returns the descriptor if the kernel's buffer is full, and closes it when the reply is complete.
fn send_from(fd: OwnedFd, mut sent: usize, reply: &[u8]) -> Option<(OwnedFd, usize)> {
    while sent < reply.len() {
        match send(&fd, &reply[sent..], SendFlags::NOSIGNAL) {
            Ok(count) => sent += count,
            Err(error) if error == rustix::io::Errno::AGAIN => return Some((fd, sent)),
            Err(_) => return None,
        }
    }
    None
}
