//! An echo server on the loop, with the kernel that the first argument names; measured by `xtask bench loop`. With the
//! second argument `discard` it sends no reply.

use event::{
    Address, BindSettings, Context, Epoll, Event, EventHandler, Kernel, Loop, LoopSettings, Poll,
    Select,
};

struct Echo {
    answers: bool,
}

impl EventHandler for Echo {
    type Mail = ();

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ()>) {
        match event {
            Event::Data { stream, mut data, .. } => {
                if self.answers {
                    io.send_bytes(stream, data.bytes());
                }
                data.consume(data.bytes().len());
            }
            Event::Eof { stream, .. } => io.finish(stream, None),
            _ => {}
        }
    }
}

fn serve(kernel: impl Kernel) -> std::io::Result<()> {
    let any = Address::Internet(([127, 0, 0, 1], 0).into());
    let (listener, bound) = event::bind(&any, &BindSettings::default())?;
    println!("ready {{\"listeners\":{{\"main\":\"{bound}\"}}}}");
    let mut events = Loop::new(kernel, LoopSettings::default())?;
    events.context().accept_from(listener);
    events.run(&mut Echo { answers: std::env::args().nth(2).as_deref() != Some("discard") })
}

fn main() -> std::io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("poll") => serve(Poll::new()?),
        Some("select") => serve(Select::new()?),
        _ => serve(Epoll::new()?),
    }
}
