//! Messages of MySQL and MariaDB without the values that they cite.

use std::borrow::Cow;

use crate::withheld::WITHHELD;

/// The state of errors that triggers raise (`SIGNAL`), by convention.
pub const MYSQL_RAISED: &str = "45000";

/// Returns the message of an error without the values that it cites: values of a key or a function may not be those
/// that the client sent. A message is withheld unless it is known to cite nothing else. The text that a trigger signals
/// is chosen by the operator.
#[must_use]
pub fn mysql_text_for_clients<'t>(code: u16, state: &str, text: &'t str) -> Cow<'t, str> {
    if state == MYSQL_RAISED || matches!(code, 1643 | 1644) || is_plain(code) {
        return Cow::Borrowed(text);
    }
    without_values(code, text).unwrap_or(Cow::Borrowed(WITHHELD))
}

/// Whether the message with this code contains only names of tables, columns, constraints and users, and limits.
const fn is_plain(code: u16) -> bool {
    // Tables, columns, rights.
    let of_names = matches!(
        code,
        1036 | 1044
            | 1046
            | 1049
            | 1054
            | 1091
            | 1136
            | 1142
            | 1143
            | 1146
            | 1227
            | 1305
            | 1356
            | 1370
            | 1449
            | 1792
    );
    // Values that a column does not accept: NULL, out of range, truncated, too long, no default; generated columns;
    // checks, JSON; views and the values that they do not accept.
    let of_columns = matches!(
        code,
        1048 | 1264
            | 1265
            | 1288
            | 1348
            | 1364
            | 1369
            | 1406
            | 1416
            | 1423
            | 1471
            | 1906
            | 3105
            | 3140
            | 3819
            | 4025
    );
    // Subqueries of several rows or columns, a division by zero, triggers that would change their table or call
    // themselves, exhausted numbers, partitions, collations, arguments, sizes.
    let of_statements = matches!(
        code,
        1118 | 1153
            | 1210
            | 1241
            | 1242
            | 1267
            | 1270
            | 1271
            | 1301
            | 1365
            | 1424
            | 1436
            | 1442
            | 1467
            | 1748
    );
    // Locks, conflicts, time, read-only, statements to be prepared again, foreign tables.
    let of_transactions = matches!(
        code,
        1020 | 1205
            | 1213
            | 1223
            | 1243
            | 1290
            | 1317
            | 1412
            | 1429
            | 1615
            | 1836
            | 1969
            | 3024
            | 3572
            | 12701
    );
    // Connections and resources.
    let of_server = matches!(
        code,
        1021 | 1028
            | 1030
            | 1037
            | 1038
            | 1040
            | 1041
            | 1053
            | 1077
            | 1079
            | 1080
            | 1114
            | 1135
            | 1152
            | 1158
            ..=1161 | 1184 | 1197 | 1203 | 1206 | 1226 | 1461 | 1927 | 2006 | 2013 | 3032 | 4031
    );
    of_names || of_columns || of_statements || of_transactions || of_server
}

/// Returns a message that is known to cite values at one place, without this place. `None` if the place is not found,
/// for example because the message is in another language.
fn without_values(code: u16, text: &str) -> Option<Cow<'_, str>> {
    let before = |mark: &str| text.split_once(mark).map(|(before, _)| before);
    match code {
        // `Duplicate entry 'VALUE' for key 'KEY'`, `Incorrect integer value: 'VALUE' for column … at row 1`,
        // `Truncated incorrect DOUBLE value: 'VALUE'`, `Invalid utf8mb4 character string: 'VALUE'`,
        // `Got overflow when converting 'VALUE' to INT. …`.
        1062 | 1292 | 1300 | 1366 | 1367 | 1411 | 1525 | 1586 | 1916 | 1918 | 1977 | 3854 => {
            let before = before("'")?.trim_end_matches([' ', ':']);
            Some(Cow::Owned(format!("{before}{}", place(code, text))))
        }
        // `… value is out of range in 'EXPRESSION'`, with the values in it.
        1690 => before(" in '").map(Cow::Borrowed),
        // `Table has no partition for value VALUE`.
        1526 => before(" for value ").map(Cow::Borrowed),
        // `… a foreign key constraint fails (DEFINITION)`, which names other tables.
        1216 | 1217 | 1451 | 1452 => {
            let name = before(" (").unwrap_or(text);
            (!name.contains('`')).then_some(Cow::Borrowed(name))
        }
        _ => None,
    }
}

/// Returns the key, column or function that a message names after the value, with a blank before it. A message that
/// ends with the value ends with its quote, and may contain any text.
fn place(code: u16, text: &str) -> &str {
    let mark = match code {
        1062 | 1586 => "' for key '",
        1411 => "' for function ",
        _ if text.ends_with(|last: char| last.is_ascii_digit()) => "' for column `",
        _ => return "",
    };
    text.rfind(mark).map_or("", |at| &text[at + 1..])
}
