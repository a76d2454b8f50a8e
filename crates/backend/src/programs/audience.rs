//! Which clients may see the end of a program's standard error.
//!
//! The standard error of a program does not name clients. A client therefore receives only what was written while the
//! program served this client alone. Clients of a program that serves several clients at the same time receive none of
//! it, unless `exit_message` is set otherwise. The log contains all of it.

use super::config::ProgramConfig;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A process for one request, or a program that serves HTTP. By default the clients of the latter receive nothing
    /// of its output.
    Whole,
    /// This client may see what was written after the first `after` bytes. Earlier bytes concern other clients.
    One { client: Option<u64>, after: u64 },
    /// The program may work for several clients at the same time.
    Several,
}

impl Audience {
    pub(super) const fn of(config: &ProgramConfig) -> Self {
        // When another client's request arrives, the output may still concern a notification.
        let is_notified = config.framing.is_json() && !config.is_own;
        if config.framing.ends_with_stream() || config.is_spawned_http {
            Self::Whole
        } else if config.tagged || config.is_shared || is_notified {
            Self::Several
        } else {
            Self::One { client: None, after: 0 }
        }
    }

    /// Records that a request of this client is sent to the program, after the program has written `received` bytes. With
    /// `is_reset`, the request makes the program forget its client.
    pub(super) fn handle_sent(&mut self, client: u64, is_reset: bool, received: u64) {
        if let Self::One { client: known, after } = self
            && (is_reset || *known != Some(client))
        {
            *known = (!is_reset).then_some(client);
            *after = received;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_what_was_said_since_the_program_serves_it() {
        let mut audience = Audience::One { client: None, after: 0 };
        for (client, is_reset, received, expected) in [
            (7, false, 10, 10),
            (7, false, 20, 10),
            (8, false, 30, 30),
            (7, false, 40, 40),
            (1, true, 50, 50),
            (7, false, 60, 60),
        ] {
            audience.handle_sent(client, is_reset, received);
            let known = (!is_reset).then_some(client);
            assert_eq!(audience, Audience::One { client: known, after: expected });
        }
        let mut several = Audience::Several;
        several.handle_sent(7, false, 10);
        assert_eq!(several, Audience::Several);
    }
}
