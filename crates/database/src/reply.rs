//! Writes the rows of a query into a reply.

use exchange::Slice;
use fields::{EncodeError, Rows, Schema, json, tsv};

use crate::Format;
use crate::fault::{Blame, Fault};

/// A reply that is being written, within its limits.
#[derive(Debug)]
pub(crate) struct Writer {
    format: Format,
    rows_left: usize,
    rows_max: usize,
    bytes_max: usize,
    out: Vec<u8>,
    /// The number of bytes that were taken out.
    taken: usize,
    first: bool,
    /// The reason why it ended: a limit, or a value that its format cannot represent.
    over: Option<String>,
}

impl Writer {
    pub(crate) fn new(format: Format, rows_max: usize, bytes_max: usize) -> Self {
        let mut out = Vec::new();
        if format == Format::Json {
            out.push(b'[');
        }
        Self {
            format,
            rows_left: rows_max,
            rows_max,
            bytes_max,
            out,
            taken: 0,
            first: true,
            over: None,
        }
    }

    /// Writes these rows and clears `rows`.
    pub(crate) fn write(&mut self, rows: &mut Rows) -> Result<(), Fault> {
        for row in rows.iter() {
            if self.rows_left == 0 {
                return self.end(format!("more than {} rows", self.rows_max));
            }
            self.rows_left -= 1;
            if let Err(unfit) = self.row(row) {
                let number = self.rows_max - self.rows_left;
                return self.end(unfit_text(number, rows.schema(), unfit));
            }
            if self.taken + self.out.len() > self.bytes_max {
                return self.end(format!("more than {} bytes", self.bytes_max));
            }
        }
        rows.clear();
        Ok(())
    }

    fn row(&mut self, row: fields::Row<'_>) -> Result<(), EncodeError> {
        let behind_another = !std::mem::take(&mut self.first);
        match self.format {
            Format::Json => {
                if behind_another {
                    self.out.push(b',');
                }
                json::encode(&row, &mut self.out)
            }
            Format::Lines | Format::Tsv => {
                let written = match self.format {
                    Format::Lines => json::encode(&row, &mut self.out),
                    _ => {
                        tsv::encode(&row, &mut self.out);
                        Ok(())
                    }
                };
                self.out.push(b'\n');
                written
            }
        }
    }

    fn end(&mut self, over: String) -> Result<(), Fault> {
        let fault = Fault::new(Blame::Stopped, &over);
        self.over = Some(over);
        Err(fault)
    }

    /// Returns the number of bytes that are held.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Takes out the bytes that are held. The rest of the reply follows later.
    pub(crate) fn take(&mut self) -> Slice {
        self.taken += self.out.len();
        let part = Slice::from(&*self.out);
        self.out.clear();
        part
    }

    /// Whether a part of the reply was taken out.
    pub(crate) fn is_begun(&self) -> bool {
        self.taken > 0
    }

    /// Returns why the rows ended the reply, if they did: a limit, or a value that cannot be represented.
    pub(crate) fn over(&self) -> Option<&str> {
        self.over.as_deref()
    }

    /// Returns the rest of the reply.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.format == Format::Json {
            self.out.push(b']');
        }
        self.out
    }
}

/// Returns why a row, counted from 1, cannot be written as JSON. Values of binary types have been converted to text
/// before, so this is text in another encoding.
fn unfit_text(row: usize, columns: &Schema, unfit: EncodeError) -> String {
    let name = String::from_utf8_lossy(columns.name(unfit.index).unwrap_or_default());
    format!("row {row}: column `{name}` holds text that is not UTF-8, which JSON cannot hold")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fields::{Case, Value};

    fn rows() -> Rows {
        let mut rows = Rows::new(Schema::new(["id", "path"], Case::Exact));
        rows.push([Value::Number(b"1"), Value::Bytes(b"/a\t\"\n")]).unwrap();
        rows.push([Value::Number(b"2"), Value::Null]).unwrap();
        rows
    }

    fn written(format: Format) -> String {
        let mut writer = Writer::new(format, 2, 1000);
        writer.write(&mut rows()).unwrap();
        String::from_utf8(writer.finish()).unwrap()
    }

    #[test]
    fn rows_leave_in_each_format() {
        assert_eq!(written(Format::Json), r#"[{"id":1,"path":"/a\t\"\n"},{"id":2,"path":null}]"#);
        assert_eq!(
            written(Format::Lines),
            "{\"id\":1,\"path\":\"/a\\t\\\"\\n\"}\n{\"id\":2,\"path\":null}\n"
        );
        assert_eq!(written(Format::Tsv), "1\t/a\\t\"\\n\n2\t\\N\n");
        assert_eq!(Writer::new(Format::Json, 1, 1).finish(), b"[]");
        assert_eq!(Writer::new(Format::Tsv, 1, 1).finish(), b"");
    }

    #[test]
    fn a_reply_ends_at_its_limits() {
        let mut few = Writer::new(Format::Tsv, 1, 1000);
        assert!(few.write(&mut rows()).is_err());
        assert_eq!(few.over(), Some("more than 1 rows"));
        let mut short = Writer::new(Format::Tsv, 10, 5);
        assert!(short.write(&mut rows()).is_err());
        assert_eq!(short.over(), Some("more than 5 bytes"));
    }

    #[test]
    fn what_was_taken_counts_for_the_limit() {
        let mut writer = Writer::new(Format::Tsv, 10, 20);
        writer.write(&mut rows()).unwrap();
        assert!(!writer.is_begun());
        let length = writer.len();
        assert_eq!(&*writer.take(), b"1\t/a\\t\"\\n\n2\t\\N\n");
        assert!(writer.is_begun() && writer.len() == 0 && length > 10);
        assert!(writer.write(&mut rows()).is_err());
        assert_eq!(writer.over(), Some("more than 20 bytes"));
    }

    #[test]
    fn bytes_that_are_no_text_are_no_json_but_may_be_tsv() {
        let mut rows = Rows::new(Schema::new(["a"], Case::Exact));
        rows.push([Value::Bytes(b"fine")]).unwrap();
        rows.push([Value::Bytes(b"\xff")]).unwrap();
        for format in [Format::Json, Format::Lines] {
            let mut writer = Writer::new(format, 9, 99);
            assert!(writer.write(&mut rows).is_err());
            let text = "row 2: column `a` holds text that is not UTF-8, which JSON cannot hold";
            assert_eq!(writer.over(), Some(text));
        }
        assert!(Writer::new(Format::Tsv, 9, 99).write(&mut rows).is_ok());
    }
}
