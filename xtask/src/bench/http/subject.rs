//! The proxies, with their configurations.

use crate::shell::{Failure, Workspace};
use std::fs;
use std::path::Path;

/// What is measured: a command with its configuration, if it has one.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    words: Vec<String>,
    /// The text of a configuration, and where it is written.
    pub(super) config: Option<(String, String)>,
    /// What runs in place of the command below a tool that cannot follow its processes.
    below_tool: Option<Vec<String>>,
    /// The processors that it may use.
    pub(super) cores: &'static str,
    /// A cookie that its clients bear, and take from replies.
    pub(super) cookie: Option<&'static str>,
}

/// The processor of a proxy alone, and all of them.
const ALONE: &str = "0";
const ALL: &str = "0,1";

/// The name of HAProxy without splicing.
pub(super) const COPYING: &str = "HAProxy without splice";

/// The subjects that are always there, ours last.
pub(super) fn all(workspace: &Workspace, folder: &Path) -> Result<Vec<Subject>, Failure> {
    let example = |name: &str| workspace.built("release", &format!("examples/{name}"));
    let relay = example("http_relay").display().to_string();
    let relay = [&relay, "@PORT@", "127.0.0.1:@SERVER@"].map(str::to_owned).to_vec();
    let roadstead = workspace.built("release", "roadstead").display().to_string();
    let ours = Place { folder, file: "roadstead.toml" };
    // Valgrind does not support `pidfd_open`, by which the supervisor is watched, and cannot start it
    // from /proc/self/exe. This is the same data plane without a supervisor.
    let plain = example("serve_file").display().to_string();
    let nginx = Place { folder, file: "nginx.conf" };
    Ok(vec![
        Subject {
            name: "bare relay".to_owned(),
            words: relay,
            config: None,
            below_tool: None,
            cores: ALONE,
            cookie: None,
        },
        haproxy(workspace, folder, "HAProxy", "option splice-response")?,
        nginx
            .subject("nginx", &["nginx", "-g", "daemon off;", "-c"], peer(workspace, "nginx.conf")?)
            .below_tool(&["nginx", "-g", "daemon off; master_process off;", "-c"]),
        ours.subject("Roadstead", &[&roadstead, "serve"], peer(workspace, "roadstead-http.toml")?)
            .below_tool(&[&plain]),
    ])
}

/// HAProxy that copies what the others splice: what splicing is worth to it.
pub(super) fn copying(workspace: &Workspace, folder: &Path) -> Result<Subject, Failure> {
    haproxy(workspace, folder, COPYING, "")
}

/// HAProxy as master and worker; below a tool as one process, because its master executes itself again.
fn haproxy(
    workspace: &Workspace,
    folder: &Path,
    name: &str,
    splice: &str,
) -> Result<Subject, Failure> {
    let file = if splice.is_empty() { "haproxy-copying.cfg" } else { "haproxy.cfg" };
    let text = peer(workspace, "haproxy.cfg")?.replace("@SPLICE@", splice);
    let subject = Place { folder, file }.subject(name, &["haproxy", "-W", "-f"], text);
    Ok(subject.below_tool(&["haproxy", "-db", "-f"]))
}

/// The text of a file in `xtask/peers`.
fn peer(workspace: &Workspace, name: &str) -> Result<String, Failure> {
    let path = workspace.root.join("xtask/peers").join(name);
    fs::read_to_string(&path).map_err(|error| Failure::new(format!("{name}: {error}")))
}

/// Where a configuration is written.
#[derive(Clone, Copy)]
struct Place<'a> {
    folder: &'a Path,
    file: &'a str,
}

impl Place<'_> {
    /// A command whose last word is its configuration.
    fn subject(self, name: &str, words: &[&str], text: String) -> Subject {
        let file = self.folder.join(self.file).display().to_string();
        let words = words.iter().map(|word| (*word).to_owned()).chain([file.clone()]).collect();
        Subject {
            name: name.to_owned(),
            words,
            config: Some((text, file)),
            below_tool: None,
            cores: ALONE,
            cookie: None,
        }
    }
}

/// Ours on one shard, and on two, each with all processors, which its server and its clients share.
pub(super) fn on_shards(workspace: &Workspace, folder: &Path) -> Result<Vec<Subject>, Failure> {
    let text = peer(workspace, "roadstead-http.toml")?;
    let roadstead = workspace.built("release", "roadstead").display().to_string();
    let subject = |(name, shards): (&str, u32)| {
        let file = format!("roadstead-{shards}.toml");
        let text = format!("[daemon]\nshards = {shards}\n{text}");
        let subject = Place { folder, file: &file }.subject(name, &[&roadstead, "serve"], text);
        Subject { cores: ALL, ..subject }
    };
    Ok([("one shard", 1), ("two shards", 2)].map(subject).to_vec())
}

impl Subject {
    /// `NAME=COMMAND`.
    pub(super) fn given(text: &str) -> Result<Self, Failure> {
        let (name, command) = text
            .split_once('=')
            .ok_or_else(|| Failure::new("--subject takes NAME=COMMAND with @PORT@ and @SERVER@"))?;
        let words = command.split_whitespace().map(str::to_owned).collect();
        let name = name.to_owned();
        Ok(Self { name, words, config: None, below_tool: None, cores: ALONE, cookie: None })
    }

    /// Our data plane without the daemon around it, with these lines in its pool, and clients that
    /// bear this cookie.
    pub(super) fn ours(
        workspace: &Workspace,
        folder: &Path,
        (name, lines): (&str, &str),
        cookie: &'static str,
    ) -> Result<Self, Failure> {
        let text = peer(workspace, "roadstead-http.toml")?;
        let program = workspace.built("release", "examples/serve_file").display().to_string();
        let place = Place { folder, file: "roadstead-lines.toml" };
        let subject = place.subject(name, &[&program], format!("{text}{lines}"));
        Ok(Self { cookie: Some(cookie), ..subject })
    }

    /// The same with another command below a tool, which gets the same configuration.
    fn below_tool(mut self, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned());
        self.below_tool = Some(words.chain(self.words.last().cloned()).collect());
        self
    }

    /// Its command, or what runs in its place below a tool.
    pub(super) fn command(&self, below_tool: bool) -> &[String] {
        self.below_tool.as_ref().filter(|_| below_tool).unwrap_or(&self.words)
    }
}
