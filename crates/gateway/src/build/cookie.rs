//! Builds the configuration of a cookie and the codec of its values.

use std::time::Duration;

use pool::{CookieCodec, CookieMode, CookieValue};

use super::secret_file::read_secret_file;
use crate::error::BuildError;
use engine::cookies::CookieConfig;

pub(super) fn cookie(
    pool: &str,
    cookie: settings::Cookie,
    lifetime: Duration,
    servers: &[(event::Address, String)],
    drawn: &[u8],
) -> Result<CookieConfig, BuildError> {
    let settings::Cookie { name, mode, value, secret, path, max_age, http_only, secure, same_site } =
        cookie;
    let mode = match mode {
        settings::CookieMode::Insert => CookieMode::Insert,
        settings::CookieMode::Rewrite => CookieMode::Rewrite,
        settings::CookieMode::Prefix => CookieMode::Prefix,
        settings::CookieMode::Passive => CookieMode::Passive,
    };
    let value = match value {
        settings::CookieValue::Opaque => CookieValue::Opaque,
        settings::CookieValue::Signed => CookieValue::Signed,
    };
    // A part of a second counts as a whole second.
    let lifetime_s = u32::try_from(lifetime.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
    let codec = match mode {
        CookieMode::Passive => None,
        _ => Some(CookieCodec::new(
            &secret_of(pool, secret.as_ref(), drawn)?,
            pool,
            value,
            lifetime_s,
        )),
    };
    let mut attributes = format!("; Path={path}");
    if let Some(age) = max_age {
        attributes.push_str(&format!("; Max-Age={}", age.as_secs()));
    }
    if http_only {
        attributes.push_str("; HttpOnly");
    }
    if secure {
        attributes.push_str("; Secure");
    }
    attributes.push_str(match same_site {
        settings::SameSite::Strict => "; SameSite=Strict",
        settings::SameSite::Lax => "; SameSite=Lax",
        settings::SameSite::None => "; SameSite=None",
    });
    Ok(CookieConfig {
        name: name.into_bytes(),
        mode,
        codec,
        lifetime_s,
        attributes: attributes.into_bytes(),
        servers: servers.iter().map(|(_, name)| name.clone()).collect(),
    })
}

/// Returns the secret of the values. If none is configured, it was drawn at random and is the same for all shards.
pub(super) fn secret_of(
    pool: &str,
    secret: Option<&settings::Secret>,
    drawn: &[u8],
) -> Result<Vec<u8>, BuildError> {
    const SECRET_MIN: usize = 16;
    let fault = |why: String| BuildError::Cookie { pool: pool.to_owned(), why };
    let bytes = match secret {
        None => drawn.to_vec(),
        Some(settings::Secret::Environment(name)) => std::env::var(name)
            .map_err(|error| fault(format!("`secret`: `{name}`: {error}")))?
            .into_bytes(),
        Some(settings::Secret::File(path)) => {
            let (bytes, _) = read_secret_file(path)
                .map_err(|error| fault(format!("`secret`: `{}`: {error}", path.display())))?;
            bytes.trim_ascii_end().to_vec()
        }
    };
    if bytes.len() < SECRET_MIN {
        return Err(fault(format!("`secret` is shorter than {SECRET_MIN} bytes")));
    }
    Ok(bytes)
}
