//! Five hundred broken files, each made from a valid one by a typed mutation. Every file must get an error that names
//! the mutated line and, within it, the mutated word.
//!
//! The mutations come from a seeded generator. A failure prints the number of the mutation and the file, and the same
//! number gives the same file on every machine. A lost bracket or quote is named by line only: its column is a guess,
//! and the message must say that it is a guess about syntax.

use exchange::Random;
use settings::{Diagnostic, Source, parse};

const MUTATIONS: u64 = 500;

/// The kind of an option, as far as a mutation depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Count,
    Size,
    Time,
    Word,
    Address,
    Pool,
    Text,
    Template,
    Names,
    Command,
    Variables,
    Target,
    Switch,
    Processors,
    Table,
}
use Kind::*;

/// An option of the valid file: its key as written, its value, its kind.
type Opt = (&'static str, &'static str, Kind);

/// A section of the valid file.
type Section = (&'static str, &'static [Opt]);

const FILE: &[Section] = &[
    ("daemon", &[("drain_timeout", "\"20s\"", Time)]),
    ("admin", &[("listen", "\"127.0.0.1:7070\"", Address)]),
    (
        "listener.hits",
        &[
            ("listen", "\"0.0.0.0:7000\"", Address),
            ("pool", "\"parse\"", Pool),
            ("protocol", "\"lines\"", Word),
            ("reply", "\"status\"", Word),
            ("half_close", "\"keep\"", Word),
            ("last_line", "\"accept\"", Word),
            ("connections_max", "5000", Count),
            ("frame_max", "\"32KiB\"", Size),
            ("in_flight_max", "32", Count),
            ("reply_held_max", "1048576", Size),
            ("send_max", "\"2MiB\"", Size),
            ("idle_timeout", "\"5m\"", Time),
            ("request_read_timeout", "\"off\"", Time),
            ("send_timeout", "\"500ms\"", Time),
            ("backlog", "128", Count),
        ],
    ),
    (
        "listener.direct",
        &[("pool", "\"store\"", Pool), ("listen", "\"unix:/run/direct.sock\"", Address)],
    ),
    (
        "pool.parse",
        &[
            ("program", "[\"perl\", \"parse.pl\"]", Command),
            ("workers.min", "2", Count),
            ("workers.max", "20", Count),
            ("workers.spare", "2", Count),
            ("workers.idle_timeout", "\"30s\"", Time),
            ("queue", "{ max_requests = 100, max_bytes = \"1MiB\", timeout = \"2s\" }", Table),
            ("pipeline", "8", Count),
            ("balance", "\"least-requests\"", Word),
            ("idempotent", "\"all\"", Word),
            ("env", "{ LANG = \"C\", MODE = \"fast\" }", Variables),
            ("cwd", "\"scripts\"", Text),
            ("stop_timeout", "\"3s\"", Time),
            ("min_uptime", "\"2s\"", Time),
            ("reply_max", "\"16KiB\"", Size),
            ("response_timeout", "\"10s\"", Time),
            ("then", "\"enrich\"", Pool),
            ("env_clear", "true", Switch),
            ("cpu_affinity", "[0, 2]", Processors),
            ("limits.memory", "\"1GiB\"", Size),
            ("user", "\"nobody\"", Text),
        ],
    ),
    (
        "pool.enrich",
        &[
            ("program", "[\"./enrich\"]", Command),
            ("framing", "\"lines\"", Word),
            ("workers", "\"2..8\"", Table),
            ("queue.max_requests", "50", Count),
            ("queue.timeout", "\"1s\"", Time),
            ("then", "\"store\"", Pool),
        ],
    ),
    (
        "pool.store",
        &[
            ("database", "\"sqlite:hits.db\"", Target),
            ("insert.table", "\"hits\"", Text),
            ("insert.columns", "[\"at\", \"path\", \"status\"]", Names),
            ("insert.on_conflict", "\"nothing\"", Word),
            ("insert.key", "[\"at\"]", Names),
            ("batch", "{ rows = 1000, timeout = \"2ms\" }", Table),
            ("create", "\"create table if not exists hits (at, path, status)\"", Text),
            ("input_format", "\"json\"", Word),
            ("ack", "\"ok {id}\"", Template),
            ("durability", "\"full\"", Word),
            ("lock_timeout", "\"5s\"", Time),
            ("retry_timeout", "\"10s\"", Time),
            ("resend", "false", Switch),
            ("dead_letter_table", "\"refused\"", Text),
            ("affected", "\"any\"", Word),
            ("unknown_fields", "\"ignore\"", Word),
            ("log_error_details", "true", Switch),
            ("order", "\"any\"", Word),
        ],
    ),
];

/// The choices of a run.
struct Choice(Random);

impl Choice {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.draw() % limit as u64).expect("it is below a usize")
    }

    fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }
}

/// A line of the file that is mutated.
#[derive(Clone, Debug)]
struct Line {
    section: usize,
    /// `None`: the section's header.
    option: Option<Opt>,
    text: String,
}

/// The error that a broken file must get.
#[derive(Debug)]
struct Blame {
    /// The line, counted from 0.
    line: usize,
    /// The columns of the mutated word, counted from 1. `None`: a syntax error, anywhere on the line.
    columns: Option<(usize, usize)>,
}

fn right_file() -> Vec<Line> {
    let mut lines = Vec::new();
    for (section, (name, options)) in FILE.iter().enumerate() {
        lines.push(Line { section, option: None, text: format!("[{name}]") });
        for option in *options {
            let text = format!("{} = {}", option.0, option.1);
            lines.push(Line { section, option: Some(*option), text });
        }
    }
    lines
}

fn joined(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{}\n", line.text)).collect()
}

/// Returns the columns of the value of a line.
fn value_columns(line: &Line) -> (usize, usize) {
    let at = line.text.find(" = ").expect("a line with an option") + 4;
    (at, line.text.chars().count())
}

/// Returns the columns of the last part of a key.
fn key_columns(key: &str) -> (usize, usize) {
    let start = key.rfind('.').map_or(0, |dot| dot + 1);
    (start + 1, key.len())
}

/// Sets the option on a line to another value, and expects the error at the value.
fn set(lines: &mut [Line], at: usize, value: &str) -> Blame {
    let key = lines[at].option.expect("an option").0;
    lines[at].text = format!("{key} = {value}");
    Blame { line: at, columns: Some(value_columns(&lines[at])) }
}

/// Inserts a new line after a line, and expects the error at its first word.
fn add(lines: &mut Vec<Line>, after: usize, text: &str) -> Blame {
    let section = lines[after].section;
    lines.insert(after + 1, Line { section, option: None, text: text.to_owned() });
    let width = text.find([' ', ']']).unwrap_or(text.len());
    Blame { line: after + 1, columns: Some((1, width)) }
}

/// Returns the line of a random option of this kind.
fn option_of(lines: &[Line], choice: &mut Choice, wanted: impl Fn(Kind) -> bool) -> usize {
    let fits = |line: &Line| line.option.is_some_and(|(_, _, kind)| wanted(kind));
    let among: Vec<usize> = (0..lines.len()).filter(|at| fits(&lines[*at])).collect();
    choice.of(&among)
}

fn line_of(lines: &[Line], section: &str, key: &str) -> usize {
    let found = |line: &Line| {
        FILE[line.section].0 == section && line.option.map_or("", |option| option.0) == key
    };
    lines.iter().position(found).expect("it is in the file")
}

/// Changes a word: one letter removed, added or replaced, or two swapped. The result is never the word itself.
fn misspelt(word: &str, choice: &mut Choice) -> String {
    loop {
        let mut letters: Vec<char> = word.chars().collect();
        let at = choice.below(letters.len());
        match choice.below(4) {
            0 => drop(letters.remove(at)),
            1 => letters.insert(at, 'q'),
            2 => letters[at] = 'z',
            _ => letters.swap(at, (at + 1) % word.chars().count()),
        }
        let new: String = letters.into_iter().collect();
        if new != word && new.starts_with(|c: char| c.is_ascii_lowercase()) {
            return new;
        }
    }
}

fn wrong_type(kind: Kind, choice: &mut Choice) -> &'static str {
    let among: &[&str] = match kind {
        Count => &["\"7\"", "true", "1.5", "[7]", "{ a = 7 }", "1979-05-27"],
        Size => &["true", "1.5", "[7]", "{ a = 7 }", "1979-05-27"],
        Names | Command => &["7", "true", "\"perl\"", "{ a = 7 }", "07:32:00"],
        Variables => &["7", "true", "\"A=b\"", "[\"A=b\"]"],
        Table => &["1.5", "true", "[2, 8]"],
        Switch => &["7", "\"true\"", "1.5", "[true]", "{ a = true }"],
        Processors => &["7", "true", "1.5", "{ a = 7 }"],
        _ => &["7", "true", "1.5", "[\"lines\"]", "{ a = 7 }", "1979-05-27"],
    };
    choice.of(among)
}

fn unreadable((key, _, kind): Opt, choice: &mut Choice) -> &'static str {
    let among: &[&str] = match kind {
        // Counts that may be zero.
        Count if key == "workers.spare" || key == "workers.min" => &["-1", "99999999999"],
        Count => &["0", "-1", "99999999999", "0x7fffffffffffffff"],
        Size => &["0", "-5", "\"64KB\"", "\"many\"", "\"1024GiB\"", "\"5\"", "\"\""],
        Time => &["\"5\"", "\"5 s\"", "\"soon\"", "\"-5s\"", "\"25h\"", "\"1w\"", "\"\""],
        Word => &["\"frobnicate\"", "\"LINES\"", "\"\""],
        Address => &["\"7000\"", "\"localhost\"", "\"example:1\"", "\"1.2.3.4:70000\"", "\"\""],
        Pool => &["\"warehouse\"", "\"\"", "\"Store\""],
        Text => &["\"\"", "\"\\u0000\"", "\" \""],
        Template => &["\"ok {id\"", "\"ok {}\"", "\"{{id}\"", "\"a\\nb\""],
        Names => &["[]", "[\"a\", \"a\"]", "[\"\"]", "[1]"],
        Command => &["[]", "[\"\"]", "[7]", "[\"nice\", 5]"],
        Variables => &["{ A = 1 }", "{ \"A=B\" = \"c\" }", "{ \"\" = \"c\" }"],
        Target => &["\"hits.db\"", "\"sqlite:\"", "\"oracle:x\"", "\"\""],
        Switch => &["\"yes\"", "0", "\"\""],
        Processors => &["\"all\"", "\"\"", "\"3\""],
        Table => &["{ frobnicate = 1 }", "{ timeout = 5 }", "{ timeout = \"5\" }"],
    };
    choice.of(among)
}

/// Breaks a valid file. Returns the expected error.
fn mutate(lines: &mut Vec<Line>, choice: &mut Choice) -> Blame {
    match choice.below(20) {
        0..=2 => {
            let at = option_of(lines, choice, |_| true);
            let (key, value, _) = lines[at].option.expect("an option");
            let (start, _) = key_columns(key);
            let (prefix, name) = key.split_at(start - 1);
            let new = format!("{prefix}{}", misspelt(name, choice));
            lines[at].text = format!("{new} = {value}");
            Blame { line: at, columns: Some(key_columns(&new)) }
        }
        3..=5 => {
            let at = option_of(lines, choice, |_| true);
            let kind = lines[at].option.expect("an option").2;
            set(lines, at, wrong_type(kind, choice))
        }
        6..=8 => {
            let at = option_of(lines, choice, |_| true);
            let option = lines[at].option.expect("an option");
            set(lines, at, unreadable(option, choice))
        }
        9 => {
            let at = option_of(lines, choice, |kind| kind == Pool);
            let value = lines[at].option.expect("an option").1;
            let new = format!("\"{}\"", misspelt(value.trim_matches('"'), choice));
            set(lines, at, &new)
        }
        10 => {
            let at = choice.below(lines.len());
            let text = choice.of(&["frobnicate = 1", "xyzzy = \"a\"", "plugh = [1]"]);
            add(lines, at, text)
        }
        11 => {
            let at = option_of(lines, choice, |_| true);
            let text = lines[at].text.clone();
            let (start, end) = key_columns(lines[at].option.expect("an option").0);
            Blame { columns: Some((start, end)), ..add(lines, at, &text) }
        }
        12 => broken_header(lines, choice),
        13 => missing(lines, choice),
        14 | 15 => contradiction(lines, choice),
        16..=18 => lost_mark(lines, choice),
        _ => {
            let at = choice.below(lines.len());
            let text = choice.of(&["@@@", "= 5", "idle", "\u{1}", "a b = 1", "]", "key = \"\\q\""]);
            Blame { columns: None, ..add(lines, at, text) }
        }
    }
}

/// A header that is misspelt, unknown, badly named or duplicate.
fn broken_header(lines: &mut Vec<Line>, choice: &mut Choice) -> Blame {
    let headers: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].option.is_none()).collect();
    let at = choice.of(&headers);
    let name = FILE[lines[at].section].0;
    let (kind, own) = name.split_once('.').unwrap_or((name, ""));
    let dot = name.find('.').map_or("", |_| ".");
    let last = lines.len() - 1;
    match choice.below(4) {
        0 => {
            let kind = misspelt(kind, choice);
            lines[at].text = format!("[{kind}{dot}{own}]");
            Blame { line: at, columns: Some((2, kind.len() + 1)) }
        }
        1 => Blame { columns: Some((2, 11)), ..add(lines, last, "[frobnicate]") },
        2 => {
            let text = "[pool.\"Not a name\"]";
            Blame { columns: Some((7, 18)), ..add(lines, last, text) }
        }
        _ => {
            let text = lines[at].text.clone();
            let (start, end) = key_columns(name);
            Blame { columns: Some((start + 1, end + 1)), ..add(lines, last, &text) }
        }
    }
}

/// A required option is missing. The error is expected at its header.
fn missing(lines: &mut Vec<Line>, choice: &mut Choice) -> Blame {
    let (section, key) = choice.of(&[
        ("admin", "listen"),
        ("listener.hits", "listen"),
        ("listener.hits", "pool"),
        ("listener.direct", "pool"),
        ("pool.parse", "program"),
        ("pool.enrich", "program"),
        ("pool.store", "database"),
    ]);
    let at = line_of(lines, section, key);
    lines.remove(at);
    let (start, end) = key_columns(section);
    Blame { line: line_of(lines, section, ""), columns: Some((start + 1, end + 1)) }
}

/// Two options that are valid alone and invalid together.
fn contradiction(lines: &mut Vec<Line>, choice: &mut Choice) -> Blame {
    match choice.below(8) {
        0 => {
            let at = line_of(lines, "pool.parse", "workers.min");
            set(lines, at, "21")
        }
        1 => {
            let at = line_of(lines, "pool.parse", "workers.spare");
            set(lines, at, "21")
        }
        2 => {
            let at = line_of(lines, "pool.enrich", "workers");
            set(lines, at, "\"8..2\"")
        }
        3 => {
            let at = line_of(lines, "pool.enrich", "then");
            set(lines, at, choice.of(&["\"parse\"", "\"enrich\""]))
        }
        4 => {
            let at = line_of(lines, "listener.direct", "listen");
            let taken =
                ["\"0.0.0.0:7000\"", "\"127.0.0.1:7000\"", "\"localhost:7070\"", "\":7070\""];
            set(lines, at, choice.of(&taken))
        }
        5 => {
            let at = line_of(lines, "pool.parse", "min_uptime");
            add(lines, at, "database = \"sqlite:x.db\"")
        }
        6 => {
            let at = line_of(lines, "pool.store", "durability");
            add(lines, at, "statement = \"insert into hits values (:at)\"")
        }
        _ => {
            let among = [
                ("pool.parse", "batch = { rows = 5 }"),
                ("pool.parse", "ack = \"ok\""),
                ("pool.store", "then = \"parse\""),
                ("pool.store", "pipeline = 2"),
            ];
            let (section, text) = choice.of(&among);
            let at = line_of(lines, section, "");
            add(lines, at, text)
        }
    }
}

/// Removes a bracket, a brace, a quote or the equals sign.
fn lost_mark(lines: &mut [Line], choice: &mut Choice) -> Blame {
    let marks = ['[', ']', '{', '}', '"', '='];
    loop {
        let at = choice.below(lines.len());
        let places: Vec<usize> =
            lines[at].text.match_indices(marks).map(|(place, _)| place).collect();
        let place = choice.of(&places);
        // A brace within a text is not a bracket.
        if lines[at].option.is_some_and(|(_, _, kind)| kind == Template)
            && lines[at].text[place..].starts_with(['{', '}'])
        {
            continue;
        }
        lines[at].text.remove(place);
        return Blame { line: at, columns: None };
    }
}

fn is_syntax(error: &Diagnostic) -> bool {
    ["this is not TOML", "never closed", "not in quotes"]
        .iter()
        .any(|words| error.message.contains(words))
}

fn blamed(error: &Diagnostic, blame: &Blame) -> bool {
    let end = error.column + error.word.chars().count().max(1) - 1;
    error.line == blame.line + 1
        && match blame.columns {
            Some((first, last)) => first <= error.column && end.min(last) <= last,
            None => is_syntax(error),
        }
}

#[test]
fn the_file_is_right_before_it_is_broken() {
    let source = Source { name: "right.toml".into(), text: joined(&right_file()) };
    parse(&source, &|_| None).unwrap_or_else(|errors| panic!("{errors}"));
}

#[test]
fn every_mutation_is_named_by_line_and_word() {
    let mut by_line_only = 0;
    let mut failures = Vec::new();
    for number in 0..MUTATIONS {
        let mut lines = right_file();
        let blame = mutate(&mut lines, &mut Choice(Random::new(number)));
        let text = joined(&lines);
        by_line_only += u64::from(blame.columns.is_none());
        if let Err(why) = named(text, &blame) {
            let line = &lines[blame.line].text;
            failures.push(format!("mutation {number} (`{line}`, {blame:?}): {why}"));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
    assert!(by_line_only * 4 < MUTATIONS, "{by_line_only} mutations are named by line only");
}

/// Parses a broken file. Its errors must name the expected place, and few other places.
fn named(text: String, blame: &Blame) -> Result<(), String> {
    let source = Source { name: "broken.toml".into(), text };
    let Err(errors) = parse(&source, &|_| None) else {
        return Err(format!("is no error:\n{}", source.text));
    };
    if !errors.iter().any(|error| blamed(error, blame)) {
        return Err(format!("is not named:\n{errors}"));
    }
    match errors.iter().count() {
        0..=3 => Ok(()),
        _ => Err(format!("is one mistake and not many:\n{errors}")),
    }
}
