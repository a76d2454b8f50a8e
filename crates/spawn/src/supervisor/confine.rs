//! Sets the limits and the identity of a child, before it executes its program.
//!
//! What it is: one function per step, in the required order: a limit or a processor may need rights that a later step
//! gives up. What it must never depend on: the program.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, CpuSet, Gid, Uid};

use super::cgroup::Group;
use crate::bounds::Bounds;
use crate::error::StartError;
use crate::system::{self, Account, Member};

/// The user and groups of the child.
struct Identity {
    user: Option<Uid>,
    group: Option<Gid>,
    /// Supplementary groups.
    groups: Vec<Gid>,
    account: Option<Account>,
}

/// Applies all bounds. `descriptors` is the soft limit of descriptors if `bounds` sets none. Returns the account of the
/// new user of the child.
pub(super) fn confine(
    bounds: &Bounds,
    group: Option<&Group>,
    descriptors: Option<u64>,
) -> Result<Option<Account>, StartError> {
    let identity = identity(bounds)?;
    require_right_to_kill(bounds, &identity)?;
    if let Some(group) = group {
        group.join()?;
    }
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    // Fails if the hard limit was lowered meanwhile. That lower limit stays in force, which is sufficient.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: descriptors, maximum: hard });
    let counted = group.is_some_and(|group| group.holds_memory);
    limit(bounds, counted)?;
    pin_to_cpus(&bounds.cpus)?;
    if bounds.nice != 0 {
        rustix::process::nice(bounds.nice)
            .map_err(failed(format!("add {} to its nice value", bounds.nice)))?;
    }
    leave_session_keyring(&identity)?;
    become_identity(bounds, &identity)?;
    if bounds.no_new_privs {
        rustix::thread::set_no_new_privs(true)
            .map_err(failed("keep it from gaining rights".to_owned()))?;
    }
    Ok(identity.account)
}

fn failed(doing: String) -> impl FnOnce(rustix::io::Errno) -> StartError {
    move |errno| StartError::Bounds { doing, errno: errno.raw_os_error() }
}

fn limit(bounds: &Bounds, counted: bool) -> Result<(), StartError> {
    for (resource, name, value) in bounds.limits.resources() {
        // If a control group limits the memory, the process limit is not set in addition.
        let Some(value) = value.filter(|_| !(counted && resource == Resource::Data)) else {
            continue;
        };
        // The process has one second between SIGXCPU, which can be caught, and SIGKILL.
        let hard = if resource == Resource::Cpu { value.saturating_add(1) } else { value };
        let limit = Rlimit { current: Some(value), maximum: Some(hard) };
        setrlimit(resource, limit).map_err(failed(format!("set its limit `{name}` to {value}")))?;
    }
    Ok(())
}

fn pin_to_cpus(cpus: &[usize]) -> Result<(), StartError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(failed(format!("place it on processor {cpu}"))(rustix::io::Errno::INVAL));
        }
        set.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(failed(format!("place it on the processors {cpus:?}")))
}

/// Looks up the user and the group. The lookup may query a directory service and block, but it blocks only this child.
fn identity(bounds: &Bounds) -> Result<Identity, StartError> {
    let mut found = Identity { user: None, group: None, groups: Vec::new(), account: None };
    if let Some(group) = &bounds.group {
        let number =
            system::group(group).ok_or_else(|| StartError::NoGroup { group: group.clone() })?;
        found.group = Some(Gid::from_raw(number));
        found.groups = vec![Gid::from_raw(number)];
    }
    if let Some(user) = &bounds.user {
        let none = || StartError::NoUser { user: user.clone() };
        let Member { user: number, account, group, groups } =
            system::user(user).ok_or_else(none)?;
        found.user = Some(Uid::from_raw(number));
        found.account = Some(account);
        if found.group.is_none() {
            // The groups of a number without a name are unknown.
            let group = group.ok_or_else(|| StartError::NoGroup { group: user.clone() })?;
            found.group = Some(Gid::from_raw(group));
            found.groups = groups.into_iter().map(Gid::from_raw).collect();
        }
    }
    Ok(found)
}

/// Rejects a user whose programs the supervisor could start but not end.
///
/// The kernel drops the signals of a supervisor without the right to kill, including the parent-death signal: no timeout
/// would end a program, and no program would end with the daemon.
fn require_right_to_kill(bounds: &Bounds, identity: &Identity) -> Result<(), StartError> {
    match (identity.user, &bounds.user) {
        (Some(user), Some(name)) if !may_kill(user) => {
            let doing = "(it needs CAP_SETUID, CAP_SETGID and CAP_KILL)";
            Err(failed(format!("run it as user `{name}` {doing}"))(rustix::io::Errno::PERM))
        }
        _ => Ok(()),
    }
}

/// Whether this process may signal the processes of a user (kill(2)).
fn may_kill(user: Uid) -> bool {
    user == rustix::process::geteuid()
        || user == rustix::process::getuid()
        || has_capability(CapabilitySet::KILL)
}

fn has_capability(capability: CapabilitySet) -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(capability))
}

/// Whether this process can start programs as this user, but could not end them. An unknown user is not reported here.
pub(crate) fn cannot_kill(user: &str) -> bool {
    has_capability(CapabilitySet::SETUID)
        && system::user_shared(user).is_some_and(|user| !may_kill(Uid::from_raw(user)))
}

/// Gives a child that changes its user a new session keyring.
///
/// A session keyring is inherited, and a process that has it may read its keys, whatever its user is. The keys of the
/// daemon (of file systems, of Kerberos) are not for programs of another user. The new keyring is created while the
/// child still runs as the user of the daemon, so the quota of that user is charged: the quota of other users is 200
/// keys.
fn leave_session_keyring(identity: &Identity) -> Result<(), StartError> {
    let stays = identity.user.is_none_or(|user| user == rustix::process::geteuid());
    if stays {
        return Ok(());
    }
    let joined = system::join_new_session_keyring();
    // Kernels without keyrings, and sandboxes that forbid keyrings: there the program cannot use them either.
    const CANNOT_BE_USED: [i32; 4] = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::ENOKEY];
    match joined.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)) {
        Err(errno) if !CANNOT_BE_USED.contains(&errno) => {
            let doing = "give it a session keyring of its own".to_owned();
            Err(StartError::Bounds { doing, errno })
        }
        _ => Ok(()),
    }
}

fn become_identity(bounds: &Bounds, identity: &Identity) -> Result<(), StartError> {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    if let Some(group) = identity.group {
        let doing = || format!("become a member of group `{}`", group.as_raw());
        rustix::thread::set_thread_groups(&identity.groups).map_err(failed(doing()))?;
        rustix::thread::set_thread_res_gid(group, group, group).map_err(failed(doing()))?;
    }
    if let Some(user) = identity.user {
        rustix::thread::set_thread_res_uid(user, user, user)
            .map_err(failed(format!("become user `{}`", name(&bounds.user))))?;
    }
    give_up_capabilities(identity)?;
    verify(identity)
}

/// Removes the capabilities of the daemon from the child.
///
/// A daemon that is not root, but may change users by a capability, would pass that capability on. A program of the
/// same user could then become root, because the kernel removes capabilities only from a process that was root.
///
/// If only a group is set, the program could use the capabilities to get the group of the daemon back. If the program
/// runs as root, it would also get them back on execve, unless they are removed from the bounding set. A program of
/// root without a user or a group remains unrestricted.
fn give_up_capabilities(identity: &Identity) -> Result<(), StartError> {
    let Some(user) = identity.user else {
        if rustix::process::geteuid().is_root() {
            if identity.group.is_none() {
                return Ok(());
            }
            for bit in 0..u64::BITS {
                let capability = CapabilitySet::from_bits_retain(1 << bit);
                match rustix::thread::remove_capability_from_bounding_set(capability) {
                    // The kernel does not have this capability.
                    Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                    Err(errno) => {
                        let doing = "take the capabilities of root from it (set `user`, too)";
                        return Err(failed(doing.to_owned())(errno));
                    }
                }
            }
        }
        return clear_capabilities()
            .map_err(failed("give up the capabilities of the daemon".to_owned()));
    };
    if user.is_root() {
        return Ok(());
    }
    clear_capabilities()
        .map_err(failed(format!("give up the rights that user `{user}` does not have")))
}

fn clear_capabilities() -> Result<(), rustix::io::Errno> {
    match rustix::thread::clear_ambient_capability_set() {
        // The kernel does not have this set.
        Ok(()) | Err(rustix::io::Errno::INVAL) => {}
        Err(errno) => return Err(errno),
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, none)
}

/// Verifies the user and groups that the kernel reports for the child, so that no program runs under a wrong identity.
fn verify(identity: &Identity) -> Result<(), StartError> {
    let fault =
        |what: &str, errno: i32| StartError::Bounds { doing: format!("verify its {what}"), errno };
    let failed = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let ids = system::ids().map_err(|error| fault("user and group", failed(error)))?;
    if let Some(user) = identity.user
        && ids.user != [user.as_raw(); 3]
    {
        return Err(fault("user", libc::EPERM));
    }
    if let Some(group) = identity.group {
        if ids.group != [group.as_raw(); 3] {
            return Err(fault("group", libc::EPERM));
        }
        let mut groups =
            rustix::process::getgroups().map_err(|errno| fault("groups", errno.raw_os_error()))?;
        groups.retain(|group| !identity.groups.contains(group));
        if !groups.is_empty() {
            return Err(fault("groups", libc::EPERM));
        }
    }
    Ok(())
}
