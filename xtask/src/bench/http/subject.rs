//! The proxies with their configurations.

use crate::bench::ground::Ground;
use crate::shell::{self, Failure};

/// A measured subject: a command with its configuration, if it has one.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    words: Vec<String>,
    /// The text of a configuration, and its file.
    pub(super) config: Option<(String, String)>,
    /// The replacement for the command below a tool that cannot follow its processes.
    below_tool: Option<Vec<String>>,
    /// The processors that it may use.
    pub(super) cores: &'static str,
    /// A cookie that its clients send, and take from replies.
    pub(super) cookie: Option<&'static str>,
}

/// The processor for a proxy alone, and all processors.
const ALONE: &str = "0";
const ALL: &str = "0,1";

/// The name of HAProxy without splicing.
pub(super) const COPYING: &str = "HAProxy without splice";

/// Returns the standard subjects, with Roadstead last.
pub(super) fn all(ground: &Ground) -> Result<Vec<Subject>, Failure> {
    let relay = ground.example("http_relay").display().to_string();
    let roadstead = ground.roadstead().display().to_string();
    // Valgrind does not support `pidfd_open`, by which the supervisor is watched, and cannot start the supervisor from
    // /proc/self/exe. This program is the same data plane without a supervisor.
    let plain = ground.example("serve_file").display().to_string();
    let (nginx, ours) = (peer(ground, "nginx.conf")?, peer(ground, "roadstead-http.toml")?);
    Ok(vec![
        Subject::plain("bare relay", &[&relay, "@PORT@", "127.0.0.1:@SERVER@"]),
        haproxy(ground, "HAProxy", "option splice-response")?,
        Subject::plain("nginx", &["nginx", "-g", "daemon off;", "-c"])
            .configured(ground, "nginx.conf", nginx)
            .below_tool(&["nginx", "-g", "daemon off; master_process off;", "-c"]),
        Subject::plain("Roadstead", &[&roadstead, "serve"])
            .configured(ground, "roadstead.toml", ours)
            .below_tool(&[&plain]),
    ])
}

/// Returns HAProxy with copying instead of splicing, to show the gain from splicing.
pub(super) fn copying(ground: &Ground) -> Result<Subject, Failure> {
    haproxy(ground, COPYING, "")
}

/// Returns HAProxy with a master and a worker. Below a tool it runs as one process, because its master executes itself
/// again.
fn haproxy(ground: &Ground, name: &str, splice: &str) -> Result<Subject, Failure> {
    let file = if splice.is_empty() { "haproxy-copying.cfg" } else { "haproxy.cfg" };
    let text = peer(ground, "haproxy.cfg")?.replace("@SPLICE@", splice);
    let subject = Subject::plain(name, &["haproxy", "-W", "-f"]).configured(ground, file, text);
    Ok(subject.below_tool(&["haproxy", "-db", "-f"]))
}

/// Returns the text of a file in `xtask/peers`.
fn peer(ground: &Ground, name: &str) -> Result<String, Failure> {
    shell::read(&ground.root.join("xtask/peers").join(name))
}

/// Returns Roadstead with one shard and with two, each with all processors, which its server and its clients share.
pub(super) fn on_shards(ground: &Ground) -> Result<Vec<Subject>, Failure> {
    let text = peer(ground, "roadstead-http.toml")?;
    let roadstead = ground.roadstead().display().to_string();
    let subject = |(name, shards): (&str, u32)| {
        let file = format!("roadstead-{shards}.toml");
        let text = format!("[daemon]\nshards = {shards}\n{text}");
        let subject = Subject::plain(name, &[&roadstead, "serve"]);
        Subject { cores: ALL, ..subject.configured(ground, &file, text) }
    };
    Ok([("one shard", 1), ("two shards", 2)].map(subject).to_vec())
}

impl Subject {
    /// Returns a subject without a configuration.
    fn plain(name: &str, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let name = name.to_owned();
        Self { name, words, config: None, below_tool: None, cores: ALONE, cookie: None }
    }

    /// Parses `NAME=COMMAND`.
    pub(super) fn given(text: &str) -> Result<Self, Failure> {
        let (name, command) = text
            .split_once('=')
            .ok_or_else(|| Failure::new("--subject takes NAME=COMMAND with @PORT@ and @SERVER@"))?;
        Ok(Self::plain(name, &command.split_whitespace().collect::<Vec<_>>()))
    }

    /// Returns our data plane without the rest of the daemon, with these lines in its pool, and with clients that send
    /// this cookie.
    pub(super) fn ours(
        ground: &Ground,
        (name, lines): (&str, &str),
        cookie: &'static str,
    ) -> Result<Self, Failure> {
        let text = format!("{}{lines}", peer(ground, "roadstead-http.toml")?);
        let program = ground.example("serve_file").display().to_string();
        let subject =
            Self::plain(name, &[&program]).configured(ground, "roadstead-lines.toml", text);
        Ok(Self { cookie: Some(cookie), ..subject })
    }

    /// Adds a configuration. Its file becomes the last argument of the command.
    fn configured(mut self, ground: &Ground, file: &str, text: String) -> Self {
        let file = ground.folder.join(file).display().to_string();
        self.words.push(file.clone());
        Self { config: Some((text, file)), ..self }
    }

    /// Sets another command for use below a tool, with the same configuration.
    fn below_tool(mut self, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned());
        self.below_tool = Some(words.chain(self.words.last().cloned()).collect());
        self
    }

    /// Returns the command, or its replacement below a tool.
    pub(super) fn command(&self, below_tool: bool) -> &[String] {
        self.below_tool.as_ref().filter(|_| below_tool).unwrap_or(&self.words)
    }
}
