//! Changes of a head that a proxy forwards: fields for one connection are removed, the framing is written in canonical
//! form, and the fields about the client are set by this proxy.

use std::net::IpAddr;

use fields::{Fields, Name, NameSet, Value, known};

use super::client_fields;
use super::encode::decimal;
use super::grammar::elements;
use super::request::VERSION;
use super::semantics;
use super::{Added, BodyKind, Connection, ReplyHead, RequestHead, Sending, Version};

/// Field names in the spelling that this proxy writes.
const CONTENT_LENGTH: Name = Name::new("Content-Length");
const TRANSFER_ENCODING: Name = Name::new("Transfer-Encoding");
const HOST: Name = Name::new("Host");
const UPGRADE: Name = Name::new("Upgrade");
const FORWARDED_HOST: Name = Name::new("x-forwarded-host");
const HTTP2_SETTINGS: Name = Name::new("http2-settings");
/// Not a standard header field. It is removed because programs that receive fields in their environment would see it as
/// the variable `HTTP_PROXY`.
const PROXY: Name = Name::new("proxy");

/// Hop-by-hop fields: they apply to one connection only.
const HOP_BY_HOP: NameSet = NameSet::of(&[
    &known::CONNECTION,
    &known::KEEP_ALIVE,
    &known::PROXY_CONNECTION,
    &known::TE,
    &known::TRAILER,
    &HTTP2_SETTINGS,
    &known::UPGRADE,
]);
/// The fields that describe the client to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forwarded {
    /// None. Such fields from the client are removed.
    #[default]
    Nothing,
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    Legacy,
    /// `Forwarded` of RFC 7239.
    Standard,
}

/// The client of a request, as described to the server.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedFor<'a> {
    /// The fields that describe the client.
    pub fields: Forwarded,
    /// Whether such fields from the client are trusted and kept.
    pub trusted: bool,
    /// The address of the client. `None` on a Unix socket.
    pub client: Option<IpAddr>,
    /// Whether the client uses TLS.
    pub secure: bool,
    /// The `Via` line to add, or empty.
    pub via: &'a [u8],
}

impl RequestHead {
    /// Prepares the head for the server: removes fields for the client's connection, and fields that only this proxy
    /// may set. [`Self::encode`] writes the latter.
    pub fn prepare(&mut self, from: &ForwardedFor<'_>) {
        if self.upgrade && self.upgrades().count() > self.forwarded_upgrades().count() {
            let others: Vec<_> = self.forwarded_upgrades().collect();
            let others = others.join(&b", "[..]);
            // The new value is not longer than the old one.
            let _ = self.fields.replace_all(&UPGRADE, &*others);
        }
        let upgrade = self.upgrade;
        strip(&mut self.fields, self.connection, upgrade);
        if self.fields.contains(&PROXY) {
            self.fields.remove(&PROXY);
        }
        canonical(&mut self.fields, self.body, self.length_is_plain);
        client_fields::remove(&mut self.fields, from.fields != Forwarded::Nothing && from.trusted);
        let named = &self.line[self.places.authority.clone()];
        if !named.is_empty() && self.fields.get(&known::HOST).and_then(Value::bytes) != Some(named)
        {
            // The host of an absolute target replaces the field (RFC 9112 §3.2.2). HTTP/1.0 requests may lack the
            // field. It may have or lack the default port of the scheme. The route was chosen by this host, so the
            // server must receive the same host, even if the head is full.
            self.fields.set_limits(fields::Limits::MAX);
            let _ = self.fields.replace_all(&HOST, named);
        }
    }

    /// Appends the head for the server. `target` replaces the target of the request, if it is given. `host` is used if
    /// the client sent no host.
    pub fn encode(
        &self,
        target: Option<&[u8]>,
        host: &[u8],
        from: &ForwardedFor<'_>,
        out: &mut Vec<u8>,
    ) {
        match target {
            None if self.keeps_request_line() => {
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
        // The host that the client requested, not the host that a route has set.
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

    /// Writes the fields that describe the client. `host`: the host that the client requested.
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
    /// Prepares the head for the client, and returns how its body is sent.
    pub fn prepare(&mut self, client: Version) -> Sending {
        // With 426, the server lists the protocols that it requires (RFC 9110 §15.5.22). HTTP/1.0 has no upgrade.
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

    /// Appends the head for the client. `keep_alive`: whether the client's connection is kept open.
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

/// Removes hop-by-hop fields, including the fields that `Connection` names.
fn strip(fields: &mut Fields, connection: Connection, upgrade: bool) {
    if !fields.may_have_any(HOP_BY_HOP) {
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

/// Keeps one `Content-Length` in canonical form if the body has a length, and removes `Transfer-Encoding`, which is
/// written separately. `is_plain`: the existing length is already canonical.
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

/// Normalises the fields that describe a body that is not sent: one length, and no chunks if the client does not
/// support them. `is_plain`: the existing length is already canonical.
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
    // All of them have the same value.
    let first = fields.get(&known::CONTENT_LENGTH).and_then(|value| semantics::length(value).ok());
    if let Some(length) = first {
        write_length(fields, length);
    }
}

/// Replaces all `Content-Length` fields by one in canonical form.
fn write_length(fields: &mut Fields, length: u64) {
    let (digits, start) = decimal(length);
    fields.remove(&known::CONTENT_LENGTH);
    write_field(fields, &CONTENT_LENGTH, &digits[start..]);
}

/// Appends a field that the daemon generates. It is not subject to the limits of the peer, because a message must not
/// lose its framing if its head is full.
fn write_field(fields: &mut Fields, name: &Name, value: &[u8]) {
    fields.set_limits(fields::Limits::MAX);
    let written = fields.append(name, value);
    debug_assert!(written.is_ok(), "a field of our own can be one: {written:?}");
}

/// Writes a node of RFC 7239 §6: an IPv6 address is in brackets and quotes.
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

/// Writes the decimal digits of an octet at `at`, and returns their end.
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

/// Writes an address as text. IPv4 addresses are formatted by special code, because this is done for every request.
fn write_address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            // The buffer is filled with points. A point remains wherever no digit is written.
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
