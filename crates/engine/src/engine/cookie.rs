//! Session affinity cookies in requests.

use crate::cookies::Cookies;
use crate::exchanges::Exchange;
use flow::payload::Payload;

/// Converts microseconds to seconds since the Unix epoch.
pub(super) fn second(at_us: i64) -> u32 {
    u32::try_from(at_us / 1_000_000).unwrap_or(0)
}

impl Cookies {
    /// Reads the affinity cookie of a request, and removes what the server must not receive. A frame has no cookies.
    pub(super) fn ask(&self, request: &mut Payload, exchange: &mut Exchange) {
        let Payload::Http(request, _) = request else { return };
        let told = self.read(&mut request.head_mut().fields, second(exchange.at_us));
        exchange.attempt.named = told.named;
        exchange.attempt.knows = told.named.filter(|_| told.fresh);
    }
}
