//! The number of shards, and errors of wrong numbers.

use settings::{Diagnostic, Shards, Source, parse};

const REST: &str =
    "[listener.main]\nlisten = \":7000\"\npool = \"echo\"\n[pool.echo]\nprogram = [\"cat\"]\n";

fn source(line: &str) -> Source {
    Source { name: "roadstead.toml".into(), text: format!("{REST}[daemon]\n{line}\n") }
}

fn only(line: &str) -> Diagnostic {
    let errors = parse(&source(line), &|_| None).expect_err(line);
    let list: Vec<&Diagnostic> = errors.iter().collect();
    assert_eq!(list.len(), 1, "{errors}");
    list[0].clone()
}

#[test]
fn a_number_of_shards_is_a_small_number_or_auto() {
    for (line, shards) in [
        ("", Shards::Count(1)),
        ("shards = 64", Shards::Count(64)),
        ("shards = \"auto\"", Shards::Auto),
    ] {
        let configuration = parse(&source(line), &|_| None).expect(line);
        assert_eq!(configuration.daemon.shards, shards);
    }
    let error = only("shards = 65");
    assert_eq!((error.line, error.column, error.word.as_str()), (7, 10, "65"));
    let expected = error.expected.clone().unwrap_or_default();
    assert!(expected.contains("64"), "{error:?}");
    let error = only("shards = \"all\"");
    let expected = error.expected.clone().unwrap_or_default();
    assert_eq!(expected, "expected a whole number from 1 to 64, or \"auto\"", "{error:?}");
    assert_eq!(only("shards = \"2\"").suggestion.as_deref(), Some("write `shards = 2`"));
}
