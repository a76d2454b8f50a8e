use super::*;
use proptest::prelude::*;

/// The definition of a match, by exhaustive search.
fn naive(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', rest @ ..] => {
            let rest = &rest[rest.iter().take_while(|&&byte| byte == b'*').count()..];
            (0..=text.len()).any(|from| naive(rest, &text[from..]))
        }
        [b'*', rest @ ..] => {
            let end = text.iter().position(|&byte| byte == b'/').unwrap_or(text.len());
            (0..=end).any(|from| naive(rest, &text[from..]))
        }
        [byte, rest @ ..] => {
            text.split_first().is_some_and(|(first, text)| first == byte && naive(rest, text))
        }
    }
}

#[test]
fn stars() {
    let fits =
        |pattern: &str, text: &str| Pattern::new(pattern.as_bytes()).unwrap().fits(text.as_bytes());
    assert!(fits("/img/*.png", "/img/a.png") && !fits("/img/*.png", "/img/a/b.png"));
    assert!(fits("/img/**.png", "/img/a/b.png") && fits("/a/*/c", "/a//c"));
    assert!(fits("/u/*/posts/*", "/u/1/posts/2") && !fits("/u/*/posts/*", "/u/1/2/posts/3"));
    assert!(fits("", "") && fits("*", "") && !fits("", "x") && fits("/a**", "/a"));
}

#[test]
fn the_longest_pattern_is_followed_to_its_end() {
    let text = vec![b'a'; PATTERN_MAX];
    assert!(Pattern::new(&text).unwrap().fits(&text));
    assert!(!Pattern::new(&text).unwrap().fits(&text[1..]));
    assert_eq!(Pattern::new(&[b'a'; PATTERN_MAX + 1]), Err(PatternFault::Long));
}

proptest! {
    #[test]
    fn a_pattern_fits_what_its_definition_says(pattern in "[ab/*]{0,10}", text in "[ab/]{0,10}") {
        let compiled = Pattern::new(pattern.as_bytes()).unwrap();
        prop_assert_eq!(compiled.fits(text.as_bytes()), naive(pattern.as_bytes(), text.as_bytes()));
    }
}
