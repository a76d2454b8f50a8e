//! Whom the end of a program's standard error is about.
//!
//! What a program writes there names no client. A client therefore gets only what was written while the program
//! served this client alone. Clients of a program that serves several at once get none of it, unless `exit_message`
//! says otherwise. The log has all of it.

use super::config::ProgramConfig;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A process for one request; or one that serves HTTP, whose clients are told nothing of it by default.
    Whole,
    /// This client: what was said behind so many bytes. Those before are about others.
    One { client: Option<u64>, after: u64 },
    /// It may work for several clients at once.
    Several,
}

impl Audience {
    pub(super) const fn of(config: &ProgramConfig) -> Self {
        // It may be about a notification when another client's request comes.
        let is_notified = config.framing.is_json() && !config.is_own;
        if config.framing.ends_with_stream() || config.is_hosted {
            Self::Whole
        } else if config.tagged || config.is_shared || is_notified {
            Self::Several
        } else {
            Self::One { client: None, after: 0 }
        }
    }

    /// The program, which has `said` so many bytes, is given a request of this client; `is_reset`: one that makes
    /// it forget its client.
    pub(super) fn handle_sent(&mut self, client: u64, is_reset: bool, said: u64) {
        if let Self::One { client: known, after } = self
            && (is_reset || *known != Some(client))
        {
            *known = (!is_reset).then_some(client);
            *after = said;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_what_was_said_since_the_program_serves_it() {
        let mut audience = Audience::One { client: None, after: 0 };
        for (client, is_reset, said, expected) in [
            (7, false, 10, 10),
            (7, false, 20, 10),
            (8, false, 30, 30),
            (7, false, 40, 40),
            (1, true, 50, 50),
            (7, false, 60, 60),
        ] {
            audience.handle_sent(client, is_reset, said);
            let known = (!is_reset).then_some(client);
            assert_eq!(audience, Audience::One { client: known, after: expected });
        }
        let mut several = Audience::Several;
        several.handle_sent(7, false, 10);
        assert_eq!(several, Audience::Several);
    }
}
