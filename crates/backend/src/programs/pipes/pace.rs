//! How fast a program receives requests while its clients cancel requests.
//!
//! A cancelled request frees its slot immediately, but the program may still work on it before it works on the next
//! request. A client that sends and cancels requests in a loop could otherwise give it unlimited work. It is unknown
//! whether the program works on a cancelled request: it may never answer one. Therefore, once more than [`AHEAD_MAX`]
//! cancelled requests are ahead of the next request, each further one closes the program for a time, unless it is
//! already closed. The time grows with their number:
//!
//! ```text
//!   ahead    1 … 16   17       18        19        …   22 and more
//!   closed   no       50 ms    100 ms    200 ms    …   1 s
//! ```
//!
//! Its slots are free in this time: it owes no reply and may be stopped. Waiting requests are served when the time has
//! passed. An answer shows that nothing is ahead any more.

use std::time::{Duration, Instant};

use exchange::WorkerId;

use super::ProgramPipes;
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;

/// The maximum number of cancelled requests ahead of the next request.
const AHEAD_MAX: usize = 16;

/// How long the first request beyond [`AHEAD_MAX`] closes the program.
const CLOSED_MIN: Duration = Duration::from_millis(50);

/// The maximum time for which the program is closed.
const CLOSED_MAX: Duration = Duration::from_secs(1);

/// Returns how long a program is closed when `ahead` requests are ahead; `None`: it is not closed.
fn closed_for(ahead: usize) -> Option<Duration> {
    let beyond = u32::try_from(ahead.checked_sub(AHEAD_MAX + 1)?).unwrap_or(u32::MAX);
    let doubled = 1_u32.checked_shl(beyond).filter(|times| *times > 0);
    Some(doubled.map_or(CLOSED_MAX, |times| CLOSED_MIN.saturating_mul(times).min(CLOSED_MAX)))
}

impl ProgramPipes {
    /// Handles a cancelled request whose slot is released next.
    pub(super) fn close_while_ahead(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let Some(closed_for) = closed_for(self.in_flight.ahead()) else { return };
        if self.closed_until.is_none() {
            self.closed_until = Some(cx.io.now() + closed_for);
            cx.events.push(BackendEvent::Kept { worker, client: None });
        }
    }

    /// Reopens the program after an answer, if few enough cancelled requests are ahead.
    pub(super) fn open_when_worked_off(
        &mut self,
        worker: WorkerId,
        events: &mut Vec<BackendEvent>,
    ) {
        if self.in_flight.ahead() <= AHEAD_MAX && self.closed_until.take().is_some() {
            events.push(BackendEvent::Open { worker });
        }
    }

    /// Reopens the program when the time has passed.
    pub(in crate::programs) fn open_in_time(
        &mut self,
        now: Instant,
        worker: WorkerId,
        events: &mut Vec<BackendEvent>,
    ) {
        if self.closed_until.take_if(|until| *until <= now).is_some() {
            events.push(BackendEvent::Open { worker });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_closed_the_longer_the_more_is_ahead_but_never_for_good() {
        let millis = |ahead| closed_for(ahead).map(|it| it.as_millis());
        for ahead in 0..=16 {
            assert_eq!(millis(ahead), None, "{ahead}");
        }
        let closed: Vec<_> = (17..24).filter_map(millis).collect();
        assert_eq!(closed, [50, 100, 200, 400, 800, 1000, 1000]);
        for ahead in [40, 48, 49, 50, 81, 1000, usize::MAX] {
            assert_eq!(millis(ahead), Some(1000), "{ahead}");
        }
    }
}
