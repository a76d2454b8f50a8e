//! The thread of a handler: it serves batches and reports their outcomes as mail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use exchange::{Batch, Factory, Handler, HandlerError, Outbox, Outcome, Response, Slice, Stop};
use flow::worker_report::HandlerReport;

use super::part_flow::Flow;

/// The maximum total size of the parts of a reply that is sent as one message, in bytes.
const PARTS_MAX: usize = 1 << 20;

/// What is sent to a thread.
pub(super) type Work = (Batch, Stop, Option<Arc<Flow>>);

type Report = Box<dyn Fn(HandlerReport) + Send>;

/// The main function of a handler thread and its state.
pub(super) struct HandlerThread {
    pub(super) factory: Arc<dyn Factory>,
    pub(super) report: Report,
}

impl HandlerThread {
    pub(super) fn run(self, batches: &Receiver<Work>) {
        // No state is used after a panic: the factory creates another handler.
        let opened = catch_unwind(AssertUnwindSafe(|| self.factory.open()));
        let failed = |why: Arc<str>| (self.report)(HandlerReport::OpenFailed(why));
        let mut handler = match opened {
            Ok(Ok(handler)) => handler,
            Ok(Err(HandlerError::Open(why))) => return failed(why),
            Ok(Err(gone @ HandlerError::Gone)) => return failed(gone.to_string().into()),
            Err(_) => return failed("it panicked while it was opened".into()),
        };
        (self.report)(HandlerReport::Started);
        let panicked = self.serve_all(handler.as_mut(), batches).is_err();
        drop(handler);
        (self.report)(HandlerReport::Ended { panicked });
    }

    fn serve_all(
        &self,
        handler: &mut dyn Handler,
        batches: &Receiver<Work>,
    ) -> std::thread::Result<()> {
        while let Ok((batch, stop, flow)) = batches.recv() {
            let mut outbox = MailOutbox::new(&self.report, batch.requests.len(), flow);
            // Neither the handler nor its batch is used after a panic.
            catch_unwind(AssertUnwindSafe(|| handler.serve(&batch, &mut outbox, &stop)))?;
            outbox.send_responses();
            let answers = outbox.answers;
            (self.report)(HandlerReport::Served { answers, batch });
        }
        Ok(())
    }
}

/// Collects the outcomes of a batch and sends them as one message.
struct MailOutbox<'a> {
    report: &'a Report,
    answers: Vec<(usize, Outcome)>,
    /// Answers to HTTP requests; usually none.
    responses: Vec<(usize, Response)>,
    parts: Vec<Vec<u8>>,
    size: usize,
    /// Flow control, if parts are forwarded as they arrive.
    flow: Option<Arc<Flow>>,
}

impl<'a> MailOutbox<'a> {
    fn new(report: &'a Report, size: usize, flow: Option<Arc<Flow>>) -> Self {
        let answers = Vec::with_capacity(size);
        Self { report, answers, responses: Vec::new(), parts: Vec::new(), size, flow }
    }

    fn send_responses(&mut self) {
        if !self.responses.is_empty() {
            let responses = std::mem::take(&mut self.responses);
            (self.report)(HandlerReport::Responses(responses));
        }
    }

    /// Returns the buffered parts of a reply and its last part as one slice.
    fn joined(&mut self, index: usize, last: Slice) -> Slice {
        let parts = self.parts.get_mut(index).map(std::mem::take).unwrap_or_default();
        if parts.is_empty() {
            return last;
        }
        let mut whole = parts;
        whole.extend_from_slice(&last);
        Slice::from(&whole[..])
    }
}

impl Outbox for MailOutbox<'_> {
    fn streams(&self, _: usize) -> bool {
        self.flow.is_some()
    }

    fn part(&mut self, index: usize, part: Slice) -> Result<(), HandlerError> {
        if let Some(flow) = &self.flow {
            if !flow.wait(part.len()) {
                return Err(HandlerError::Gone);
            }
            (self.report)(HandlerReport::Part(part));
            return Ok(());
        }
        if self.parts.is_empty() {
            self.parts.resize_with(self.size, Vec::new);
        }
        let kept = self.parts.get_mut(index).ok_or(HandlerError::Gone)?;
        if kept.len() + part.len() > PARTS_MAX {
            return Err(HandlerError::Gone);
        }
        kept.extend_from_slice(&part);
        Ok(())
    }

    fn answer(&mut self, index: usize, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Reply(last) => Outcome::Reply(self.joined(index, last)),
            other => other,
        };
        self.answers.push((index, outcome));
    }

    fn respond(&mut self, index: usize, mut response: Response) {
        response.body = self.joined(index, response.body);
        self.responses.push((index, response));
    }

    fn flush(&mut self) {
        self.send_responses();
        if !self.answers.is_empty() {
            let answers = std::mem::take(&mut self.answers);
            (self.report)(HandlerReport::Answers(answers));
        }
    }
}
