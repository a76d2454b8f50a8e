//! The admin address of a configuration: its secrets read and its names looked up.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use control::AdminSettings;
use settings::Secret;

/// An option that cannot be used, and why.
#[derive(Debug)]
pub(crate) struct Unusable {
    /// The option of `[admin]`.
    pub(crate) option: &'static str,
    /// What is wrong with it.
    pub(crate) message: String,
}

/// Reads the token and looks up the group.
///
/// # Errors
/// The first that cannot be used. Nothing of the token is shown.
pub(crate) fn admin_settings(admin: &settings::Admin) -> Result<AdminSettings, Unusable> {
    let settings::Admin { listen, token, group, allowed_hosts, max_connections, header_timeout } =
        admin.clone();
    let token = match &token {
        None => None,
        Some(secret) => {
            let unusable = |message| Unusable { option: "token", message };
            let text = read_secret(secret).map_err(unusable)?;
            control::check_token(&text)
                .map_err(|fault| unusable(format!("the `token` of `[admin]` {fault}")))?;
            Some(text)
        }
    };
    let group = match group {
        None => None,
        Some(name) => Some(spawn::group_id(&name).ok_or_else(|| Unusable {
            option: "group",
            message: format!("there is no group `{name}`"),
        })?),
    };
    Ok(AdminSettings { listen, token, group, allowed_hosts, max_connections, header_timeout })
}

/// A secret of the daemon from the place that names it, without the line end at its end.
fn read_secret(secret: &Secret) -> Result<String, String> {
    read(secret, gateway::read_secret_file).map(|(text, _)| text)
}

/// A secret of a command, with the owner of the file that it was read from: the daemon may be another user's.
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
