//! Pseudo-terminals, for programs that require a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use event::{Direction::Both, Kernel, Reason};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::harness::{Bench, Seen, pattern};

/// Both ends of a terminal that changes no byte.
pub(crate) fn terminal() -> (OwnedFd, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let mut options = OpenOptions::new();
    let slave = options.read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut settings = tcgetattr(&slave).unwrap();
    settings.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &settings).unwrap();
    (master, slave)
}

pub(crate) fn a_terminal_speaks_both_ways_and_ends_with_its_program(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (master, mut slave) = terminal();
    let stream = bench.adopt(master, Both);
    bench.context().send_bytes(stream, b"question");
    bench.on_events_done();
    let mut question = [0; 8];
    slave.read_exact(&mut question).unwrap();
    assert_eq!(&question, b"question");
    slave.write_all(b"answer").unwrap();
    bench.until("the answer", |seen| !seen.is_empty());
    slave.write_all(b"last words").unwrap();
    drop(slave);
    bench.until_seen(&Seen::Eof(stream));
    assert_eq!(bench.bytes_of(stream), b"answerlast words");
    bench.context().finish(stream, None);
    assert_eq!(bench.until_closed(stream), Reason::Clean);
}

pub(crate) fn a_terminal_takes_no_more_than_its_program_reads(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (master, mut slave) = terminal();
    let stream = bench.adopt(master, Both);
    let sent = pattern(200_000);
    bench.context().send_bytes(stream, &sent);
    bench.on_events_done();
    assert!(bench.context().queued(stream) > 0, "the terminal took it all");
    let length = sent.len();
    let reader = std::thread::spawn(move || {
        let mut all = vec![0; length];
        slave.read_exact(&mut all).unwrap();
        (all, slave)
    });
    while bench.context().queued(stream) > 0 {
        bench.events.turn(&mut bench.owner, None).unwrap();
    }
    assert!(reader.join().unwrap().0 == sent);
}
