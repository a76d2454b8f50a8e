//! Servers at Unix sockets that other users can replace.

use std::fs::{Permissions, create_dir, remove_file, set_permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use super::{CLOSE, serve_pool, status, talk};
use crate::daemon::{BINARY, Daemon, folder, read_log, until};
use crate::untested::untested_without_root;

const NOBODY: u32 = 65534;

fn get(daemon: &Daemon) -> String {
    talk(daemon, format!("GET /status HTTP/1.1\r\n{CLOSE}"))
}

/// Answers every request at a socket of this user.
fn serve_at(path: &Path, owner: u32) {
    let listener = UnixListener::bind(path).unwrap();
    chown(path, Some(owner), None).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\napp",
                );
            }
        }
    });
}

#[test]
fn a_server_replaced_by_a_link_does_not_lead_to_the_admin_socket() {
    if !rustix::process::geteuid().is_root() {
        return untested_without_root("a server of another user", "the tests do not run as root");
    }
    let outer = folder();
    set_permissions(outer.path(), Permissions::from_mode(0o755)).unwrap();
    let app = outer.path().join("app");
    create_dir(&app).unwrap();
    chown(&app, Some(NOBODY), None).unwrap();
    let path = app.join("app.sock");
    serve_at(&path, NOBODY);
    let check = "health_check = { check = \"tcp\", interval = \"50ms\", fall = 1, rise = 1 }";
    let pool = format!("servers = [\"unix:{}\"]\n{check}", path.display());
    let (inner, daemon) = serve_pool("", &pool);
    until("the server answers", || status(&get(&daemon)) == "200");
    let admin = daemon.admin.strip_prefix("unix:").expect("the tests use a socket").to_owned();
    remove_file(&path).unwrap();
    symlink(&admin, &path).unwrap();
    for _ in 0..5 {
        let said = get(&daemon);
        assert!(["502", "503"].contains(&status(&said)), "{said}");
    }
    let held = || daemon.status()["pools"][0]["places"][0]["check"].to_string();
    until("the check says why", || held().contains("another user can have chosen the Unix socket"));
    // What an operator learns before and at the next start.
    let file = inner.path().join("roadstead.toml");
    let out = Command::new(BINARY).arg("check").arg(&file).output().unwrap();
    let said = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
    assert!(out.status.success() && said.contains("`app.sock` is a symbolic link"), "{said}");
    drop(daemon);
    let (inner, daemon) = serve_pool("", &pool);
    assert!(read_log(inner.path()).contains("will not connect to the server"));
    // The admin socket itself, as the address of a server: by the process id of its peer.
    drop(daemon);
    let inner = folder();
    let name = inner.path().join("own.sock");
    let text = format!(
        "[admin]\nlisten = \"unix:{0}\"\n\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\n\n[pool.main]\nservers = [\"unix:{0}\"]\n",
        name.display()
    );
    let file = inner.path().join("roadstead.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(BINARY);
    command.arg("serve").arg(&file).current_dir(inner.path());
    let daemon = Daemon::start(&mut command, inner.path()).unwrap();
    let said = talk(&daemon, format!("GET /status HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "403", "{said}");
}

#[test]
fn a_server_at_a_socket_of_the_user_of_its_directory_answers() {
    if !rustix::process::geteuid().is_root() {
        return untested_without_root("a server of another user", "the tests do not run as root");
    }
    let outer = folder();
    set_permissions(outer.path(), Permissions::from_mode(0o755)).unwrap();
    // The owner and mode of the directory, and the owners of the sockets.
    for (name, owner, mode, socket) in [
        ("root", 0, 0o755, 0),
        ("shared", 0, 0o1777, 0),
        ("shared-with-nobody", 0, 0o1777, NOBODY),
        ("nobody", NOBODY, 0o755, NOBODY),
        ("given", 0, 0o755, NOBODY),
    ] {
        let directory = outer.path().join(name);
        create_dir(&directory).unwrap();
        chown(&directory, Some(owner), None).unwrap();
        set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
        let path = directory.join("s");
        serve_at(&path, socket);
        let (_folder, daemon) = serve_pool("", &format!("servers = [\"unix:{}\"]", path.display()));
        let said = get(&daemon);
        assert!(status(&said) == "200" && said.ends_with("app"), "{name}: {said}");
    }
}
