//! Requests whose body is taken whole before they are submitted: to programs, which get one object
//! each, and to what stores records.

use event::{Calls, Data};
use exchange::{Cause, Outcome, Phase, Slice};

use super::course::Course;
use super::gathering::{Gathering, Taken};
use super::rejection::Why;
use super::{Asked, Dialogue, Input, Move, Output, Told};
use crate::bodies::Full;
use crate::exchanges::{Client, Source};
use crate::form::Form;
use crate::http_request::HttpRequest;
use crate::listener::HttpConfig;
use crate::payload::Payload;
use crate::session::SessionContext;
use crate::translation::Translation;
use crate::transport::Transport;

/// What a client that waits to be told so may do.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Dialogue {
    /// Begins a request to a program.
    pub(super) fn ask_object(
        &mut self,
        course: &Course<'_>,
        plan: &HttpConfig,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        mut request: HttpRequest,
        cx: &mut SessionContext<'_>,
    ) {
        let head = request.head_mut();
        let waits = head.expects_continue;
        let peer = transport.peer();
        let from = plan.forwarded_for(peer, head.version);
        head.prepare(&from);
        if let Some(changes) = course.changes {
            changes.change(head);
        }
        let gathering = Gathering::new((course.pool, course.route), plan, peer, request);
        self.begin_gathering(gathering, waits, transport, calls, cx);
    }

    /// Takes the body before anything else is done. A client that waits to be told so is.
    pub(super) fn begin_gathering(
        &mut self,
        mut gathering: Gathering,
        waits: bool,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        gathering.trail = cx.entry.take();
        if waits {
            transport.send_bytes(calls, CONTINUE);
        }
        self.step(Move::Gather, Input::Gathering(Box::new(gathering)));
    }

    /// Takes more of the body, and submits the request once that is whole. False when nothing more can
    /// be done with what is there.
    pub(super) fn gather(
        &mut self,
        plan: &HttpConfig,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_>,
    ) -> bool {
        let Input::Gathering(gathering) = &mut self.input else { return false };
        let before = data.bytes().len();
        match gathering.take(plan, data) {
            Ok(Taken::Whole) => {
                self.unwatch(transport, calls);
                if let Input::Gathering(whole) = self.step(Move::Complete, Input::Whole) {
                    self.submit_gathered(plan, *whole, transport.source(), cx);
                }
                true
            }
            Ok(Taken::Full(full)) => {
                self.refuse_full(full, plan.body_limits.all, transport, calls, cx);
                false
            }
            Ok(Taken::More) => {
                self.watch_body(plan, transport, calls, before - data.bytes().len());
                false
            }
            Err(refusal) => {
                self.restore_trail(cx);
                self.refuse(transport, calls, refusal, cx);
                false
            }
        }
    }

    /// What is refused now has the line in the access log that was begun with its head.
    pub(super) fn restore_trail(&mut self, cx: &mut SessionContext<'_>) {
        if let Input::Gathering(gathering) = &mut self.input {
            cx.entry = gathering.trail.take();
        }
    }

    /// All bodies together are as large as they may be, or those of this client.
    fn refuse_full(
        &mut self,
        full: Full,
        max: usize,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        self.restore_trail(cx);
        let whose = match full {
            Full::All => "",
            Full::Client => ", and those of one client half of what others leave",
        };
        let text = format!("the bodies of all requests together hold at most {max} bytes{whose}");
        let route = self.route();
        self.refuse_with(transport, calls, (503, route), Why::of(Cause::Full, &text), cx);
    }

    /// The client is gone in the middle of a body: its request ends here, and has its line.
    pub(super) fn end_gathering(
        &mut self,
        transport: &Transport,
        cause: Cause,
        cx: &mut SessionContext<'_>,
    ) {
        let Input::Gathering(gathering) = &mut self.input else { return };
        let (pool, bytes) = (gathering.pool, gathering.held.len());
        cx.entry = gathering.trail.take();
        if let Some(trail) = &mut cx.entry {
            trail.bytes_in = bytes as u64;
        }
        let text = "its client left before its body was whole";
        let outcome = Outcome::ended(cause, Phase::Receive, text);
        cx.requests.refused_at_receipt(pool, transport.source(), &outcome, cx.entry.take());
    }

    fn submit_gathered(
        &mut self,
        plan: &HttpConfig,
        whole: Gathering,
        source: Source,
        cx: &mut SessionContext<'_>,
    ) {
        let Gathering { pool, route, is_record, request, held, trail, .. } = whole;
        let head = request.head();
        let (method, version, keep) = (head.method(), head.version, head.connection.keep_alive);
        let (payload, form, told) = if is_record {
            (Slice::from(record(&held)).into(), Form::default(), Told::STORED)
        } else {
            let translation = Some(Translation::of_objects(method));
            let form = Form { translation, ..Form::default() };
            let request = request.submitted(&plan.forwarding);
            (Payload::Http(request, Slice::from(&held[..])), form, Told::TEXT)
        };
        cx.entry = trail;
        if let Some(trail) = &mut cx.entry {
            trail.bytes_in = held.len() as u64;
            trail.replied = told.status;
        }
        self.number = self.number.wrapping_add(1);
        let client = Client::Session { session: self.id, sequence: u64::from(self.number) };
        let request = cx.requests.submit(client, source, (payload, form), pool, cx.entry.take());
        self.asked = Some(Asked {
            request,
            method,
            version,
            output: Output::None,
            route,
            keep: keep && !self.is_last(cx.requests),
            open_ended: false,
            wanted: false,
            waits: false,
            holding: false,
            came: 0,
            said_all: false,
            relayed_from: None,
            page: None,
            chunks: None,
            told,
        });
    }
}

/// A body without the line end that it may have behind its record.
fn record(body: &[u8]) -> &[u8] {
    let line = body.strip_suffix(b"\n").unwrap_or(body);
    if line.len() < body.len() { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
}
