//! The proxies with their configurations.

use crate::bench::ground::Ground;
use crate::shell::{self, Failure};

/// A measured subject: a command with its configuration, if it has one.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    /// The command below a tool that cannot follow its processes.
    pub(super) below: Vec<String>,
    /// The text of a configuration, and its file.
    pub(super) config: Option<(String, String)>,
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
    let (nginx, ours) = (peer(ground, "nginx.conf")?, peer(ground, "roadstead-http.toml")?);
    Ok(vec![
        Subject::plain("bare relay", &[&relay, "@PORT@", "127.0.0.1:@SERVER@"]),
        haproxy(ground, "HAProxy", "option splice-response")?,
        Subject::plain("nginx", &["nginx", "-g", "daemon off;", "-c"])
            .below_tool(&["nginx", "-g", "daemon off; master_process off;", "-c"])
            .configured(ground, "nginx.conf", nginx),
        // Valgrind does not support `pidfd_open`, by which the supervisor is watched, and cannot start the supervisor
        // from /proc/self/exe. Below it runs the same data plane without a supervisor.
        Subject::plain("Roadstead", &[&roadstead, "serve"])
            .below_tool(&[&plane(ground)])
            .configured(ground, "roadstead.toml", ours),
    ])
}

/// Returns the program with only our data plane.
fn plane(ground: &Ground) -> String {
    ground.example("serve_file").display().to_string()
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
    let subject = Subject::plain(name, &["haproxy", "-W", "-f"]);
    Ok(subject.below_tool(&["haproxy", "-db", "-f"]).configured(ground, file, text))
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
        let text = format!("[daemon]\nshards = {shards}\n{text}");
        let subject = Subject { cores: ALL, ..Subject::plain(name, &[&roadstead, "serve"]) };
        subject.configured(ground, &format!("roadstead-{shards}.toml"), text)
    };
    Ok([("one shard", 1), ("two shards", 2)].map(subject).to_vec())
}

impl Subject {
    /// Returns a subject without a configuration.
    fn plain(name: &str, words: &[&str]) -> Self {
        let (name, words) = (name.to_owned(), owned(words));
        Self { name, below: words.clone(), words, config: None, cores: ALONE, cookie: None }
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
        let subject = Self { cookie: Some(cookie), ..Self::plain(name, &[&plane(ground)]) };
        Ok(subject.configured(ground, "roadstead-lines.toml", text))
    }

    /// Sets another command for use below a tool.
    fn below_tool(self, words: &[&str]) -> Self {
        Self { below: owned(words), ..self }
    }

    /// Adds a configuration. Its file becomes the last argument of both commands.
    fn configured(mut self, ground: &Ground, file: &str, text: String) -> Self {
        let file = ground.folder.join(file).display().to_string();
        self.words.push(file.clone());
        self.below.push(file.clone());
        Self { config: Some((text, file)), ..self }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
