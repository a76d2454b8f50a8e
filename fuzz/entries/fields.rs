//! What is fuzzed in `fields`: each function takes any bytes and panics where something that must
//! hold does not. The fuzz targets call them, and so does a seeded loop in the tests of the room.

use block::{Block, Slice};
use fields::{
    Case, EncodeError, Fields, Limits, RowError, Rows, Schema, Value, cgi, fastcgi, http1, json,
    logfmt, netstring, tsv,
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

    let third = set.len() / 3;
    set.set_value(third, "changed").expect("it is within the limits");
    set.set_value(2 * third, "changed as well").expect("it is within the limits");
    set.check();
    assert!(http1::slices(&set).len() <= 4, "two edits are sent in four parts");
    set.remove_at(set.len() / 2);
    set.append("x-added", "value").expect("it is within the limits");
    set.update("X-Added", "another value").expect("it is within the limits");
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

/// All other formats: what is decoded can be encoded, and is the same when it is decoded again or
/// adopted in its block.
pub(crate) fn formats(bytes: &[u8]) {
    again(bytes, netstring::decode, netstring::adopt, netstring::encode);
    again(bytes, cgi::decode, cgi::adopt, cgi::encode);
    again(bytes, fastcgi::decode, fastcgi::adopt, fastcgi::encode);
    again(bytes, logfmt::decode, logfmt::adopt, logfmt::encode);
    again(bytes, json::decode, json::adopt, json::encode);
    let scgi = |set: &mut Fields, bytes: &[u8]| netstring::decode_scgi(set, bytes).map(|_| ());
    let same = |set: &mut Fields, block: &Slice| scgi(set, block);
    again(bytes, scgi, same, netstring::encode_scgi);
    for names in [&[][..], &["a"], &["a", "b", "a"]] {
        let decode =
            |set: &mut Fields, bytes: &[u8]| tsv::decode(set, names.iter().copied(), bytes);
        let adopt = |set: &mut Fields, block: &Slice| tsv::adopt(set, names.iter().copied(), block);
        again(bytes, decode, adopt, |set, out| {
            tsv::encode(set, out);
            Ok(())
        });
    }
}

fn again<E: std::fmt::Debug + PartialEq>(
    bytes: &[u8],
    decode: impl Fn(&mut Fields, &[u8]) -> Result<(), E>,
    adopt: impl Fn(&mut Fields, &Slice) -> Result<(), E>,
    encode: impl Fn(&Fields, &mut Vec<u8>) -> Result<(), EncodeError>,
) {
    let mut set = Fields::new().with_case(Case::Exact);
    let mut adopted = Fields::new();
    let decoded = decode(&mut set, bytes);
    assert_eq!(adopt(&mut adopted, &block_of(bytes)), decoded, "both ways to read agree");
    assert_eq!(adopted, set);
    adopted.check();
    if decoded.is_err() {
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
    as_row(&set);
    edited(&mut adopted);
}

/// A block whose size depends on the bytes: some are so large that they are not kept.
fn block_of(bytes: &[u8]) -> Slice {
    let spare = bytes.first().map_or(0, |&byte| usize::from(byte) * 64);
    let mut block = Block::with_capacity(bytes.len() + spare);
    block.push(bytes);
    block.freeze()
}

/// The set as a row of its own names: taken when each stands once, else refused with a name that
/// does not.
fn as_row(set: &Fields) {
    let schema = Schema::new(set.names(), Case::Exact);
    let mut rows = Rows::new(schema);
    rows.push_record(set).expect("as many fields as columns, under the same names");
    assert_eq!(&rows.row(0).expect("one row was added").to_fields(), set);
    let Some(first) = set.names().next() else { return };
    let mut rows = Rows::new(Schema::new([first], Case::Exact));
    match rows.push_record(set) {
        Ok(row) => assert_eq!(rows.value(row, 0), set.get(first)),
        Err(error) => {
            assert_eq!(error, RowError::Repeated { column: 0 });
            assert!(!set.is_unique(first) && rows.is_empty());
        }
    }
}

/// What was adopted is changed like any other set.
fn edited(set: &mut Fields) {
    let fields = set.len();
    let middle = set.names().nth(fields / 2).map(<[u8]>::to_vec);
    if let Some(name) = middle {
        set.update(&name, "changed").expect("it is within the limits");
        set.check();
        assert_eq!(set.get(&name), Some(Value::Bytes(b"changed")));
    }
    set.remove_at(0);
    set.append("added", Value::Null).expect("it is within the limits");
    set.check();
    set.clear_values();
    set.check();
    assert!(set.values().all(Value::is_null));
}
