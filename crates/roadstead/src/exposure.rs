//! Reports what a configuration exposes to programs, probably by mistake, and programs that could not be ended.

use settings::{Configuration, Probe, Remark};

/// Reports variables that become secrets by a reload: running programs have them in their environment.
pub(crate) fn late_secrets(before: &Configuration, now: &Configuration) -> Option<String> {
    let known = before.secret_variables();
    let late: Vec<String> = now.secret_variables().difference(&known).cloned().collect();
    let has_programs = before.pools.iter().any(|pool| pool.program().is_some());
    (has_programs && !late.is_empty()).then(|| {
        format!(
            "{} became a secret by this reload: programs that were started before have it in their environment; \
             replace them with `roadstead ctl recycle POOL`",
            late.join(", ")
        )
    })
}

/// Reports health-check programs that run as root, each at its option, if the daemon runs as root.
pub fn checks_as_root(configuration: &Configuration) -> Vec<Remark> {
    if rustix::process::geteuid().is_root() {
        checks_without_user(configuration)
    } else {
        Vec::new()
    }
}

fn checks_without_user(configuration: &Configuration) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for pool in &configuration.pools {
        let check = pool.balancing.health_check.check.as_ref().map(|check| &check.probe);
        let of_pool = pool.program().and_then(|program| program.bounds.user.as_ref());
        if let (Some(Probe::Program { user: None, .. }), None) = (check, of_pool) {
            let path = ["pool", &pool.name, "health_check", "command"].map(str::to_owned).to_vec();
            let message = format!(
                "the health check of pool `{}` runs as root: name another user with `health_check.user`",
                pool.name
            );
            remarks.push(Remark { path, message });
        }
    }
    remarks
}

/// Reports the options that name a user whose programs this process could start but not end, so that they would ignore
/// every timeout and outlive the daemon.
pub fn users_beyond_control(configuration: &Configuration) -> Vec<Remark> {
    users_of_programs(configuration, &spawn::cannot_kill_programs_of)
}

fn users_of_programs(
    configuration: &Configuration,
    cannot_kill: &dyn Fn(&str) -> bool,
) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for pool in &configuration.pools {
        let check = pool.balancing.health_check.check.as_ref().map(|check| &check.probe);
        let of_check = match check {
            Some(Probe::Program { user, .. }) => user.as_deref(),
            _ => None,
        };
        let of_pool = pool.program().and_then(|program| program.bounds.user.as_deref());
        for (user, keys) in [(of_pool, &["user"][..]), (of_check, &["health_check", "user"])] {
            let Some(user) = user.filter(|user| cannot_kill(user)) else { continue };
            let path = ["pool", &pool.name].iter().chain(keys).map(|&key| key.to_owned()).collect();
            let message = format!(
                "the daemon may start programs as user `{user}`, but may not end them: give it the capability \
                 CAP_KILL in addition to CAP_SETUID and CAP_SETGID"
            );
            remarks.push(Remark { path, message });
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(more: &str) -> Configuration {
        let text = format!(
            "[listener.l]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"w\"\n\
             [pool.p]\nprogram = [\"cat\"]\n[listener.m]\nlisten = \"127.0.0.1:0\"\npool = \"p\"\n{more}\n"
        );
        let source = settings::Source { name: "test".into(), text };
        settings::parse(&source, &|_| Some("0123456789abcdef".to_owned())).expect("it is right")
    }

    #[test]
    fn a_secret_that_programs_already_have_is_reported() {
        let pool = "[pool.w]\nservers = [\"127.0.0.1:1\"]\n";
        let before = configuration(pool);
        let sticky = "sticky = { cookie = \"c\", value = \"signed\", secret = \"env:LATE\" }";
        let now = configuration(&format!("{pool}{sticky}"));
        let warning = late_secrets(&before, &now).expect("a warning");
        assert!(warning.starts_with("LATE became a secret"), "{warning}");
        assert_eq!(late_secrets(&now, &before), None);
        assert_eq!(late_secrets(&now, &now), None);
    }

    #[test]
    fn a_check_program_without_a_user_is_reported() {
        let pool = |user: &str| {
            configuration(&format!(
                "[pool.w]\nservers = [\"127.0.0.1:1\"]\n\
                 health_check = {{ check = \"program\", command = [\"true\"]{user} }}"
            ))
        };
        let remarks = checks_without_user(&pool(""));
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].message.contains("pool `w` runs as root"), "{}", remarks[0].message);
        assert!(checks_without_user(&pool(", user = \"nobody\"")).is_empty());
    }

    #[test]
    fn each_user_whose_programs_cannot_be_killed_is_reported_at_its_option() {
        let text = configuration(
            "[pool.w]\nprogram = [\"cat\"]\nuser = \"games\"\nframing = \"http\"\n\
             health_check = { check = \"program\", command = [\"true\"], user = \"nobody\" }",
        );
        let found = |those: &'static [&str]| {
            let remarks = users_of_programs(&text, &move |user| those.contains(&user));
            remarks.into_iter().map(|remark| remark.path.join(".")).collect::<Vec<_>>()
        };
        assert_eq!(found(&[]), Vec::<String>::new());
        assert_eq!(found(&["games"]), ["pool.w.user"]);
        assert_eq!(found(&["games", "nobody"]), ["pool.w.user", "pool.w.health_check.user"]);
        let remarks = users_of_programs(&text, &|user| user == "games");
        assert!(
            remarks[0].message.contains("user `games`") && remarks[0].message.contains("CAP_KILL")
        );
    }
}
