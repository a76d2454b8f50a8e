use super::*;

#[test]
fn what_is_no_record_is_told_apart_from_a_row_that_lacks_something() {
    let place = Place::new();
    let bodies: [&[u8]; 8] = [
        b"hello",
        b"",
        b"[1]",
        br#"{"id":1,"id":2}"#,
        b"{\"id\":1,\"path\":\"\xff\"}",
        br#"{"id":1,"status":1}"#,
        br#"{"id":"1\n2","path":"/","status":1}"#,
        br#"{"id":8,"path":"/8","status":null}"#,
    ];
    assert_eq!(
        serve(&mut place.handler(), bodies),
        [
            "!record not a JSON record: expected a JSON value at byte 1",
            "!record not a JSON record: the text ends before the end of a value at byte 1",
            "!record not a JSON record: expected one JSON object, not an array at byte 1",
            "!record not a JSON record: duplicate name `id` at byte 14",
            "!record not a JSON record: not UTF-8 at byte 17",
            "!row the record has no `path`",
            "!row `id` holds a line end, which its reply cannot",
            "ok 8",
        ]
    );
    assert_eq!(place.rows(), ["8 /8 NULL"]);
}

/// Serves a batch of eight rows, of which `poison` are not accepted.
fn poisoned(place: &Place, poison: &[usize], bad: &str, refusal: &str) {
    let mut handler = place.handler();
    let bodies =
        (0..8).map(
            |index| {
                if poison.contains(&index) { bad.to_owned() } else { hit(100 + index as i64) }
            },
        );
    let answers = serve(&mut handler, bodies);
    let mut expected = Vec::new();
    for (index, answer) in answers.iter().enumerate() {
        if poison.contains(&index) {
            assert_eq!(answer, refusal, "{poison:?}");
        } else {
            assert_eq!(*answer, format!("ok {}", 100 + index), "{poison:?}");
            expected.push(format!("{0} /{0} 200", 100 + index));
        }
    }
    assert_eq!(place.rows(), expected, "{poison:?}");
    assert_eq!(serve(&mut handler, [hit(200)]), ["ok 200"], "the handler goes on");
}

fn poisoned_everywhere(place: impl Fn() -> Place, bad: &str, refusal: &str) {
    for first in 0..8 {
        for second in first..8 {
            poisoned(&place(), &[first, second], bad, refusal);
        }
    }
    poisoned(&place(), &[0, 1, 2, 3, 4, 5, 6, 7], bad, refusal);
}

#[test]
fn poison_rows_are_refused_wherever_they_stand_and_the_others_are_stored() {
    poisoned_everywhere(
        Place::new,
        r#"{"id":1,"path":null,"status":1}"#,
        "!row NOT NULL constraint failed: hits.path (1299)",
    );
}

#[test]
fn a_wrong_type_is_refused_by_a_strict_table() {
    poisoned(
        &Place::new(),
        &[3],
        r#"{"id":1,"path":"/","status":"twelve"}"#,
        "!row cannot store TEXT value in INTEGER column hits.status (3091)",
    );
}

#[test]
fn a_row_that_another_of_its_batch_has_is_refused() {
    let place = Place::new();
    let answers = serve(&mut place.handler(), [hit(1), hit(1), hit(2)]);
    assert_eq!(answers, ["ok 1", "!row UNIQUE constraint failed: hits.id (1555)", "ok 2"]);
    assert_eq!(place.rows().len(), 2);
}

#[test]
fn a_row_that_undoes_the_whole_transaction_costs_its_neighbours_nothing() {
    poisoned_everywhere(
        || Place::statement("insert or rollback into hits values (:id, :path, :status)"),
        r#"{"id":1,"path":null,"status":1}"#,
        "!row NOT NULL constraint failed: hits.path (1299)",
    );
}

#[test]
fn nothing_stays_of_a_row_that_failed_half_way() {
    // Each statement makes two rows. The first row of the bad one is stored before the second fails, and FAIL would
    // keep it.
    let half = "insert or fail into hits \
                select :id + value, iif(value = 1 and :status = 404, null, :path), :status from two";
    let mut place = Place::statement(half);
    let two = "create table if not exists two (value integer primary key);
               insert or ignore into two values (0), (1)";
    place.options.job.create = Some(format!("{CREATE}; {two}"));
    let bad = r#"{"id":10,"path":"/","status":404}"#.to_owned();
    let answers = serve(&mut place.handler(), [hit(20), bad, hit(30)]);
    assert_eq!(answers, ["ok 20", "!row NOT NULL constraint failed: hits.path (1299)", "ok 30"]);
    assert_eq!(place.rows(), ["20 /20 200", "21 /20 200", "30 /30 200", "31 /30 200"]);
}

#[test]
fn a_text_of_the_database_comes_on_one_line() {
    let place = Place::with_create(&format!(
        "{CREATE}; create trigger if not exists no before insert on hits when new.id < 100
         begin select raise(rollback, 'not\nthis'); end"
    ));
    poisoned(&place, &[2, 5], &hit(1), "!row not this (1811)");
}

#[test]
fn an_error_of_a_function_is_the_rows() {
    let place = Place::statement("insert into hits values (:id, json_extract(:path, '$.a'), 200)");
    let good = r#"{"id":1,"path":{"a":"/"}}"#;
    let bad = r#"{"id":2,"path":"{"}"#;
    let answers = serve(&mut place.handler(), [good, bad]);
    assert_eq!(answers, ["ok 1", "!row SQL logic error (1)"]);
    assert_eq!(place.rows(), ["1 / 200"]);
}

#[test]
fn an_error_of_a_function_quotes_no_stored_value() {
    let mut place =
        Place::statement("insert into hits select :id, json_extract('{}', path), 1 from secrets");
    place.options.job.create = Some(format!(
        "{CREATE}; create table if not exists secrets (path text);
         insert into secrets values ('card 4111')"
    ));
    let answers = serve(&mut place.handler(), [r#"{"id":1}"#]);
    assert_eq!(answers, ["!row SQL logic error (1)"]);
}

#[test]
fn rows_that_only_the_commit_finds_wrong_are_found_by_halving() {
    let create = "create table if not exists parents (id integer primary key);
         insert or ignore into parents values (200);
         create table if not exists hits (id integer primary key, path text,
           status integer references parents deferrable initially deferred)";
    let place = || Place::with_create(create);
    let bad = r#"{"id":1,"path":"/","status":404}"#;
    for first in 0..8 {
        poisoned(&place(), &[first], bad, "!row FOREIGN KEY constraint failed (787)");
    }
    poisoned(&place(), &[0, 7], bad, "!row FOREIGN KEY constraint failed (787)");
}

#[test]
fn a_table_that_is_made_to_replace_rows_while_it_is_used_takes_no_more() {
    let mut place = Place::new();
    let other = Connection::open(place.path()).unwrap();
    other
        .execute_batch(
            "create table hits (id integer primary key, path text unique, status integer)",
        )
        .unwrap();
    place.options.job.action = Action::Insert {
        table: "hits".into(),
        columns: ["id", "path", "status"].map(str::to_owned).into(),
        on_conflict: OnConflict::Nothing(vec!["id".into()]),
    };
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    let rebuilt = "create table n (id integer primary key, path text, status integer, unique(path)on conflict replace); \
                   insert into n select * from hits; drop table hits; alter table n rename to hits";
    other.execute_batch(rebuilt).unwrap();
    // Each batch is rejected, not only the first.
    for id in 2..5 {
        let answers = serve(&mut handler, [hit(id)]);
        assert!(
            answers[0].starts_with("!database") && answers[0].contains("on conflict replace"),
            "{id}: {answers:?}"
        );
    }
    assert_eq!(place.rows(), ["1 /1 200"]);
    other.execute_batch(&rebuilt.replace("on conflict replace", "")).unwrap();
    assert_eq!(serve(&mut handler, [hit(5)]), ["ok 5"]);
}
