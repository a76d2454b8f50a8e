//! Prepares the admin address of a configuration: reads its secrets and looks up its names.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use control::AdminSettings;
use settings::Secret;

/// An option of `[admin]` that cannot be used, and the reason.
#[derive(Debug)]
pub(crate) struct InvalidOption {
    /// The option.
    pub(crate) option: &'static str,
    /// The reason.
    pub(crate) message: String,
}

/// Reads the token and looks up the group.
///
/// # Errors
/// The first option that cannot be used. The message contains no part of the token.
pub(crate) fn admin_settings(admin: &settings::Admin) -> Result<AdminSettings, InvalidOption> {
    let settings::Admin { listen, token, group, allowed_hosts, max_connections, header_timeout } =
        admin.clone();
    let token = match &token {
        None => None,
        Some(secret) => {
            let unusable = |message| InvalidOption { option: "token", message };
            let text = read_secret(secret).map_err(unusable)?;
            control::check_token(&text)
                .map_err(|fault| unusable(format!("the `token` of `[admin]` {fault}")))?;
            Some(text)
        }
    };
    let group = match group {
        None => None,
        Some(name) => Some(spawn::group_id(&name).ok_or_else(|| InvalidOption {
            option: "group",
            message: format!("there is no group `{name}`"),
        })?),
    };
    Ok(AdminSettings { listen, token, group, allowed_hosts, max_connections, header_timeout })
}

/// Reads a secret of the daemon, without the line end at its end.
pub(crate) fn read_secret(secret: &Secret) -> Result<String, String> {
    read(secret, gateway::read_secret_file).map(|(text, _)| text)
}

/// Reads a secret of a command. Also returns the owner of the file that it was read from, because the daemon may run as
/// another user.
pub(crate) fn read_secret_of(secret: &Secret) -> Result<(String, Option<u32>), String> {
    read(secret, |path| {
        let (bytes, found) = paths::read(path)?;
        paths::check_mode(&found)?;
        Ok((bytes, found))
    })
}

fn read(
    secret: &Secret,
    read_file: impl Fn(&Path) -> io::Result<(Vec<u8>, Metadata)>,
) -> Result<(String, Option<u32>), String> {
    match secret {
        Secret::Environment(name) => {
            let text = std::env::var(name).map_err(|error| format!("`env:{name}`: {error}"))?;
            Ok((text, None))
        }
        Secret::File(path) => {
            let named = |why: &dyn std::fmt::Display| format!("`file:{}`: {why}", path.display());
            let (bytes, found) = read_file(path).map_err(|error| named(&error))?;
            let text = String::from_utf8(bytes).map_err(|_| named(&"it is not UTF-8 text"))?;
            Ok((text.trim_end_matches(['\r', '\n']).to_owned(), Some(found.uid())))
        }
    }
}
