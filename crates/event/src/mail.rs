//! Messages from other threads to a loop.
//!
//! A sleeping loop is woken once. It records that it sleeps under the lock that also protects the queue. Therefore
//! either the loop sees a message before it sleeps, or the sender sees that the loop sleeps. Memory ordering does not
//! matter: a loop that is awake first reads a count, and takes the lock only if there is mail. An outdated count delays
//! a message at most until the next turn.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::kernel::Wake;

/// Sends messages to one loop, from any thread.
pub struct Mailbox<M>(Arc<Shared<M>>);

struct Shared<M> {
    queue: Mutex<Queue<M>>,
    /// The number of messages in the queue; written under its lock, read without it.
    waiting: AtomicUsize,
    waker: Arc<dyn Wake>,
    /// When the queue has this many messages, `try_send` returns the message.
    mail_max: usize,
}

struct Queue<M> {
    mail: VecDeque<M>,
    sleeping: bool,
    /// The loop is gone; no message will be read.
    gone: bool,
}

impl<M> Mailbox<M> {
    /// Sends a message, or returns it if the mailbox is full or its loop is gone.
    ///
    /// # Errors
    /// The message itself.
    pub fn try_send(&self, mail: M) -> Result<(), M> {
        let queue = self.0.lock();
        if queue.gone || queue.mail.len() >= self.0.mail_max {
            return Err(mail);
        }
        self.0.push(queue, mail);
        Ok(())
    }

    /// Sends a message regardless of the limit, because the sender has reserved room for it by credits: releases, ends,
    /// commands. The message is dropped if the loop is gone.
    pub fn post(&self, mail: M) {
        let queue = self.0.lock();
        if !queue.gone {
            self.0.push(queue, mail);
        }
    }

    /// The number of messages that wait to be read.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.lock().mail.len()
    }
}

impl<M> Shared<M> {
    /// Locks the queue. Poisoning is ignored: the queue is consistent after every statement, so a panic elsewhere
    /// leaves nothing to repair.
    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue<M>>, mail: M) {
        queue.mail.push_back(mail);
        self.waiting.store(queue.mail.len(), Ordering::Relaxed);
        let sleeping = std::mem::take(&mut queue.sleeping);
        drop(queue);
        if sleeping {
            self.waker.wake();
        }
    }
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.0.lock();
        f.debug_struct("Mailbox")
            .field("waiting", &queue.mail.len())
            .field("mail_max", &self.0.mail_max)
            .finish_non_exhaustive()
    }
}

/// The receiving end of a mailbox, owned by the loop.
pub(crate) struct Inbox<M> {
    mailbox: Mailbox<M>,
    /// Whether a sleep was announced and has not ended.
    sleeping: bool,
}

impl<M> Inbox<M> {
    pub(crate) fn new(waker: Arc<dyn Wake>, mail_max: usize) -> Self {
        let queue = Queue { mail: VecDeque::new(), sleeping: false, gone: false };
        let (queue, waiting) = (Mutex::new(queue), AtomicUsize::new(0));
        Self {
            mailbox: Mailbox(Arc::new(Shared { queue, waiting, waker, mail_max })),
            sleeping: false,
        }
    }

    pub(crate) fn mailbox(&self) -> Mailbox<M> {
        self.mailbox.clone()
    }

    /// Announces a sleep and returns true, unless there is mail to read.
    pub(crate) fn may_sleep(&mut self) -> bool {
        let mut queue = self.mailbox.0.lock();
        queue.sleeping = queue.mail.is_empty();
        self.sleeping = queue.sleeping;
        self.sleeping
    }

    /// Ends the sleep and takes up to `budget` messages.
    #[inline]
    pub(crate) fn take(&mut self, budget: usize, batch: &mut VecDeque<M>) {
        if self.sleeping || self.mailbox.0.waiting.load(Ordering::Relaxed) > 0 {
            self.take_some(budget, batch);
        }
    }

    #[inline(never)]
    fn take_some(&mut self, budget: usize, batch: &mut VecDeque<M>) {
        let mut queue = self.mailbox.0.lock();
        queue.sleeping = false;
        self.sleeping = false;
        if queue.mail.len() <= budget && batch.is_empty() {
            std::mem::swap(&mut queue.mail, batch);
        } else {
            let count = queue.mail.len().min(budget);
            batch.extend(queue.mail.drain(..count));
        }
        self.mailbox.0.waiting.store(queue.mail.len(), Ordering::Relaxed);
    }
}

impl<M> Drop for Inbox<M> {
    fn drop(&mut self) {
        let mut queue = self.mailbox.0.lock();
        queue.gone = true;
        // The messages are dropped outside the lock, because a message may own a mailbox.
        let mail = std::mem::take(&mut queue.mail);
        drop(queue);
        drop(mail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug, Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn boxes(mail_max: usize) -> (Arc<Count>, Inbox<u32>) {
        let count = Arc::new(Count::default());
        let waker: Arc<dyn Wake> = count.clone();
        (count, Inbox::new(waker, mail_max))
    }

    #[test]
    fn a_full_mailbox_gives_payload_back_and_still_takes_control() {
        let (_, mut inbox) = boxes(2);
        let mailbox = inbox.mailbox();
        assert_eq!(mailbox.try_send(1), Ok(()));
        assert_eq!(mailbox.try_send(2), Ok(()));
        assert_eq!(mailbox.try_send(3), Err(3));
        mailbox.post(4);
        let mut batch = VecDeque::new();
        inbox.take(2, &mut batch);
        assert_eq!(batch, [1, 2]);
        inbox.take(10, &mut batch);
        assert_eq!(batch, [1, 2, 4]);
    }

    #[test]
    fn a_sleeper_is_woken_once_and_one_who_is_awake_never() {
        let (count, mut inbox) = boxes(10);
        let mailbox = inbox.mailbox();
        mailbox.post(1);
        assert!(!inbox.may_sleep(), "there is mail");
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        inbox.take(10, &mut VecDeque::new());
        assert!(inbox.may_sleep());
        mailbox.post(2);
        mailbox.post(3);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn mail_to_a_loop_that_is_gone_comes_back() {
        let (_, inbox) = boxes(10);
        let mailbox = inbox.mailbox();
        drop(inbox);
        assert_eq!(mailbox.try_send(1), Err(1));
        mailbox.post(2);
    }
}
