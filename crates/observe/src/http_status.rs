//! The HTTP status for each cause.

use exchange::Cause;

/// Returns the HTTP status of a request that ended without a reply. If the client has disconnected, it is 499 as in
/// nginx, and appears only in the access log. 429 and 503 are sent with `Retry-After`.
#[must_use]
pub const fn status_of(cause: Cause) -> u16 {
    match cause {
        Cause::Answered => 200,
        Cause::Malformed | Cause::Record | Cause::Row | Cause::Rows => 400,
        Cause::Unauthorized => 401,
        Cause::Denied => 403,
        Cause::NoPool | Cause::NoRoute | Cause::NoMethod | Cause::NoRow => 404,
        Cause::Incomplete => 408,
        Cause::Ignored => 409,
        Cause::TooLong => 413,
        Cause::Crowded | Cause::Rate => 429,
        Cause::Cancelled
        | Cause::Left
        | Cause::Stalled
        | Cause::SlowReader
        | Cause::Shed
        | Cause::Overtime
        | Cause::Idle => 499,
        Cause::Worker
        | Cause::Unreached
        | Cause::Garbled
        | Cause::Reply
        | Cause::Died
        | Cause::Commit
        | Cause::Handler
        | Cause::Stopped => 502,
        Cause::Connections
        | Cause::Full
        | Cause::Memory
        | Cause::Waited
        | Cause::Down
        | Cause::Fallback
        | Cause::Gone
        | Cause::Draining
        | Cause::Lost
        | Cause::Database => 503,
        Cause::Deadline => 504,
    }
}

#[cfg(test)]
mod tests {
    use exchange::Verdict;

    use super::*;

    #[test]
    fn what_may_succeed_later_is_told_so_and_what_may_have_taken_effect_is_not() {
        for &cause in Cause::ALL {
            let (status, verdict) = (status_of(cause), cause.verdict());
            let later = matches!(status, 429 | 503);
            match verdict {
                Verdict::Refused | Verdict::Failed => assert!(status >= 400, "{cause:?}"),
                Verdict::Unknown => assert!(status >= 500 && !later, "{cause:?}"),
                Verdict::Left => assert_eq!(status, 499, "{cause:?}"),
                Verdict::Answered => assert_eq!(status, 200),
            }
        }
        for cause in [Cause::Fallback, Cause::Gone, Cause::Lost, Cause::Full, Cause::Down] {
            assert_eq!(status_of(cause), 503, "{cause:?}");
        }
    }
}
