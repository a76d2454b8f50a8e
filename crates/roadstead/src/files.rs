//! `roadstead check`: reads the files that a configuration names and the daemon reads at its start, and looks up the
//! users of its programs.

use settings::{Configuration, Diagnostics, Remark, Sources};

#[cfg(feature = "admin")]
use crate::admin::admin_settings;
use crate::exposure;
#[cfg(feature = "databases")]
use crate::handler_registry::{HandlerRegistryError, database_of};
use crate::shard_reload::remark;

/// Reads every secret and every response file that the configuration names, and looks up the users of its programs.
///
/// # Errors
/// Everything that cannot be read, and every user whose programs this process could not end, each at the location in the file that names it. Secrets are not shown.
pub fn check(source: &Sources, configuration: &Configuration) -> Result<(), Diagnostics> {
    let mut remarks: Vec<Remark> = gateway::unread(configuration).iter().map(remark).collect();
    remarks.extend(exposure::users_beyond_control(configuration));
    #[cfg(feature = "databases")]
    for pool in &configuration.pools {
        if pool.database().is_some()
            && let Err(HandlerRegistryError::Secret(message)) = database_of(pool)
        {
            let path = ["pool", &pool.name, "password"].map(str::to_owned).to_vec();
            remarks.push(Remark { path, message });
        }
    }
    #[cfg(feature = "admin")]
    if let Some(Err(unusable)) = configuration.admin.as_ref().map(admin_settings) {
        let path = ["admin", unusable.option].map(str::to_owned).to_vec();
        remarks.push(Remark { path, message: unusable.message });
    }
    if remarks.is_empty() {
        return Ok(());
    }
    Err(settings::placed(source, &remarks))
}
