//! A pool of handlers with one database connection each. The connection is opened on the thread of the handler and
//! stays there. Each line is a query, and the reply is its result.
//!
//! ```text
//! printf 'ant\nbee\n' | nc -N 127.0.0.1 PORT      # after: --server --port PORT
//! ```

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};

use roadstead::embed::{
    Batch, Cause, Configuration, Embed, Factory, Handler, HandlerError, ListenerBuilder, Outbox,
    Outcome, Phase, PoolBuilder, Slice, Stop, text,
};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

#[path = "support/arguments.rs"]
mod arguments;

/// Opens one connection for each thread.
struct Words {
    file: std::path::PathBuf,
}

impl Factory for Words {
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        // An error here is logged, and the open is tried again after a pause that doubles.
        let failed = |error: rusqlite::Error| HandlerError::Open(error.to_string().into());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        Ok(Box::new(Word(Connection::open_with_flags(&self.file, flags).map_err(failed)?)))
    }
}

struct Word(Connection);

impl Handler for Word {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, _stop: &Stop) {
        for (place, request) in batch.requests.iter().enumerate() {
            let legs = self.0.prepare_cached("select legs from animals where name = ?1").and_then(
                |mut query| query.query_row([text(request)], |row| row.get(0)).optional(),
            );
            outbox.answer(
                place,
                match legs {
                    Ok(Some(legs)) => Outcome::Reply(Slice::from(i64::to_string(&legs).as_str())),
                    Ok(None) => Outcome::ended(Cause::Worker, Phase::Work, "no such animal"),
                    Err(error) => Outcome::ended(Cause::Database, Phase::Work, &error.to_string()),
                },
            );
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = arguments::Arguments::read()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("animals.db");
    Connection::open(&file)?.execute_batch(
        "create table animals (name text primary key, legs integer);
         insert into animals values ('ant', 6), ('bee', 6), ('cat', 4), ('eel', 0);",
    )?;
    let listener = ListenerBuilder::lines(&format!("127.0.0.1:{}", arguments.port));
    let pool = PoolBuilder::handler("animals").workers(1..=8).set("workers.spare", 2);
    let configuration = Configuration::builder()
        .listener("main", listener.pool("words"))
        .pool("words", pool)
        .build()?;
    let server = Embed::new(configuration).handler("animals", Words { file }).start()?;
    let address = server.address("main").ok_or("there is a listener")?.to_owned();
    println!("ready {{\"listeners\":{{\"main\":\"{address}\"}}}}");
    if arguments.server {
        loop {
            std::thread::park();
        }
    }
    let mut client = TcpStream::connect(&address)?;
    client.write_all(b"ant\ncat\nunicorn\neel\n")?;
    client.shutdown(Shutdown::Write)?;
    let replies: Vec<String> = BufReader::new(client).lines().collect::<Result<_, _>>()?;
    println!("{}", replies.join("\n"));
    if replies != ["6", "4", "!no such animal", "0"] {
        return Err("these are not the replies".into());
    }
    if !server.drain().is_clean() {
        return Err("something was cut off".into());
    }
    Ok(())
}
