//! The admin address of a configuration: its secrets read and its names looked up.

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

/// A secret from the place that names it, without the line end at its end.
pub(crate) fn read_secret(secret: &Secret) -> Result<String, String> {
    match secret {
        Secret::Environment(name) => {
            std::env::var(name).map_err(|error| format!("`env:{name}`: {error}"))
        }
        Secret::File(path) => settings::read_named_text(path)
            .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
            .map_err(|error| format!("`file:{}`: {error}", path.display())),
    }
}
