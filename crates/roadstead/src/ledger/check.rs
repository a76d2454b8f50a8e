//! Compares a ledger with the database.

use std::fmt;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Value, json};

use super::format::Fate;
use super::read::{Ledger, ReadError};

use crate::record::{self, Recipe};

/// The maximum number of findings of each kind that are listed. All are counted.
const FINDINGS_MAX: usize = 5;

/// Why a comparison failed.
#[derive(Debug)]
pub enum CheckError {
    /// The ledger cannot be read.
    Ledger(ReadError),
    /// The database cannot be read.
    Database(rusqlite::Error),
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger(error) => error.fmt(f),
            Self::Database(error) => write!(f, "the database cannot be read: {error}"),
        }
    }
}

impl std::error::Error for CheckError {}

impl From<rusqlite::Error> for CheckError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// The counts from comparing a ledger with a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Lines sent.
    pub sent: u64,
    /// Lines that were reported to have taken effect.
    pub acknowledged: u64,
    /// Lines that were rejected before an attempt, without effect.
    pub refused: u64,
    /// Lines that were attempted and reported to have had no effect.
    pub failed: u64,
    /// Lines with an unknown outcome.
    pub unknown: u64,
    /// Rows in the table.
    pub rows: u64,
    /// Acknowledged lines that are not in the table.
    pub lost: u64,
    /// Lines that are in the table more than once.
    pub twice: u64,
    /// Rows that were never sent.
    pub phantom: u64,
    /// Refused or failed lines that are in the table.
    pub wrong_refusal: u64,
    /// Lines whose row has another path or status than was sent.
    pub altered: u64,
    /// Lines whose reply was for another line, and unsolicited replies.
    pub misdirected: u64,
    /// The first findings of each kind.
    pub findings: Vec<Finding>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding: the name of a field of [`Verdict`].
    pub kind: &'static str,
    /// The id, if the row has one.
    pub id: Option<i64>,
}

impl Verdict {
    /// Returns whether the database and the ledger agree.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults().iter().all(|&(_, count)| count == 0)
    }

    /// Returns the number of findings of each kind.
    #[must_use]
    pub const fn faults(&self) -> [(&'static str, u64); 6] {
        [
            ("lost", self.lost),
            ("twice", self.twice),
            ("phantom", self.phantom),
            ("wrong_refusal", self.wrong_refusal),
            ("altered", self.altered),
            ("misdirected", self.misdirected),
        ]
    }

    const fn counts(&self) -> [(&'static str, u64); 6] {
        [
            ("sent", self.sent),
            ("acknowledged", self.acknowledged),
            ("refused", self.refused),
            ("failed", self.failed),
            ("unknown", self.unknown),
            ("rows", self.rows),
        ]
    }

    /// Returns one object with a member for each count, and `clean`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counts = self.counts().into_iter().chain(self.faults());
        let mut object: serde_json::Map<String, Value> =
            counts.map(|(name, count)| (name.to_owned(), json!(count))).collect();
        object.insert("clean".to_owned(), json!(self.is_clean()));
        let findings = self.findings.iter();
        let findings: Vec<Value> =
            findings.map(|finding| json!({"kind": finding.kind, "id": finding.id})).collect();
        object.insert("findings".to_owned(), Value::Array(findings));
        Value::Object(object)
    }

    fn found(&mut self, kind: &'static str, id: Option<i64>) {
        let known = self.findings.iter().filter(|finding| finding.kind == kind).count();
        if known < FINDINGS_MAX {
            self.findings.push(Finding { kind, id });
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.counts().into_iter().chain(self.faults()) {
            writeln!(f, "{:<14}{count:>12}", name.replace('_', " "))?;
        }
        for finding in &self.findings {
            let kind = finding.kind.replace('_', " ");
            match finding.id {
                Some(id) => writeln!(f, "  {kind}: id {id}")?,
                None => writeln!(f, "  {kind}: a row whose id is not a number")?,
            }
        }
        f.write_str(if self.is_clean() { "clean" } else { "NOT CLEAN" })
    }
}

/// Compares the ledger with the rows of `table`, as a new connection to the SQLite database sees them. The table has a
/// column `id`. If it has the columns `path` and `status`, they are compared with the sent values. Uses two bytes of
/// memory per line.
///
/// # Errors
/// The ledger or the database cannot be read.
pub fn check(ledger: &Path, database: &Path, table: &str) -> Result<Verdict, CheckError> {
    let ledger = Ledger::read(ledger).map_err(CheckError::Ledger)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    compare(&ledger, &connection, table)
}

/// The content of the table for one line.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The number of rows with this id: 0, 1, or 2 for more.
    rows: u8,
    altered: bool,
}

fn compare(ledger: &Ledger, connection: &Connection, table: &str) -> Result<Verdict, CheckError> {
    let mut verdict = Verdict {
        sent: ledger.fates.len() as u64,
        acknowledged: ledger.count(Fate::Acknowledged),
        refused: ledger.count(Fate::Refused),
        failed: ledger.count(Fate::Failed),
        unknown: ledger.count(Fate::Unknown),
        misdirected: ledger.count(Fate::Misdirected) + ledger.unasked,
        ..Verdict::default()
    };
    let mut seen = vec![Seen::default(); ledger.fates.len()];
    let whole = has_contents(connection, table)?;
    let columns = if whole { "id, path, status" } else { "id" };
    let name = table.replace('"', "\"\"");
    let mut statement = connection.prepare(&format!("select {columns} from \"{name}\""))?;
    let recipe = Recipe { seed: ledger.seed };
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        verdict.rows += 1;
        let id = id_of(row.get_ref(0)?);
        let place = id.and_then(|id| u64::try_from(id).ok()?.checked_sub(ledger.first));
        let line = place.and_then(|place| seen.get_mut(usize::try_from(place).ok()?));
        let (Some(id), Some(line)) = (id, line) else {
            verdict.phantom += 1;
            verdict.found("phantom", id);
            continue;
        };
        line.rows = (line.rows + 1).min(2);
        line.altered |= whole && !is_as_sent(row, recipe, id.unsigned_abs())?;
    }
    for ((id, fate), line) in (ledger.first..).zip(&ledger.fates).zip(&seen) {
        judge(&mut verdict, id, *fate, *line);
    }
    Ok(verdict)
}

fn judge(verdict: &mut Verdict, id: u64, fate: Fate, line: Seen) {
    let stored = line.rows > 0;
    let faults = [
        ("lost", &mut verdict.lost, fate == Fate::Acknowledged && !stored),
        ("twice", &mut verdict.twice, line.rows > 1),
        (
            "wrong_refusal",
            &mut verdict.wrong_refusal,
            matches!(fate, Fate::Refused | Fate::Failed) && stored,
        ),
        ("altered", &mut verdict.altered, line.altered),
    ];
    let mut kinds = [None; 4];
    for ((kind, count, is_so), found) in faults.into_iter().zip(&mut kinds) {
        if is_so {
            *count += 1;
            *found = Some(kind);
        }
    }
    let mis = (fate == Fate::Misdirected).then_some("misdirected");
    for kind in kinds.into_iter().chain([mis]).flatten() {
        verdict.found(kind, i64::try_from(id).ok());
    }
}

fn has_contents(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let count: i64 = connection.query_row(
        "select count(*) from pragma_table_info(?1) where name in ('path', 'status')",
        [table],
        |row| row.get(0),
    )?;
    Ok(count == 2)
}

/// Converts an id to a number. A column without a type stores numbers as text if they were inserted as text.
fn id_of(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Integer(id) => Some(id),
        ValueRef::Text(digits) => record::number(digits).and_then(|id| i64::try_from(id).ok()),
        _ => None,
    }
}

fn is_as_sent(row: &Row<'_>, recipe: Recipe, id: u64) -> rusqlite::Result<bool> {
    let sample = recipe.sample(id);
    let path = matches!(row.get_ref(1)?, ValueRef::Text(path) if path == sample.path().as_bytes());
    Ok(path && id_of(row.get_ref(2)?) == Some(i64::from(sample.status())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 9;

    /// Ids 10 to 14: acknowledged, refused, failed, unknown, unknown.
    fn ledger() -> Ledger {
        let fates = [Fate::Acknowledged, Fate::Refused, Fate::Failed, Fate::Unknown, Fate::Unknown];
        Ledger { seed: SEED, first: 10, fates: fates.into(), unasked: 0 }
    }

    fn table(ids: &[i64]) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("create table hits (id, at, path, status)").unwrap();
        for &id in ids {
            let sample = Recipe { seed: SEED }.sample(id.unsigned_abs());
            connection
                .execute(
                    "insert into hits values (?1, 5, ?2, ?3)",
                    (id, sample.path(), sample.status()),
                )
                .unwrap();
        }
        connection
    }

    fn faults(ledger: &Ledger, connection: &Connection) -> Vec<(&'static str, u64)> {
        let verdict = compare(ledger, connection, "hits").unwrap();
        let faults: Vec<_> = verdict.faults().into_iter().filter(|&(_, count)| count > 0).collect();
        assert_eq!(verdict.is_clean(), faults.is_empty());
        let listed = verdict.findings.iter().map(|finding| finding.kind);
        assert!(listed.clone().all(|kind| faults.iter().any(|fault| fault.0 == kind)));
        faults
    }

    #[test]
    fn an_unknown_line_may_be_there_or_not() {
        let verdict = compare(&ledger(), &table(&[10, 13]), "hits").unwrap();
        assert!(verdict.is_clean(), "{verdict}");
        let expected = Verdict {
            sent: 5,
            acknowledged: 1,
            refused: 1,
            failed: 1,
            unknown: 2,
            rows: 2,
            ..Verdict::default()
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn each_fault_is_found_and_told_from_the_others() {
        let table_of_faults: &[(&[i64], &str)] = &[
            (&[], "lost"),
            (&[10, 10], "twice"),
            (&[10, 13, 13, 13], "twice"),
            (&[10, 15], "phantom"),
            (&[10, 9], "phantom"),
            (&[10, -10], "phantom"),
            (&[10, 11], "wrong_refusal"),
            (&[10, 12], "wrong_refusal"),
        ];
        for &(ids, fault) in table_of_faults {
            assert_eq!(faults(&ledger(), &table(ids)), [(fault, 1)], "{ids:?}");
        }
        assert_eq!(
            faults(&ledger(), &table(&[11, 11])),
            [("lost", 1), ("twice", 1), ("wrong_refusal", 1)]
        );
    }

    #[test]
    fn replies_that_went_astray_are_no_better_for_their_rows() {
        let mut misdirected = ledger();
        misdirected.fates[3] = Fate::Misdirected;
        assert_eq!(faults(&misdirected, &table(&[10])), [("misdirected", 1)]);
        let mut unasked = ledger();
        unasked.unasked = 2;
        assert_eq!(faults(&unasked, &table(&[10])), [("misdirected", 2)]);
    }

    #[test]
    fn a_row_with_the_contents_of_another_line_is_found() {
        for change in ["update hits set path = '/z/1000'", "update hits set status = 599 - status"]
        {
            let connection = table(&[10]);
            connection.execute_batch(change).unwrap();
            assert_eq!(faults(&ledger(), &connection), [("altered", 1)], "{change}");
        }
        let connection = table(&[10]);
        connection.execute_batch("update hits set id = null").unwrap();
        assert_eq!(faults(&ledger(), &connection), [("lost", 1), ("phantom", 1)]);
    }

    #[test]
    fn a_table_of_ids_alone_is_enough_and_its_name_may_be_strange() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("create table \"a \"\"b\" (id)").unwrap();
        connection.execute_batch("insert into \"a \"\"b\" values ('10')").unwrap();
        assert!(compare(&ledger(), &connection, "a \"b").unwrap().is_clean());
        assert!(matches!(compare(&ledger(), &connection, "c"), Err(CheckError::Database(_))));
    }

    #[test]
    fn only_the_first_of_many_faults_are_listed_but_all_are_counted() {
        let ledger =
            Ledger { seed: SEED, first: 0, fates: vec![Fate::Acknowledged; 1000], unasked: 0 };
        let verdict = compare(&ledger, &table(&[]), "hits").unwrap();
        assert_eq!((verdict.lost, verdict.findings.len()), (1000, FINDINGS_MAX));
        assert_eq!(verdict.to_json()["lost"], 1000);
        assert!(verdict.to_string().ends_with("NOT CLEAN"));
    }

    /// After a kill the newest rows are only in the write-ahead log, and no process has the database open.
    #[test]
    fn rows_in_the_log_of_a_killed_writer_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let live = folder.path().join("live.db");
        let writer = Connection::open(&live).unwrap();
        writer
            .execute_batch(
                "pragma journal_mode = wal; create table hits (id); insert into hits values (10)",
            )
            .unwrap();
        let left = folder.path().join("left.db");
        std::fs::copy(&live, &left).unwrap();
        std::fs::copy(folder.path().join("live.db-wal"), folder.path().join("left.db-wal"))
            .unwrap();
        let path = folder.path().join("ledger");
        let mut ledger = super::super::Writer::create(&path, SEED, 10).unwrap();
        ledger.sent(10).unwrap();
        ledger.fate(10, Fate::Acknowledged).unwrap();
        ledger.finish().unwrap();
        let verdict = check(&path, &left, "hits").unwrap();
        assert_eq!((verdict.rows, verdict.is_clean()), (1, true));
    }
}
