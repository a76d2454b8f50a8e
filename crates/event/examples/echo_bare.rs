//! A minimal echo server with epoll: the baseline with which `xtask bench loop` compares the loop.
//!
//! It is written as one would write it in C: one receive and one send per report, no timers, no limits, no queue.
//! Output that does not fit is lost. The argument selects how reports are requested:
//!
//! ```text
//!   level   reported while there are bytes (default)
//!   drain   edge; receives until there are no more bytes
//!   short   edge; a short read is taken as the last one
//!   rearm   one report at a time; after each, epoll is asked to report again
//! ```

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, acceptfrom_with, recv, send, sockopt};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Level,
    Drain,
    Short,
    Rearm,
}

impl Trigger {
    fn flags(self) -> EventFlags {
        match self {
            Self::Level => EventFlags::IN,
            Self::Drain | Self::Short => EventFlags::IN | EventFlags::ET,
            Self::Rearm => EventFlags::IN | EventFlags::ONESHOT,
        }
    }
}

fn main() -> std::io::Result<()> {
    let trigger = match std::env::args().nth(1).as_deref() {
        Some("drain") => Trigger::Drain,
        Some("short") => Trigger::Short,
        Some("rearm") => Trigger::Rearm,
        _ => Trigger::Level,
    };
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
                    epoll::add(&poll, &fd, data(fd.as_raw_fd()), trigger.flags())?;
                    let place = fd.as_raw_fd().unsigned_abs() as usize;
                    if place >= connections.len() {
                        connections.resize_with(place + 1, || None);
                    }
                    connections[place] = Some(fd);
                }
                continue;
            }
            let Some(fd) = &connections[place] else { continue };
            if !echo(fd, &mut room, trigger) {
                connections[place] = None;
            } else if trigger == Trigger::Rearm {
                epoll::modify(&poll, fd, data(fd.as_raw_fd()), trigger.flags())?;
            }
        }
    }
}

/// Echoes the available bytes; returns false at the end.
fn echo(fd: &OwnedFd, room: &mut [u8], trigger: Trigger) -> bool {
    loop {
        match recv(fd, &mut *room, RecvFlags::empty()) {
            Ok((count, _)) if count > 0 => {
                let _ = send(fd, &room[..count], SendFlags::NOSIGNAL);
                match trigger {
                    Trigger::Drain => {}
                    Trigger::Short if count == room.len() => {}
                    _ => return true,
                }
            }
            result => return result == Err(rustix::io::Errno::AGAIN),
        }
    }
}
