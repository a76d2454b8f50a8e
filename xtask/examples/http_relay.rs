//! The minimal proxy, with which `xtask bench http` compares proxies.
//!
//! It copies bytes without parsing them. Each client has a separate connection to the server. One thread, epoll,
//! edge-triggered, with one buffer for all. Bytes that the kernel does not accept wait, and meanwhile their source is
//! not read.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, acceptfrom_with, recv, send};

/// One side of a pair, at the index of its descriptor.
struct Side {
    socket: OwnedFd,
    other: usize,
    /// Bytes for this side that the kernel did not accept.
    waiting: Vec<u8>,
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let port = words.get(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    let server: SocketAddr = words
        .get(2)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| io::Error::other("usage: http_relay PORT SERVER"))?;
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    rustix::net::listen(&listener, 16_384)?;
    listener.set_nonblocking(true)?;
    rustix::net::sockopt::set_tcp_nodelay(&listener, true)?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let place_of = |fd: i32| fd.unsigned_abs() as usize;
    let listening = place_of(listener.as_raw_fd());
    let data = |place: usize| EventData::new_u64(place as u64);
    epoll::add(&poll, &listener, data(listening), EventFlags::IN)?;
    let edges = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    let mut sides: Vec<Option<Side>> = Vec::new();
    let (mut reports, mut room) = (Vec::with_capacity(1024), vec![0; 64 << 10]);
    loop {
        reports.clear();
        match epoll::wait(&poll, spare_capacity(&mut reports), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for report in &reports {
            let place = usize::try_from(report.data.u64()).map_err(io::Error::other)?;
            if place == listening {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                while let Ok((client, _)) = acceptfrom_with(&listener, flags) {
                    let stream = TcpStream::connect(server)?;
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    let server = OwnedFd::from(stream);
                    let pair = [client, server];
                    let places = [&pair[0], &pair[1]].map(|fd| place_of(fd.as_raw_fd()));
                    for (index, socket) in pair.into_iter().enumerate() {
                        let (place, other) = (places[index], places[1 - index]);
                        if sides.len() <= place {
                            sides.resize_with(place + 1, || None);
                        }
                        epoll::add(&poll, &socket, data(place), edges)?;
                        sides[place] = Some(Side { socket, other, waiting: Vec::new() });
                    }
                }
                continue;
            }
            let flags = report.flags;
            let Some(other) = sides.get(place).and_then(Option::as_ref).map(|side| side.other)
            else {
                continue;
            };
            let mut alive = true;
            if flags.contains(EventFlags::OUT) && has_waiting(&sides, place) {
                // The side is writable again: the waiting bytes are sent, and then the other side is read.
                alive = flush(&mut sides, place) && pass(&mut sides, other, place, &mut room);
            }
            if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP) {
                alive &= pass(&mut sides, place, other, &mut room);
            }
            if !alive {
                sides[place] = None;
                sides[other] = None;
            }
        }
    }
}

fn has_waiting(sides: &[Option<Side>], place: usize) -> bool {
    sides[place].as_ref().is_some_and(|side| !side.waiting.is_empty())
}

/// Reads from one side and writes to the other until there is no more data or the buffer of the kernel is full.
fn pass(sides: &mut [Option<Side>], from: usize, to: usize, room: &mut [u8]) -> bool {
    loop {
        if has_waiting(sides, to) {
            return true;
        }
        let (Some(source), Some(sink)) = (&sides[from], &sides[to]) else { return false };
        let count = match recv(&source.socket, &mut *room, RecvFlags::empty()) {
            Ok((0, _)) => return false,
            Ok((count, _)) => count,
            Err(error) => return error == Errno::AGAIN,
        };
        let sent = match send(&sink.socket, &room[..count], SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN) => 0,
            Err(_) => return false,
        };
        if sent < count
            && let Some(sink) = &mut sides[to]
        {
            sink.waiting.extend_from_slice(&room[sent..count]);
        }
        if count < room.len() {
            return true;
        }
    }
}

fn flush(sides: &mut [Option<Side>], place: usize) -> bool {
    let Some(side) = &mut sides[place] else { return false };
    while !side.waiting.is_empty() {
        match send(&side.socket, &side.waiting, SendFlags::NOSIGNAL) {
            Ok(sent) => drop(side.waiting.drain(..sent)),
            Err(error) => return error == Errno::AGAIN,
        }
    }
    true
}
