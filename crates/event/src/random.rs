//! Random bytes from the system.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Fills the buffer with unpredictable bytes, for keys, secrets and seeds. Blocks only during the start of the machine,
/// until it has gathered enough randomness.
///
/// # Errors
/// If the system has no random source.
pub fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match getrandom(&mut buffer[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_drawn_and_no_two_draws_are_alike() {
        let (mut one, mut other) = ([0; 1000], [0; 1000]);
        fill_random(&mut one).expect("the system has a source");
        fill_random(&mut other).expect("the system has a source");
        assert_ne!(one, other);
        // If a part had been left out, about a hundred or more of the thousand bytes would be zero.
        assert!(one.iter().filter(|&&byte| byte == 0).count() < 50);
    }
}
