//! The outstanding replies of a client.
//!
//! ```text
//!   replies   [ ready ][ waiting, parts ][ ready ][ waiting ]   in the order of the requests
//!   number      first    first+1           …
//!                 └ written as soon as the output buffer has room
//! ```
//!
//! In order, a reply is held until all earlier ones are written. Out of order, each reply is written when it arrives,
//! so a slow one does not delay others.

use std::collections::VecDeque;

use exchange::{Cause, Outcome, Phase, RequestId, Slice};
use wire::ErrorId;
use wire::jsonrpc::{Skimmed, id_at_start};

use flow::reply_event::ReplyEvent;

/// The id for an error object, kept until the reply is written.
#[derive(Clone, Debug)]
pub(super) enum Name {
    /// This id.
    Id(Slice),
    /// The framing has no ids, or the id could not be parsed.
    Unknown,
    /// It was a notification, which must not be answered.
    Nothing,
}

impl Name {
    /// The id for the rejection of a message that is too long. A notification or a reply gets none.
    pub(super) fn of(skimmed: Skimmed) -> Self {
        match skimmed {
            Skimmed::Request(id) => Self::Id(Slice::copy_of(&id)),
            Skimmed::Notification | Skimmed::Reply(_) => Self::Nothing,
            Skimmed::Unknown => Self::Unknown,
        }
    }

    /// The id for such a message, of which only the beginning was received.
    pub(super) fn at_start(start: &[u8]) -> Self {
        match id_at_start(start) {
            ErrorId::Id(id) => Self::Id(Slice::copy_of(id)),
            ErrorId::Nothing => Self::Nothing,
            ErrorId::Unknown => Self::Unknown,
        }
    }

    pub(super) fn asked(&self) -> ErrorId<'_> {
        match self {
            Self::Id(id) => ErrorId::Id(id),
            Self::Unknown => ErrorId::Unknown,
            Self::Nothing => ErrorId::Nothing,
        }
    }
}

#[derive(Debug)]
struct Reply {
    number: u64,
    /// The request, until its outcome arrives.
    request: Option<RequestId>,
    name: Name,
    /// Parts that are not written yet. Allocated with the first part.
    #[expect(clippy::box_collection, reason = "most have none, and each is moved when it leaves")]
    parts: Option<Box<VecDeque<Slice>>>,
    /// Bytes of parts that have arrived.
    came: usize,
    outcome: Option<Outcome>,
}

/// The next item to write.
#[derive(Debug)]
pub(super) enum Ready {
    Part(Slice),
    End(Name, Outcome),
}

impl Ready {
    /// Its memory in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Part(part) => part_size(part),
            Self::End(_, outcome) => size(outcome),
        }
    }
}

/// The outstanding replies, by number.
#[derive(Debug)]
pub(super) struct ReplyQueue {
    /// By ascending number.
    replies: VecDeque<Reply>,
    /// The number of the next reply.
    next: u64,
    /// Memory of items that are ready and not written, in bytes.
    held: usize,
    /// The size of these items as output in bytes, without most of the framing.
    output: usize,
    in_order: bool,
    /// The end of a reply in parts is written even if it is empty.
    tells_ends: bool,
    /// Out of order: numbers of replies with something to write, and [`ASIDE`].
    changed: VecDeque<u64>,
    /// Unsolicited messages. Most clients never have any.
    asides: Option<Box<Asides>>,
}

/// Unsolicited messages. They do not count against the limit of replies, because their program is paused.
#[derive(Debug, Default)]
struct Asides {
    /// Each message with the number of the reply before which it is written.
    queue: VecDeque<(u64, Ready)>,
    /// Their size in bytes.
    held: usize,
}

/// In place of a number: the next unsolicited message.
const ASIDE: u64 = u64::MAX;
/// Bytes of memory beyond the output limit that a worker may fill before it is paused: one read of lines of one byte,
/// each of which needs about as much memory as twenty bytes of output.
const MEMORY_SLACK: usize = 2 << 20;

/// Limits of the memory of one client, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Replies that wait for their turn.
    pub(super) held_max: usize,
    /// All of its output.
    pub(super) send_max: usize,
}

impl ReplyQueue {
    pub(super) const fn new(in_order: bool, tells_ends: bool) -> Self {
        Self {
            replies: VecDeque::new(),
            next: 0,
            held: 0,
            output: 0,
            in_order,
            tells_ends,
            changed: VecDeque::new(),
            asides: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.replies.len()
    }

    /// The memory of items that are ready and not written, in bytes.
    pub(super) fn held(&self) -> usize {
        self.held + self.asides.as_ref().map_or(0, |asides| asides.held)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// The number of the next reply.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// The index of a reply. It is usually the difference of its number and that of the first one.
    fn place(&self, number: u64) -> Option<usize> {
        let first = self.replies.front()?.number;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        if self.replies.get(place).is_some_and(|reply| reply.number == number) {
            return Some(place);
        }
        self.replies.binary_search_by_key(&number, |reply| reply.number).ok()
    }

    /// Adds a reply that is outstanding.
    pub(super) fn push(&mut self, request: RequestId, name: Name) {
        self.add(Some(request), name, None);
    }

    /// Adds a reply that is ready.
    pub(super) fn push_ready(&mut self, outcome: Outcome, name: Name) {
        self.held += size(&outcome);
        self.output += output(&outcome);
        let number = self.next_number();
        self.add(None, name, Some(outcome));
        self.note(number);
    }

    fn add(&mut self, request: Option<RequestId>, name: Name, outcome: Option<Outcome>) {
        let number = self.next;
        self.replies.push_back(Reply { number, request, name, parts: None, came: 0, outcome });
        self.next += 1;
    }

    fn note(&mut self, number: u64) {
        if !self.in_order {
            self.changed.push_back(number);
        }
    }

    /// Handles an event about request `number`. If it exceeds a limit, an error outcome replaces it and is returned,
    /// with the request if that is still in flight.
    pub(super) fn deliver(
        &mut self,
        number: u64,
        reply_event: ReplyEvent,
        limits: Limits,
    ) -> Option<(Option<RequestId>, Outcome)> {
        let place = self.place(number)?;
        let waits_for_turn = self.in_order && place > 0;
        let reply = self.replies.get_mut(place).filter(|reply| reply.request.is_some())?;
        let (bytes, length) = match &reply_event {
            ReplyEvent::Part(part) => (part_size(part), part.len()),
            ReplyEvent::End(outcome) => (size(outcome), length(outcome)),
            // HTTP only: a frame has no head and no separate body.
            ReplyEvent::Head(_)
            | ReplyEvent::Page(_)
            | ReplyEvent::PlainReply(_)
            | ReplyEvent::BodyWanted(_)
            | ReplyEvent::ReplyEnd
            | ReplyEvent::SpliceOffer(_)
            | ReplyEvent::Spliced(..)
            | ReplyEvent::Unsolicited(..)
            | ReplyEvent::Finished => return None,
        };
        // Together with other replies, or after parts of its own.
        let shares = self.held > 0 && (!self.in_order || reply.parts.is_some());
        let is_held_up = waits_for_turn && self.held + bytes > limits.held_max;
        let is_full = self.output + length + END > limits.send_max
            || self.held + bytes > limits.send_max.saturating_add(MEMORY_SLACK);
        if is_held_up || length > limits.send_max || shares && is_full {
            let outcome = over(is_held_up, limits);
            self.held += size(&outcome);
            self.output += output(&outcome);
            let more = matches!(reply_event, ReplyEvent::Part(_));
            let told = (reply.request.take().filter(|_| more), outcome.clone());
            reply.outcome = Some(outcome);
            self.note(number);
            return Some(told);
        }
        self.held += bytes;
        self.output += length + END;
        match reply_event {
            ReplyEvent::Part(part) => {
                reply.came = reply.came.saturating_add(length);
                reply.parts.get_or_insert_default().push_back(part);
            }
            ReplyEvent::End(outcome) => {
                reply.request = None;
                reply.outcome = Some(outcome);
            }
            // Handled above.
            _ => {}
        }
        self.note(number);
        None
    }

    /// Adds an unsolicited message of the client's own program, after the replies that have arrived and before the
    /// others. If it exceeds a limit, an error outcome replaces it and is returned.
    pub(super) fn push_aside(&mut self, frame: Slice, limits: Limits) -> Option<Outcome> {
        let bytes = part_size(&frame);
        let is_over = frame.len() > limits.send_max
            || self.asides.as_ref().map_or(0, |it| it.held) + bytes
                > limits.send_max.saturating_add(MEMORY_SLACK);
        let told = is_over.then(|| over(false, limits));
        let asides = self.asides.get_or_insert_default();
        let ready = match &told {
            // Further lost messages are not reported again.
            Some(_) if matches!(asides.queue.back(), Some((_, Ready::End(..)))) => return told,
            Some(outcome) => Ready::End(Name::Unknown, outcome.clone()),
            None => Ready::Part(frame),
        };
        asides.held += ready.size();
        let waiting = self.replies.iter().find(|reply| reply.outcome.is_none());
        let before = waiting.map_or(self.next, |reply| reply.number);
        asides.queue.push_back((before, ready));
        self.note(ASIDE);
        told
    }

    /// Whether an equal message is waiting.
    pub(super) fn has_aside(&self, frame: &[u8]) -> bool {
        let mut asides = self.asides.iter().flat_map(|asides| asides.queue.iter());
        asides.any(|(_, ready)| matches!(ready, Ready::Part(part) if part[..] == *frame))
    }

    pub(super) fn has_asides(&self) -> bool {
        self.asides.is_some()
    }

    /// Takes the next unsolicited message, if it is its turn.
    fn pop_aside(&mut self) -> Option<Ready> {
        let asides = self.asides.as_mut()?;
        let first = self.replies.front().map_or(self.next, |reply| reply.number);
        if self.in_order {
            asides.queue.front().filter(|(before, _)| *before <= first)?;
        } else {
            self.changed.front().filter(|number| **number == ASIDE)?;
            self.changed.pop_front();
        }
        let (_, ready) = asides.queue.pop_front()?;
        asides.held -= ready.size();
        if asides.queue.is_empty() {
            debug_assert_eq!(asides.held, 0, "what was taken is not held");
            self.asides = None;
        }
        Some(ready)
    }

    /// Takes the next item to write.
    pub(super) fn pop_ready(&mut self) -> Option<Ready> {
        loop {
            let turn = if self.in_order { Some(0) } else { self.changed_place() };
            if let Some(aside) = self.pop_aside() {
                return Some(aside);
            }
            let place = turn?;
            let reply = self.replies.get_mut(place)?;
            if let Some(part) = reply.parts.as_mut().and_then(|parts| parts.pop_front()) {
                self.held -= part_size(&part);
                self.output -= part.len() + END;
                return Some(Ready::Part(part));
            }
            if !self.in_order {
                self.changed.pop_front();
            }
            if reply.outcome.is_none() {
                if self.in_order {
                    return None;
                }
                continue;
            }
            // Usually the first one, whose removal moves no others.
            let taken = match place {
                0 => self.replies.pop_front(),
                _ => self.replies.remove(place),
            };
            let Some(Reply { name, parts, outcome: Some(outcome), .. }) = taken else {
                return None;
            };
            let is_parted = parts.is_some();
            self.held -= size(&outcome);
            self.output -= output(&outcome);
            // An empty end after parts, or the outcome of a notification.
            let is_empty = matches!(&outcome, Outcome::Reply(rest) if rest.is_empty());
            let adds_nothing = is_parted && is_empty && !self.tells_ends;
            let says_nothing = adds_nothing || matches!(name, Name::Nothing);
            if !says_nothing {
                return Some(Ready::End(name, outcome));
            }
        }
    }

    /// Out of order: the index of the first reply with something to write.
    fn changed_place(&mut self) -> Option<usize> {
        loop {
            let number = *self.changed.front().filter(|number| **number != ASIDE)?;
            if let Some(place) = self.place(number) {
                return Some(place);
            }
            // Already written, because of an earlier entry.
            self.changed.pop_front();
        }
    }

    /// The request whose parts are being written, and the bytes of parts that have arrived. Only its worker should be
    /// paused.
    pub(super) fn streaming(&self) -> Option<(RequestId, usize)> {
        let first = self.replies.front().filter(|reply| reply.parts.is_some())?;
        Some((first.request?, first.came))
    }

    /// The request with this id of the client.
    pub(super) fn find(&self, id: &[u8]) -> Option<RequestId> {
        let mut replies = self.replies.iter();
        let found = replies.find(|reply| matches!(&reply.name, Name::Id(name) if name[..] == *id));
        found.and_then(|reply| reply.request)
    }

    /// Suppresses the reply to this request.
    pub(super) fn silence(&mut self, request: RequestId) {
        let reply = self.replies.iter_mut().find(|reply| reply.request == Some(request));
        if let Some(reply) = reply {
            reply.name = Name::Nothing;
        }
    }

    /// Whether a reply with an id is outstanding.
    pub(super) fn waits_for_named(&self) -> bool {
        let is_named = |it: &Reply| it.request.is_some() && matches!(it.name, Name::Id(_));
        self.replies.iter().any(is_named)
    }

    /// The outstanding requests.
    pub(super) fn requests(&self) -> impl Iterator<Item = RequestId> {
        self.replies.iter().filter_map(|reply| reply.request)
    }
}

/// The error outcome for a reply over a limit: that of replies that wait for their turn, or that of all output.
#[cold]
fn over(is_held_up: bool, limits: Limits) -> Outcome {
    let Limits { held_max, send_max } = limits;
    let text = if is_held_up {
        format!("replies that wait for their turn hold at most {held_max} bytes")
    } else {
        format!("a client's output holds at most {send_max} bytes")
    };
    Outcome::ended(Cause::Reply, Phase::Reply, &text)
}

/// The memory of a part in bytes, which is not zero for an empty part.
fn part_size(part: &Slice) -> usize {
    part.held() + size_of::<Slice>()
}

/// The size of an outcome as output in bytes, without a few bytes of marks.
fn length(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Reply(body) | Outcome::Ended(_, body) | Outcome::Fallback(_, body) => body.len(),
    }
}

/// The minimum size of framing, in bytes.
const END: usize = 1;

fn output(outcome: &Outcome) -> usize {
    length(outcome) + END
}

/// The memory of an outcome in bytes.
fn size(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Reply(body) | Outcome::Ended(_, body) | Outcome::Fallback(_, body) => body.held(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { held_max: 100, send_max: 1000 };

    fn id(number: u32) -> RequestId {
        RequestId::new(number.into())
    }

    fn reply(text: &str) -> ReplyEvent {
        ReplyEvent::End(Outcome::Reply(Slice::from(text)))
    }

    fn asked(in_order: bool, requests: u32) -> ReplyQueue {
        let mut reply_queue = ReplyQueue::new(in_order, false);
        for request in 0..requests {
            reply_queue.push(id(request), Name::Unknown);
        }
        reply_queue
    }

    fn next(reply_queue: &mut ReplyQueue) -> Option<String> {
        match reply_queue.pop_ready()? {
            Ready::Part(body) | Ready::End(_, Outcome::Reply(body)) => {
                Some(String::from_utf8_lossy(&body).into_owned())
            }
            Ready::End(_, Outcome::Ended(end, _) | Outcome::Fallback(end, _)) => {
                Some(format!("!{}", end.cause.as_str()))
            }
        }
    }

    #[test]
    fn in_order_a_reply_waits_for_those_before_it() {
        let mut reply_queue = asked(true, 3);
        reply_queue.deliver(1, reply("b"), LIMITS);
        assert_eq!(next(&mut reply_queue), None);
        reply_queue.deliver(0, reply("a"), LIMITS);
        assert_eq!(next(&mut reply_queue).as_deref(), Some("a"));
        assert_eq!(next(&mut reply_queue).as_deref(), Some("b"));
        assert_eq!(
            (next(&mut reply_queue), reply_queue.len(), reply_queue.next_number()),
            (None, 1, 3)
        );
    }

    #[test]
    fn out_of_order_one_that_takes_long_keeps_no_place_of_others() {
        let mut reply_queue = asked(false, 1);
        for number in 1..10_000 {
            reply_queue.push(id(1), Name::Unknown);
            assert!(reply_queue.deliver(number, reply("x"), LIMITS).is_none());
            assert_eq!(next(&mut reply_queue).as_deref(), Some("x"));
            assert_eq!((next(&mut reply_queue), reply_queue.len()), (None, 1));
        }
        assert!(reply_queue.deliver(5, reply("again"), LIMITS).is_none());
        reply_queue.deliver(0, reply("late"), LIMITS);
        assert_eq!(next(&mut reply_queue).as_deref(), Some("late"));
        assert!(reply_queue.is_empty() && reply_queue.held == 0);
    }

    #[test]
    fn out_of_order_replies_that_are_not_taken_have_a_limit() {
        let mut reply_queue = asked(false, 10);
        let told =
            (0..10).filter_map(|it| reply_queue.deliver(it, reply(&"x".repeat(400)), LIMITS));
        let told = told.count();
        assert!((8..10).contains(&told), "{told}");
        let written: Vec<_> = std::iter::from_fn(|| next(&mut reply_queue)).collect();
        assert_eq!(written.iter().filter(|it| *it == "!reply").count(), told);
        assert!(reply_queue.is_empty() && reply_queue.held == 0);
    }

    fn aside(reply_queue: &mut ReplyQueue, text: &str) {
        assert!(reply_queue.push_aside(Slice::from(text), LIMITS).is_none());
    }

    #[test]
    fn what_is_said_unasked_stays_where_it_was_said_among_the_replies() {
        for in_order in [true, false] {
            let mut reply_queue = asked(in_order, 2);
            aside(&mut reply_queue, "before");
            reply_queue.deliver(0, reply("a"), LIMITS);
            aside(&mut reply_queue, "between");
            aside(&mut reply_queue, "again");
            reply_queue.deliver(1, reply(""), LIMITS);
            aside(&mut reply_queue, "behind");
            let said: Vec<_> = std::iter::from_fn(|| next(&mut reply_queue)).collect();
            assert_eq!(said, ["before", "a", "between", "again", "", "behind"], "{in_order}");
            assert!(reply_queue.is_empty() && !reply_queue.has_asides() && reply_queue.held == 0);
            aside(&mut reply_queue, "alone");
            assert_eq!(next(&mut reply_queue).as_deref(), Some("alone"));
            // A later request waits; what is said before its reply is not held up by it.
            reply_queue.push(id(9), Name::Unknown);
            aside(&mut reply_queue, "early");
            assert_eq!(next(&mut reply_queue).as_deref(), Some("early"));
            assert_eq!(next(&mut reply_queue), None);
        }
    }

    #[test]
    fn what_is_said_unasked_and_not_taken_has_a_limit() {
        for in_order in [true, false] {
            let mut reply_queue = asked(in_order, 0);
            let big = "x".repeat(1001);
            reply_queue.push(id(1), Name::Unknown);
            reply_queue.push(id(2), Name::Unknown);
            assert!(
                reply_queue.push_aside(Slice::from(big.as_str()), LIMITS).is_some(),
                "one too long"
            );
            assert_eq!(next(&mut reply_queue).as_deref(), Some("!reply"));
            let line = "x".repeat(1000);
            let say = |_| reply_queue.push_aside(Slice::from(line.as_str()), LIMITS);
            let told = (0..4000).filter_map(say).count();
            assert!(told > 1000, "{told}");
            // They take no room from replies, which wait for their turn behind them.
            assert!(reply_queue.deliver(1, reply("b"), LIMITS).is_none());
            assert!(reply_queue.deliver(0, reply("a"), LIMITS).is_none());
            let said: Vec<_> = std::iter::from_fn(|| next(&mut reply_queue)).collect();
            assert_eq!(said.iter().filter(|it| *it == "!reply").count(), 1, "it is said once");
            assert_eq!(said.iter().filter(|it| ["a", "b"].contains(&it.as_str())).count(), 2);
            assert!(reply_queue.held == 0 && !reply_queue.has_asides() && reply_queue.is_empty());
        }
    }

    #[test]
    fn short_lines_count_as_the_output_that_they_become() {
        let limits = Limits { held_max: 100, send_max: 64 << 10 };
        let mut reply_queue = asked(true, 1);
        let mut deliver =
            || reply_queue.deliver(0, ReplyEvent::Part(Slice::from("123456789")), limits);
        let passed = std::iter::repeat_with(&mut deliver).take_while(Option::is_none).count();
        assert_eq!(passed, (64 << 10) / 10);
        let written: Vec<_> = std::iter::from_fn(|| next(&mut reply_queue)).collect();
        assert_eq!(
            (written.len(), written.last().map(String::as_str)),
            (passed + 1, Some("!reply"))
        );
        assert_eq!((reply_queue.held, reply_queue.output), (0, 0));
    }

    #[test]
    fn parts_that_hold_nothing_have_a_limit_too() {
        for in_order in [true, false] {
            let mut reply_queue = asked(in_order, 1);
            let mut deliver = || reply_queue.deliver(0, ReplyEvent::Part(Slice::default()), LIMITS);
            let told = (0..=1000).find_map(|_| deliver());
            assert!(matches!(told, Some((Some(_), _))), "the worker is told to stop");
            assert_eq!(
                std::iter::from_fn(|| next(&mut reply_queue)).last().as_deref(),
                Some("!reply")
            );
            assert!(reply_queue.is_empty() && reply_queue.held == 0);
        }
    }
}
