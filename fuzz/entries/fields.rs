//! What is fuzzed in `fields`: each function takes any bytes and panics where something that must
//! hold does not. The fuzz targets call them, and so does a seeded loop in the tests of the room.

use block::Slice;
use fields::{
    Case, DecodeError, Fields, Limits, Unfit, cgi, fastcgi, http1, json, logfmt, netstring, tsv,
};

/// Lines of a head: what is adopted is sent as it came, read alike by httparse, and read again
/// after edits.
pub(crate) fn head(bytes: &[u8]) {
    let mut set = Fields::headers().with_limits(Limits { fields: 64, ..Limits::default() });
    if http1::adopt(&mut set, Slice::copy_of(bytes)).is_err() {
        assert!(set.is_empty());
        return;
    }
    set.check();
    let mut sent = Vec::new();
    http1::encode(&set, &mut sent).expect("adopted lines are lines");
    assert_eq!(sent, bytes);
    let slices = http1::slices(&set).len();
    assert_eq!(slices, usize::from(!set.is_empty()), "unchanged lines are one slice");
    like_httparse(&set, bytes);

    set.remove_at(set.len() / 2);
    set.append("x-added", "value");
    set.update("X-Added", "another value");
    set.check();
    sent.clear();
    http1::encode(&set, &mut sent).expect("edited lines are lines");
    let mut again = Fields::headers();
    http1::adopt(&mut again, Slice::copy_of(&sent)).expect("what is sent can be read");
    assert_eq!(again, set);
}

fn like_httparse(set: &Fields, bytes: &[u8]) {
    let whole = [bytes, b"\r\n"].concat();
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let (_, read) = httparse::parse_headers(&whole, &mut headers)
        .expect("what is accepted here is accepted by others")
        .unwrap();
    assert_eq!(read.len(), set.len());
    for (field, header) in set.iter().zip(read) {
        assert_eq!(field.name, header.name.as_bytes());
        assert_eq!(field.value.bytes(), Some(header.value));
    }
}

/// All other formats: what is decoded can be encoded, and is the same when it is decoded again.
pub(crate) fn formats(bytes: &[u8]) {
    again(bytes, netstring::decode, netstring::encode);
    let scgi = |set: &mut Fields, bytes: &[u8]| netstring::decode_scgi(set, bytes).map(|_| ());
    again(bytes, scgi, netstring::encode_scgi);
    again(bytes, cgi::decode, cgi::encode);
    again(bytes, fastcgi::decode, fastcgi::encode);
    again(bytes, logfmt::decode, logfmt::encode);
    again(bytes, json::decode, json::encode);
    for names in [&[][..], &["a"], &["a", "b", "a"]] {
        let decode = |set: &mut Fields, bytes: &[u8]| -> Result<(), DecodeError> {
            tsv::decode(set, names.iter().copied(), bytes)
        };
        again(bytes, decode, |set, out| {
            tsv::encode(set, out);
            Ok(())
        });
    }
}

fn again<E: std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&mut Fields, &[u8]) -> Result<(), E>,
    encode: impl Fn(&Fields, &mut Vec<u8>) -> Result<(), Unfit>,
) {
    let mut set = Fields::new().with_case(Case::Exact);
    if decode(&mut set, bytes).is_err() {
        assert!(set.is_empty(), "an error adds nothing");
        return;
    }
    set.check();
    let mut out = Vec::new();
    encode(&set, &mut out).expect("what was read can be written");
    let mut second = Fields::new();
    decode(&mut second, &out).expect("what was written can be read");
    assert_eq!(second, set, "{}", out.escape_ascii());
    second.check();
}
