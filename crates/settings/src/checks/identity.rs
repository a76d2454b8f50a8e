//! Rules for the users and groups that programs run as.

use crate::fault::{Fault, reject};
use crate::model::{Io, Unbuffer};
use crate::options::Group;

/// A numeric user or group must be valid. The largest 32-bit number makes the system change nothing, so the program
/// would keep the identity of the daemon. Other spellings, such as `+0`, could be read as user names.
pub(super) fn check(group: &Group, faults: &mut Vec<Fault>) {
    for option in ["user", "group"] {
        let Some(text) = group.text(option) else { continue };
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_usable = |number: u32| number != u32::MAX && number.to_string() == *text;
        if !is_number || text.parse().is_ok_and(is_usable) {
            continue;
        }
        let Some(place) = group.place(option) else { continue };
        faults.push(
            Fault::at(place, format!("`{text}` is not a valid {option} id"))
                .expected(format!("expected a name, or a number from 0 to {}", u32::MAX - 1))
                .suggestion(
                    format!("write `{option} = \"nobody\"`")
                        .replace("group = \"nobody", "group = \"nogroup"),
                ),
        );
    }
}

/// A process that holds a lock of its terminal in the kernel hangs the daemon when it closes its end, as with pipes.
pub(super) fn check_terminal(pool: &Group, faults: &mut Vec<Fault>) {
    let is_trusted = pool.key("user").is_none() || pool.is("io", Io::Pipe);
    reject! { faults;
        pool.place("unbuffer"), if pool.is("unbuffer", Unbuffer::Pty) && !is_trusted
            => "a program of another user can hang the daemon through a terminal",
            expected "expected no `user` with `unbuffer = \"pty\"`",
            help "let the program flush its output, use `unbuffer = \"stdbuf\"`, or trust the program: `io = \"pipe\"`";
    }
}
