//! The workers of an echo pool.

use std::any::Any;

use backend::backend::{Backend, BackendContext, OpenBackend};
use backend::connection_counts::ConnectionCounts;
use exchange::{ByWorker, Outcome, PoolId, RequestId, Slice, WorkerId};
use flow::backend_event::BackendEvent;
use flow::payload::{Payload, Request};
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::worker_traits::WorkerTraits;
use observe::status::WorkerStatus;

use super::config::EchoConfig;

/// An echo worker, and the number of requests it has answered.
#[derive(Clone, Copy, Debug)]
struct Echo {
    worker: WorkerId,
    served: u64,
}

/// The echo workers of a pool.
#[derive(Debug)]
pub(super) struct Echoes {
    config: EchoConfig,
    running: Vec<Echo>,
}

impl Echoes {
    pub(super) const fn new(config: EchoConfig) -> Self {
        Self { config, running: Vec::new() }
    }

    fn reply(&self, body: &[u8]) -> Slice {
        let mut reply = Vec::new();
        for time in 0..self.config.times {
            if time > 0 {
                reply.push(b' ');
            }
            reply.extend_from_slice(body);
        }
        if self.config.shouts {
            reply.make_ascii_uppercase();
        }
        Slice::from(&reply[..])
    }
}

impl OpenBackend for EchoConfig {
    fn open(self: Box<Self>, _pool: (PoolId, &str)) -> Box<dyn Backend> {
        Box::new(Echoes::new(*self))
    }

    fn into_config(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn traits(&self) -> WorkerTraits {
        WorkerTraits::default()
    }
}

impl Backend for Echoes {
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        _names: &ByWorker<Option<String>>,
        _connections: Option<ConnectionCounts>,
    ) {
        if let Ok(config) = config.downcast::<EchoConfig>() {
            self.config = *config;
        }
    }

    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.running.push(Echo { worker, served: 0 });
        cx.events.push(BackendEvent::Started { worker });
    }

    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.running.retain(|echo| echo.worker != worker);
        cx.events.push(BackendEvent::Ended { worker, expected: true, reached: true });
    }

    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        _meta: RequestMeta,
        _more_follow: bool,
    ) {
        let (Payload::Frame(body) | Payload::Http(_, body)) = &request.payload;
        let outcome = Outcome::Reply(self.reply(body));
        if let Some(echo) = self.running.iter_mut().find(|echo| echo.worker == worker) {
            echo.served += 1;
        }
        cx.events.push(BackendEvent::Answered { id: request.id, outcome });
        cx.events.push(BackendEvent::Released { worker });
    }

    /// Does nothing, because a request is answered before a control message can arrive.
    fn control(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _worker: WorkerId,
        _id: RequestId,
        _control: RequestControl,
    ) {
    }

    fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    fn status(&self) -> Vec<WorkerStatus> {
        let status = |(number, echo): (usize, &Echo)| WorkerStatus {
            name: format!("echo/{number}"),
            pid: None,
            state: "serving",
            in_flight: 0,
            served: echo.served,
        };
        self.running.iter().enumerate().map(status).collect()
    }
}
