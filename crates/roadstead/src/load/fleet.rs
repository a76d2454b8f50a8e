//! All connections of a load.

use event::StreamId;

use super::connection::{Connection, ConnectionState};

/// The connections, and how many of them are in each state.
pub(super) struct Connections {
    pub(super) all: Vec<Connection>,
    /// The connection for each index of a stream.
    by_stream: Vec<usize>,
    /// The number of connections whose first opening was begun.
    pub(super) begun: usize,
    pub(super) opening: usize,
    pub(super) open: usize,
    pub(super) gone: usize,
}

impl Connections {
    pub(super) fn new(count: usize) -> Self {
        let all = (0..count).map(|_| Connection::new()).collect();
        Self { all, by_stream: Vec::new(), begun: 0, opening: 0, open: 0, gone: 0 }
    }

    /// Returns the connection of this stream, if it is the current stream of that connection.
    pub(super) fn of_stream(&self, stream: StreamId) -> Option<usize> {
        let &place = self.by_stream.get(stream.index())?;
        (self.all.get(place)?.stream() == Some(stream)).then_some(place)
    }

    /// Stores the stream of a connection that is being opened.
    pub(super) fn opens(&mut self, place: usize, stream: StreamId) {
        let index = stream.index();
        if self.by_stream.len() <= index {
            self.by_stream.resize(index + 1, usize::MAX);
        }
        self.by_stream[index] = place;
        self.set_state(place, ConnectionState::Opening(stream));
    }

    /// Changes the state of a connection.
    pub(super) fn set_state(&mut self, place: usize, link: ConnectionState) {
        let before = std::mem::replace(&mut self.all[place].link, link);
        for (state, change) in [(before, -1), (link, 1)] {
            let count = match state {
                ConnectionState::Waiting => continue,
                ConnectionState::Opening(_) => &mut self.opening,
                ConnectionState::Open(_) => &mut self.open,
                ConnectionState::Gone => &mut self.gone,
            };
            *count = count.checked_add_signed(change).expect("what is left was entered before");
        }
    }
}
