//! Reads tokens without a syntax tree: the contents of macros and of `cfg`.

use proc_macro2::{TokenStream, TokenTree};

/// Returns the names of a path, without generic arguments.
pub(super) fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Returns the paths of two or more names, with their lines. `$crate` counts as `crate`.
pub(super) fn paths(tokens: TokenStream) -> Vec<(Vec<String>, usize)> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found.retain(|(path, _)| path.len() > 1);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<(Vec<String>, usize)>) {
    // The path so far, and the number of colons after its last name.
    let mut path: (Vec<String>, usize) = Default::default();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Punct(sign) if sign.as_char() == ':' => {
                colons += 1;
                continue;
            }
            TokenTree::Ident(name) => {
                // After a `.`, or after a `::` without a name before it, the token does not continue a path of this
                // crate.
                if colons != 2 || path.0.is_empty() {
                    let starts = colons == 2;
                    found.push(std::mem::take(&mut path));
                    if starts {
                        colons = 0;
                        continue;
                    }
                    path.1 = name.span().start().line;
                }
                path.0.push(name.to_string());
            }
            TokenTree::Group(group) => {
                found.push(std::mem::take(&mut path));
                collect(group.stream(), found);
            }
            _ => found.push(std::mem::take(&mut path)),
        }
        colons = 0;
    }
    found.push(path);
}

/// Returns every word, at any depth.
pub(super) fn words(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => found.push(name.to_string()),
            TokenTree::Group(group) => found.extend(words(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    found
}

/// Returns whether the contents of a `cfg` can only be true in tests.
pub(super) fn requires_test(tokens: TokenStream) -> bool {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let TokenTree::Ident(name) = token else { continue };
        if name == "test" || name == "doctest" {
            return true;
        }
        // Each condition of `all` must hold. `any` and `not` allow no conclusion.
        if let Some(TokenTree::Group(group)) = tokens.peek()
            && name == "all"
            && requires_test(group.stream())
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tokens = text.parse().expect("tokens");
        paths(tokens).into_iter().map(|(path, _)| path.join("::")).collect()
    }

    #[test]
    fn paths_stand_anywhere_in_a_macro() {
        let text = "\"{}\", super::table::SIZE, f(crate::a::b(1)), x.y, Vec::<self::T>::new()";
        assert_eq!(found(text), ["super::table::SIZE", "crate::a::b", "self::T"]);
        assert_eq!(found("$crate::shown::line!($x)"), ["crate::shown::line"]);
        assert_eq!(found("::std::mem::take(a), b: c"), Vec::<String>::new());
    }

    #[test]
    fn only_a_cfg_that_needs_tests_is_test_code() {
        let needs = |text: &str| requires_test(text.parse().expect("tokens"));
        assert!(needs("test") && needs("doctest") && needs("all(test, not(loom))"));
        assert!(!needs("not(test)") && !needs("any(test, feature = \"plants\")"));
    }
}
