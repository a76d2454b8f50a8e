//! The keys of the bucket.

/// What an operator has set something for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperatorKey {
    /// A server of a pool, by its name in the configuration.
    Worker {
        /// The pool.
        pool: String,
        /// The server.
        worker: String,
    },
    /// The fallback of a pool.
    Fallback {
        /// The pool.
        pool: String,
    },
}

impl OperatorKey {
    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &str {
        match self {
            Self::Worker { pool, .. } | Self::Fallback { pool } => pool,
        }
    }

    /// The name of the key in the bucket: `worker.POOL.SERVER` or `fallback.POOL`. Names of pools and servers may
    /// contain characters that a key cannot have; they are written as `=` and two hexadecimal digits.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Worker { pool, worker } => {
                format!("worker.{}.{}", encoded(pool), encoded(worker))
            }
            Self::Fallback { pool } => format!("fallback.{}", encoded(pool)),
        }
    }

    /// Reads the name of a key. `None`: it is not a key of this version.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.split('.').collect();
        match *parts {
            ["worker", pool, worker] => {
                Some(Self::Worker { pool: decoded(pool)?, worker: decoded(worker)? })
            }
            ["fallback", pool] => Some(Self::Fallback { pool: decoded(pool)? }),
            _ => None,
        }
    }
}

fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        other => format!("={other:02X}"),
    };
    name.bytes().map(byte).collect()
}

/// `None`: [`encoded`] writes no name like this.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let value = match byte {
            b'=' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            byte => byte,
        };
        bytes.push(value);
    }
    let name = String::from_utf8(bytes).ok()?;
    (!name.is_empty() && encoded(&name) == text).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_valid_key_and_is_read_back() {
        let names = ["a", "10.0.1.1:8000", "unix:/run/a b.sock", "[::1]:80", "=", "ä*>", "A-b_9"];
        for (pool, worker) in names.iter().flat_map(|pool| names.map(|worker| (*pool, worker))) {
            let worker = OperatorKey::Worker { pool: pool.to_owned(), worker: worker.to_owned() };
            let fallback = OperatorKey::Fallback { pool: pool.to_owned() };
            for key in [worker, fallback] {
                let name = key.name();
                let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=.".contains(&byte);
                assert!(name.bytes().all(is_valid), "{name}");
                assert!(!name.contains("..") && !name.ends_with('.'), "{name}");
                assert_eq!(OperatorKey::from_name(&name), Some(key));
            }
        }
        let key = OperatorKey::Worker { pool: "shop".into(), worker: "10.0.1.1:8000".into() };
        assert_eq!(key.name(), "worker.shop.10=2E0=2E1=2E1=3A8000");
    }

    #[test]
    fn other_names_are_not_keys() {
        let others = [
            "",
            "_epoch",
            "worker",
            "worker.a",
            "worker.a.",
            "worker..b",
            "worker.a.b.c",
            "fallback",
            "fallback.=",
            "fallback.=2",
            "fallback.=2e",
            "fallback.=41",
            "fallback.=FF",
            "server.a.b",
        ];
        for name in others {
            assert_eq!(OperatorKey::from_name(name), None, "{name}");
        }
    }
}
