//! What is fuzzed in `route`: each function takes any bytes and panics where something that must hold
//! does not. The fuzz targets call them, and so does a seeded loop in the tests of the room.

use route::Path;

/// A path that is read has one spelling, in which nobody finds a dot, a slash or a control character
/// however often he decodes it.
pub(crate) fn paths(bytes: &[u8]) {
    let (mut scratch, mut again) = (Vec::new(), Vec::new());
    let Ok(path) = Path::read(bytes, &mut scratch) else { return };
    assert!(path.bytes().len() <= bytes.len().max(1) * 3, "it grows by its percent signs at most");
    for spelled in [path.bytes(), path.plain()] {
        assert_eq!(spelled.first(), Some(&b'/'));
        let mut decoded = spelled.to_vec();
        loop {
            let odd = |byte: &u8| byte.is_ascii_control() || *byte == b'\\';
            assert!(!decoded.iter().any(odd), "{}", decoded.escape_ascii());
            let mut segments = decoded.split(|byte| *byte == b'/');
            let dots = segments.any(|segment| matches!(segment, b"." | b".."));
            assert!(!dots, "{}", decoded.escape_ascii());
            let next = decode(&decoded);
            if next == decoded {
                break;
            }
            let slashes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'/').count();
            assert_eq!(slashes(&next), slashes(&decoded), "{}", decoded.escape_ascii());
            decoded = next;
        }
    }
    assert!(!path.plain().contains(&b';'));
    assert!(path.bytes().ends_with(path.after_segments(1)));
    assert_eq!(path.is_changed(), path.bytes() != bytes);
    let second = Path::read(path.bytes(), &mut again).expect("what goes on is read again");
    assert_eq!(second.bytes().escape_ascii().to_string(), path.bytes().escape_ascii().to_string());
    assert_eq!(second.plain(), path.plain());
}

fn decode(bytes: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).expect("two digits are a byte"));
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}
