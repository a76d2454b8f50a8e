//! Determines which lines of a source are test code.

use std::path::Path;

/// Returns which lines are test code: all lines of a test file, and otherwise each `#[cfg(test)]` item.
pub(super) fn test_lines(path: &str, code: &str) -> Vec<bool> {
    let path = Path::new(path);
    let lines = code.lines().count();
    let whole = path.with_extension("").iter().any(|part| part == "tests" || part == "benches");
    let mut marked = vec![whole; lines];
    if whole {
        return marked;
    }
    for (start, _) in code.match_indices("#[cfg(test)]") {
        let first = code[..start].matches('\n').count();
        let last = first + code[start..start + item_length(&code[start..])].matches('\n').count();
        for mark in &mut marked[first..=last.min(lines.saturating_sub(1))] {
            *mark = true;
        }
    }
    marked
}

/// Returns the length of the item that begins here: up to its `;`, or to its closing brace.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (place, character) in code.char_indices() {
        match character {
            ';' if depth == 0 => return place,
            '{' => depth += 1,
            '}' if depth <= 1 => return place,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_item_without_a_body_ends_at_its_semicolon() {
        let code = "#[cfg(test)]\nmod tests;\nfn a() { sleep(1) }\n";
        assert_eq!(test_lines("crates/pool/src/queue.rs", code), [true, true, false]);
    }
}
