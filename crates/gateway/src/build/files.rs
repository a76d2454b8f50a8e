//! Checks the files and variables that a configuration names and that the daemon reads at its start.

use settings::{Configuration, FallbackAnswer, KnownBy};

use super::{cookie, fallback, program, routes};
use crate::error::BuildError;

/// Returns an error for everything that the configuration names and that cannot be read or is not valid: secrets and
/// responses of routes, fallback responses of pools, secrets of cookies, variables that are passed to programs, and
/// `reset` requests of programs.
#[must_use]
pub fn unread(configuration: &Configuration) -> Vec<BuildError> {
    let mut errors: Vec<_> = configuration.listeners.iter().flat_map(routes::unread).collect();
    for pool in &configuration.pools {
        if let Some(program) = pool.program() {
            errors.extend(program::variables(&pool.name, program.env.clone()).err());
            let framing = program::wire_framing(program.framing);
            errors.extend(program::resets(&pool.name, framing, program.reset.as_deref()).err());
        }
        if let Some(FallbackAnswer::File(path)) =
            pool.balancing.fallback.as_ref().map(|it| &it.answer)
        {
            errors.extend(fallback::read(&pool.name, path).err());
        }
        if let Some(KnownBy::Cookie(cookie)) = pool.balancing.sticky.as_ref().map(|it| &it.by)
            && let Some(secret) = &cookie.secret
        {
            errors.extend(cookie::secret_of(&pool.name, Some(secret), b"").err());
        }
    }
    errors
}
