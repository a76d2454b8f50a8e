use super::*;
use proptest::prelude::*;

fn schema() -> Schema {
    Schema::new(["id", "Path", "id"], Case::Ignored)
}

#[test]
fn a_row_reads_like_a_set() {
    let mut rows = Rows::new(schema());
    rows.push([Value::Number(b"1"), Value::Bytes(b""), Value::Null]).unwrap();
    let row = rows.row(0).unwrap();
    assert_eq!(format!("{row:?}"), r#"[id=1, Path="", id=NULL]"#);
    assert_eq!(row.get("PATH"), Some(Value::Bytes(b"")));
    assert_eq!(row.position_from("ID", 1), Some(2));
    assert_eq!(row.field(3), None);
    let fields = row.to_fields();
    assert_eq!(format!("{fields:?}"), format!("{row:?}"));
    assert_eq!(fields.get("path"), Some(Value::Bytes(b"")));
    assert!(rows.row(1).is_none() && rows.value(0, 3).is_none());
}

#[test]
fn a_row_of_another_length_is_refused_and_leaves_nothing() {
    let mut rows = Rows::new(schema());
    rows.push([Value::Bytes(b"a"); 3]).unwrap();
    let error = rows.push([Value::Bytes(b"b"); 2]).unwrap_err();
    assert_eq!(error.to_string(), "2 values for 3 columns");
    rows.push([Value::Bytes(b"c"); 4]).unwrap_err();
    rows.push([Value::Null; 3]).unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.row(1).unwrap().iter().all(|field| field.value.is_null()));
}

#[test]
fn a_record_gives_each_column_the_one_value_of_its_name() {
    let mut rows = Rows::new(Schema::new(["id", "Path"], Case::Ignored));
    let record = |fields: &[(&str, &str)]| Fields::from_iter(fields.iter().copied());
    assert_eq!(rows.push_record(&record(&[("x", "0"), ("PATH", "/"), ("ID", "1")])), Ok(0));
    let absent = rows.push_record(&record(&[("id", "1"), ("paths", "/")])).unwrap_err();
    assert_eq!(absent.to_string(), "nothing for column 1");
    for twice in [["id", "path", "Id"], ["Id", "id", "path"], ["path", "id", "ID"]] {
        let error = rows.push_record(&record(&twice.map(|name| (name, "v")))).unwrap_err();
        assert_eq!(error.to_string(), "more than one value for column 0", "{twice:?}");
    }
    let other = record(&[("id", "2"), ("x", "1"), ("x", "2"), ("path", "")]);
    assert_eq!(rows.push_record(&other), Ok(1), "what no column wants may be there twice");
    let shown: Vec<_> = rows.iter().map(|row| format!("{row:?}")).collect();
    assert_eq!(shown, [r#"[id="1", Path="/"]"#, r#"[id="2", Path=""]"#]);
}

#[test]
fn rows_without_columns_are_counted() {
    let mut rows = Rows::new(Schema::default());
    rows.push([]).unwrap();
    rows.push([]).unwrap();
    assert_eq!(rows.iter().len(), 2);
}

#[test]
fn a_batch_of_a_thousand_rows_is_three_blocks_of_half_a_megabyte() {
    let names: Vec<_> = (0..20).map(|column| format!("column_{column}")).collect();
    let schema = Schema::new(&names, Case::Exact);
    let mut rows = Rows::with_capacity(schema, 1000, 1000 * 20 * 22);
    let before = rows.bytes_held();
    for _ in 0..1000 {
        rows.push([Value::Bytes(&[b'v'; 22]); 20]).unwrap();
    }
    assert_eq!(rows.bytes_held(), before, "nothing grew");
    assert!(before <= 550_000, "{before}");
}

proptest! {
    #[test]
    fn cells_are_what_was_pushed(
        columns in 0usize..40,
        kinds in proptest::collection::vec(0u8..4, 0..200),
        keep in 0usize..10,
    ) {
        let texts: Vec<_> = (0..kinds.len()).map(|index| format!("{index}")).collect();
        let value = |(kind, text): (&u8, &'_ String)| match *kind {
            0 => None,
            kind => Some((kind % 3, text.clone())),
        };
        let model: Vec<_> = kinds.iter().zip(&texts).map(value).collect();
        let schema = Schema::new((0..columns).map(|c| format!("{c}")), Case::Exact);
        let mut rows = Rows::new(schema);
        let of = |cell: &Option<(u8, String)>| cell.clone();
        for row in model.chunks_exact(columns.max(1)).filter(|row| row.len() == columns) {
            rows.push(row.iter().map(|cell| match cell {
                None => Value::Null,
                Some((1, text)) => Value::Number(text.as_bytes()),
                Some((2, text)) => Value::Json(text.as_bytes()),
                Some((_, text)) => Value::from(text),
            })).unwrap();
        }
        for _ in 0..2 {
            for (index, row) in rows.iter().enumerate() {
                for column in 0..columns {
                    let read = match row.value(column).unwrap() {
                        Value::Null => None,
                        Value::Number(text) => Some((1, String::from_utf8_lossy(text).into_owned())),
                        Value::Json(text) => Some((2, String::from_utf8_lossy(text).into_owned())),
                        Value::Bytes(text) => Some((0, String::from_utf8_lossy(text).into_owned())),
                    };
                    prop_assert_eq!(read, of(&model[index * columns + column]));
                }
            }
            rows.truncate(keep);
            prop_assert!(rows.len() <= keep);
        }
    }
}
