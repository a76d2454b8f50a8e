//! The encoding of numbers, texts and lists.
//!
//! What it is: [`Writer`] and [`Reader`]. What it must never depend on: the messages. Reading never panics and never
//! reserves memory according to a length that was not verified.

use std::time::Duration;

#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(super) fn int(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn long(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn duration(&mut self, value: Duration) -> &mut Self {
        self.long(u64::try_from(value.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn count(&mut self, count: usize) -> &mut Self {
        self.int(u32::try_from(count).expect("a message is far shorter than 4 GiB"))
    }

    pub(super) fn text(&mut self, bytes: &[u8]) -> &mut Self {
        self.count(bytes.len());
        self.0.extend(bytes);
        self
    }

    pub(super) fn optional(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => _ = self.byte(1).text(bytes),
            None => _ = self.byte(0),
        }
    }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    pub(super) fn int(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn duration(&mut self) -> Option<Duration> {
        self.long().map(Duration::from_micros)
    }

    pub(super) fn text(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.int()?).ok()?;
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head.to_vec())
    }

    pub(super) fn string(&mut self) -> Option<String> {
        self.text().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn optional(&mut self) -> Option<Option<Vec<u8>>> {
        if self.byte()? == 0 { Some(None) } else { self.text().map(Some) }
    }

    pub(super) fn optional_string(&mut self) -> Option<Option<String>> {
        if self.byte()? == 0 { Some(None) } else { self.string().map(Some) }
    }

    pub(super) fn list<T>(&mut self, member: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.int()?;
        // No memory is reserved for `count`, because it was not verified.
        (0..count).map(|_| member(self)).collect()
    }
}
