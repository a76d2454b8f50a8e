//! The command-line arguments of the handler examples.

#[derive(Debug)]
pub(crate) struct Arguments {
    /// Only serve.
    pub(crate) server: bool,
    /// The number of concurrent clients. With a port, only clients are run.
    pub(crate) clients: usize,
    clients_given: bool,
    /// The size of a reply in bytes.
    pub(crate) size: usize,
    /// The port; 0: any free port.
    pub(crate) port: u16,
    /// The number of threads, in the syntax of the option `workers`.
    pub(crate) threads: String,
    /// The option `balance` of the pool.
    pub(crate) schedule: String,
    /// How long the clients run, in milliseconds.
    pub(crate) milliseconds: u64,
}

impl Arguments {
    pub(crate) fn read() -> Result<Self, String> {
        let mut arguments = Self {
            server: false,
            clients: 100,
            clients_given: false,
            size: 1024,
            port: 0,
            threads: "{ min = 2, max = 200, spare = 20 }".to_owned(),
            schedule: "first".to_owned(),
            milliseconds: 300,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
            let number = |text: String| text.parse().map_err(|_| format!("{text} is no number"));
            match word.as_str() {
                "--server" => arguments.server = true,
                "--clients" => {
                    arguments.clients = number(value()?)?;
                    arguments.clients_given = true;
                }
                "--size" => arguments.size = number(value()?)?,
                "--port" => {
                    let text = value()?;
                    arguments.port = text.parse().map_err(|_| format!("{text} is no port"))?;
                }
                "--threads" => arguments.threads = value()?,
                "--schedule" => arguments.schedule = value()?,
                "--milliseconds" => arguments.milliseconds = number(value()?)? as u64,
                other => {
                    return Err(format!(
                        "{other}? there are --server, --clients N, --size BYTES, --port PORT, \
                         --threads WORKERS, --schedule WORD and --milliseconds N"
                    ));
                }
            }
        }
        Ok(arguments)
    }

    /// Whether another process serves.
    #[allow(dead_code, reason = "the example with a database always serves")]
    pub(crate) fn only_clients(&self) -> bool {
        !self.server && self.clients_given && self.port != 0
    }
}
