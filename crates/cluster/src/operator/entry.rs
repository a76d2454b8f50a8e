//! The value of a key: what was set, by whom and when.

use exchange::AdminState;
use serde_json::{Value as Json, json};

use super::key::OperatorKey;

/// The version of the format.
const VERSION: u64 = 1;
/// The maximum weight.
const WEIGHT_MAX: u32 = 256;

/// Who set a value, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The user or the kind of token, as in the audit log.
    pub who: String,
    /// The name of the machine that received the command.
    pub machine: String,
    /// The time at this machine: RFC 3339 in UTC, always with milliseconds, so that times can be compared as text.
    pub when: String,
}

/// What is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// For a server.
    Worker {
        /// Its state.
        admin_state: AdminState,
        /// Its weight; `None`: the configured one.
        weight: Option<u32>,
    },
    /// For a fallback: whether it is on for all requests.
    Fallback(bool),
}

impl Setting {
    /// What applies without any command.
    #[must_use]
    pub const fn default_of(key: &OperatorKey) -> Self {
        match key {
            OperatorKey::Worker { .. } => {
                Self::Worker { admin_state: AdminState::Enabled, weight: None }
            }
            OperatorKey::Fallback { .. } => Self::Fallback(false),
        }
    }

    /// Whether it is what applies without any command.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        matches!(
            self,
            Self::Worker { admin_state: AdminState::Enabled, weight: None } | Self::Fallback(false)
        )
    }
}

/// A command: the part of a setting that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// The state of a server.
    AdminState(AdminState),
    /// The weight of a server; `None`: the configured one.
    Weight(Option<u32>),
    /// Whether a fallback is on.
    Fallback(bool),
}

impl EntryChange {
    /// Applies the command. A command for the other kind of key changes nothing.
    #[must_use]
    pub(super) const fn applied_to(self, setting: Setting) -> Setting {
        match (self, setting) {
            (Self::AdminState(admin_state), Setting::Worker { weight, .. }) => {
                Setting::Worker { admin_state, weight }
            }
            (Self::Weight(weight), Setting::Worker { admin_state, .. }) => {
                Setting::Worker { admin_state, weight }
            }
            (Self::Fallback(on), Setting::Fallback(_)) => Setting::Fallback(on),
            (_, setting) => setting,
        }
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What is set.
    pub setting: Setting,
    /// Who set it.
    pub author: Author,
}

impl Entry {
    /// The value in the bucket.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { setting, author: Author { who, machine, when } } = self;
        let mut json = match *setting {
            Setting::Worker { admin_state, weight } => {
                json!({ "version": VERSION, "state": admin_state.as_str(), "weight": weight })
            }
            Setting::Fallback(on) => {
                json!({ "version": VERSION, "fallback": if on { "on" } else { "off" } })
            }
        };
        json["who"] = who.as_str().into();
        json["machine"] = machine.as_str().into();
        json["when"] = when.as_str().into();
        json.to_string().into_bytes()
    }

    /// Reads a value. `None`: this version cannot read it.
    #[must_use]
    pub fn decode(key: &OperatorKey, bytes: &[u8]) -> Option<Self> {
        let json: Json = serde_json::from_slice(bytes).ok()?;
        if json.get("version")?.as_u64()? != VERSION {
            return None;
        }
        let text = |name: &str| Some(json.get(name)?.as_str()?.to_owned());
        let setting = match key {
            OperatorKey::Worker { .. } => {
                let weight = match json.get("weight") {
                    None | Some(Json::Null) => None,
                    Some(weight) => {
                        let weight = u32::try_from(weight.as_u64()?).ok()?;
                        Some(weight).filter(|weight| *weight <= WEIGHT_MAX).map(Some)?
                    }
                };
                Setting::Worker { admin_state: AdminState::from_name(&text("state")?)?, weight }
            }
            OperatorKey::Fallback { .. } => match text("fallback")?.as_str() {
                "on" => Setting::Fallback(true),
                "off" => Setting::Fallback(false),
                _ => return None,
            },
        };
        let author = Author { who: text("who")?, machine: text("machine")?, when: text("when")? };
        Some(Self { setting, author })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author() -> Author {
        Author {
            who: "uid 0".into(),
            machine: "m1".into(),
            when: "2026-11-28T14:20:08.000Z".into(),
        }
    }

    fn worker() -> OperatorKey {
        OperatorKey::Worker { pool: "a".into(), worker: "b".into() }
    }

    #[test]
    fn values_are_read_back() {
        let fallback = OperatorKey::Fallback { pool: "a".into() };
        for admin_state in AdminState::ALL {
            for weight in [None, Some(0), Some(256)] {
                let setting = Setting::Worker { admin_state, weight };
                let entry = Entry { setting, author: author() };
                assert_eq!(Entry::decode(&worker(), &entry.encode()), Some(entry.clone()));
                assert_eq!(Entry::decode(&fallback, &entry.encode()), None);
                let is_default = admin_state == AdminState::Enabled && weight.is_none();
                assert_eq!(setting.is_default(), is_default);
            }
        }
        for on in [true, false] {
            let entry = Entry { setting: Setting::Fallback(on), author: author() };
            assert_eq!(Entry::decode(&fallback, &entry.encode()), Some(entry.clone()));
        }
        let text = Entry { setting: Setting::default_of(&worker()), author: author() }.encode();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            r#"{"machine":"m1","state":"enabled","version":1,"weight":null,"when":"2026-11-28T14:20:08.000Z","who":"uid 0"}"#
        );
    }

    #[test]
    fn other_values_cannot_be_read() {
        let valid =
            r#"{"version":1,"state":"drained","weight":3,"who":"w","machine":"m","when":"t"}"#;
        assert!(Entry::decode(&worker(), valid.as_bytes()).is_some());
        for (part, other) in [
            ("\"version\":1", "\"version\":2"),
            ("drained", "away"),
            (":3", ":257"),
            (":3", ":-1"),
            (":3", ":\"3\""),
            ("\"who\"", "\"whom\""),
            ("{", ""),
        ] {
            let text = valid.replacen(part, other, 1);
            assert_eq!(Entry::decode(&worker(), text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_command_changes_its_part_only() {
        let setting = Setting::Worker { admin_state: AdminState::Drained, weight: Some(3) };
        let applied = |change: EntryChange| change.applied_to(setting);
        assert_eq!(
            applied(EntryChange::AdminState(AdminState::Enabled)),
            Setting::Worker { admin_state: AdminState::Enabled, weight: Some(3) }
        );
        assert_eq!(
            applied(EntryChange::Weight(None)),
            Setting::Worker { admin_state: AdminState::Drained, weight: None }
        );
        assert_eq!(applied(EntryChange::Fallback(true)), setting);
    }
}
