use super::*;

fn fit(takes: &Takes, value: Value<'_>) -> String {
    match takes.fit(value, true) {
        Ok(Fit::Null) => "NULL".to_owned(),
        Ok(Fit::Text(text)) => format!("'{}'", text.escape_ascii()),
        Ok(Fit::Number(digits)) => digits.escape_ascii().to_string(),
        Ok(Fit::Bytes(bytes)) => format!("x{bytes:?}"),
        Err(why) => format!("!{why}"),
    }
}

#[test]
fn a_value_for_several_columns_fits_each_of_them_alike() {
    let each = Takes::Each(vec![Takes::ShortDecimal(2), Takes::Text, Takes::Limited(4)]);
    assert_eq!(fit(&each, Value::Number(b"1.55")), "1.55");
    assert_eq!(fit(&each, Value::Null), "NULL");
    assert_eq!(fit(&each, Value::Number(b"1.555")), "!keeps 2 decimal places");
    assert_eq!(fit(&each, Value::Bytes(b"12   ")), "!keeps 4 letters, also of blanks");
    let differs = "!goes into columns that store it differently";
    assert_eq!(fit(&each, Value::Json(b"true")), differs);
    let json = Takes::Each(vec![Takes::Json, Takes::Text]);
    assert_eq!(fit(&json, Value::Bytes(b"a")), differs);
    assert_eq!(fit(&json, Value::Number(b"7")), "7");
}

#[test]
fn json_is_kept_as_what_it_is() {
    let (text, json) = (Value::Bytes(b"a\"1"), Value::Json(b"true"));
    assert_eq!(fit(&Takes::Json, text), r#"'\"a\\\"1\"'"#);
    assert_eq!(fit(&Takes::Json, json), "'true'");
    assert_eq!(fit(&Takes::Json, Value::Number(b"1.10")), "1.10");
    assert_eq!(fit(&Takes::Json, Value::Null), "NULL");
    assert_eq!(fit(&Takes::Any, json), "1");
    assert_eq!(fit(&Takes::Text, json), "'true'");
    let tsv = Takes::Json.fit(Value::Bytes(b"{}"), false);
    assert_eq!(tsv, Ok(Fit::Text(b"{}".into())));
}

#[test]
fn a_number_that_sqlite_would_change_is_no_json_in_any_format() {
    let takes = Takes::JsonOfNumbers;
    for text in [
        "12345678901234567890",
        "9007199254740993.0",
        " 0.10000000000000000001",
        "1e400",
        "00123",
        "+5",
        ".5",
        "5.",
    ] {
        for record in [false, false] {
            assert!(takes.fit(Value::Bytes(text.as_bytes()), record).is_err(), "{text}");
        }
        let quoted = takes.fit(Value::Bytes(text.as_bytes()), true);
        assert_eq!(quoted, Ok(Fit::Text(format!("\"{text}\"").into_bytes().into())));
    }
    for text in ["123", "-0.5e1", " 9007199254740993", "\"00123\"", "[1e400]", "null", "text"] {
        let fitted = takes.fit(Value::Bytes(text.as_bytes()), false);
        assert_eq!(fitted, Ok(Fit::Text(text.as_bytes().into())), "{text}");
    }
    assert!(takes.fit(Value::Number(b"1e400"), true).is_err());
}

#[test]
fn arrays_are_written_as_postgresql_reads_them() {
    let array =
        |of, text: &'static str| fit(&Takes::Array(Box::new(of)), Value::Json(text.as_bytes()));
    assert_eq!(array(Takes::Integer, "[1, null, [true]]"), "'{1,NULL,{1}}'");
    assert_eq!(array(Takes::Text, r#"["a\"", "", 1.10]"#), r#"'{\"a\\\"\",\"\",1.10}'"#);
    assert_eq!(array(Takes::Bytes, r#"["AP8="]"#), r#"'{\"\\\\x00ff\"}'"#);
    assert_eq!(array(Takes::Json, r#"[[1], "x"]"#), r#"'{\"[1]\",\"\\\"x\\\"\"}'"#);
    assert_eq!(array(Takes::Integer, "[1.5]"), "!takes whole numbers");
    assert_eq!(array(Takes::Integer, "{}"), "!takes a JSON array");
    assert_eq!(array(Takes::Integer, "[]"), "'{}'");
    let number = fit(&Takes::Array(Box::new(Takes::Integer)), Value::Number(b"1"));
    assert_eq!(number, "!takes a JSON array");
}

#[test]
fn bounds_of_ranges_are_taken_as_values_of_a_column() {
    let utc = Takes::Range(Box::new(Takes::Utc(6)));
    let range = |text: &'static str| fit(&utc, Value::Bytes(text.as_bytes()));
    assert_eq!(
        range("[2024-01-01T00:00:00+02:00, 2024-01-02 )"),
        "'[2023-12-31 22:00:00,2024-01-02)'"
    );
    assert_eq!(range(r#"{["2024-01-01 00:00Z",],empty}"#), r#"'{[\"2024-01-01 00:00\",],empty}'"#);
    assert_eq!(range("empty"), "'empty'");
    assert!(range("[2024-01-01 00:00 CET,)").starts_with("!takes a time"));
    assert!(range("[2024-01-01 00:00:00.1234567,)").starts_with("!keeps 6 digits"));
    let date = Takes::Range(Box::new(Takes::Date));
    assert!(fit(&date, Value::Bytes(b"[2024-01-01 10:00,)")).starts_with("!takes a day"));
}

#[test]
fn numbers_that_a_column_rounds_to_places_and_other_years_are_refused() {
    let double = Takes::Rounded(Box::new(Takes::Double), 2);
    assert_eq!(fit(&double, Value::Number(b"19.99")), "19.99");
    assert_eq!(fit(&double, Value::Number(b"19.999")), "!keeps 2 decimal places");
    assert!(fit(&double, Value::Number(b"9007199254740993")).starts_with('!'));
    assert_eq!(fit(&Takes::Year, Value::Number(b"2024")), "2024");
    assert_eq!(fit(&Takes::Year, Value::Number(b"0")), "0");
    for year in ["0000", "1901", "2155"] {
        assert_eq!(fit(&Takes::Year, Value::Bytes(year.as_bytes())), format!("'{year}'"));
    }
    // MySQL and MariaDB read 0008 as 2008.
    for other in ["24", "0", "5", "0008", "0070", "1900", "2156", "20240", "+999"] {
        let given = fit(&Takes::Year, Value::Bytes(other.as_bytes()));
        assert_eq!(given, "!takes a year from 1901 to 2155, or 0000", "{other}");
    }
}

#[test]
fn whole_numbers_that_sqlite_stores_as_other_integers_are_refused() {
    for (text, is_kept) in [
        ("9223372036854775807", true),
        ("9007199254740993", true),
        ("9007199254740993e2", false),
        ("9007199254740993.0e1", false),
        ("922337203685477580.7e1", false),
        ("1e18", true),
        ("9007199254740992.0", true),
        ("18014398509481984e1", true),
        ("9007199254740993.0", false),
        ("1e22", true),
        // Beyond 64 bits it remains a double.
        ("1e23", true),
        ("18446744073709551615", false),
        ("0.1", true),
        ("1.5e300", true),
        ("0e400", true),
    ] {
        for takes in [Takes::Number, Takes::JsonOfNumbers] {
            let given = fit(&takes, Value::Number(text.as_bytes()));
            assert_eq!(!given.starts_with('!'), is_kept, "{takes:?}: {text}: {given}");
        }
    }
}

#[test]
fn texts_with_a_nul_are_refused_where_numbers_may_be_read_in_them() {
    let rounded = Takes::Rounded(Box::new(Takes::Double), 2);
    for takes in [Takes::Number, Takes::Double, rounded] {
        for text in ["18446744073709551615\0", "12\0", "0.1234567890123456789\0", "1\x002"] {
            let given = fit(&takes, Value::Bytes(text.as_bytes()));
            assert_eq!(given, format!("!{NOT_DECIMAL}"), "{takes:?}: {text:?}");
        }
    }
    // Not JSON either, where a record has no strings.
    assert!(Takes::JsonOfNumbers.fit(Value::Bytes(b"1e400\0"), false).is_err());
}

#[test]
fn bits_take_whole_numbers_in_plain_digits_and_bytes() {
    let number = |bits, text: &'static str| fit(&Takes::Bits(bits), Value::Number(text.as_bytes()));
    for (bits, text) in [(1, "1"), (24, "16777215"), (64, "18446744073709551615"), (8, "0")] {
        assert_eq!(number(bits, text), text);
    }
    for text in ["1e3", "1.5", "1.0", "-1", "-0", "16777216"] {
        assert_eq!(number(24, text), "!takes whole numbers from 0 to 16777215", "{text}");
    }
    assert!(number(64, "18446744073709551616").starts_with('!'));
    assert_eq!(fit(&Takes::Bits(8), Value::Json(b"true")), "1");
    assert_eq!(fit(&Takes::Bits(8), Value::Bytes(b"5")), "'5'");
}

#[test]
fn numbers_without_a_sign_are_kept_or_refused() {
    let takes = Takes::Unsigned(4_294_967_295);
    for text in ["0", "12", "4294967295", " 7 "] {
        assert_eq!(fit(&takes, Value::Bytes(text.as_bytes())), format!("'{text}'"));
    }
    for text in
        ["", "abc", "12x", "-1", "+1", "010", "0x1F", "1.0", "4294967296", "18446744073709551617"]
    {
        let fitted = fit(&takes, Value::Bytes(text.as_bytes()));
        assert_eq!(fitted, "!takes whole numbers from 0 to 4294967295", "{text}");
    }
    assert_eq!(
        fit(&Takes::Unsigned(u64::MAX), Value::Number(b"18446744073709551615")),
        "18446744073709551615"
    );
}

#[test]
fn bounds_of_a_range_that_a_float_would_round_are_refused() {
    let single = Takes::Range(Box::new(Takes::Single));
    let range = |text: &'static str| fit(&single, Value::Bytes(text.as_bytes()));
    assert_eq!(range("[16777217,16777219]"), "!would round the number");
    assert_eq!(range("[1.5, 16777216)"), "'[1.5,16777216)'");
    assert_eq!(range("[-infinity,)"), "'[-infinity,)'");
}

#[test]
fn a_number_is_no_word() {
    let takes = Takes::Word(EnumValues::of_type("enum('2')"));
    assert_eq!(fit(&takes, Value::Bytes(b"2")), "'2'");
    assert_eq!(fit(&takes, Value::Number(b"2")), "!takes a string");
}

#[test]
fn blanks_that_databases_skip_hide_no_value_that_a_column_changes() {
    let cents = Takes::Decimal(Some(2));
    for takes in [cents.clone(), Takes::Rounded(Box::new(Takes::Double), 2), Takes::Integer] {
        for blank in ["\t", "\n", "\u{b}", "\u{c}", "\r", " "] {
            for text in [format!("{blank}1.234"), format!("1.234{blank}")] {
                assert!(fit(&takes, Value::Bytes(text.as_bytes())).starts_with('!'), "{text:?}");
            }
        }
    }
    assert_eq!(fit(&cents, Value::Bytes(b"\t1.23\n")), r"'\t1.23\n'");
    for takes in [Takes::Double, Takes::Single, Takes::Number] {
        for text in ["\t9007199254740993", "\u{b}12345678901234567891\r"] {
            let is_kept = takes == Takes::Number && text.ends_with("993");
            let given = fit(&takes, Value::Bytes(text.as_bytes()));
            assert_eq!(given.starts_with('!'), !is_kept, "{takes:?}: {text:?}");
        }
    }
    let array = Takes::Array(Box::new(cents));
    assert!(fit(&array, Value::Json(br#"["\t1.234"]"#)).starts_with('!'));
    assert_eq!(fit(&Takes::Limited(3), Value::Bytes(b"ab\t")), r"'ab\t'");
    for cut in ["ab\t\n", "abc\r", "abc "] {
        assert!(fit(&Takes::Limited(3), Value::Bytes(cut.as_bytes())).starts_with('!'));
        assert!(fit(&Takes::LimitedBytes(3), Value::Bytes(cut.as_bytes())).starts_with('!'));
    }
    for (takes, text) in [
        (Takes::Date, "2024-01-01\t10"),
        (Takes::Time(0), "10:00:00.6\t"),
        (Takes::Time(0), "10:00:00\t+05"),
        (Takes::Instant(0), "\t20240101T101112.6\n"),
        (Takes::Instant(6), "20240101T101112.1234567 CET"),
        (Takes::Instant(0), "Jan 1 2024 101112.6"),
        (Takes::Year, "2024\t"),
    ] {
        assert!(fit(&takes, Value::Bytes(text.as_bytes())).starts_with('!'), "{text:?}");
    }
    let utc = fit(&Takes::Utc(0), Value::Bytes(b"\t2024-01-01 10:00:00+02\r\n"));
    assert_eq!(utc, "'2024-01-01 08:00:00'");
    let range = Takes::Range(Box::new(Takes::Utc(0)));
    let range = fit(&range, Value::Bytes(b"[\x0b2024-01-01 10:00:00+02\t,)"));
    assert_eq!(range, "'[2024-01-01 08:00:00,)'");
}

#[test]
fn numbers_in_other_notations_are_refused_where_they_may_be_rounded() {
    for (takes, text) in [
        (Takes::Double, "0x20000000000001"),
        (Takes::Single, "0X1000001"),
        (Takes::Decimal(Some(2)), "1_0.2_345"),
    ] {
        let refused = format!("!{NOT_DECIMAL}");
        assert_eq!(fit(&takes, Value::Bytes(text.as_bytes())), refused, "{text}");
    }
    for kept in ["0x10", "0x1e", "-0b1", "1_000", "12abc", "hello"] {
        let given = fit(&Takes::Integer, Value::Bytes(kept.as_bytes()));
        assert_eq!(given, format!("'{kept}'"));
    }
    assert_eq!(fit(&Takes::Double, Value::Bytes(b"-Infinity")), "'-Infinity'");
}

#[test]
fn malformed_exponents_are_refused_where_they_may_be_rounded() {
    let rounded = Takes::Rounded(Box::new(Takes::Double), 2);
    for text in
        ["1.23456e 1", "1.23456e\t1", "1.6e ", "1.6e", "1.6e\r", "1.6e+", "1.6e- 1", "1.6e0x"]
    {
        let given = |takes: &Takes| fit(takes, Value::Bytes(text.as_bytes()));
        assert_eq!(given(&Takes::Integer), format!("!{NOT_WHOLE}"), "{text:?}");
        for takes in [&Takes::Decimal(Some(3)), &Takes::Single, &Takes::Double, &rounded] {
            assert_eq!(given(takes), format!("!{NOT_DECIMAL}"), "{takes:?}: {text:?}");
        }
        // Never rounded: the database says what it is.
        for takes in [&Takes::Decimal(None), &Takes::Number] {
            assert!(!given(takes).starts_with('!'), "{takes:?}: {text:?}");
        }
    }
    for takes in [Takes::Integer, Takes::Double, Takes::Decimal(Some(3))] {
        assert_eq!(fit(&takes, Value::Bytes(b"hello")), "'hello'");
    }
}

#[test]
fn bytes_are_base64_in_json_alone() {
    assert_eq!(fit(&Takes::Bytes, Value::Bytes(b"AP8=")), "x[0, 255]");
    for wrong in [Value::Bytes(b"AP8"), Value::Bytes(b"\\x00"), Value::Number(b"5")] {
        assert_eq!(fit(&Takes::Bytes, wrong), "!takes a string of bytes in base64");
    }
    let tsv = Takes::Bytes.fit(Value::Bytes(b"\xff"), false);
    assert_eq!(tsv, Ok(Fit::Bytes(b"\xff".into())));
}

#[test]
fn a_value_that_mysql_compares_is_not_converted() {
    let integer = |booleans| Compared::Integer { booleans };
    let decimal = |is_short| Compared::Decimal { is_short };
    let time = Compared::Time(Box::new(Takes::Utc(6)));
    let day = Compared::Time(Box::new(Takes::Date));
    let clock = Compared::Time(Box::new(Takes::Time(6)));
    let words = Compared::Word(EnumValues::of_type("enum('a','2')"));
    for (of, value, expected) in [
        (integer(false), Value::Number(b"9007199254740993"), Some("number 9007199254740993")),
        (
            integer(false),
            Value::Bytes(b"18446744073709551615"),
            Some("number 18446744073709551615"),
        ),
        (integer(false), Value::Number(b"9007199254740993.0"), None),
        (integer(false), Value::Number(b"18446744073709551616"), None),
        (integer(false), Value::Bytes(b""), None),
        (integer(false), Value::Bytes(b"abc"), None),
        (integer(false), Value::Bytes(b"1abc"), None),
        (integer(false), Value::Json(b"true"), None),
        (integer(true), Value::Json(b"true"), Some("number 1")),
        (decimal(true), Value::Number(b"1.10"), Some("number 1.10")),
        (decimal(true), Value::Number(b"1.1000000000000000001"), None),
        (decimal(true), Value::Json(b"true"), None),
        (decimal(true), Value::Bytes(b"abc"), None),
        (decimal(false), Value::Number(b"17"), Some("number 17")),
        (decimal(false), Value::Number(b"1.5"), None),
        (decimal(false), Value::Number(b"123456789012345678901234567891"), None),
        (Compared::Double, Value::Bytes(b"0.5"), Some("number 0.5")),
        (Compared::Double, Value::Bytes(b"0x"), None),
        (time.clone(), Value::Bytes(b"Now"), None),
        (time.clone(), Value::Bytes(b"\tnow "), None),
        (time.clone(), Value::Bytes(b"2024-13-45"), None),
        (day.clone(), Value::Bytes(b"2024-02-29"), Some("text 2024-02-29")),
        (day.clone(), Value::Bytes(b"0000-00-00"), Some("text 0000-00-00")),
        (day.clone(), Value::Bytes(b"2024-02-30"), None),
        (day.clone(), Value::Bytes(b"20241345"), None),
        (day.clone(), Value::Bytes(b"10000-01-01"), None),
        (day.clone(), Value::Bytes(b"2024-01-01 bc"), None),
        (day, Value::Bytes(b" now"), None),
        (clock.clone(), Value::Bytes(b"-838:59:59"), Some("text -838:59:59")),
        (clock.clone(), Value::Bytes(b"10:30"), Some("text 10:30:00")),
        (clock.clone(), Value::Bytes(b"103015.5"), Some("text 10:30:15.5")),
        (clock.clone(), Value::Bytes(b"99:99:99"), None),
        (clock.clone(), Value::Bytes(b"10:61:00"), None),
        (clock.clone(), Value::Bytes(b"10:00 pm"), None),
        (clock, Value::Bytes(b"106100"), None),
        (time.clone(), Value::Bytes(b"2024-01-01"), Some("text 2024-01-01 00:00:00")),
        (time.clone(), Value::Bytes(b"2024-12-31T23:59:60Z"), None),
        (time.clone(), Value::Bytes(b"2024-12-31T24:00:00Z"), Some("text 2025-01-01 00:00:00")),
        (time.clone(), Value::Bytes(b"2024-12-31T24:00:00"), None),
        (time.clone(), Value::Bytes(b"10000-01-01"), None),
        (time.clone(), Value::Bytes(b"2024-01-02 10:00 pm"), None),
        (time.clone(), Value::Number(b"20240102030405"), Some("text 2024-01-02 03:04:05")),
        (Compared::Text, Value::Number(b"0"), Some("text 0")),
        (Compared::Text, Value::Json(b"false"), Some("text false")),
        (Compared::Expression, Value::Number(b"0"), Some("text 0")),
        (Compared::Expression, Value::Number(b"9007199254740993"), None),
        (Compared::Expression, Value::Bytes(b"9007199254740993"), Some("text 9007199254740993")),
        (Compared::Parameter, Value::Number(b"9.5"), Some("number 9.5")),
        (
            Compared::Parameter,
            Value::Number(b"18446744073709551615"),
            Some("number 18446744073709551615"),
        ),
        (Compared::Parameter, Value::Number(b"0.12345678901234567"), None),
        (Compared::Parameter, Value::Bytes(b"9.5"), Some("text 9.5")),
        (Compared::Parameter, Value::Json(b"true"), Some("number 1")),
        (Compared::Expression, Value::Json(b"false"), None),
        (
            time.clone(),
            Value::Bytes(b"2024-01-01T02:00:00+02:00"),
            Some("text 2024-01-01 00:00:00"),
        ),
        (time.clone(), Value::Bytes(b"abc"), None),
        (time, Value::Json(b"false"), None),
        (words.clone(), Value::Bytes(b"A"), Some("text A")),
        (words.clone(), Value::Bytes(b"2"), Some("text 2")),
        (words.clone(), Value::Bytes(b"1"), None),
        (words, Value::Number(b"1"), None),
    ] {
        let fit = Takes::Compared(of.clone()).fit(value, true).ok().map(|fit| match fit {
            Fit::Number(digits) => format!("number {}", String::from_utf8_lossy(&digits)),
            Fit::Text(text) => format!("text {}", String::from_utf8_lossy(&text)),
            other => format!("{other:?}"),
        });
        assert_eq!(fit.as_deref(), expected, "{of:?} {value:?}");
    }
}

#[test]
fn a_number_that_is_calculated_with_is_no_text() {
    let (exact, double) = (Takes::Operand { doubles: false }, Takes::Operand { doubles: true });
    let (known, unknown) = (Takes::Extreme { numbers: true }, Takes::Extreme { numbers: false });
    let huge = b"18446744073709551615";
    for (of, value, is_json, expected) in [
        (&exact, Value::Number(b"9007199254740993"), true, Some("number 9007199254740993")),
        (&exact, Value::Bytes(b"9007199254740993"), false, Some("number 9007199254740993")),
        (&exact, Value::Number(huge), true, Some("number 18446744073709551615")),
        (&exact, Value::Number(b"18446744073709551616"), true, None),
        (&exact, Value::Number(b"0.1"), true, None),
        (&exact, Value::Bytes(b"abc"), true, None),
        (&exact, Value::Bytes(b" 7"), true, None),
        (&exact, Value::Bytes(b""), true, None),
        (&exact, Value::Json(b"true"), true, Some("number 1")),
        (&exact, Value::Json(b"[1]"), true, None),
        (&double, Value::Number(b"0.1"), true, Some("number 0.1")),
        (&double, Value::Number(b"0.12345678901234567"), true, None),
        (&double, Value::Number(b"1e400"), true, None),
        (&known, Value::Number(b"10"), true, Some("number 10")),
        (&known, Value::Number(b"9.5"), true, None),
        (&known, Value::Bytes(b"2024-01-01"), true, Some("text 2024-01-01")),
        (&known, Value::Bytes(b"9"), false, Some("text 9")),
        (&unknown, Value::Number(b"10"), true, None),
        (&unknown, Value::Bytes(b"10"), false, None),
        (&unknown, Value::Bytes(b"10"), true, Some("text 10")),
        (&unknown, Value::Bytes(b"2024-01-01"), false, Some("text 2024-01-01")),
    ] {
        let fit = of.fit(value, is_json).ok().map(|fit| match fit {
            Fit::Number(digits) => format!("number {}", String::from_utf8_lossy(&digits)),
            Fit::Text(text) => format!("text {}", String::from_utf8_lossy(&text)),
            other => format!("{other:?}"),
        });
        assert_eq!(fit.as_deref(), expected, "{of:?} {value:?}");
    }
}
