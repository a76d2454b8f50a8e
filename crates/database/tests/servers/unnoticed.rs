//! Rows that a database takes and does not store, in ways that its counts do not show.

use std::time::Duration;

use database::{Action, Job, OnConflict, Retried};

use crate::letters::all;
use crate::place::{Place, is_refused, serve};

crate::suite!(a_row_without_a_key_is_refused_where_it_conflicts_on_another);

/// An insert of these columns, where a row with the same values in `key` may be there.
fn keyed(columns: &[&str], key: &[&str]) -> Job {
    let mut action = Action::insert("kinds", columns.iter().copied());
    if let Action::Insert { on_conflict, .. } = &mut action {
        *on_conflict = OnConflict::Nothing(key.iter().map(|&it| it.to_owned()).collect());
    }
    Job { retry: Duration::ZERO, ..Job::new(action) }
}

fn a_row_without_a_key_is_refused_where_it_conflicts_on_another(place: &Place) {
    for key in [&["k"][..], &["a", "k"]] {
        for ack in ["ok", "ok {rows}"] {
            place.run(&format!(
                "create table kinds (a integer not null, k integer, u integer, \
                 unique ({}), unique (u))",
                key.join(", ")
            ));
            let job = Job {
                ack: ack.to_owned(),
                dead: Some("dead".to_owned()),
                ..keyed(&["a", "k", "u"], key)
            };
            let mut handler = place.handler(job.clone());
            let row = |k: &str, u: usize| format!(r#"{{"a":1,"k":{k},"u":{u}}}"#);
            assert!(serve(&mut handler, [row("null", 1)])[0].starts_with("ok"));
            let answers = serve(&mut handler, [row("null", 1), row("7", 2), row("null", 3)]);
            assert!(is_refused(&answers[0]), "{key:?}: {answers:?}");
            assert!(answers[1].starts_with("ok") && answers[2].starts_with("ok"), "{answers:?}");
            let mut letters = place.options(job).unwrap().letters().unwrap();
            let letter = all(&mut letters).remove(0);
            let again = letters.retry(&letter).unwrap();
            assert!(matches!(again, Retried::Refused(_)), "{key:?}: {again:?}");
            assert_eq!(place.run("select count(*) from dead"), ["1"]);
            place.run("drop table kinds");
            place.run("drop table dead");
        }
    }
}
