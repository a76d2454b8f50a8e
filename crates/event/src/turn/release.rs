//! Streams that the loop gives up: their descriptors return to the handler.

use block::{Block, Slice};

use super::Loop;
use crate::kernel::Kernel;
use crate::{Event, EventHandler, Released};

impl<K: Kernel, M: Send + 'static> Loop<K, M> {
    /// Stops watching the streams that are to be released, and removes them. Their output was sent before, as far as
    /// the kernel accepts it.
    pub(super) fn release_streams(&mut self) {
        for id in std::mem::take(&mut self.state.work.releasing) {
            let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else {
                continue;
            };
            let Some(fd) = stream.fd.take() else { continue };
            // If it could not be watched, there is nothing to undo.
            let _ = self.kernel.unwatch(&fd);
            let unread = stream.unconsumed.take().map_or_else(Slice::default, Block::freeze);
            let unsent = stream.output.as_mut().map_or_else(Slice::default, |it| it.take_all());
            let key = stream.key;
            self.state.remove_stream(id);
            self.state.work.released.push((id, key, Box::new(Released { fd, unread, unsent })));
        }
    }

    /// Delivers the descriptors of released streams.
    pub(super) fn report_released<O: EventHandler<Mail = M>>(&mut self, owner: &mut O) {
        while let Some((stream, key, released)) = self.state.work.released.pop() {
            self.deliver(owner, Event::Released { stream, key, released });
        }
    }
}
