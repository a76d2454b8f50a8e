//! Measures how much of the waiting output the peer of a stream has acknowledged.

use super::Loop;
use crate::StreamId;
use crate::kernel::Kernel;
use crate::state::ceiling_ms;
use crate::stream::Marks;

impl<K: Kernel, M: Send + 'static> Loop<K, M> {
    /// Called when output may have waited for `progress_after`: the bytes that the peer acknowledges from now on count.
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

    /// Measures again, if acknowledged bytes count. Called before the handler, or the end of a linger, looks at the
    /// wait.
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
