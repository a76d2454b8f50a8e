//! Cookies that tell servers, as the core sees them: what a request says of its server, and what a
//! reply tells its client.

use std::time::Instant;

use exchange::Slice;

use super::ServedPool;
use crate::cookies::{Cookies, Told};
use crate::exchanges::{Exchange, State};
use crate::form::Form;
use crate::reply_head::Head;

/// Seconds since the Unix epoch.
fn second(at_us: i64) -> u32 {
    u32::try_from(at_us / 1_000_000).unwrap_or(0)
}

impl Cookies {
    /// Notes which server a request names, and makes the request what that server is to see.
    pub(super) fn ask(&self, request: &mut Slice, form: &mut Form, exchange: &mut Exchange) {
        let second = second(exchange.at_us);
        let (told, without) = match (self.is_of_objects(), form.translation) {
            (false, _) => self.read(request, form.head as usize, second),
            (true, Some(_)) => (self.read_object(request, second), None),
            // A frame has no cookies.
            (true, None) => (Told::default(), None),
        };
        if let Some(without) = without {
            // What is cut is cut from its head.
            let cut = u32::try_from(request.len() - without.len()).unwrap_or(form.head);
            form.head = form.head.saturating_sub(cut);
            *request = without;
        }
        exchange.named = told.named;
        exchange.knows = told.named.filter(|_| told.fresh);
    }
}

impl ServedPool {
    /// Has a reply tell its client the server that gave it, or learns it from the reply.
    pub(super) fn bind_by(&mut self, exchange: &Exchange, head: &mut Head, now: Instant) {
        let (Some(cookies), State::Working(worker), false) =
            (&self.cookies, exchange.state, head.is_interim())
        else {
            return;
        };
        let knows = exchange.knows.is_some() && exchange.knows == self.pool.berth(worker);
        if knows && cookies.is_told_once() {
            return;
        }
        let learnt = cookies.write(head, worker.index(), second(exchange.at_us));
        if let Some(key) = learnt {
            self.pool.handle_learnt(now, worker, &key);
        }
    }
}
