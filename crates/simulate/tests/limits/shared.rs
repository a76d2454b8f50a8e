//! Programs that clients share: what one client makes such a program print costs the others nothing.

use crate::programs::SCRIPTED;
use crate::script::Script;

/// A reply over the limit without an id.
fn nameless() -> Vec<u8> {
    format!("{{\"result\":\"{}\"}}\n", "x".repeat(200)).into_bytes()
}

struct Shared {
    script: Script,
    clients: [u32; 2],
}

impl Shared {
    /// Two clients of one program, which has a request of each.
    fn new(pool: &str) -> Self {
        let text = format!(
            "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"jsonrpc\"\npool = \"main\"\n\
             [pool.main]\nprogram = [\"{SCRIPTED}\"]\nframing = \"jsonrpc\"\ndispatch = \"tagged\"\nworkers = 1\n\
             pipeline = 4\nreply_max = 100\nresponse_timeout = \"60s\"\n{pool}\n"
        );
        let mut script = Script::new(&text);
        let clients = [(); 2].map(|()| script.connect(1 << 30));
        for client in clients {
            script.say(client, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n");
        }
        Self { script, clients }
    }

    /// The ids of the requests that a program has been given.
    fn ids(&self, program: usize) -> Vec<String> {
        let given = self.script.taken(self.script.programs()[program].stdin);
        let id = |line: &str| {
            let (_, rest) = line.split_once("\"id\":").unwrap();
            rest.split([',', '}']).next().unwrap().to_owned()
        };
        given.lines().map(id).collect()
    }

    fn says(&mut self, program: usize, bytes: &[u8]) {
        let stdout = self.script.programs()[program].stdout;
        self.script.say(stdout, bytes);
    }
}

#[test]
fn a_reply_over_the_limit_without_an_id_ends_no_request() {
    let mut shared = Shared::new("");
    shared.says(0, &nameless());
    for (id, client) in shared.ids(0).into_iter().zip(shared.clients) {
        assert_eq!(shared.script.taken(client), "");
        shared.says(0, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":1}}\n").as_bytes());
        let reply = shared.script.taken(client);
        assert_eq!(reply, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n");
    }
}

#[test]
fn a_program_that_prints_only_replies_over_the_limit_without_an_id_is_replaced() {
    let mut shared = Shared::new("");
    for _ in 0..7 {
        shared.says(0, &nameless());
    }
    assert_eq!(shared.clients.map(|client| shared.script.taken(client)), ["", ""]);
    shared.says(0, &nameless());
    for client in shared.clients {
        let reply = shared.script.taken(client);
        assert!(reply.contains("-32070") && reply.contains("longer than reply_max"), "{reply}");
    }
}
