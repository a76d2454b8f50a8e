//! The least that an echo by epoll can be: what `xtask bench loop` measures the loop against.
//!
//! As one would write it in C for the purpose: level-triggered, one registration a connection, one
//! receive and one send a report, no timers, no limits, no queue. Output that does not fit is lost.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, acceptfrom_with, recv, send, sockopt};

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    rustix::net::listen(&listener, 4096)?;
    listener.set_nonblocking(true)?;
    sockopt::set_tcp_nodelay(&listener, true)?;
    println!("ready {{\"listeners\":{{\"main\":\"{}\"}}}}", listener.local_addr()?);
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let data = |fd: RawFd| EventData::new_u64(fd.unsigned_abs().into());
    epoll::add(&poll, &listener, data(listener.as_raw_fd()), EventFlags::IN)?;
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let (mut reports, mut room) = (Vec::with_capacity(1024), vec![0; 64 << 10]);
    loop {
        reports.clear();
        match epoll::wait(&poll, spare_capacity(&mut reports), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for report in &reports {
            let place = usize::try_from(report.data.u64()).expect("it is a descriptor");
            if place == listener.as_raw_fd().unsigned_abs() as usize {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                while let Ok((fd, _)) = acceptfrom_with(&listener, flags) {
                    epoll::add(&poll, &fd, data(fd.as_raw_fd()), EventFlags::IN)?;
                    let place = fd.as_raw_fd().unsigned_abs() as usize;
                    if place >= connections.len() {
                        connections.resize_with(place + 1, || None);
                    }
                    connections[place] = Some(fd);
                }
                continue;
            }
            let Some(fd) = &connections[place] else { continue };
            match recv(fd, &mut room[..], RecvFlags::empty()) {
                Ok((count, _)) if count > 0 => {
                    let _ = send(fd, &room[..count], SendFlags::NOSIGNAL);
                }
                Err(error) if error == rustix::io::Errno::AGAIN => {}
                _ => connections[place] = None,
            }
        }
    }
}
