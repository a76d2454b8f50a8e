use super::*;
use crate::{Case, DecodeError, Limits, cgi, fastcgi, json, logfmt, netstring, tsv};

fn block(capacity: usize, bytes: &[u8]) -> Slice {
    let mut block = block::Block::with_capacity(capacity);
    block.push(bytes);
    block.freeze()
}

#[test]
fn a_block_is_kept_when_it_is_small_or_half_full() {
    let block = |capacity, length| block(capacity, &vec![b'x'; length]);
    assert!(is_worth_keeping(&block(4096, 1)));
    assert!(is_worth_keeping(&block(16384, 8192)));
    assert!(!is_worth_keeping(&block(16384, 8191)));
}

/// The record in a format, how it is adopted and decoded, and the bytes that must be copied.
type Format =
    (&'static [u8], fn(&mut Fields, &Slice) -> bool, fn(&mut Fields, &[u8]) -> bool, usize);

const FORMATS: [Format; 6] = [
    (
        br#"{"at":17,"path":"/a","user":null,"t":true,"e":"\\","\u0061":[1]}"#,
        |set, record| json::adopt(set, record).is_ok(),
        |set, bytes| json::decode(set, bytes).is_ok(),
        "\\a".len(),
    ),
    (
        b"17\t/a\t\\N\tx\\ty\t",
        |set, record| tsv::adopt(set, ["a", "b", "c", "d", "e"], record).is_ok(),
        |set, bytes| tsv::decode(set, ["a", "b", "c", "d", "e"], bytes).is_ok(),
        "abcdex?y".len(),
    ),
    (
        br#"at=17 path="/a b" user e= q="a\"b""#,
        |set, record| logfmt::adopt(set, record).is_ok(),
        |set, bytes| logfmt::decode(set, bytes).is_ok(),
        "a?b".len(),
    ),
    (
        b"2:at,2:17,4:path,0:,",
        |set, record| netstring::adopt(set, record).is_ok(),
        |set, bytes| netstring::decode(set, bytes).is_ok(),
        0,
    ),
    (
        b"AT=17\0PATH=/a\0E=\0",
        |set, record| cgi::adopt(set, record).is_ok(),
        |set, bytes| cgi::decode(set, bytes).is_ok(),
        0,
    ),
    (
        b"\x02\x02AT17\x04\x00PATH",
        |set, record| fastcgi::adopt(set, record).is_ok(),
        |set, bytes| fastcgi::decode(set, bytes).is_ok(),
        0,
    ),
];

#[test]
fn a_record_is_indexed_where_it_lies() {
    for (bytes, adopt, decode, copied) in FORMATS {
        let shown = bytes.escape_ascii();
        let record = block(100, bytes);
        let (mut set, mut other) = (Fields::headers(), Fields::new());
        set.append("before", "is forgotten").unwrap();
        assert!(adopt(&mut set, &record) && decode(&mut other, bytes), "{shown}");
        set.check();
        assert_eq!(set, other, "{shown}");
        assert!(set.stats().adopted, "{shown}");
        assert_eq!(set.bytes.len(), copied, "{shown}");
        assert_eq!(set.stats().bytes_live, other.stats().bytes_live, "{shown}");
        // Adopted fields can be changed like other fields.
        set.update("at", "18").unwrap();
        set.remove_at(1);
        set.append("name with blanks", "\r\n").unwrap();
        set.check();
        set.clear_values();
        set.check();
        assert!(!set.stats().adopted, "what is not needed any more is let go");
    }
}

#[test]
fn a_thin_record_is_copied_out_of_its_block() {
    for (bytes, adopt, decode, _) in FORMATS {
        let large = block(16 * 1024, bytes);
        let (mut set, mut other) = (Fields::new(), Fields::new());
        assert!(adopt(&mut set, &large) && decode(&mut other, bytes));
        assert_eq!((set.stats().adopted, &set), (false, &other));
        set.check();
    }
}

#[test]
fn a_record_of_blanks_is_not_kept() {
    let text = format!(r#"{{{}"a":"b"}}"#, " ".repeat(3000));
    let mut set = Fields::new();
    json::adopt(&mut set, &Slice::from(&*text)).unwrap();
    assert_eq!((set.stats().adopted, set.bytes_used()), (false, 2));
    set.check();
}

#[test]
fn what_is_no_record_leaves_nothing() {
    let mut set = Fields::new();
    for (bytes, adopt, ..) in FORMATS {
        if !bytes.starts_with(b"17") {
            assert!(!adopt(&mut set, &block(100, &bytes[..bytes.len() - 1])));
            assert_eq!((set.len(), set.bytes_used()), (0, 0));
            set.check();
        }
    }
    let limits = Limits { fields: 2, bytes: 30, name: 4, value: 10 };
    let refused = |text: &str| {
        let mut set = Fields::new().with_limits(limits);
        let error: DecodeError = logfmt::adopt(&mut set, &Slice::from(text)).unwrap_err();
        assert!(set.is_empty());
        error.to_string()
    };
    assert_eq!(refused("a=1 b=2 c=3"), "more than 2 fields at byte 9");
    assert_eq!(refused("abcde=1"), "a name of more than 4 bytes at byte 1");
    assert_eq!(refused("a=12345678901"), "a value of more than 10 bytes at byte 1");
    // A record that is longer than the limit is copied. It is rejected if its fields are too long.
    let mut set = Fields::new().with_limits(limits);
    logfmt::adopt(&mut set, &Slice::from(&*format!("a=1{}b=2", " ".repeat(100)))).unwrap();
    assert_eq!((set.len(), set.stats().adopted), (2, false));
}

#[test]
fn what_was_adopted_may_be_decoded_to_the_same_set() {
    let record = Slice::from("a=1 b=2");
    let mut set = Fields::new();
    logfmt::adopt(&mut set, &record).unwrap();
    logfmt::decode(&mut set, &record).unwrap();
    set.check();
    assert_eq!(format!("{set:?}"), r#"[a="1", b="2", a="1", b="2"]"#);
    assert_eq!(set.case(), Case::Exact);
}
