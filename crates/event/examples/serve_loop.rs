//! A server with only the loop: `serve_loop BYTES` sends BYTES bytes to each client that connects, and ends the
//! connection; measured by `xtask bench threads`.

use event::{
    Address, BindSettings, Context, Epoll, Event, EventHandler, Loop, LoopSettings, StreamLimits,
};

struct Serve {
    reply: block::Slice,
}

impl EventHandler for Serve {
    type Mail = ();

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ()>) {
        match event {
            Event::Accepted { stream, .. } => {
                io.limits(stream, StreamLimits { send_max: usize::MAX, ..Default::default() });
                io.send(stream, self.reply.clone());
                io.finish(stream, None);
            }
            Event::Data { mut data, .. } => data.consume(data.bytes().len()),
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes: usize = std::env::args().nth(1).map_or(Ok(0), |text| text.parse())?;
    let any = Address::Internet(([127, 0, 0, 1], 0).into());
    let (listener, bound) = event::bind(&any, &BindSettings::default())?;
    println!("ready {{\"listeners\":{{\"main\":\"{bound}\"}}}}");
    let mut events = Loop::new(Epoll::new()?, LoopSettings::default())?;
    events.context().accept_from(listener);
    Ok(events.run(&mut Serve { reply: block::Slice::from(&vec![b'x'; bytes][..]) })?)
}
