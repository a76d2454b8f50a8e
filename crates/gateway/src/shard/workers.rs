//! Whose a worker's stream or process is, of whatever kind its pool's workers are.

use event::{Calls, TimerId};

use super::Shard;
use crate::outside::Outside;
use crate::programs::Programs;
use crate::servers::{LinkId, Servers};
use crate::upward::Upward;
use crate::workers::Workers;

impl Shard {
    /// Runs `act` on the servers of a pool, on one of whose links something happened.
    pub(super) fn with_servers(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        link: LinkId,
        act: impl FnOnce(&mut Servers, &mut Calls<'_>, &mut Vec<Upward>),
    ) {
        let outside = &mut self.outside;
        self.core.with_workers(place, |workers, up| match workers {
            Workers::Servers(servers) => act(servers, calls, up),
            Workers::Hosted(hosted) => hosted.with_servers(calls, link, outside, up, act),
            Workers::Programs(_) | Workers::Handlers(_) | Workers::Elsewhere => {}
        });
    }

    /// Runs `act` on the programs of a pool.
    pub(super) fn with_programs<R: Default>(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        act: impl FnOnce(&mut Programs, &mut Calls<'_>, &mut Outside, &mut Vec<Upward>) -> R,
    ) -> R {
        let outside = &mut self.outside;
        self.core.with_workers(place, |workers, up| match workers {
            Workers::Programs(programs) => act(programs, calls, outside, up),
            Workers::Hosted(hosted) => hosted.with_programs(calls, outside, up, act),
            Workers::Servers(_) | Workers::Handlers(_) | Workers::Elsewhere => R::default(),
        })
    }

    pub(super) fn timer(&mut self, calls: &mut Calls<'_>, timer: TimerId) {
        if self.pool_timer.is_some_and(|(it, _)| it == timer) {
            self.pool_timer = Some((timer, None));
            return self.core.handle_time();
        }
        if self.drain.is_timer(timer) {
            return self.drain_timer(calls);
        }
        for place in 0..self.core.pools.len() {
            let outside = &mut self.outside;
            let found = self.core.with_workers(place, |workers, up| match workers {
                Workers::Programs(programs) => programs.handle_timer(calls, timer, outside, up),
                Workers::Hosted(hosted) => hosted.handle_timer(calls, timer, outside, up),
                Workers::Handlers(handlers) => handlers.handle_timer(timer, up),
                // Its timers are deadlines of links.
                Workers::Servers(_) | Workers::Elsewhere => false,
            });
            if found {
                return;
            }
        }
    }
}
