use super::*;

/// Reads the file at the moment of each answer.
struct Witness {
    path: PathBuf,
    seen: Vec<usize>,
}

impl Outbox for Witness {
    fn part(&mut self, _: usize, _: Slice) -> Result<(), HandlerError> {
        Ok(())
    }

    fn answer(&mut self, _: usize, _: Outcome) {
        self.seen.push(rows(&self.path).len());
    }

    fn flush(&mut self) {}
}

#[test]
fn a_fresh_connection_sees_all_rows_before_the_first_answer() {
    let place = Place::new();
    let mut handler = place.handler();
    let mut witness = Witness { path: place.path(), seen: Vec::new() };
    handler.serve(&batch((1..=5).map(hit)), &mut witness, &Stop::default());
    handler.serve(&batch((6..=7).map(hit)), &mut witness, &Stop::default());
    assert_eq!(witness.seen, [5, 5, 5, 5, 5, 7, 7]);
}

#[test]
fn each_reply_carries_the_value_of_its_own_record() {
    let place = Place::new();
    let mut handler = place.handler();
    let ids = [7, -3, 1_000_000];
    assert_eq!(serve(&mut handler, ids.map(hit)), ["ok 7", "ok -3", "ok 1000000"]);
    assert_eq!(place.rows(), ["-3 /-3 200", "7 /7 200", "1000000 /1000000 200"]);
}

#[test]
fn members_may_come_in_any_order_and_more_than_are_needed() {
    let mut place = Place::new();
    place.options.job.unknown_fields = UnknownFields::Ignore;
    let mut handler = place.handler();
    let bodies = [
        r#"{"status":1,"id":1,"path":"a"}"#,
        r#"{"x":0,"path":"b","y":[{}],"status":2,"id":2,"z":null}"#,
    ];
    assert_eq!(serve(&mut handler, bodies), ["ok 1", "ok 2"]);
    assert_eq!(place.rows(), ["1 a 1", "2 b 2"]);
}

#[test]
fn acknowledgements_that_exceed_a_block_are_all_right() {
    let mut place = Place::new();
    place.options.job.ack = "{id} {path}".to_owned();
    let mut handler = place.handler();
    let long = |id: usize| "x".repeat(if id == 5 { 200_000 } else { id * 1000 });
    let bodies = (0..50).map(|id| format!(r#"{{"id":{id},"path":"{}","status":0}}"#, long(id)));
    let answers = serve(&mut handler, bodies);
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, format!("{id} {}", long(id)));
    }
}

#[test]
fn a_parameter_may_come_from_the_request_and_no_record_can_forge_it() {
    let mut place = Place::statement(
        "insert into hits values (:_id, :_client || @path, $_at) returning id, path",
    );
    place.options.job.ack = "{_id} {_client} {_at} {path}".to_owned();
    let mut handler = place.handler();
    let body = r#"{"path":"/","_id":99,"_client":"x","_at":0}"#;
    let refused = "!record `_id` of the record is not used here";
    assert_eq!(serve(&mut handler, [body]), [refused]);
    place.options.job.unknown_fields = UnknownFields::Ignore;
    let mut handler = place.handler();
    let expected = ["0 unix 1700000000000000 unix/", "1 unix 1700000000000000 unix/"];
    assert_eq!(serve(&mut handler, [body, body]), expected);
    assert_eq!(place.rows(), ["0 unix/ 1700000000000000", "1 unix/ 1700000000000000"]);
}

#[test]
fn a_row_that_is_there_already_may_be_acknowledged() {
    let mut place = Place::new();
    let Action::Insert { on_conflict, .. } = &mut place.options.job.action else { unreachable!() };
    *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    let mut handler = place.handler();
    let again = r#"{"id":1,"path":"other","status":0}"#;
    assert_eq!(serve(&mut handler, [&hit(1), again]), ["ok 1", "ok 1"]);
    assert_eq!(place.rows(), ["1 /1 200"]);
}

#[test]
fn an_empty_batch_and_one_of_refusals_touch_nothing() {
    let place = Place::new();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [""; 0]), [""; 0]);
    let holder = Connection::open(place.path()).unwrap();
    holder.execute_batch("begin immediate").unwrap();
    let answers = serve(&mut handler, ["x", "{}"]);
    assert_eq!(answers[1], "!row the record has no `id`", "although the file is locked");
}

#[test]
fn an_acknowledgement_never_names_one_column_with_the_value_of_another() {
    let named =
        "insert into hits (id, path, status) values (:id, '/' || :id, 'secret') returning *";
    let placed = "insert into hits values (:id, '/' || :id, 'secret') returning *";
    let moved = "create table n (id integer, status text, path text); drop table hits; \
                 alter table n rename to hits";
    let renamed = "alter table hits rename path to other; alter table hits rename status to path";
    for (sql, change, expected) in [(named, moved, "ok 4 /4"), (placed, renamed, "ok 4 secret")] {
        let mut place = Place::statement(sql);
        place.options.job.create =
            Some("create table if not exists hits (id integer, path text, status text)".to_owned());
        place.options.job.ack = "ok {id} {path}".to_owned();
        place.options.job.unknown_fields = UnknownFields::Ignore;
        let mut handler = place.handler();
        assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1 /1"]);
        Connection::open(place.path()).unwrap().execute_batch(change).unwrap();
        let answers = serve(&mut handler, [hit(2), hit(3)]);
        let text = "!database the columns that the statement returns have changed";
        assert_eq!(answers, [text; 2], "{change}");
        // From the next batch on, acknowledgements are made for the current columns.
        assert_eq!(serve(&mut handler, [hit(4)]), [expected]);
    }
}
