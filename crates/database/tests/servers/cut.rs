//! Connections that are lost in each phase of a transaction.

use std::thread;

use database::{Action, Job, OnConflict};
use exchange::Stop;

use crate::place::{Place, batch, hit, insert, is_refused, serve, serve_until, statement};
use crate::proxy::{Cut, Proxy};
use crate::server::eventually;

crate::suite_of_servers!(
    before_the_commit_the_rows_are_sent_again_and_stored_once,
    during_the_commit_nobody_knows,
    during_the_commit_a_key_makes_it_safe_to_send_the_rows_again,
    during_the_commit_rows_of_a_queue_are_not_sent_again,
    a_letter_is_written_once_when_its_batch_is_sent_again,
    after_the_commit_the_next_rows_take_another_connection,
    a_row_of_a_query_may_be_asked_for_again,
    a_way_that_goes_dark_behind_a_bad_row_holds_nobody_who_is_stopped,
);

const DURING: [Cut; 3] = [Cut::BeforeCommit, Cut::WithinCommit, Cut::AfterCommit];

/// Serves two rows while the connection is cut at `cut`.
fn serve_two(place: &Place, job: Job, cut: Cut) -> Vec<String> {
    place.run("delete from hits");
    let proxy = Proxy::to(place.port());
    let mut handler = place.handler_by(&proxy, job);
    proxy.cut(cut);
    let answers = serve(&mut handler, [hit(1), hit(2)]);
    assert_eq!(proxy.cuts(), 1, "{cut:?}");
    assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"], "{cut:?}");
    answers
}

fn before_the_commit_the_rows_are_sent_again_and_stored_once(place: &Place) {
    place.with_hits();
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    for cut in [Cut::BeforeRows, Cut::AfterRows] {
        for job in [insert(), statement(sql)] {
            assert_eq!(serve_two(place, job, cut), ["ok 1", "ok 2"], "{cut:?}");
            assert_eq!(place.hits(), ["1|/1|200", "2|/2|200", "3|/3|200"], "{cut:?}");
        }
    }
}

fn during_the_commit_nobody_knows(place: &Place) {
    place.with_hits();
    for cut in DURING {
        let answers = serve_two(place, insert(), cut);
        assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{cut:?}: {answers:?}");
        let stored = if cut == Cut::AfterCommit { 3 } else { 1 };
        assert_eq!(place.hits().len(), stored, "{cut:?}");
    }
}

fn during_the_commit_a_key_makes_it_safe_to_send_the_rows_again(place: &Place) {
    place.with_hits();
    let mut job = insert();
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    for cut in DURING {
        assert_eq!(serve_two(place, job.clone(), cut), ["ok 1", "ok 2"], "{cut:?}");
        assert_eq!(place.hits(), ["1|/1|200", "2|/2|200", "3|/3|200"], "{cut:?}");
    }
}

fn during_the_commit_rows_of_a_queue_are_not_sent_again(place: &Place) {
    place.with_hits();
    let mut job = Job { resend: false, ..insert() };
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    for cut in DURING {
        let answers = serve_two(place, job.clone(), cut);
        assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{cut:?}: {answers:?}");
        let stored = if cut == Cut::AfterCommit { 3 } else { 1 };
        assert_eq!(place.hits().len(), stored, "{cut:?}");
    }
    for cut in [Cut::BeforeRows, Cut::AfterRows] {
        assert_eq!(serve_two(place, job.clone(), cut), ["ok 1", "ok 2"], "{cut:?}");
    }
}

fn a_letter_is_written_once_when_its_batch_is_sent_again(place: &Place) {
    place.with_hits();
    let mut job = Job { dead: Some("dead".to_owned()), ..insert() };
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    let poison = |id: usize| format!(r#"{{"id":{id},"path":null,"status":0}}"#);
    // One row occurs twice, and has a dead letter for each time.
    let among_others = vec![hit(1), poison(7), hit(2), poison(8), poison(7)];
    let alone = vec![poison(7)];
    for cut in DURING {
        for bodies in [&among_others, &alone] {
            place.run("delete from hits");
            let proxy = Proxy::to(place.port());
            let mut handler = place.handler_by(&proxy, job.clone());
            place.run("delete from dead");
            proxy.cut(cut);
            let answers = serve(&mut handler, bodies);
            assert_eq!(proxy.cuts(), 1, "{cut:?}");
            for (body, answer) in bodies.iter().zip(&answers) {
                let poison = body.contains("null");
                assert!(if poison { is_refused(answer) } else { answer.starts_with("ok ") });
            }
            let letters = bodies.iter().filter(|body| body.contains("null")).count();
            let kept = place.run("select count(*) from dead");
            assert_eq!(kept, [letters.to_string()], "{cut:?}, {answers:?}");
        }
    }
}

fn after_the_commit_the_next_rows_take_another_connection(place: &Place) {
    place.with_hits();
    assert_eq!(serve_two(place, insert(), Cut::AfterAnswer), ["ok 1", "ok 2"]);
    assert_eq!(place.hits().len(), 3);
}

fn a_row_of_a_query_may_be_asked_for_again(place: &Place) {
    place.with_hits();
    place.run("insert into hits values (1, '/1', 200)");
    let proxy = Proxy::to(place.port());
    let query = database::Query::new("select path from hits where id = :id");
    let mut handler = place.handler_by(&proxy, Job::new(Action::Query(query)));
    let row = r#"[{"path":"/1"}]"#;
    assert_eq!(serve(&mut handler, [hit(1)]), [row]);
    proxy.cut_all();
    assert_eq!(serve(&mut handler, [hit(1)]), [row]);
    assert_eq!(proxy.cuts(), 1);
}

fn a_way_that_goes_dark_behind_a_bad_row_holds_nobody_who_is_stopped(place: &Place) {
    place.with_hits();
    // Statements about savepoints are sent to PostgreSQL together with the rows.
    let statements: &[&str] = match place.is_postgres() {
        true => &["rollback"],
        false => &[
            "rollback",
            "savepoint one_part",
            "release savepoint one_part",
            "rollback to savepoint one_part",
        ],
    };
    for statement in statements {
        place.run("delete from hits");
        let proxy = Proxy::to(place.port());
        let mut handler = place.handler_by(&proxy, insert());
        proxy.cut(Cut::Dark(statement));
        let stop = Stop::default();
        let served = thread::spawn({
            let stop = stop.clone();
            move || {
                let poison = r#"{"id":7,"path":null,"status":0}"#.to_owned();
                let bodies = batch([hit(1), poison, hit(2)]);
                let answers = serve_until(handler.as_mut(), &bodies, &stop);
                (handler, answers)
            }
        });
        eventually("the way is dark", || proxy.cuts() == 1);
        stop.request();
        eventually("the batch ends", || served.is_finished());
        let (mut handler, answers) = served.join().unwrap();
        let failed = answers.iter().all(|it| it.starts_with("!database "));
        assert!(failed, "{statement}: {answers:?}");
        assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"], "{statement}");
        assert_eq!(place.hits(), ["3|/3|200"], "{statement}");
    }
}
