//! Complete runs against small servers on threads.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use event::Address;

use super::run::run_within;
use super::settings::Timeouts;
use super::*;
use crate::ledger::{Fate, Ledger};
use crate::record::Record;

/// Serves the connection with this number, from 0, until it returns.
type Serve = dyn Fn(usize, &mut Peer) -> io::Result<()> + Send + Sync;

/// The server's side of a connection.
struct Peer {
    lines: BufReader<TcpStream>,
    /// The number of times that each id was received, over all connections.
    ids: Arc<Mutex<BTreeMap<u64, u32>>>,
}

impl Peer {
    /// Returns the id of the next line, and the line.
    fn line(&mut self) -> io::Result<Option<(u64, String)>> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Ok(None);
        }
        let line = line.trim_end().as_bytes();
        let record = Record::parse(line).or_else(|_| Record::parse_json(line)).unwrap();
        let id = record.id;
        *self.ids.lock().unwrap().entry(id).or_default() += 1;
        Ok(Some((id, String::from_utf8(line.to_vec()).unwrap())))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.lines.get_mut().write_all(text.as_bytes())
    }

    fn acknowledge_all(&mut self) -> io::Result<()> {
        while let Some((id, _)) = self.line()? {
            self.say(&format!("ok {id}\n"))?;
        }
        Ok(())
    }
}

struct Server {
    address: SocketAddr,
    ids: Arc<Mutex<BTreeMap<u64, u32>>>,
    ending: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    fn start(serve: impl Fn(usize, &mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ids = Arc::new(Mutex::new(BTreeMap::new()));
        let ending = Arc::new(AtomicBool::new(false));
        let serve: Arc<Serve> = Arc::new(serve);
        let (is_ending, to_all) = (Arc::clone(&ending), Arc::clone(&ids));
        let listening = std::thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                if is_ending.load(Ordering::SeqCst) {
                    return;
                }
                let (lines, ids) = (BufReader::new(stream.unwrap()), Arc::clone(&to_all));
                let serve = Arc::clone(&serve);
                // Errors are ignored, because the client may close the connection.
                std::thread::spawn(move || serve(count, &mut Peer { lines, ids }));
            }
        });
        Self { address, ids, ending, listening: Some(listening) }
    }

    fn settings(&self) -> LoadSettings {
        LoadSettings {
            to: Address::Internet(self.address),
            connections: 1,
            rate: Some(100.0),
            in_flight: 1000,
            duration: Duration::from_millis(200),
            lines: Lines::Work,
            reply: ReplyCheck::AckWithId,
            ledger: None,
            seed: 7,
            reconnect: false,
            resend_refused: false,
        }
    }

    /// Returns the received ids, each with its count.
    fn received(&self) -> BTreeMap<u64, u32> {
        self.ids.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        self.listening.take().unwrap().join().unwrap();
    }
}

const SHORT: Timeouts =
    Timeouts { opening: Duration::from_millis(50), replies: Duration::from_millis(50) };

/// Runs until this number of lines is acknowledged.
fn run_until_acknowledged(count: u64, settings: LoadSettings) -> Summary {
    let settings = LoadSettings { duration: Duration::from_secs(3600), ..settings };
    let stop = AtomicBool::new(false);
    run_with_ledger(settings, Timeouts::default(), &stop, &mut |progress| {
        stop.store(progress.acknowledged >= count, Ordering::Relaxed);
    })
}

fn run_patiently(settings: LoadSettings) -> Summary {
    run_with_ledger(settings, Timeouts::default(), &AtomicBool::new(false), &mut |_| {})
}

fn run_impatiently(settings: LoadSettings) -> Summary {
    run_with_ledger(settings, SHORT, &AtomicBool::new(false), &mut |_| {})
}

/// Runs with a ledger and compares both results.
fn run_with_ledger(
    settings: LoadSettings,
    patience: Timeouts,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Summary {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let settings = LoadSettings { ledger: Some(path.clone()), ..settings };
    let summary = run_within(&settings, patience, stop, progress).unwrap();
    let ledger = Ledger::read(&path).unwrap();
    let counts = [
        (Fate::Acknowledged, summary.acknowledged),
        (Fate::Refused, summary.refused),
        (Fate::Failed, summary.failed),
        (Fate::Unknown, summary.unknown),
        (Fate::Misdirected, summary.misdirected - summary.unasked),
    ];
    for (fate, count) in counts {
        assert_eq!(ledger.count(fate), count, "{fate:?}");
    }
    assert_eq!(ledger.fates.len() as u64, summary.sent);
    assert_eq!(ledger.unasked, summary.unasked);
    summary
}

#[test]
fn every_line_that_is_due_is_sent_once_and_acknowledged() {
    let server = Server::start(|_, peer| peer.acknowledge_all());
    let summary =
        run_patiently(LoadSettings { connections: 5, rate: Some(50.0), ..server.settings() });
    assert_eq!((summary.sent, summary.acknowledged, summary.unsent), (50, 50, 0));
    assert_eq!((summary.misdirected, summary.unknown, summary.reconnects), (0, 0, 0));
    assert!(summary.latency.max >= summary.latency.p50);
    let ids: Vec<_> = server.received().into_iter().collect();
    assert_eq!(ids, (1..=50).map(|id| (id, 1)).collect::<Vec<_>>());
}

#[test]
fn an_echo_is_compared_with_the_whole_line() {
    let server = Server::start(|count, peer| {
        while let Some((_, line)) = peer.line()? {
            let line = if count == 1 { line.replace("/", "/x") } else { line };
            peer.say(&format!("{line}\n"))?;
        }
        Ok(())
    });
    for lines in [Lines::Json, Lines::Work] {
        let settings = LoadSettings { lines, reply: ReplyCheck::Echo, ..server.settings() };
        let summary = run_patiently(settings);
        let good = lines == Lines::Json;
        assert_eq!(summary.acknowledged, if good { 20 } else { 0 });
        assert_eq!(summary.misdirected, if good { 0 } else { 20 });
    }
}

#[test]
fn saturation_keeps_no_more_lines_on_their_way_than_it_may() {
    let server = Server::start(|_, peer| {
        let mut ids = Vec::new();
        while let Some((id, _)) = peer.line()? {
            ids.push(id);
            if ids.len() == 4 {
                if !peer.lines.buffer().is_empty() {
                    return peer.say("one line too many\n");
                }
                let replies: String = ids.drain(..).map(|id| format!("ok {id}\n")).collect();
                peer.say(&replies)?;
            }
        }
        Ok(())
    });
    let settings = LoadSettings { rate: None, in_flight: 4, connections: 3, ..server.settings() };
    let summary = run_patiently(settings);
    assert!(summary.sent >= 12, "{summary:?}");
    assert_eq!((summary.sent, summary.misdirected), (summary.acknowledged, 0));
}

#[test]
fn a_reply_that_was_shifted_by_one_is_misdirected() {
    let server = Server::start(|_, peer| {
        let mut before = 0;
        while let Some((id, _)) = peer.line()? {
            peer.say(&format!("ok {before}\n"))?;
            before = id;
        }
        Ok(())
    });
    let summary = run_patiently(server.settings());
    assert_eq!((summary.misdirected, summary.acknowledged, summary.sent), (20, 0, 20));
}

#[test]
fn a_reply_too_many_is_noticed() {
    let server = Server::start(|_, peer| {
        while let Some((id, _)) = peer.line()? {
            peer.say(&format!("ok {id}\nok {id}\n"))?;
        }
        Ok(())
    });
    let summary = run_patiently(LoadSettings { in_flight: 1, ..server.settings() });
    assert!(summary.misdirected > 0, "{summary:?}");
    assert!(summary.unasked > 0, "{summary:?}");
}

#[test]
fn lines_of_a_lost_connection_are_unknown_and_never_sent_again() {
    let server = Server::start(|count, peer| {
        if count > 0 {
            return peer.acknowledge_all();
        }
        let (first, _) = peer.line()?.unwrap();
        peer.say(&format!("ok {first}\n"))?;
        // Two lines are read and not answered.
        peer.line()?;
        peer.line()?;
        Ok(())
    });
    let settings = LoadSettings { reconnect: true, ..server.settings() };
    let summary = run_until_acknowledged(5, settings);
    assert_eq!(summary.reconnects, 1);
    assert!(summary.unknown >= 2, "{summary:?}");
    assert_eq!(summary.acknowledged + summary.unknown, summary.sent);
    assert!(server.received().values().all(|&times| times == 1));
}

#[test]
fn without_reconnecting_a_run_ends_with_its_last_connection() {
    let server = Server::start(|_, peer| peer.line().map(drop));
    let settings = LoadSettings { duration: Duration::from_secs(3600), ..server.settings() };
    let summary = run_patiently(settings);
    assert!(summary.unknown >= 1, "{summary:?}");
    assert_eq!((summary.acknowledged, summary.reconnects), (0, 0));
    assert_eq!(summary.sent + summary.unsent, 360_000);
}

#[test]
fn a_refused_line_is_sent_again_only_when_that_is_wanted() {
    let server = Server::start(|_, peer| {
        while let Some((id, _)) = peer.line()? {
            let times = peer.ids.lock().unwrap()[&id];
            let reply = if times == 1 { "!full no room".to_owned() } else { format!("ok {id}") };
            peer.say(&format!("{reply}\n"))?;
        }
        Ok(())
    });
    let summary = run_patiently(server.settings());
    assert_eq!((summary.refused, summary.resent), (20, 0));
    assert_eq!(summary.codes, [("full", 20)]);
    server.ids.lock().unwrap().clear();
    let settings = LoadSettings { resend_refused: true, ..server.settings() };
    let summary = run_until_acknowledged(20, settings);
    assert_eq!(summary.acknowledged + summary.refused, summary.sent);
    assert_eq!((summary.resent, summary.misdirected), (summary.acknowledged, 0));
}

#[test]
fn a_reply_that_never_comes_leaves_its_line_unknown() {
    let server = Server::start(|_, peer| {
        while peer.line()?.is_some() {}
        Ok(())
    });
    let summary = run_impatiently(server.settings());
    assert_eq!((summary.sent, summary.unknown), (20, 20));
}

#[test]
fn lines_that_may_not_be_on_their_way_together_wait() {
    let server = Server::start(|_, peer| {
        while peer.line()?.is_some() {}
        Ok(())
    });
    let summary = run_impatiently(LoadSettings { in_flight: 3, ..server.settings() });
    assert_eq!((summary.sent, summary.unknown, summary.unsent), (3, 3, 17));
}

#[test]
fn a_connection_that_is_refused_is_counted_by_its_code_and_the_others_go_on() {
    let server = Server::start(|count, peer| match count {
        1 => peer.say("!connections there is room for 2\n"),
        _ => peer.acknowledge_all(),
    });
    let summary = run_patiently(LoadSettings { connections: 3, ..server.settings() });
    // Lines may have been in flight to the third server when it was closed.
    assert_eq!((summary.sent + summary.unsent, summary.acknowledged), (60, 40));
    assert_eq!((summary.codes, summary.misdirected), (vec![("connections", 1)], 0));
}

#[test]
fn progress_tells_when_all_are_open_before_the_first_line() {
    let server = Server::start(|_, peer| peer.acknowledge_all());
    let settings = LoadSettings { connections: 300, rate: Some(1.0), ..server.settings() };
    let mut told: Vec<Progress> = Vec::new();
    let summary = run(&settings, &mut |progress| told.push(*progress)).unwrap();
    let open = told.iter().position(|progress| progress.opened == 300).unwrap();
    assert_eq!((told[open].sent, told[open].elapsed), (0, Duration::ZERO));
    let last = told.last().unwrap();
    assert_eq!((last.sent, last.acknowledged), (summary.sent, summary.acknowledged));
    assert_eq!(summary.sent, 60);
}

#[test]
fn a_stop_ends_the_sending_and_still_accounts_for_every_line() {
    let server = Server::start(|_, peer| peer.acknowledge_all());
    let summary = run_until_acknowledged(1, server.settings());
    assert_eq!((summary.sent, summary.unsent), (summary.acknowledged, 0));
}

#[test]
fn a_unix_socket_is_as_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let serving = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 0 {
            lines.get_mut().write_all(line.as_bytes()).unwrap();
            line.clear();
        }
    });
    let server = Server::start(|_, _| Ok(()));
    let to = Address::Unix(path);
    let summary = run_patiently(LoadSettings { to, reply: ReplyCheck::Echo, ..server.settings() });
    assert_eq!(summary.acknowledged, 20);
    serving.join().unwrap();
}

#[test]
fn what_cannot_be_done_is_said_before_or_instead() {
    let server = Server::start(|_, _| Ok(()));
    let good = server.settings();
    let error = |settings: LoadSettings| {
        let never = AtomicBool::new(false);
        run_within(&settings, SHORT, &never, &mut |_| {}).unwrap_err().to_string()
    };
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Address::Internet(listener.local_addr().unwrap())
    };
    let table = [
        (LoadSettings { connections: 0, ..good.clone() }, "at least one connection"),
        (LoadSettings { in_flight: 0, ..good.clone() }, "at least one line"),
        (LoadSettings { rate: Some(0.0), ..good.clone() }, "the rate must be"),
        (LoadSettings { rate: Some(f64::NAN), ..good.clone() }, "the rate must be"),
        (LoadSettings { rate: Some(1e7), ..good.clone() }, "the rate must be"),
        (LoadSettings { connections: 50_000_000, ..good.clone() }, "descriptors"),
        (LoadSettings { ledger: Some(PathBuf::from("/nowhere/x")), ..good.clone() }, "ledger"),
        (LoadSettings { to: nobody.clone(), ..good.clone() }, "connection refused"),
        (LoadSettings { to: nobody, reconnect: true, ..good }, "no connection could be"),
    ];
    for (settings, why) in table {
        let said = error(settings);
        assert!(said.contains(why), "{said:?} should say {why:?}");
    }
}
