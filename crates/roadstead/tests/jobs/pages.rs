//! The pages for users: each TOML block is a valid configuration, each link leads to a file and a heading, and each
//! metric exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use settings::Source;

use crate::daemon::{Daemon, folder, one_pool, until, worker_program};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and every page below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    collect(&root().join("docs"), &mut pages);
    pages
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
}

/// The code blocks of a page: language, first line number and text; and the page without them.
fn split(page: &str) -> (Vec<(String, usize, String)>, String) {
    let (mut blocks, mut prose, mut open) = (Vec::new(), String::new(), None);
    for (index, line) in page.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        open = match (open, fence) {
            (None, Some(language)) => Some((language.to_owned(), index + 2, String::new())),
            (Some(block), Some(_)) => {
                blocks.push(block);
                None
            }
            (Some((language, from, text)), None) => Some((language, from, text + line + "\n")),
            (None, None) => {
                prose += line;
                prose.push('\n');
                None
            }
        };
    }
    (blocks, prose)
}

#[test]
fn every_toml_block_is_a_configuration() {
    let mut checked = 0;
    for page in pages() {
        let (blocks, _) = split(&fs::read_to_string(&page).unwrap());
        // A block for the `Cargo.toml` of a program that embeds Roadstead is not a configuration.
        let of_toml =
            |it: &&(String, usize, String)| it.0 == "toml" && !it.2.starts_with("[dependencies]");
        for (_, line, text) in blocks.iter().filter(of_toml) {
            let name = format!("{}:{line}", page.display());
            let source = Source { name: name.clone(), text: text.clone() };
            if let Err(errors) = settings::parse(&source, &|_| None) {
                panic!("the block at {name}\n{errors}");
            }
            checked += 1;
        }
    }
    assert!(checked > 15, "{checked} blocks");
}

/// The anchors of the headings of a page, as GitHub makes them.
fn anchors(page: &str) -> Vec<String> {
    let (_, prose) = split(page);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
            kept.map(|it| if it == ' ' { '-' } else { it }).collect()
        })
        .collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut pages = pages();
    pages.extend(["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|it| root().join(it)));
    pages.push(root().join("crates/roadstead/tests/COVERAGE.md"));
    collect(&root().join("examples"), &mut pages);
    let mut checked = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let (_, prose) = split(&text);
        for rest in prose.split("](").skip(1) {
            let Some((target, _)) = rest.split_once(')') else { continue };
            if target.starts_with("http") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(path.exists(), "{}: {target} is not there", page.display());
            if !anchor.is_empty() {
                let there = anchors(&fs::read_to_string(&path).unwrap());
                assert!(
                    there.iter().any(|it| it == anchor),
                    "{}: no heading {target}",
                    page.display()
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} links");
}

/// The metrics that a daemon shows, with their types.
fn shown_metrics() -> BTreeMap<String, String> {
    let folder = folder();
    // The servers of the cluster need not be there.
    let cluster = "[cluster]\nnats = [\"nats://127.0.0.1:1\"]\nsecret = \"env:CLUSTER_SECRET\"\n\
                   start_timeout = \"0s\"\n";
    // Commands of operators are shared for pools with servers.
    let servers = "[listener.limited]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"servers\"\n\
                   per_address = { requests = 10, shared = true }\n\
                   [pool.servers]\nservers = [\"127.0.0.1:1\"]\n";
    let pool = one_pool("", &worker_program(&["--echo"]));
    let configuration = format!("{cluster}{pool}\n{servers}");
    let secret = ("CLUSTER_SECRET", "0123456789abcdef");
    let daemon = Daemon::serve_with(folder.path(), &configuration, &[secret]);
    let mut page = String::new();
    // The thread of the cluster reports its state after the start.
    until("the state of the cluster", || {
        page = daemon.page("/metrics");
        page.contains("roadstead_cluster_commands_in_sync")
    });
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .filter_map(|line| line.split_once(' '))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

#[test]
fn the_page_of_metrics_lists_each_metric_with_its_type() {
    let page = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `roadstead_"));
    let mut listed = BTreeMap::new();
    for row in rows {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let name = cells.next().unwrap().trim_matches('`');
        let kind = cells.next().unwrap();
        assert_eq!(listed.insert(name.to_owned(), kind.to_owned()), None, "{name} is listed twice");
    }
    assert_eq!(listed, shown_metrics());
}

#[test]
fn every_metric_that_a_page_names_exists() {
    let shown = shown_metrics();
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for (start, _) in page.match_indices("roadstead_") {
            let is_word = |it: char| it.is_ascii_lowercase() || it == '_';
            let name = page[start..].split(|it| !is_word(it)).next().unwrap();
            let before = page[..start].chars().next_back();
            if before.is_some_and(|it| is_word(it) || it == '/') || name == "roadstead_" {
                continue;
            }
            let series = ["_bucket", "_sum", "_count"];
            let family = series.iter().find_map(|it| name.strip_suffix(it)).unwrap_or(name);
            let is_shown = shown.contains_key(name) || shown.contains_key(family);
            assert!(is_shown, "{}: there is no metric {name}", path.display());
        }
    }
}
