//! What a proxy changes in a head that it passes on: what concerned one connection goes, the
//! framing gets its canonical spelling, and what is said of the client is said by us.

use std::net::IpAddr;

use fields::{Fields, Name, NameSet, Value, known};

use super::claims;
use super::encode::decimal;
use super::grammar::elements;
use super::request::VERSION;
use super::semantics;
use super::{Added, BodyKind, Connection, ReplyHead, RequestHead, Sending, Version};

/// As it is spelled where we write it.
const CONTENT_LENGTH: Name = Name::new("Content-Length");
const TRANSFER_ENCODING: Name = Name::new("Transfer-Encoding");
const HOST: Name = Name::new("Host");
const UPGRADE: Name = Name::new("Upgrade");
const FORWARDED_HOST: Name = Name::new("x-forwarded-host");
const HTTP2_SETTINGS: Name = Name::new("http2-settings");
/// No header field, but the variable `HTTP_PROXY` for programs that get fields in their environment.
const PROXY: Name = Name::new("proxy");

/// What concerns one connection only.
const OF_CONNECTION: NameSet = NameSet::of(&[
    &known::CONNECTION,
    &known::KEEP_ALIVE,
    &known::PROXY_CONNECTION,
    &known::TE,
    &known::TRAILER,
    &HTTP2_SETTINGS,
    &known::UPGRADE,
]);
/// Which fields tell the server who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarded {
    /// None, and nothing that a client says of itself either.
    #[default]
    Nothing,
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    Legacy,
    /// `Forwarded` of RFC 7239.
    Standard,
}

/// Who asked, for the server.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedFor<'a> {
    /// Which fields tell of it.
    pub fields: Forwarded,
    /// Whether what the client says of those before it is believed and kept.
    pub trusted: bool,
    /// The address of the client; none on a Unix socket.
    pub client: Option<IpAddr>,
    /// The client came over TLS.
    pub secure: bool,
    /// The line `Via` that is added, or nothing.
    pub via: &'a [u8],
}

impl RequestHead {
    /// Makes it a head for the server: nothing that concerned the client's connection is left, and
    /// nothing that only we may say. What we say is written by [`Self::encode`].
    pub fn prepare(&mut self, from: &ForwardedFor<'_>) {
        if self.upgrade && self.upgrades().count() > self.forwarded_upgrades().count() {
            let others: Vec<_> = self.forwarded_upgrades().collect();
            let others = others.join(&b", "[..]);
            // It is no longer than what stood there.
            let _ = self.fields.try_insert(&UPGRADE, &*others);
        }
        let upgrade = self.upgrade;
        strip(&mut self.fields, self.connection, upgrade);
        if self.fields.contains(&PROXY) {
            self.fields.remove(&PROXY);
        }
        canonical(&mut self.fields, self.body, self.length_is_plain);
        claims::remove(&mut self.fields, from.fields != Forwarded::Nothing && from.trusted);
        let named = &self.line[self.places.authority.clone()];
        if !named.is_empty() && self.fields.get(&known::HOST).and_then(Value::bytes) != Some(named)
        {
            // The host of an absolute target replaces the field (RFC 9112 §3.2.2), which HTTP/1.0 may
            // lack, and may be spelled with the port of its scheme or without. The route was found by
            // it, so the server is to see no other, however full the head is.
            self.fields.set_limits(fields::Limits::MAX);
            let _ = self.fields.try_insert(&HOST, named);
        }
    }

    /// Appends the head as it goes to the server, with another target if there is one, and `host`
    /// where the client named none.
    pub fn encode(
        &self,
        target: Option<&[u8]>,
        host: &[u8],
        from: &ForwardedFor<'_>,
        out: &mut Vec<u8>,
    ) {
        match target {
            None if self.line_goes_on() => {
                out.extend_from_slice(&self.line[..self.places.target.end + VERSION.len()]);
            }
            _ => {
                let target = target.unwrap_or_else(|| self.path_and_query());
                let slash: &[u8] = match target.first() {
                    Some(b'/') => b" ",
                    Some(b'*') if target.len() == 1 => b" ",
                    _ => b" /",
                };
                for part in [self.method_bytes(), slash, target, VERSION] {
                    out.extend_from_slice(part);
                }
            }
        }
        super::encode::lines(&self.fields, out);
        let named = self.fields.get(&known::HOST).and_then(Value::bytes);
        if named.is_none() {
            super::encode::line(b"Host", host, out);
        }
        if self.upgrade {
            out.extend_from_slice(b"Connection: upgrade\r\n");
        }
        self.write_framing(out);
        // What the client named is not what a route has made of it.
        let asked = &self.line[self.places.authority.clone()];
        let asked = if asked.is_empty() { named.unwrap_or_default() } else { asked };
        self.write_client(from, asked, out);
        out.extend_from_slice(from.via);
        out.extend_from_slice(b"\r\n");
    }

    fn write_framing(&self, out: &mut Vec<u8>) {
        match (self.body, self.length_instead) {
            (BodyKind::Chunked, Some(length)) => {
                out.extend_from_slice(b"Content-Length: ");
                super::encode::write_decimal(length as u64, out);
                out.extend_from_slice(b"\r\n");
            }
            (BodyKind::Chunked, None) => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            }
            _ => {}
        }
    }

    /// `host`: what the client asked for.
    fn write_client(&self, from: &ForwardedFor<'_>, host: &[u8], out: &mut Vec<u8>) {
        match from.fields {
            Forwarded::Nothing => {}
            Forwarded::Legacy => self.write_legacy(from, host, out),
            Forwarded::Standard => {
                out.extend_from_slice(b"Forwarded: for=");
                write_for(from.client, out);
                out.extend_from_slice(if from.secure { b";proto=https" } else { b";proto=http" });
                if !host.is_empty() {
                    out.extend_from_slice(b";host=\"");
                    out.extend_from_slice(host);
                    out.push(b'"');
                }
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn write_legacy(&self, from: &ForwardedFor<'_>, host: &[u8], out: &mut Vec<u8>) {
        if let Some(client) = from.client {
            out.extend_from_slice(b"X-Forwarded-For: ");
            write_address(client, out);
            out.extend_from_slice(b"\r\n");
        }
        if !self.fields.contains(&known::X_FORWARDED_PROTO) {
            let line: &[u8] = if from.secure {
                b"X-Forwarded-Proto: https\r\n"
            } else {
                b"X-Forwarded-Proto: http\r\n"
            };
            out.extend_from_slice(line);
        }
        if !host.is_empty() && !self.fields.contains(&FORWARDED_HOST) {
            super::encode::line(b"X-Forwarded-Host", host, out);
        }
    }
}

impl ReplyHead {
    /// Makes it a head for the client, and says how the body behind it is sent.
    pub fn prepare(&mut self, client: Version) -> Sending {
        // The server says which protocols it wants instead (RFC 9110 §15.5.22). HTTP/1.0 has no upgrade.
        let wants = self.status == 426 && client == Version::Http11;
        strip(&mut self.fields, self.connection, self.status == 101 || wants);
        self.is_dated = self.fields.contains(&known::DATE);
        if self.describes_body() {
            described(&mut self.fields, self.length_is_plain, client);
            return Sending::Verbatim;
        }
        canonical(&mut self.fields, self.body, self.length_is_plain);
        match (self.body, client) {
            (BodyKind::Chunked, Version::Http10) => Sending::Data,
            (BodyKind::UntilEnd, Version::Http11) => Sending::Chunked,
            _ => Sending::Verbatim,
        }
    }

    /// Appends the head as it goes to the client. `keep_alive` says whether we go on with the
    /// client's connection.
    pub fn encode(
        &self,
        sending: Sending,
        client: Version,
        keep_alive: bool,
        added: Added<'_>,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(b"HTTP/1.1");
        out.extend_from_slice(&self.line[8..]);
        out.extend_from_slice(b"\r\n");
        super::encode::lines(&self.fields, out);
        if self.lacks_date() {
            out.extend_from_slice(added.date);
        }
        if self.is_forwarded && !self.is_interim() {
            out.extend_from_slice(added.via);
        }
        let chunked = match sending {
            Sending::Chunked => true,
            Sending::Verbatim => self.body == BodyKind::Chunked,
            Sending::Data => false,
        };
        if chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if self.status == 101 {
            out.extend_from_slice(b"Connection: upgrade\r\n");
        } else if self.status >= 200 {
            if self.status == 426 && self.fields.contains(&known::UPGRADE) {
                out.extend_from_slice(b"Connection: upgrade\r\n");
            }
            super::encode::connection(client, keep_alive, out);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Removes what concerns one connection only, and what `Connection` names besides.
fn strip(fields: &mut Fields, connection: Connection, upgrade: bool) {
    if !fields.may_have_any(OF_CONNECTION) {
        return;
    }
    if connection.names {
        let listed: Vec<u8> = fields
            .get_all(&known::CONNECTION)
            .filter_map(Value::bytes)
            .flat_map(|value| [value, b","].concat())
            .collect();
        for name in elements(&listed) {
            if !(upgrade && name.eq_ignore_ascii_case(b"upgrade")) {
                fields.remove(name);
            }
        }
    }
    for name in [&known::CONNECTION, &known::KEEP_ALIVE, &known::PROXY_CONNECTION, &known::TE] {
        drop_field(fields, name);
    }
    drop_field(fields, &known::TRAILER);
    drop_field(fields, &HTTP2_SETTINGS);
    if !upgrade {
        drop_field(fields, &known::UPGRADE);
    }
}

#[inline]
fn drop_field(fields: &mut Fields, name: &Name) {
    if fields.contains(name) {
        fields.remove(name);
    }
}

/// Leaves one `Content-Length` in canonical spelling where the body has a length, and no
/// `Transfer-Encoding`: that is written anew. `is_plain`: such a length is there already.
fn canonical(fields: &mut Fields, body: BodyKind, is_plain: bool) {
    let is_done = is_plain && matches!(body, BodyKind::Length(_));
    if is_done || !fields.may_have_any(semantics::OF_BODY) {
        return;
    }
    drop_field(fields, &known::TRANSFER_ENCODING);
    let BodyKind::Length(length) = body else {
        drop_field(fields, &known::CONTENT_LENGTH);
        return;
    };
    if !is_plain {
        write_length(fields, length);
    }
}

/// What tells of a body that does not come: one length, and no chunks where the client knows none.
/// `is_plain`: such a length is there already.
fn described(fields: &mut Fields, is_plain: bool, client: Version) {
    if is_plain || !fields.may_have_any(semantics::OF_BODY) {
        return;
    }
    if fields.contains(&known::TRANSFER_ENCODING) {
        fields.remove(&known::TRANSFER_ENCODING);
        if client == Version::Http11 {
            // No other coding is accepted.
            write_field(fields, &TRANSFER_ENCODING, b"chunked");
        }
    }
    // All of them say the same.
    let first = fields.get(&known::CONTENT_LENGTH).and_then(|value| semantics::length(value).ok());
    if let Some(length) = first {
        write_length(fields, length);
    }
}

/// Leaves one `Content-Length`, in its canonical spelling, in place of those that are there.
fn write_length(fields: &mut Fields, length: u64) {
    let (digits, start) = decimal(length);
    fields.remove(&known::CONTENT_LENGTH);
    write_field(fields, &CONTENT_LENGTH, &digits[start..]);
}

/// Appends a field of ours. A message must not lose its framing because its head is full: what is ours is
/// not held to the limits of the peer.
fn write_field(fields: &mut Fields, name: &Name, value: &[u8]) {
    fields.set_limits(fields::Limits::MAX);
    let written = fields.try_append(name, value);
    debug_assert!(written.is_ok(), "a field of our own can be one: {written:?}");
}

/// A node of RFC 7239 §6: an IPv6 address in brackets and quotes.
fn write_for(client: Option<IpAddr>, out: &mut Vec<u8>) {
    match client {
        Some(IpAddr::V6(_)) => {
            out.extend_from_slice(b"\"[");
            client.into_iter().for_each(|address| write_address(address, out));
            out.extend_from_slice(b"]\"");
        }
        Some(address) => write_address(address, out),
        None => out.extend_from_slice(b"unknown"),
    }
}

/// Where its digits end, which begin at `at`.
#[inline]
fn write_octet(octet: u8, text: &mut [u8; 16], mut at: usize) -> usize {
    if octet >= 100 {
        text[at] = b'0' + octet / 100;
        at += 1;
    }
    if octet >= 10 {
        text[at] = b'0' + octet / 10 % 10;
        at += 1;
    }
    text[at] = b'0' + octet % 10;
    at + 1
}

/// An address as text. IPv4 by hand: this is done for every request.
fn write_address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            // Where no digit is written a point stands already.
            let (mut text, mut end) = ([b'.'; 16], 0);
            for octet in address.octets() {
                end = write_octet(octet, &mut text, end) + 1;
            }
            out.extend_from_slice(&text[..end - 1]);
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => write_address(IpAddr::V4(mapped), out),
            None => out.extend_from_slice(address.to_string().as_bytes()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_is_written_as_everybody_writes_it() {
        for octet in 0..=u8::MAX {
            let (address, mut out) = (IpAddr::from([octet, 0, octet, 255]), Vec::new());
            write_address(address, &mut out);
            assert_eq!(out, address.to_string().into_bytes());
        }
    }
}
