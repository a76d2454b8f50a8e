//! Runs the ring at the lower limit of cost: epoll, read and write only.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::epoll;

use crate::{Plan, line, set_up, token};

struct Cat {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

pub(crate) fn run(config: Plan) -> io::Result<Duration> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut cats = Vec::new();
    for ring in 0..config.rings {
        let since = Instant::now();
        for _ in 0..config.programs {
            let mut child =
                Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let input = child.stdin.take();
            let output = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
            let data = epoll::EventData::new_u64(cats.len() as u64);
            epoll::add(&poll, output.as_fd(), data, epoll::EventFlags::IN)?;
            cats.push(Cat { child, input, output });
        }
        set_up(ring, config, since);
    }
    let since = Instant::now();
    for ring in 0..config.rings {
        say(&mut cats[ring * config.programs], config.hops)?;
    }
    let mut left = config.rings;
    let mut took = Duration::ZERO;
    let mut events = Vec::with_capacity(1024);
    while left > 0 {
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let at = usize::try_from(event.data.u64()).expect("as given");
            let mut buffer = [0; 64];
            let count = cats[at].output.read(&mut buffer)?;
            if count == 0 {
                epoll::delete(&poll, cats[at].output.as_fd())?;
                continue;
            }
            let number = token(&buffer[..count - 1]);
            let ring = at / config.programs;
            let next = ring * config.programs + (at + 1 - ring * config.programs) % config.programs;
            if number > 1 {
                say(&mut cats[next], number - 1)?;
                continue;
            }
            // The 0 goes round the ring and ends each program.
            left -= 1;
            took = since.elapsed();
            cats[ring * config.programs..][..config.programs]
                .iter_mut()
                .for_each(|cat| cat.input = None);
        }
    }
    for cat in &mut cats {
        cat.child.wait()?;
    }
    Ok(took)
}

fn say(cat: &mut Cat, number: u64) -> io::Result<()> {
    cat.input.as_mut().map_or(Ok(()), |input| input.write_all(&line(number)))
}
