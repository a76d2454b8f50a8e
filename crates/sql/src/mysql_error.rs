//! Where in a statement an error of MySQL or MariaDB is, as far as the server's words tell.

use crate::single_mention;

/// Which byte of `sql` an error of MySQL or MariaDB with this code and message is about.
#[must_use]
pub fn mysql_error_place(sql: &str, code: u16, message: &str) -> Option<usize> {
    match code {
        // What follows is cited, and ends the message with its line.
        1064 => {
            let (_, cited) = message.split_once("near '")?;
            let (cited, line) = cited.rsplit_once("' at line ")?;
            let line: usize = line.trim().parse().ok()?;
            let begin: usize =
                sql.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
            let rest = sql.get(begin..)?;
            match cited {
                "" => Some(sql.trim_end().len().saturating_sub(1)),
                _ => rest.find(cited).map(|at| begin + at),
            }
        }
        // A table or a column, in quotes, perhaps with what it belongs to before it.
        1054 | 1146 => {
            let (_, name) = message.split_once('\'')?;
            let (name, _) = name.split_once('\'')?;
            let name = name.rsplit('.').next()?;
            // Where it is there twice, nobody knows which of them is meant.
            single_mention(sql, name)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_an_error_is_found_where_it_is_alone() {
        let sql = "insert into hits (id,\n  pfad)\nvalues (?, hits_of(pfad2),\n oops oops)";
        let at =
            |code, message: &str| mysql_error_place(sql, code, message).map(|at| &sql[at..at + 4]);
        assert_eq!(at(1054, "Unknown column 'pfad' in 'INSERT INTO'"), Some("pfad"));
        assert_eq!(at(1146, "Table 'test1.hits' doesn't exist"), Some("hits"));
        assert_eq!(at(1054, "Unknown column 'oops' in 'VALUES'"), None);
        assert_eq!(at(1054, "Unknown column ''"), None);
        assert_eq!(at(1054, "Unknown column"), None);
        let near = "You have an error in your SQL syntax; check the manual for the right syntax to \
                    use near";
        assert_eq!(at(1064, &format!("{near} 'oops)' at line 4")), Some("oops"));
        assert_eq!(
            mysql_error_place(sql, 1064, &format!("{near} '' at line 4")),
            Some(sql.len() - 1)
        );
        assert_eq!(mysql_error_place(sql, 1064, &format!("{near} 'x' at line 9")), None);
        assert_eq!(mysql_error_place(sql, 1064, &format!("{near} 'x' at line 0")), None);
        assert_eq!(mysql_error_place("", 1064, &format!("{near} '' at line 1")), Some(0));
    }
}
