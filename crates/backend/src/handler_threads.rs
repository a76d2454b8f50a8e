//! Workers that are handlers on threads of the daemon.
//!
//! Each worker is one thread with one [`exchange::Handler`] and space for one batch. The shard sends a batch to the
//! thread and receives its outcomes as mail. The thread has no queue: the pool dispatches to it only when its slot is
//! free.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use event::TimerId;
use exchange::{
    Batch, ByWorker, Cause, Factory, Outcome, Phase, PoolId, RequestId, Response, Stop, WorkerId,
};

use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use flow::backend_event::BackendEvent;
use flow::json_reply::{JsonReply, Read};
use flow::payload::{Payload, Request};
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::request_shape::RequestShape;
use flow::stream_owner::WorkerTimer;
use flow::worker_report::{HandlerReport, WorkerReport};
use observe::status::WorkerStatus;
use wire::http1::Refusal;

mod config;
mod part_flow;
mod thread;

pub use config::HandlerThreadsConfig;
use part_flow::Flow;
use thread::{HandlerThread, Work};

/// The maximum number of requests whose memory is kept for the next batch.
const KEPT_REQUESTS_MAX: usize = 4096;

struct Serving {
    worker: WorkerId,
    name: String,
    batches: Option<SyncSender<Work>>,
    /// Aborts the batch in progress.
    stop: Stop,
    /// Flow control of the parts of a query reply.
    flow: Option<Arc<Flow>>,
    /// The batch that is being filled.
    filling: Batch,
    /// The original HTTP requests of that batch, by their index. They return to the queue if the thread is gone.
    asked: Vec<(usize, Payload)>,
    /// The requests in flight, by their index in the batch; `None`: answered.
    in_flight: Vec<Option<RequestId>>,
    /// How to convert the replies to the HTTP requests among them that have a head, by their index in the batch.
    converted: Vec<(usize, JsonReply)>,
    timer: Option<TimerId>,
    opened: bool,
    served: u64,
}

impl Serving {
    /// Requests the handler to abort the batch in progress.
    fn interrupt(&self) {
        self.stop.request();
        if let Some(flow) = &self.flow {
            flow.leave();
        }
    }
}

/// The handlers of one pool.
pub(crate) struct Handlers {
    pool: String,
    pool_id: PoolId,
    factory: Arc<dyn Factory>,
    deadline: Duration,
    /// The form in which the handlers accept HTTP requests.
    shape: RequestShape,
    live: ByWorker<Option<Serving>>,
    /// Why the last handler could not be opened, until one is opened.
    open_error: Option<Arc<str>>,
}

impl Handlers {
    pub(crate) fn new((id, pool): (PoolId, &str), config: HandlerThreadsConfig) -> Self {
        let HandlerThreadsConfig { factory, deadline, shape } = config;
        Self {
            pool: pool.to_owned(),
            pool_id: id,
            factory,
            deadline,
            shape,
            live: ByWorker::default(),
            open_error: None,
        }
    }

    fn find(&mut self, worker: WorkerId) -> Option<&mut Serving> {
        let serving = self.live.get_mut(worker)?;
        serving.as_mut().filter(|serving| serving.worker == worker)
    }

    /// Adds a request to the batch that is being filled. Returns it if there is no such worker.
    #[inline]
    fn add(
        &mut self,
        worker: WorkerId,
        request: Request,
        json_reply: Option<JsonReply>,
    ) -> Option<Request> {
        let place = self.live.get_mut(worker).and_then(Option::as_mut);
        let Some(serving) = place.filter(|serving| serving.worker == worker) else {
            return Some(request);
        };
        let Request { id, peer, at_us, payload } = request;
        let mut head = None;
        let body = match payload {
            Payload::Frame(body) => body,
            Payload::Http(request, body) => {
                let record = self.shape.frame(&request, peer, &body);
                if self.shape == RequestShape::Heads {
                    head = Some(Box::new(request.plain_head()));
                    let place = serving.in_flight.len();
                    serving.converted.extend(json_reply.map(|json_reply| (place, json_reply)));
                }
                serving.asked.push((serving.in_flight.len(), Payload::Http(request, body)));
                record
            }
        };
        serving.in_flight.push(Some(id));
        serving.filling.requests.push(exchange::Request { id, peer, body, at_us, head });
        None
    }

    /// Sends the batch to its thread. `streams`: parts of the reply may be forwarded as they arrive.
    fn send(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId, streams: bool) {
        // A query has no effect and is the only request of its batch.
        let (deadline, reads) = (self.deadline, matches!(self.shape, RequestShape::Records(_)));
        let key = WorkerTimer::Batch(worker).key(self.pool_id);
        let Some(serving) = self.find(worker) else { return };
        let at = cx.io.now() + deadline;
        match serving.timer {
            Some(timer) => cx.io.set_timer(timer, at),
            None => serving.timer = Some(cx.io.timer_of(key, at)),
        }
        let batch = std::mem::take(&mut serving.filling);
        serving.stop = Stop::default();
        let alone = reads && batch.requests.len() == 1;
        serving.flow = alone.then(|| Arc::new(Flow::default()));
        let refused = match &serving.batches {
            Some(batches) => {
                let flow = serving.flow.clone().filter(|_| streams);
                let sent = batches.try_send((batch, serving.stop.clone(), flow));
                sent.err().map(|error| match error {
                    TrySendError::Full((batch, ..)) | TrySendError::Disconnected((batch, ..)) => {
                        batch
                    }
                })
            }
            None => Some(batch),
        };
        if refused.is_none() {
            serving.asked.clear();
            cx.system.runner.handed(&serving.name);
        }
        // The thread is gone, and its report has not arrived yet. No request of this batch was begun.
        if let Some(batch) = refused {
            serving.in_flight.clear();
            serving.converted.clear();
            let mut asked = serving.asked.drain(..).peekable();
            cx.events.extend(batch.requests.into_iter().enumerate().map(|(place, it)| {
                let asked = asked.next_if(|(of, _)| *of == place).map(|(_, asked)| asked);
                BackendEvent::Returned {
                    id: it.id,
                    payload: asked.unwrap_or_else(|| it.body.into()),
                }
            }));
        }
    }
}

impl Backend for Handlers {
    /// Applies new settings, for batches that are sent from now on.
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        _names: &ByWorker<Option<String>>,
        _connections: Option<ConnectionCounts>,
    ) {
        if let Ok(config) = config.downcast::<HandlerThreadsConfig>() {
            (self.deadline, self.shape) = (config.deadline, config.shape);
        }
    }

    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let name = format!("{}/{}", self.pool, worker.index());
        let (batches, receiver) = sync_channel(1);
        let thread = HandlerThread {
            factory: Arc::clone(&self.factory),
            report: {
                let (reports, pool) = (Arc::clone(&cx.system.reports), self.pool_id);
                Box::new(move |report| reports(WorkerReport::Handler { pool, worker, report }))
            },
        };
        if let Err(error) =
            cx.system.runner.run(name.clone(), Box::new(move || thread.run(&receiver)))
        {
            tracing::error!(worker = name, %error, "a thread could not be started");
            cx.events.push(BackendEvent::StartFailed { worker });
            return;
        }
        *self.live.at(worker) = Some(Serving {
            worker,
            name,
            batches: Some(batches),
            stop: Stop::default(),
            flow: None,
            filling: Batch::default(),
            asked: Vec::new(),
            in_flight: Vec::new(),
            converted: Vec::new(),
            timer: None,
            opened: false,
            served: 0,
        });
    }

    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        if let Some(serving) = self.find(worker) {
            serving.batches = None;
            cx.system.runner.handed(&serving.name);
        }
    }

    /// Adds a request to the batch. With the last request (`more_follow` is false), the batch is sent to its thread.
    #[inline]
    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        more_follow: bool,
    ) {
        match self.add(worker, request, meta.json_reply) {
            Some(request) => {
                cx.events.push(BackendEvent::Returned { id: request.id, payload: request.payload });
            }
            None if more_follow => {}
            None => self.send(cx, worker, meta.streams),
        }
    }

    /// Handles a control message for a request in flight. A write is never aborted, even if its client has
    /// disconnected.
    fn control(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
        word: RequestControl,
    ) {
        let Some(serving) = self.find(worker) else { return };
        let Some(flow) = serving.flow.as_ref().filter(|_| serving.in_flight == [Some(id)]) else {
            return;
        };
        match word {
            RequestControl::Pause => flow.pause_reply(true),
            RequestControl::Resume => flow.pause_reply(false),
            RequestControl::Abandoned => serving.interrupt(),
            // A frame has no separate body.
            RequestControl::Body(..) | RequestControl::BodyEnd | RequestControl::Splice(_) => {}
        }
    }

    /// Handles the timer of a worker.
    fn on_timer(&mut self, cx: &mut BackendContext<'_, '_>, (timer, of): (TimerId, WorkerTimer)) {
        let WorkerTimer::Batch(worker) = of else { return };
        let deadline = self.deadline;
        let found = self.find(worker).filter(|serving| serving.timer == Some(timer));
        let Some(serving) = found else { return };
        if serving.in_flight.iter().any(Option::is_some) {
            serving.interrupt();
            let text = format!("no answer within {deadline:?}");
            fail(serving, Cause::Deadline, &text, cx.events);
        }
    }

    fn on_report(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        report: HandlerReport,
    ) {
        let open_error = match &report {
            HandlerReport::Started => self.open_error.take(),
            HandlerReport::OpenFailed(why) => self.open_error.replace(Arc::clone(why)),
            _ => None,
        };
        let Some(serving) = self.find(worker) else { return };
        match report {
            HandlerReport::Started => {
                serving.opened = true;
                if open_error.is_some() {
                    tracing::info!(worker = serving.name, "opened, after earlier attempts failed");
                }
                cx.events.push(BackendEvent::Started { worker });
            }
            HandlerReport::OpenFailed(why) => {
                // It is tried again and again: the same reason is logged once.
                if open_error.as_ref() != Some(&why) {
                    tracing::warn!(worker = serving.name, "cannot be opened: {why}");
                }
                *self.live.at(worker) = None;
                cx.events.push(BackendEvent::StartFailed { worker });
            }
            HandlerReport::Part(part) => {
                if let Some(flow) = &serving.flow {
                    flow.took(part.len());
                }
                cx.events.push(match serving.in_flight.first() {
                    Some(&Some(id)) => BackendEvent::Part { id, part },
                    _ => BackendEvent::Discarded,
                });
            }
            HandlerReport::Answers(answers) => serving.take(answers, cx.events),
            HandlerReport::Responses(responses) => serving.take_responses(responses, cx.events),
            HandlerReport::Served { answers, batch } => {
                serving.reuse(batch);
                serving.take(answers, cx.events);
                fail(serving, Cause::Handler, "its handler left it unanswered", cx.events);
                serving.in_flight.clear();
                serving.converted.clear();
                if let Some(timer) = serving.timer {
                    cx.io.disarm_timer(timer);
                }
                cx.events.push(BackendEvent::Released { worker });
            }
            HandlerReport::Ended { panicked } => {
                if panicked {
                    tracing::error!(worker = serving.name, "its handler panicked");
                }
                fail(serving, Cause::Handler, "its handler ended", cx.events);
                if let Some(timer) = serving.timer {
                    cx.io.cancel_timer(timer);
                }
                *self.live.at(worker) = None;
                cx.events.push(BackendEvent::Ended { worker, expected: !panicked, reached: true });
            }
        }
    }

    /// Requests all handlers to abort their work, because the daemon stops.
    fn interrupt(&self) {
        self.live.values().flatten().for_each(Serving::interrupt);
    }

    fn is_empty(&self) -> bool {
        self.live.values().all(Option::is_none)
    }

    fn status(&self) -> Vec<WorkerStatus> {
        let live = self.live.values().flatten();
        live.map(|serving| WorkerStatus {
            name: serving.name.clone(),
            pid: None,
            state: match (serving.opened, &serving.batches) {
                (false, _) => "starting",
                (true, Some(_)) => "serving",
                (true, None) => "ending",
            },
            in_flight: serving.in_flight.iter().flatten().count(),
            served: serving.served,
        })
        .collect()
    }
}

impl Serving {
    /// Reuses a returned batch. Its blocks return to the pool of this thread, from which they were taken.
    fn reuse(&mut self, mut batch: Batch) {
        batch.requests.clear();
        if self.filling.requests.is_empty() && batch.requests.capacity() <= KEPT_REQUESTS_MAX {
            self.filling = batch;
        }
    }

    fn take(&mut self, answers: Vec<(usize, Outcome)>, events: &mut Vec<BackendEvent>) {
        if !self.converted.is_empty() {
            return self.take_converted(answers, events);
        }
        let all = answers.len();
        self.served += all as u64;
        let mut flight = |place: usize| self.in_flight.get_mut(place)?.take();
        let answers = answers.into_iter();
        let answers: Vec<_> =
            answers.filter_map(|(place, outcome)| Some((flight(place)?, outcome))).collect();
        events.extend((answers.len()..all).map(|_| BackendEvent::Discarded));
        events.push(BackendEvent::AllAnswered { answers });
    }
}

/// Answers to HTTP requests.
impl Serving {
    /// Handles the answers to a batch with HTTP requests. Their texts may need a head.
    fn take_converted(&mut self, answers: Vec<(usize, Outcome)>, events: &mut Vec<BackendEvent>) {
        for (place, outcome) in answers {
            let text = match outcome {
                Outcome::Reply(text) => text,
                ended => {
                    self.answer(place, ended, events);
                    continue;
                }
            };
            match self.json_reply(place) {
                Some(json_reply) => self.convert(place, json_reply.text(text), events),
                None => self.answer(place, Outcome::Reply(text), events),
            }
        }
    }

    /// Handles HTTP responses. A client that does not use HTTP receives the body.
    fn take_responses(
        &mut self,
        responses: Vec<(usize, Response)>,
        events: &mut Vec<BackendEvent>,
    ) {
        for (place, response) in responses {
            match self.json_reply(place) {
                Some(json_reply) => self.convert(place, json_reply.response(response), events),
                None => self.answer(place, Outcome::Reply(response.body), events),
            }
        }
    }

    fn json_reply(&self, place: usize) -> Option<JsonReply> {
        // They were added in the order of the batch.
        let found = self.converted.binary_search_by_key(&place, |(of, _)| *of).ok()?;
        Some(self.converted[found].1)
    }

    /// Reports a converted reply: its head, if it has one, and its body.
    fn convert(
        &mut self,
        place: usize,
        read: Result<Read, Refusal>,
        events: &mut Vec<BackendEvent>,
    ) {
        let id = self.in_flight.get(place).copied().flatten();
        let outcome = match read {
            Ok(Read::Text(text)) => Outcome::Reply(text),
            Ok(Read::Reply(head, body)) => {
                events.extend(id.map(|id| BackendEvent::Head { id, head }));
                Outcome::Reply(body)
            }
            Err(refusal) => {
                events.push(BackendEvent::Broken { refusal });
                let text = format!("a handler answers against the rules: {refusal}");
                Outcome::ended(Cause::Garbled, Phase::Reply, &text)
            }
        };
        self.answer(place, outcome, events);
    }

    /// Reports the outcome of one request. It is discarded if the request was answered before.
    fn answer(&mut self, place: usize, outcome: Outcome, events: &mut Vec<BackendEvent>) {
        self.served += 1;
        events.push(match self.in_flight.get_mut(place).and_then(Option::take) {
            Some(id) => BackendEvent::Answered { id, outcome },
            None => BackendEvent::Discarded,
        });
    }
}

/// Ends the unanswered requests of a handler.
fn fail(serving: &mut Serving, cause: Cause, text: &str, events: &mut Vec<BackendEvent>) {
    for id in serving.in_flight.iter_mut().filter_map(Option::take) {
        events
            .push(BackendEvent::Answered { id, outcome: Outcome::ended(cause, Phase::Work, text) });
    }
}
