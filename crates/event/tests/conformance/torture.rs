//! Many streams with handlers that consume, take, pause and resume at random.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use event::{Direction::Both, Kernel, LoopSettings, StreamId, StreamLimits};

use crate::harness::{Bench, Random, Seen, pattern, tcp, unix, write};

const STREAMS: usize = 24;

/// Every byte arrives once and in order, regardless of how the handler treats its offers.
pub(crate) fn random_consumers_see_the_same_bytes(kernel: impl Kernel) {
    let settings = LoopSettings { read_budget: 3000, events_max: 5, ..LoopSettings::default() };
    let mut bench = Bench::with(kernel, settings);
    let got: Rc<RefCell<HashMap<StreamId, Vec<u8>>>> = Rc::default();
    bench.eat({
        let (got, mut random) = (Rc::clone(&got), Random(5));
        move |stream, data| {
            let length = data.bytes().len();
            let count = if data.is_last() { length } else { random.below(length + 1) };
            let mut got = got.borrow_mut();
            let all = got.entry(stream).or_default();
            if random.below(2) == 0 {
                all.extend_from_slice(&data.take(count));
            } else {
                all.extend_from_slice(&data.bytes()[..count]);
                data.consume(count);
            }
        }
    });
    bench.react({
        let mut random = Random(9);
        move |io, seen| match seen {
            Seen::Data(stream, ..) if random.below(3) == 0 => {
                io.pause(*stream);
                let at = io.now();
                io.deadline(*stream, event::DeadlineName(0), Some(at));
            }
            Seen::Deadline(stream, _) => io.resume(*stream),
            Seen::Eof(stream) => io.finish(*stream, None),
            _ => {}
        }
    });
    let limits = StreamLimits { recv_buffer_max: 200_000, ..StreamLimits::default() };
    let mut writers = Vec::new();
    let mut expected = HashMap::new();
    for number in 0..STREAMS {
        let (near, far) = if number % 2 == 0 { tcp() } else { unix() };
        let stream = bench.adopt_with(near, Both, limits);
        let bytes = pattern(1000 + number * 9973);
        expected.insert(stream, bytes.clone());
        writers.push(std::thread::spawn(move || {
            let (mut rest, mut random) = (&bytes[..], Random(number as u64 + 1));
            while !rest.is_empty() {
                let (part, after) = rest.split_at((1 + random.below(9000)).min(rest.len()));
                write(&far, part);
                rest = after;
            }
        }));
    }
    bench.until("all ends", |seen| {
        seen.iter().filter(|seen| matches!(seen, Seen::Closed(..))).count() == STREAMS
    });
    for writer in writers {
        writer.join().unwrap();
    }
    for (stream, bytes) in expected {
        assert!(got.borrow()[&stream] == bytes, "{stream:?} lost, doubled or moved bytes");
    }
    assert_eq!(bench.context().streams(), 0);
}
