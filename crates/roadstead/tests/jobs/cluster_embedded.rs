//! A program that embeds the data plane, and a daemon: they share what daemons share.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use roadstead::embed::{Embed, EmbedError, Running};

use crate::balance::ctl;
use crate::cluster::{SECRET, cluster, configuration, named_servers, serve, server_at};
use crate::daemon::{PATIENCE, folder, until};
use crate::nats::Nats;

/// The same configuration, with the secret of the daemons in a file.
fn with_secret_file(text: &str, file: &Path) -> String {
    let (variable, secret) = SECRET[0];
    fs::write(file, secret).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    text.replace(&format!("env:{variable}"), &format!("file:{}", file.display()))
}

/// The value of a metric. `None`: it is not shown.
fn metric(server: &Running, name: &str) -> Option<u64> {
    let page = server.metrics();
    let line = page.lines().find(|line| line.starts_with(name))?.to_owned();
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn an_embedded_data_plane_and_a_daemon_share_bindings_and_commands() {
    let Some(nats) = Nats::start(1) else { return };
    let servers = named_servers(4);
    let ports: Vec<_> = servers.iter().map(|server| server.port).collect();
    let folder = folder();
    let text = configuration("embedded", &nats.urls(), &ports);
    let text = with_secret_file(&text, &folder.path().join("secret"));
    let embedded = Embed::from_text(&text).unwrap().start().unwrap();
    embedded.ready(PATIENCE).unwrap();
    let daemon = serve(folder.path(), "daemon", &nats, &ports);
    let addresses = [embedded.address("web").unwrap(), &daemon.listeners["web"]];
    let bind = |side: usize, clients: std::ops::Range<usize>| -> Vec<String> {
        clients.map(|client| server_at(addresses[side], client)).collect()
    };
    let bound = bind(0, 0..20);
    until("the daemon knows all clients", || cluster(&daemon, "status")["pools"][0]["keys"] == 20);
    assert_eq!(bind(1, 0..20), bound);
    let bound = bind(1, 20..40);
    until("the embedded data plane knows all clients", || {
        metric(&embedded, "roadstead_cluster_keys{pool=\"web\"}") == Some(40)
    });
    assert_eq!(bind(0, 20..40), bound);
    assert_eq!(metric(&embedded, "roadstead_cluster_connected"), Some(1));
    let server = format!("127.0.0.1:{}", ports[0]);
    let (is_done, answer) = ctl(&daemon, &["disable", "web", &server]);
    assert!(is_done, "{answer}");
    until("the embedded data plane has disabled it", || {
        metric(&embedded, "roadstead_workers_serving{pool=\"web\"}") == Some(3)
    });
    assert!(!bind(0, 40..60).contains(&"server-0".to_owned()));
    assert!(embedded.drain().is_clean());
    until("its connection is closed", || nats.connections() == 1);
}

#[test]
fn an_embedded_data_plane_whose_cluster_has_no_secret_does_not_start() {
    let text = configuration("embedded", &["nats://127.0.0.1:1".to_owned()], &[1])
        .replace("env:CLUSTER_SECRET", "file:/nonexistent/secret");
    let error = Embed::from_text(&text).unwrap().start().unwrap_err();
    let EmbedError::Cluster(message) = error else { panic!("{error}") };
    assert!(
        message.contains("`[cluster]`") && message.contains("/nonexistent/secret"),
        "{message}"
    );
}
