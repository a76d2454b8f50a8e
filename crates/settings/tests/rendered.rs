//! Rendered errors, compared word for word: of a file, of a command line, of a file that cannot be read.

use settings::{Diagnostics, Flag, FlagValue, Source, from_flags, load, parse};

fn errors(text: &str) -> Diagnostics {
    let source = Source { name: "roadstead.toml".into(), text: text.into() };
    parse(&source, &|_| None).expect_err(text)
}

#[test]
fn a_tired_operator_can_read_it() {
    let text = "[listener.hits]\nlisetn = \"0.0.0.0:7000\"\npool = \"pars\"\nidle_timeout = 30\n\n\
                [pool.parse]\nprogram = \"perl parse.pl\"\nworkers = { min = 20, max = 2 }\n";
    let expected = r#"error: `[listener.hits]` has no option `lisetn`
 --> roadstead.toml:2:1
  |
2 | lisetn = "************"
  | ^^^^^^ did you mean `listen`?
  |
  = help: write `listen` instead of `lisetn`

error: there is no pool `pars`
 --> roadstead.toml:3:8
  |
3 | pool = "pars"
  |        ^^^^^^ did you mean `parse`?
  |
  = help: write `pool = "parse"`, or add `[pool.pars]`

error: `idle_timeout` cannot be a whole number
 --> roadstead.toml:4:16
  |
4 | idle_timeout = 30
  |                ^^ expected a duration from 1ms to 24h, like "500ms", "2s", "5m", "1h", or "off"
  |
  = help: write `idle_timeout = "30s"`

error: `program` cannot be a text
 --> roadstead.toml:7:11
  |
7 | program = "perl*********"
  |           ^^^^^^^^^^^^^^^ expected a program and its arguments, like ["perl", "parse.pl"]
  |
  = help: write `program = ["perl", ...]`

error: `min` = 20 is more than `max` = 2
 --> roadstead.toml:8:19
  |
8 | workers = { min = 20, max = 2 }
  |                   ^^ expected at most 2
  |
  = help: lower `min`, or raise `max` to 20

roadstead.toml: 5 errors"#;
    assert_eq!(errors(text).to_string(), expected);
}

#[test]
fn several_slips_of_the_pen_are_shown_at_once_and_hide_nothing() {
    let text = "[listener.hits]\nlisten = 127.0.0.1:7000\nidle_timeout = 10m\npool = \"parse\"\n\
                [pool.parse]\nprogram = [\"perl\", \"parse.pl\"\nworkers = { min = 2\n\
                pipeline = 0\nthen = \"store\n";
    let expected = r#"error: `127.0.0.1:7000` is not in quotes
 --> roadstead.toml:2:10
  |
2 | listen = 127.0.0.1:7000
  |          ^^^^^^^^^^^^^^ expected a value; text must be in quotes
  |
  = help: write `listen = "127.0.0.1:7000"`

error: `10m` is not in quotes
 --> roadstead.toml:3:16
  |
3 | idle_timeout = 10m
  |                ^^^ expected a value; text must be in quotes
  |
  = help: write `idle_timeout = "10m"`

error: this `[` is never closed
 --> roadstead.toml:6:11
  |
6 | program = ["perl", "********"
  |           ^ expected a `]` after it

error: this `{` is never closed
 --> roadstead.toml:7:11
  |
7 | workers = { min = 2
  |           ^ expected a `}` after it

error: `pipeline` = 0 is out of range
 --> roadstead.toml:8:12
  |
8 | pipeline = 0
  |            ^ expected a whole number from 1 to 65535
  |
  = help: write a value from 1 to 65535

error: this text is never closed
 --> roadstead.toml:9:8
  |
9 | then = "store
  |        ^^^^^^ expected a `"` at its end

roadstead.toml: 6 errors"#;
    assert_eq!(errors(text).to_string(), expected);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_like_any_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("roadstead.toml");
    let missing = load(&path).expect_err("it is not there").to_string();
    assert!(missing.contains("cannot be read: No such file"), "{missing}");
    assert!(missing.contains("help: check the path"), "{missing}");
    std::fs::write(&path, b"[daemon]\ndrain_timeout = \"\xff\"\n").expect("it can be written");
    let errors = load(&path).expect_err("it is not UTF-8");
    let error = errors.iter().next().expect("there is one");
    assert_eq!((error.line, error.column), (2, 18));
    assert_eq!(error.message, "this is not UTF-8 text");
    let endless = load("/dev/zero".as_ref()).expect_err("it has no end").to_string();
    assert!(endless.contains("larger than 4194304 bytes"), "{endless}");
    std::fs::write(&path, "[pool.echo]\nprogram = [\"cat\"]\n").expect("it can be written");
    load(&path).expect("it is right now");
}

#[test]
fn an_error_of_a_command_line_points_into_it() {
    let flags = [
        Flag {
            path: "listener.main.listen".into(),
            value: FlagValue::Text("7000".into()),
            shown: "--listen 7000".into(),
        },
        Flag {
            path: "listener.main.pool".into(),
            value: FlagValue::Text("main".into()),
            shown: String::new(),
        },
        Flag {
            path: "pool.main.workers".into(),
            value: FlagValue::Text("20..2".into()),
            shown: "--workers 20..2".into(),
        },
        Flag {
            path: "pool.main.program".into(),
            value: FlagValue::List(vec!["cat".into()]),
            shown: "-- cat".into(),
        },
    ];
    let expected = r#"error: `listen` = 7000 is a port without an address
 --> command line:1:24
  |
1 | roadstead run --listen 7000 --workers 20..2 -- cat
  |                        ^^^^ expected an address like "127.0.0.1:7000", "[::1]:7000", ":7000" or "unix:/path"
  |
  = help: write ":7000"

error: `min` = 20 is more than `max` = 2
 --> command line:1:39
  |
1 | roadstead run --listen 7000 --workers 20..2 -- cat
  |                                       ^^^^^ expected at most 2
  |
  = help: write "2..20"

command line: 2 errors"#;
    assert_eq!(from_flags(&flags).expect_err("two are wrong").to_string(), expected);
    let twice = [flags[2].clone(), flags[2].clone(), flags[3].clone()];
    let errors = from_flags(&twice).expect_err("given twice").to_string();
    assert!(errors.contains("`workers` is given twice"), "{errors}");
}
