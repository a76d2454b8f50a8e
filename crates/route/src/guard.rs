//! Authentication with bearer tokens (RFC 6750) and with names and passwords (RFC 7617).
//!
//! Only the SHA-256 of a secret is stored. The credentials of a request are compared with it in constant time. The
//! digest is fast on purpose: it is computed for every request on the thread that serves all clients. With a slow
//! digest (bcrypt, Argon2), a client could block all other clients by sending wrong passwords. With a fast digest, the
//! security depends on the length of the secret. Therefore secrets must be random, and short tokens are rejected.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The maximum length of the decoded credentials of a request, in bytes.
pub const CREDENTIALS_MAX: usize = 512;
/// The minimum length of a token, in characters.
pub const TOKEN_MIN: usize = 16;

type Digest = [u8; 32];

/// Why a token, a user or a realm is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthFault {
    /// The token has fewer characters than [`TOKEN_MIN`].
    Short,
    /// The token has more characters than [`CREDENTIALS_MAX`], or a character that is not allowed in tokens.
    Token,
    /// The line does not have the form `USER:DIGEST`.
    Line,
    /// The digest is not 64 hexadecimal digits.
    Digest,
    /// The user is listed twice.
    Twice,
    /// The realm has a quote, a backslash or a control character.
    Realm,
}

impl fmt::Display for AuthFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "has fewer than {TOKEN_MIN} characters: it could be guessed"),
            Self::Token => f.write_str("has a character that no token has, or is too long"),
            Self::Line => f.write_str("is not a line USER:DIGEST"),
            Self::Digest => {
                f.write_str("has no digest of 64 hexadecimal digits: the SHA-256 of USER:PASSWORD")
            }
            Self::Twice => f.write_str("is a user who is there twice"),
            Self::Realm => f.write_str("has a quote, a backslash or a control character"),
        }
    }
}

/// Accepted credentials, and the challenges for clients without them.
#[derive(Clone)]
pub struct Authenticator {
    realm: Box<str>,
    tokens: Vec<Digest>,
    /// The users by name. The digest is the SHA-256 of `USER:PASSWORD`.
    users: BTreeMap<Box<[u8]>, Digest>,
}

impl fmt::Debug for Authenticator {
    /// Formats the guard without its secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("realm", &self.realm).finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Creates a guard that admits no client. The realm is the text in the login prompt.
    ///
    /// # Errors
    /// If the realm is not allowed in a header field.
    pub fn new(realm: &str) -> Result<Self, AuthFault> {
        let allowed = |c: char| (c.is_ascii_graphic() || c == ' ') && c != '"' && c != '\\';
        if !realm.chars().all(allowed) {
            return Err(AuthFault::Realm);
        }
        Ok(Self { realm: realm.into(), tokens: Vec::new(), users: BTreeMap::new() })
    }

    /// Admits requests with this token.
    ///
    /// # Errors
    /// If the token is invalid.
    pub fn token(&mut self, token: &str) -> Result<(), AuthFault> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if token.len() > CREDENTIALS_MAX || !token.bytes().all(allowed) {
            return Err(AuthFault::Token);
        }
        if token.len() < TOKEN_MIN {
            return Err(AuthFault::Short);
        }
        self.tokens.push(digest(token.as_bytes()));
        Ok(())
    }

    /// Admits requests with the password of this line. Its form is `USER:DIGEST`, where the digest is the SHA-256 of
    /// `USER:PASSWORD` in hexadecimal.
    ///
    /// # Errors
    /// If the line is invalid, or the user was added before.
    pub fn user(&mut self, line: &str) -> Result<(), AuthFault> {
        let (user, hex) = line.split_once(':').ok_or(AuthFault::Line)?;
        if user.is_empty() || user.bytes().any(|byte| byte < 32 || byte == 127) {
            return Err(AuthFault::Line);
        }
        let digest = from_hex(hex).ok_or(AuthFault::Digest)?;
        match self.users.entry(user.as_bytes().into()) {
            Entry::Occupied(_) => Err(AuthFault::Twice),
            Entry::Vacant(place) => {
                place.insert(digest);
                Ok(())
            }
        }
    }

    /// Whether a request with this value of `Authorization` is admitted.
    #[must_use]
    pub fn admits(&self, authorization: &[u8]) -> bool {
        let Some(blank) = authorization.iter().position(|&byte| byte == b' ') else { return false };
        let (scheme, rest) = authorization.split_at(blank);
        let given = rest.trim_ascii_start();
        if scheme.eq_ignore_ascii_case(b"bearer") {
            self.has_token(given)
        } else {
            scheme.eq_ignore_ascii_case(b"basic") && self.has_password(given)
        }
    }

    fn has_token(&self, given: &[u8]) -> bool {
        if given.len() > CREDENTIALS_MAX {
            return false;
        }
        let given = digest(given);
        let mut found = subtle::Choice::from(0);
        for token in &self.tokens {
            found |= given.ct_eq(token);
        }
        found.into()
    }

    fn has_password(&self, given: &[u8]) -> bool {
        let mut decoded = [0; CREDENTIALS_MAX];
        let Ok(length) = STANDARD.decode_slice(given, &mut decoded) else { return false };
        let credentials = &decoded[..length];
        let Some(colon) = credentials.iter().position(|&byte| byte == b':') else { return false };
        // Checking an unknown name takes as much time as checking a known name.
        let nobody = [0; 32];
        let known = self.users.get(&credentials[..colon]);
        let same: bool = digest(credentials).ct_eq(known.unwrap_or(&nobody)).into();
        same && known.is_some()
    }

    /// Appends the challenges for a client that is not admitted, as header lines with their line ends.
    pub fn write_challenges(&self, out: &mut Vec<u8>) {
        let mut line = |scheme: &str, more: &str| {
            let line = format!("WWW-Authenticate: {scheme} realm=\"{}\"{more}\r\n", self.realm);
            out.extend_from_slice(line.as_bytes());
        };
        if !self.tokens.is_empty() {
            line("Bearer", "");
        }
        if !self.users.is_empty() || self.tokens.is_empty() {
            line("Basic", ", charset=\"UTF-8\"");
        }
    }
}

fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

fn from_hex(hex: &str) -> Option<Digest> {
    let mut digest = [0; 32];
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(user: &str, password: &str) -> String {
        let digest = digest(format!("{user}:{password}").as_bytes());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{user}:{hex}")
    }

    fn basic(credentials: &str) -> Vec<u8> {
        let mut text = vec![0; 2 * credentials.len() + 4];
        let length = STANDARD.encode_slice(credentials, &mut text).unwrap();
        [b"Basic ", &text[..length]].concat()
    }

    /// The output of `printf %s 'ops:correct horse' | sha256sum`.
    #[test]
    fn the_digest_is_that_of_the_tools() {
        let digest = "11b78eb048dc73c5a347094aa8bb96bc36e586d6ddefd72c6ddc2abd0386f9bc";
        assert_eq!(line("ops", "correct horse"), format!("ops:{digest}"));
    }

    #[test]
    fn whoever_has_the_secret_is_let_through_and_nobody_else() {
        let mut guard = Authenticator::new("the office").unwrap();
        guard.token("0123456789abcdef").unwrap();
        guard.token("another-token-of-some-length").unwrap();
        guard.user(&line("ops", "correct: horse")).unwrap();
        guard.user(&line("dev", "")).unwrap();
        for good in [
            b"Bearer 0123456789abcdef".to_vec(),
            b"bEARER  another-token-of-some-length".to_vec(),
            basic("ops:correct: horse"),
            basic("dev:"),
        ] {
            assert!(guard.admits(&good), "{}", String::from_utf8_lossy(&good));
        }
        for bad in [
            b"".to_vec(),
            b"Bearer".to_vec(),
            b"Bearer ".to_vec(),
            b"Bearer 0123456789abcdeg".to_vec(),
            b"Bearer 0123456789abcdef ".to_vec(),
            b"Basic 0123456789abcdef".to_vec(),
            b"Basic !".to_vec(),
            basic("ops:correct"),
            basic("op:s:correct: horse"),
            basic("nobody:"),
            basic("ops"),
            basic(&format!("ops:{}", "x".repeat(1000))),
            [b"Bearer ".to_vec(), vec![b'x'; 100_000]].concat(),
            [b"Basic ".to_vec(), vec![b'x'; 100_000]].concat(),
        ] {
            assert!(!guard.admits(&bad), "{}", String::from_utf8_lossy(&bad));
        }
        assert!(!Authenticator::new("").unwrap().admits(b"Bearer "));
    }

    #[test]
    fn the_challenge_names_what_would_be_taken() {
        let told = |guard: &Authenticator| {
            let mut out = Vec::new();
            guard.write_challenges(&mut out);
            String::from_utf8(out).unwrap()
        };
        let mut guard = Authenticator::new("ops").unwrap();
        guard.token("0123456789abcdef").unwrap();
        assert_eq!(told(&guard), "WWW-Authenticate: Bearer realm=\"ops\"\r\n");
        guard.user(&line("a", "b")).unwrap();
        assert!(told(&guard).ends_with("Basic realm=\"ops\", charset=\"UTF-8\"\r\n"));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let mut guard = Authenticator::new("x").unwrap();
        assert_eq!(guard.token("short"), Err(AuthFault::Short));
        assert_eq!(guard.token("with a blank in the middle"), Err(AuthFault::Token));
        assert_eq!(guard.user("ops"), Err(AuthFault::Line));
        assert_eq!(guard.user("ops:$2y$05$abc"), Err(AuthFault::Digest));
        guard.user(&line("ops", "a")).unwrap();
        assert_eq!(guard.user(&line("ops", "b")), Err(AuthFault::Twice));
        assert_eq!(Authenticator::new("a\"b").unwrap_err(), AuthFault::Realm);
        assert!(!format!("{guard:?}").contains("users"));
    }
}
