//! System calls for which `rustix` has no safe function, one per function.
//!
//! What it is: the only module of this crate with unsafe code, except `heap`. What it depends on: libc. What it must
//! never depend on: a message, a program. `fork` is called only by the supervisor, a process of one thread, so its
//! children may run ordinary code before they execute a program.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use crate::exit::{Exit, Status};

/// The highest signal number, and the size of a signal set in the kernel (`_NSIG`), in bytes.
const SIGNAL_MAX: i32 = 64;
const SIGNAL_SET_BYTES: usize = 8;

/// The result of a fork: which of the two processes this is.
pub(crate) enum Fork {
    Child,
    Parent(i32),
}

/// Forks. Call it only in a process that has one thread.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: fork has no preconditions on memory. The process of the caller has one thread (asserted when the
    // supervisor starts), so no lock in the child is held by a thread that does not exist there.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Returns the session of a process. It is 0 if its leader is outside this PID namespace.
pub(crate) fn process_session(pid: i32) -> io::Result<i32> {
    // SAFETY: getsid has no preconditions.
    id(unsafe { libc::getsid(pid) })
}

/// Returns the process group of a process. It is 0 if its leader is outside this PID namespace.
pub(crate) fn process_group(pid: i32) -> io::Result<i32> {
    // SAFETY: getpgid has no preconditions.
    id(unsafe { libc::getpgid(pid) })
}

fn id(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// `SO_PASSRIGHTS` of Linux 6.16.
const SO_PASSRIGHTS: libc::c_int = 83;
/// The size of its value, an int.
const SIZE: libc::socklen_t = 4;

/// Makes the kernel refuse descriptors that the peer of a Unix socket passes (`SCM_RIGHTS`), because closing some of them
/// can take as long as the peer wishes. Returns `false` if the kernel is older than Linux 6.16.
pub(crate) fn refuse_descriptors(socket: &OwnedFd) -> bool {
    // Where the option has another number, it is not used.
    if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) {
        return false;
    }
    let off: libc::c_int = 0;
    // SAFETY: the option has an int as its value, which outlives the call.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const off).cast(),
            SIZE,
        )
    };
    failed == 0
}

/// Ends the process immediately: no destructors, no exit handlers, and no buffer is flushed twice.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Replaces the process by `file`. Returns only on error.
pub(crate) fn execute(
    file: &CStr,
    arguments: &[CString],
    environment: &[CString],
) -> Result<Infallible, i32> {
    let arguments = pointers(arguments);
    let environment = pointers(environment);
    // SAFETY: `file` ends in NUL; both arrays end in a null pointer and point to strings that end in NUL; all of them
    // outlive the call.
    unsafe { libc::execve(file.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    Err(last_errno())
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Closes every descriptor from `first` to `last`, both inclusive. The caller owns these descriptors and uses none of
/// them again. If the system does not have this call or forbids it, as some sandboxes do, the descriptors are closed
/// one by one.
pub(crate) fn close_range(first: RawFd, last: RawFd) -> io::Result<()> {
    close_range_by(first, last, || {
        // SAFETY: closing a descriptor touches no memory. No owner uses the closed descriptors again: the caller
        // guarantees this by calling the function only at the start of the supervisor and before an execve.
        let failed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
}

fn close_range_by(
    first: RawFd,
    last: RawFd,
    at_once: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    if first > last || at_once().is_ok() {
        return Ok(());
    }
    let open = std::fs::read_dir("/proc/self/fd")?;
    let open: Vec<RawFd> = open
        .map(|entry| entry.map(|entry| entry.file_name().to_str()?.parse().ok()))
        .collect::<io::Result<Vec<Option<RawFd>>>>()?
        .into_iter()
        .flatten()
        .collect();
    for fd in open.into_iter().filter(|fd| (first..=last).contains(fd)) {
        // SAFETY: as above. The directory that was read is closed already; closing its number again fails, which is
        // harmless.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// Creates a descriptor that is readable while one of `signals` is pending. Blocks these signals, which signalfd
/// requires.
pub(crate) fn signal_descriptor(signals: &[i32]) -> io::Result<OwnedFd> {
    let set = signal_set(signals);
    mask(libc::SIG_BLOCK, &set)?;
    // SAFETY: `set` is initialised and outlives the call; -1 requests a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn signal_set(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `set` is writable memory of the size of a sigset_t.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: sigemptyset initialised it.
    let mut set = unsafe { set.assume_init() };
    for &signal in signals {
        // SAFETY: `set` is initialised.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

fn mask(how: i32, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `set` is initialised; the old set may be null.
    let failed = unsafe { libc::sigprocmask(how, set, ptr::null_mut()) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ignores a signal.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: SIG_IGN runs no code of this process.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Sets every signal to its default action and unblocks all, as a program expects at its start. (An ignored signal
/// remains ignored after execve.)
pub(crate) fn reset_signals() {
    defaults(1..=SIGNAL_MAX);
}

/// Does the same in a child of the supervisor, in which only these signals do not have their default action. execve
/// itself resets signals that have a handler.
pub(crate) fn reset_ignored_signals(ignored: &[i32]) {
    defaults(ignored.iter().copied());
}

fn defaults(signals: impl IntoIterator<Item = i32>) {
    // Calls the kernel directly: libc reserves two signals, and the process that started the daemon may have ignored
    // them. In the kernel's layout, all zeroes are the default action and an empty mask.
    let default = [0_u64; 8];
    for signal in signals {
        // SAFETY: the kernel reads one sigaction of at most 64 bytes, with a mask of 8 bytes, and writes no old one. No
        // handler of this process remains. The kernel rejects SIGKILL and SIGSTOP.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null_mut::<libc::c_void>(),
                SIGNAL_SET_BYTES,
            )
        };
    }
    // Cannot fail: the set is valid and SIG_SETMASK is a known operation.
    let _ = mask(libc::SIG_SETMASK, &signal_set(&[]));
}

/// The result of [`ended_child`].
pub(crate) enum Wait {
    /// A child ended and is not reaped yet.
    Ended(i32),
    /// All children are running.
    None,
    /// The process has no children.
    Childless,
}

/// Returns a child that has ended, without reaping it. Until it is reaped, its process id is not reused, so its group
/// can be signalled without reaching another process. With `block`, waits for a child to end.
pub(crate) fn ended_child(block: bool) -> Wait {
    let options = libc::WEXITED | libc::WNOWAIT | if block { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: all zeroes are a valid siginfo_t.
        let mut info: libc::siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: `info` is writable memory of the size of a siginfo_t.
        if unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) } < 0 {
            match last_errno() {
                libc::EINTR => continue,
                _ => return Wait::Childless,
            }
        }
        // SAFETY: waitid filled the fields of SIGCHLD, or left the zeroes if no child has ended.
        return match unsafe { info.si_pid() } {
            0 => Wait::None,
            pid => Wait::Ended(pid),
        };
    }
}

/// Reaps a child that has ended.
pub(crate) fn reap(pid: i32) -> Exit {
    let mut status = 0;
    // SAFETY: all zeroes are a valid rusage.
    let mut usage: libc::rusage = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: both are writable and outlive the call.
    let reaped = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
    if reaped != pid {
        return Exit::LOST;
    }
    Exit {
        status: if libc::WIFSIGNALED(status) {
            Status::Signal(libc::WTERMSIG(status))
        } else {
            Status::Code(libc::WEXITSTATUS(status))
        },
        core: libc::WIFSIGNALED(status) && libc::WCOREDUMP(status),
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        // Linux reports it in KiB.
        rss_max: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// Duplicates a descriptor to a number. The duplicate stays open after execve.
pub(crate) fn duplicate_to(fd: &OwnedFd, number: RawFd) -> io::Result<()> {
    // SAFETY: duplicating touches no memory. A descriptor that had `number` before is closed; the caller, a child about
    // to execute, owns all its descriptor numbers.
    match unsafe { libc::dup2(fd.as_raw_fd(), number) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The account data that a program finds in its environment.
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) home: String,
}

/// A user and its groups.
pub(crate) struct Member {
    pub(crate) user: u32,
    pub(crate) account: Account,
    /// The primary group; `None` if the user is a number that no user of this system has.
    pub(crate) group: Option<u32>,
    /// All its groups, including the primary group.
    pub(crate) groups: Vec<u32>,
}

/// Parses the number of a user or a group. The largest number is rejected: system calls that set an identity interpret
/// it as "do not change".
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&number: &u32| number != u32::MAX && number.to_string() == text)
}

/// Returns the user with this name or number. Call it only in a process of one thread, because it uses static memory of
/// libc.
pub(crate) fn user(name: &str) -> Option<Member> {
    let text = CString::new(name).ok()?;
    // SAFETY: `text` ends in NUL and outlives the call.
    let mut found = unsafe { libc::getpwnam(text.as_ptr()) };
    let number = number(name);
    if let (true, Some(number)) = (found.is_null(), number) {
        // SAFETY: getpwuid has no preconditions on memory.
        found = unsafe { libc::getpwuid(number) };
    }
    if found.is_null() {
        return number.map(|user| {
            let account = Account { name: user.to_string(), home: "/".to_owned() };
            Member { user, account, group: None, groups: Vec::new() }
        });
    }
    // SAFETY: it is not null. It is valid until the next call of this family of functions, and none occurs before it is
    // read.
    let found = unsafe { *found };
    let mut groups = vec![0; 1024];
    let mut count = 1024;
    // SAFETY: the name from libc ends in NUL; `groups` has room for `count` numbers.
    let listed = unsafe {
        libc::getgrouplist(found.pw_name, found.pw_gid, groups.as_mut_ptr(), &raw mut count)
    };
    // If the user has more groups, the first 1,024 are used. Old kernels accepted no more.
    groups.truncate(if listed < 0 { 1024 } else { usize::try_from(count).unwrap_or(0) });
    if [found.pw_uid, found.pw_gid].contains(&u32::MAX) || groups.contains(&u32::MAX) {
        return None;
    }
    // SAFETY: strings from libc end in NUL, and are valid as above.
    let name = unsafe { CStr::from_ptr(found.pw_name) }.to_string_lossy().into_owned();
    // SAFETY: as before.
    let home = unsafe { CStr::from_ptr(found.pw_dir) }.to_string_lossy().into_owned();
    let account = Account { name, home };
    Some(Member { user: found.pw_uid, account, group: Some(found.pw_gid), groups })
}

/// The real, effective and saved ids of this process.
pub(crate) struct Ids {
    pub(crate) user: [u32; 3],
    pub(crate) group: [u32; 3],
}

pub(crate) fn ids() -> io::Result<Ids> {
    let (mut user, mut group) = ([0; 3], [0; 3]);
    let [real, effective, saved] = &mut user;
    // SAFETY: the arguments are three writable numbers that outlive the call.
    let failed = unsafe { libc::getresuid(real, effective, saved) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    let [real, effective, saved] = &mut group;
    // SAFETY: as before.
    let failed = unsafe { libc::getresgid(real, effective, saved) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Ids { user, group })
}

/// Replaces the inherited session keyring by a new, empty one.
pub(crate) fn join_new_session_keyring() -> io::Result<()> {
    // SAFETY: a null name requests an anonymous keyring; the kernel accesses no memory of this process.
    let serial = unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            libc::c_ulong::from(libc::KEYCTL_JOIN_SESSION_KEYRING),
            ptr::null::<libc::c_char>(),
        )
    };
    if serial < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the group with this name or number. Call it only in a process of one thread.
pub(crate) fn group(name: &str) -> Option<u32> {
    let text = CString::new(name).ok()?;
    // SAFETY: `text` ends in NUL and outlives the call.
    let found = unsafe { libc::getgrnam(text.as_ptr()) };
    if found.is_null() {
        return number(name);
    }
    // SAFETY: it is not null, and is valid until the next call of this family of functions.
    Some(unsafe { (*found).gr_gid })
}

/// Does the same as [`group`] in a process of several threads. It may query a directory service, and may block.
pub(crate) fn group_shared(name: &str) -> Option<u32> {
    let text = CString::new(name).ok()?;
    // SAFETY: all zeroes are a valid group: null pointers and a number.
    let mut group: libc::group = unsafe { MaybeUninit::zeroed().assume_init() };
    let found = look_up(|buffer, found| {
        let (start, length) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: `text` ends in NUL; `group`, `found` and the whole `buffer` are writable and outlive the call.
        unsafe { libc::getgrnam_r(text.as_ptr(), &raw mut group, start, length, found) }
    });
    if found { Some(group.gr_gid) } else { number(name) }
}

/// Returns the number of the user with this name or number, in a process of several threads. It may query a directory
/// service, and may block.
pub(crate) fn user_shared(name: &str) -> Option<u32> {
    let text = CString::new(name).ok()?;
    // SAFETY: all zeroes are a valid user: null pointers and numbers.
    let mut user: libc::passwd = unsafe { MaybeUninit::zeroed().assume_init() };
    let found = look_up(|buffer, found| {
        let (start, length) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: as for a group.
        unsafe { libc::getpwnam_r(text.as_ptr(), &raw mut user, start, length, found) }
    });
    if found { Some(user.pw_uid) } else { number(name) }
}

/// Calls a function of libc that fills a record and returns whether it was found, with a buffer that is long enough.
fn look_up<T>(mut call: impl FnMut(&mut [libc::c_char], *mut *mut T) -> i32) -> bool {
    const BUFFER_BYTES_MAX: usize = 1 << 20;
    let mut buffer: Vec<libc::c_char> = vec![0; 4096];
    let mut found = ptr::null_mut();
    while call(&mut buffer, &raw mut found) == libc::ERANGE && buffer.len() < BUFFER_BYTES_MAX {
        buffer.resize(2 * buffer.len(), 0);
    }
    !found.is_null()
}

/// Moves the socket of the supervisor, which it receives as standard input, to a number that the descriptors of
/// programs do not use.
pub(crate) fn take_standard_input() -> io::Result<OwnedFd> {
    // SAFETY: duplicating a descriptor touches no memory.
    let fd = unsafe { libc::fcntl(io::stdin().as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the number of threads of this process.
pub(crate) fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_closed_one_by_one_where_the_system_call_is_forbidden() {
        // Numbers that nothing else in this process uses.
        let file = std::fs::File::open("/dev/null").expect("a file");
        let mut high = Vec::new();
        for number in [700, 705, 710, 711] {
            // SAFETY: duplicating a descriptor touches no memory.
            high.push(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, number) });
        }
        assert_eq!(high, [700, 705, 710, 711]);
        let forbidden = || Err(io::Error::from_raw_os_error(libc::EPERM));
        close_range_by(701, 710, forbidden).expect("/proc is there");
        // SAFETY: reading the flags touches no memory.
        let is_open = |fd: &RawFd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
        high.retain(is_open);
        assert_eq!(high, [700, 711]);
        close_range(700, 720).expect("the system has it");
        high.retain(is_open);
        assert!(high.is_empty());
    }

    #[test]
    fn the_number_that_changes_nothing_is_neither_a_user_nor_a_group() {
        for text in ["4294967295", "+4294967295", "04294967295"] {
            assert!(user(text).is_none() && group(text).is_none(), "{text}");
            assert!(group_shared(text).is_none() && user_shared(text).is_none(), "{text}");
        }
        assert_eq!(user("4294967294").map(|it| it.user), Some(4_294_967_294));
        assert_eq!((group("root"), group_shared("root")), (Some(0), Some(0)));
        assert_eq!(group_shared("3999999999"), Some(3_999_999_999));
        assert_eq!(
            (user_shared("root"), user_shared("3999999999")),
            (Some(0), Some(3_999_999_999))
        );
        assert_eq!((user_shared("no such user"), group_shared("no such group")), (None, None));
        let root = user("root").expect("it is there");
        assert_eq!((root.account.name.as_str(), root.account.home.as_str()), ("root", "/root"));
    }
}
