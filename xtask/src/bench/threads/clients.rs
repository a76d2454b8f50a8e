//! Clients that connect, receive until the end, check the length, and connect again.

use crate::shell::Failure;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, connect, recv, socket_with};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::net::SocketAddr;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Clients on one thread.
#[derive(Debug)]
pub(super) struct Clients {
    poll: OwnedFd,
    to: SocketAddr,
    /// Bytes of a reply.
    size: usize,
    /// Each connection with the number of received bytes.
    connections: Vec<(OwnedFd, usize)>,
    room: Vec<u8>,
}

/// Leaves the first processor to the servers, if there is another.
pub(super) fn pin() -> Result<(), Failure> {
    let processors = available_parallelism().map_or(1, Into::into);
    if processors < 2 {
        return Ok(());
    }
    let mut set = CpuSet::new();
    (1..processors).for_each(|processor| set.set(processor));
    sched_setaffinity(None, &set).map_err(Failure::at("affinity"))
}

impl Clients {
    pub(super) fn new(to: &str, count: usize, size: usize) -> Result<Self, Failure> {
        let to = to.parse().map_err(Failure::at(to))?;
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(Failure::at("epoll"))?;
        let mut clients =
            Self { poll, to, size, connections: Vec::new(), room: vec![0; 256 << 10] };
        for place in 0..count {
            let connection = clients.open(place).map_err(Failure::at("a client"))?;
            clients.connections.push((connection, 0));
        }
        Ok(clients)
    }

    fn open(&self, place: usize) -> io::Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        match connect(&socket, &self.to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        epoll::add(&self.poll, &socket, EventData::new_u64(place as u64), EventFlags::IN)?;
        Ok(socket)
    }

    /// Runs for this time. Returns the number of complete replies.
    pub(super) fn serve_for(&mut self, window: Duration) -> io::Result<u64> {
        let (begun, mut replies) = (Instant::now(), 0);
        let mut reports = Vec::with_capacity(256);
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        while begun.elapsed() < window {
            reports.clear();
            match epoll::wait(&self.poll, spare_capacity(&mut reports), Some(&patience)) {
                Ok(0) => return Err(io::Error::other("nothing came for five seconds")),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for report in &reports {
                let place = usize::try_from(report.data.u64()).expect("it is a place");
                replies += u64::from(self.receive(place)?);
            }
        }
        Ok(replies)
    }

    /// Receives the available bytes. Returns `true` at the end of a complete reply.
    fn receive(&mut self, place: usize) -> io::Result<bool> {
        loop {
            let (connection, received) = &mut self.connections[place];
            match recv(&*connection, &mut self.room[..], RecvFlags::empty()) {
                Ok((0, _)) if *received == self.size => {
                    let next = self.open(place)?;
                    self.connections[place] = (next, 0);
                    return Ok(true);
                }
                Ok((0, _)) => {
                    let text = format!("{received} bytes came instead of {}", self.size);
                    return Err(io::Error::other(text));
                }
                Ok((count, _)) => *received += count,
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
