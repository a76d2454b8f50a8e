//! What a request says of its server by a cookie.

use exchange::Slice;

use crate::cookies::{Cookies, Told};
use crate::exchanges::Exchange;
use crate::form::Form;

/// Seconds since the Unix epoch.
pub(super) fn second(at_us: i64) -> u32 {
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
