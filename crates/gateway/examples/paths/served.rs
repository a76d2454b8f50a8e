//! Runs a shard on a separate thread, which serves one configuration with a listener `main`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use event::{Epoll, Loop, LoopSettings};
use gateway::{Access, Fleet, HandlerRegistry, Parts, Shard, ShardMail, Threads};
use settings::Source;

use super::unkept::Unkept;

/// A running shard, until it is drained.
pub(crate) struct Served {
    access: Access,
    pub(crate) address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Served {
    pub(crate) fn start(text: &str, handler_registry: Arc<dyn HandlerRegistry>) -> Self {
        let source = Source { name: "text".into(), text: text.into() };
        let configuration = settings::parse(&source, &|_| None).unwrap();
        let address = event::Address::Internet("127.0.0.1:0".parse().unwrap());
        let (socket, bound) = event::bind(&address, &event::BindSettings::default()).unwrap();
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            let metrics = Arc::new(gateway::metrics_for(&configuration));
            let mut turning: Loop<Epoll, ShardMail> =
                Loop::new(Epoll::new().unwrap(), LoopSettings::default()).unwrap();
            let fleet = Fleet::new(vec![turning.mailbox()], &configuration);
            let mut shard = Shard::new(Parts {
                configuration,
                sockets: vec![("main".to_owned(), socket)],
                handler_registry,
                spawner: Box::new(Unkept::new(turning.mailbox())),
                runner: Box::new(Threads),
                admission: None,
                access_log: None,
                fleet: Arc::clone(&fleet),
                shard: 0,
                metrics: Arc::clone(&metrics),
                started: (Instant::now(), SystemTime::now()),
                seed: 1,
            })
            .unwrap();
            shard.start(&mut turning.context());
            tell.send(Access::new(fleet, vec![metrics])).unwrap();
            turning.run(&mut shard).unwrap();
        });
        let access = told.recv().unwrap();
        Self { access, address: bound.to_string().parse().unwrap(), thread }
    }

    /// Ends it with a graceful shutdown.
    pub(crate) fn end(self) {
        // The first call begins the drain; the second call stops the wait for workers.
        self.access.drain();
        self.access.drain();
        self.thread.join().unwrap();
    }
}
