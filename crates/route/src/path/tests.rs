use super::*;
use proptest::prelude::*;

fn read(raw: &str) -> Result<(String, String), PathFault> {
    let mut scratch = Vec::new();
    let path = Path::read(raw.as_bytes(), &mut scratch)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Ok((text(path.bytes()), text(path.plain())))
}

#[test]
fn paths_have_one_spelling() {
    for (raw, expected) in [
        ("", "/"),
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b/"),
        ("//a///b//", "/a/b/"),
        ("/./a/./b/.", "/a/b/"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/a/b/../..", "/"),
        ("/a//../b", "/b"),
        ("/%61%2D%7e", "/a-~"),
        ("/a/%2e%2E/b", "/b"),
        ("/a/.%2e/b", "/b"),
        ("/%c3%a9%20x", "/%C3%A9%20x"),
        ("/...", "/..."),
        ("/.well-known/x", "/.well-known/x"),
        ("/100%25", "/100%25"),
        ("/%2A*", "/%2A*"),
        ("/%C0x", "/%C0x"),
    ] {
        assert_eq!(read(raw), Ok((expected.to_owned(), expected.to_owned())), "{raw}");
    }
}

#[test]
fn parameters_go_on_and_are_not_compared() {
    for (raw, bytes, plain) in [
        ("/a;x=1/b", "/a;x=1/b", "/a/b"),
        ("/a/b;jsessionid=1", "/a/b;jsessionid=1", "/a/b"),
        ("/a%3bx/b", "/a%3Bx/b", "/a/b"),
        ("/public;x/../admin;y;z", "/admin;y;z", "/admin"),
        ("/a;/", "/a;/", "/a/"),
    ] {
        assert_eq!(read(raw), Ok((bytes.to_owned(), plain.to_owned())), "{raw}");
    }
}

#[test]
fn what_could_be_understood_in_two_ways_is_refused() {
    for (raw, fault) in [
        ("a", PathFault::Start),
        ("*", PathFault::Start),
        ("/%", PathFault::Percent),
        ("/%4", PathFault::Percent),
        ("/%zz", PathFault::Percent),
        ("/%u002e", PathFault::Percent),
        ("/%+1", PathFault::Percent),
        ("/a%2fb", PathFault::Separator),
        ("/a%5Cb", PathFault::Separator),
        ("/a\\..\\b", PathFault::Separator),
        ("/%00", PathFault::Control),
        ("/%0d%0a", PathFault::Control),
        ("/%7f", PathFault::Control),
        ("/a b", PathFault::Control),
        ("/é", PathFault::Control),
        ("/%252e%252e/", PathFault::Twice),
        ("/%252F", PathFault::Twice),
        ("/%25252F", PathFault::Twice),
        ("/%25%32%65%25%32%65/admin", PathFault::Twice),
        ("/%252%46", PathFault::Twice),
        ("/%25%32f", PathFault::Twice),
        ("/%c0%ae%c0%ae/", PathFault::Overlong),
        ("/%e0%80%af", PathFault::Overlong),
        ("/%f0%80%80%af", PathFault::Overlong),
        ("/..", PathFault::Above),
        ("/a/../../b", PathFault::Above),
        ("/%2e%2e/b", PathFault::Above),
        ("/a/..;/b", PathFault::Parameters),
        ("/a/%2e%2e;x/b", PathFault::Parameters),
        ("/a/..%3bx/b", PathFault::Parameters),
        ("/.;/a", PathFault::Parameters),
        ("/;x/admin", PathFault::Parameters),
    ] {
        assert_eq!(read(raw), Err(fault), "{raw}");
    }
}

#[test]
fn an_escape_that_is_encoded_is_seen_in_every_spelling() {
    let mut scratch = Vec::new();
    for (raw, expected) in [
        ("/%2561dmin", true),
        ("/a/%25%36%31dmin", true),
        ("/%25%361dmin", true),
        ("/%25fF", true),
        ("/100%25", false),
        ("/100%25/ab", false),
        ("/%25a", false),
        ("/%25ag", false),
        ("/25ab", false),
    ] {
        let path = Path::read(raw.as_bytes(), &mut scratch).unwrap();
        assert_eq!(path.has_encoded_escape(), expected, "{raw}");
    }
}

#[test]
fn what_lies_behind_segments() {
    let mut scratch = Vec::new();
    for (raw, segments, behind) in [
        ("/a/b/c", 0, "/a/b/c"),
        ("/a/b/c", 1, "/b/c"),
        ("/a/b/c", 2, "/c"),
        ("/a/b/c", 3, ""),
        ("/a/", 1, "/"),
        ("/a;x=/b", 1, "/b"),
    ] {
        let path = Path::read(raw.as_bytes(), &mut scratch).unwrap();
        assert_eq!(path.after_segments(segments), behind.as_bytes(), "{raw} {segments}");
    }
}

#[test]
fn a_prefix_ends_at_a_slash() {
    let below = |raw: &str, prefix: &str| {
        let mut scratch = Vec::new();
        Path::read(raw.as_bytes(), &mut scratch).unwrap().is_below(prefix.as_bytes())
    };
    assert!(below("/api", "/api") && below("/api/", "/api") && below("/api/x", "/api"));
    assert!(below("/api;x/y", "/api") && below("/", "") && below("/x", ""));
    assert!(!below("/apix", "/api") && !below("/ap", "/api") && !below("/API", "/api"));
}

/// Decodes a path once, and resolves its segments like a file system.
fn walked(raw: &str) -> Vec<String> {
    let bytes = raw.as_bytes();
    let (mut decoded, mut place) = (Vec::new(), 0);
    while place < bytes.len() {
        match raw.get(place + 1..place + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[place] == b'%' => {
                decoded.push(byte);
                place += 3;
            }
            _ => {
                decoded.push(bytes[place]);
                place += 1;
            }
        }
    }
    let mut walked = Vec::new();
    for segment in String::from_utf8_lossy(&decoded).split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                walked.pop();
            }
            name => walked.push(name.to_owned()),
        }
    }
    walked
}

fn spellings() -> impl Strategy<Value = String> {
    let pieces = [
        "/", "//", ".", "..", "a", "b", ";", "%2e", "%2E", "%61", "%2f", "%25", "%", "2f", "%32",
        "e",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..12)
        .prop_map(|pieces| format!("/{}", pieces.concat()))
}

proptest! {
    #[test]
    fn what_is_accepted_leads_where_it_led_before(raw in spellings()) {
        if let Ok((bytes, plain)) = read(&raw) {
            prop_assert_eq!(walked(&bytes), walked(&raw));
            prop_assert!(!plain.contains("//") && !plain.contains(';'));
            prop_assert!(plain.split('/').all(|segment| segment != "." && segment != ".."));
            prop_assert_eq!(read(&bytes), Ok((bytes, plain)), "it is its own spelling");
        }
    }

    #[test]
    fn two_spellings_of_one_way_are_compared_alike(raw in spellings()) {
        // Removing parameters before or after other normalisations results in the same path.
        if let Ok((_, plain)) = read(&raw) {
            prop_assert_eq!(read(&plain), Ok((plain.clone(), plain)));
        }
    }

    #[test]
    fn no_bytes_panic(raw in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = Path::read(&raw, &mut Vec::new());
    }
}
