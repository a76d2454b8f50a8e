//! How far the peer of a stream has come with output that waits for it.

use super::Loop;
use crate::StreamId;
use crate::kernel::Kernel;
use crate::state::ceiling_ms;
use crate::stream::Marks;

impl<K: Kernel, M: Send + 'static> Loop<K, M> {
    /// Output may have waited for a while: what its peer acknowledges from now on counts.
    pub(super) fn begin_progress(&mut self, id: StreamId) {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return };
        stream.marks.clear(Marks::PROGRESS);
        let Some(after) = stream.limits.progress_after else { return };
        let Some((wait, _)) = self.state.wait(id).filter(|(wait, _)| !wait.is_measured()) else {
            return;
        };
        // Another wait may have begun since the alarm was set.
        let due = wait.since() + ceiling_ms(after);
        if self.state.clock.now_tick() < due {
            self.state.arm_progress(id, due);
        } else {
            self.measure(id);
        }
    }

    /// The owner, or the end of a linger, is about to look at a wait of which acknowledged bytes count.
    pub(super) fn follow_progress(&mut self, id: StreamId) {
        if self.state.wait(id).is_some_and(|(wait, _)| wait.is_measured()) {
            self.measure(id);
        }
    }

    fn measure(&mut self, id: StreamId) {
        let stream = self.state.streams.get(id.index, id.generation);
        let Some(fd) = stream.and_then(|stream| stream.fd.as_ref()) else { return };
        let Ok(unacknowledged) = self.kernel.unacknowledged(fd) else { return };
        let tick = self.state.clock.now_tick();
        if let Some((wait, accepted)) = self.state.wait(id) {
            wait.measure(tick, accepted, unacknowledged);
        }
    }
}
