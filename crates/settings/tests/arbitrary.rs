//! No content of a file may cause a panic, and every error must lie within the file.

use proptest::prelude::*;
use settings::{Source, parse};

/// Pieces of configurations, so that random files get past the first character.
const PIECES: &str = r#"[ ] [[ ]] { } = , . " ' """ ''' ⏎ \r⏎ # ␣ \ \0 é \u{feff} listener pool daemon a listen program
    workers then min max env batch columns insert database "a" ":7000" "sqlite:x" "2..20" "5s" 1 -1 1.5 true 0x1f
    [pool.a]⏎ [listener.a]⏎ program␣=␣["cat"]⏎ then␣=␣"a"⏎ 1979-05-27
    99999999999999999999999999999999999999999999"#;

fn pieces() -> Vec<String> {
    let escapes =
        [("⏎", "\n"), ("␣", " "), ("\\r", "\r"), ("\\0", "\0"), ("\\u{feff}", "\u{feff}")];
    let piece = |piece: &str| {
        escapes.iter().fold(piece.to_owned(), |piece, (from, to)| piece.replace(from, to))
    };
    PIECES.split_whitespace().map(piece).collect()
}

fn read(text: String) {
    let source = Source { name: "any\u{7}.toml".into(), text };
    let Err(errors) = parse(&source, &|_| None) else { return };
    let lines: Vec<&str> = source.text.split('\n').collect();
    assert!(errors.iter().next().is_some(), "a refused file has an error");
    for error in &errors {
        let line = lines[error.line - 1];
        assert!(error.column <= line.chars().count() + 1, "{error:?}");
        assert!(source.text.contains(&error.word), "{error:?}");
    }
    let shown = errors.to_string();
    let quiet = |c: char| c == '\n' || !c.is_control();
    assert!(shown.chars().all(quiet), "a terminal would be disturbed by {shown:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn no_pieces_panic(text in proptest::collection::vec(proptest::sample::select(pieces()), 0..60)) {
        read(text.concat());
    }
}

#[test]
fn depth_and_size_are_bounded() {
    read(format!("a = {}", "[".repeat(100_000)));
    read(format!("{}a = 1", "a.".repeat(100_000)));
    read("a = {".repeat(20_000));
    read(format!("[pool.a]\nx = [\n{}", "'a',\n".repeat(50_000)));
    read("frobnicate = 1\n[x]\n".repeat(20_000));
    read(format!("{} = 1", "x".repeat(1 << 20)));
}
