//! The engine alone: requests and reports go in, effects and outcomes come out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exchange::{ByWorker, Peer, Place, WorkerId};
use pool::{Room, Tokens};
use wire::http1::{HeadScan, Limits};

use super::*;
use crate::backlog::Backlog;
use crate::cookies::CookieConfig;
use flow::backend_effect::BackendEffect;
use flow::backend_event::BackendEvent;
use flow::http_request::HttpRequest;
use flow::ids::SessionId;
use flow::reply_head::{BoxedReplyHead, Head};
use flow::request_meta::RequestMeta;

mod chains;

/// The shards of a daemon. The first one owns all pools.
struct Shards {
    count: usize,
    backlogs: Table<PoolId, Backlog>,
    tickets: AtomicU64,
}

impl Shards {
    fn new(count: usize, pools: usize) -> (Arc<Self>, Vec<PoolId>) {
        let mut backlogs = Table::default();
        let add = |_| PoolId::from(backlogs.insert(Backlog::new(Room::UNLIMITED)));
        let pools = (0..pools).map(add).collect();
        (Arc::new(Self { count, backlogs, tickets: AtomicU64::new(0) }), pools)
    }
}

impl ShardGroup for Shards {
    fn count(&self) -> usize {
        self.count
    }

    fn owners(&self) -> Table<PoolId, u32> {
        let mut owners = Table::default();
        self.backlogs.entries().for_each(|(id, _)| owners.insert_as(id, 0));
        owners
    }

    fn tokens(&self, _pool: PoolId) -> Option<Vec<Arc<Tokens>>> {
        None
    }

    fn backlog(&self, pool: PoolId) -> &Backlog {
        &self.backlogs[pool]
    }

    fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::SeqCst)
    }

    fn window(&self) -> usize {
        1 << 16
    }

    fn lacks_memory(&self) -> bool {
        false
    }

    fn post_bytes(&self, _shard: u32, _bytes: usize) -> bool {
        true
    }

    fn take_bytes(&self, _shard: u32, _bytes: usize) {}
}

/// An engine with the pools `a` and `b`, and a client of `a`.
struct Bench {
    engine: Engine,
    a: PoolId,
    b: PoolId,
    requests: u64,
}

fn config(name: &str) -> PoolConfig {
    PoolConfig {
        binding_uses: None,
        name: name.to_owned(),
        pool: pool::Settings::default(),
        then: None,
        balance: BalanceConfig::default(),
        takes: RequestShape::Bodies,
        own: None,
        is_tagged: false,
        traits: WorkerTraits::default(),
    }
}

impl Bench {
    /// `change` may change what `a` is; it is given the id of `b`.
    fn new(change: impl FnOnce(&mut PoolConfig, PoolId)) -> Self {
        let (group, pools) = Shards::new(1, 2);
        let (a, b) = (pools[0], pools[1]);
        let (mut pool_config, instant) = (config("a"), Instant::now());
        change(&mut pool_config, b);
        let epoch = Epoch { instant, unix_us: 0 };
        let engine = Engine::new(vec![(a, pool_config), (b, config("b"))], epoch, 1, group, 0);
        Self { engine, a, b, requests: 0 }
    }

    /// The same, and all workers that its pools start serve.
    fn serving(change: impl FnOnce(&mut PoolConfig, PoolId)) -> Self {
        let mut bench = Self::new(change);
        for (pool, effect) in bench.effects() {
            let BackendEffect::Start { worker } = effect else { panic!("{effect:?}") };
            bench.report(pool, BackendEvent::Started { worker });
        }
        assert_eq!(bench.effects().len(), 0);
        bench
    }

    fn session() -> SessionId {
        SessionId::new(0, Place::new(7, 1))
    }

    /// A request of the next number.
    fn submit(&mut self, body: &str) -> RequestId {
        let client = Client::Session { session: Self::session(), sequence: self.requests };
        self.requests += 1;
        let source = Source { peer: Peer::Local, listener: None };
        let payload = match body.contains(" HTTP/1.1\r\n") {
            true => Payload::Http(http(body), Slice::default()),
            false => Payload::Frame(Slice::from(body)),
        };
        self.engine.submit(client, source, (payload, RequestMeta::default()), self.a, None)
    }

    fn effects(&mut self) -> Vec<(PoolId, BackendEffect)> {
        std::iter::from_fn(|| self.engine.poll_effect()).collect()
    }

    /// The pool, worker and body of each request that is given to a worker, and whether more follow.
    fn dispatched(&mut self) -> Vec<(PoolId, WorkerId, String, bool)> {
        let dispatched = |(pool, effect)| match effect {
            BackendEffect::Dispatch { worker, request, more_follow, .. } => {
                let body = match &request.payload {
                    Payload::Frame(body) => text(body),
                    Payload::Http(request, _) => text(request.target()),
                };
                (pool, worker, body, more_follow)
            }
            other => panic!("{other:?}"),
        };
        self.effects().into_iter().map(dispatched).collect()
    }

    fn report(&mut self, pool: PoolId, report: BackendEvent) {
        self.engine.handle_event(pool, report);
    }

    fn answer(&mut self, pool: PoolId, worker: WorkerId, id: RequestId, reply: &str) {
        self.report(
            pool,
            BackendEvent::Answered { id, outcome: Outcome::Reply(Slice::from(reply)) },
        );
        self.report(pool, BackendEvent::Released { worker });
    }

    /// The number of each request that has ended, and how.
    fn ended(&mut self) -> Vec<(u64, Result<String, Cause>)> {
        let ended = |(client, reply_event)| match (client, reply_event) {
            (Client::Session { sequence, .. }, ReplyEvent::End(Outcome::Reply(reply))) => {
                Some((sequence, Ok(text(&reply))))
            }
            (Client::Session { sequence, .. }, ReplyEvent::End(outcome)) => {
                Some((sequence, Err(outcome.end().cause)))
            }
            _ => None,
        };
        self.engine.finished.drain(..).filter_map(ended).collect()
    }
}

fn http(text: &str) -> HttpRequest {
    let found = HeadScan::default().next(text.as_bytes(), &Limits::REQUEST).unwrap().unwrap();
    HttpRequest::read(text.as_bytes(), &found, &Limits::REQUEST).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn ok(reply: &str) -> Result<String, Cause> {
    Ok(reply.to_owned())
}

#[test]
fn a_request_is_dispatched_and_its_answer_frees_the_slot_for_the_next() {
    let mut bench = Bench::serving(|_, _| {});
    let (first, second) = (bench.submit("one"), bench.submit("two"));
    let (a, given) = (bench.a, bench.dispatched());
    let worker = given[0].1;
    assert_eq!(given, [(a, worker, "one".to_owned(), false)], "it has one slot");
    assert_eq!(bench.ended(), []);
    bench.answer(a, worker, first, "1");
    assert_eq!(bench.ended(), [(0, ok("1"))]);
    assert_eq!(bench.dispatched(), [(a, worker, "two".to_owned(), false)]);
    bench.answer(a, worker, second, "2");
    assert_eq!(bench.ended(), [(1, ok("2"))]);
    assert_eq!(bench.effects().len(), 0);
    bench.answer(a, worker, second, "late");
    assert_eq!(bench.ended(), [], "it has ended");
}

#[test]
fn a_request_that_never_reached_its_worker_is_dispatched_again_before_later_ones() {
    let mut bench = Bench::serving(|_, _| {});
    let a = bench.a;
    let first = bench.submit("one");
    bench.submit("two");
    let worker = bench.dispatched()[0].1;
    bench.report(
        a,
        BackendEvent::Returned { id: first, payload: Payload::Frame(Slice::from("one")) },
    );
    bench.report(a, BackendEvent::Ended { worker, expected: true, reached: true });
    let starts = bench.effects();
    let [(_, BackendEffect::Start { worker: next })] = starts[..] else { panic!("{starts:?}") };
    bench.report(a, BackendEvent::Started { worker: next });
    assert_eq!(bench.dispatched(), [(a, next, "one".to_owned(), false)]);
    bench.answer(a, next, first, "1");
    assert_eq!(bench.dispatched(), [(a, next, "two".to_owned(), false)]);
}

#[test]
fn the_reply_of_a_pool_is_a_request_of_the_next_unless_it_is_an_error() {
    let mut bench = Bench::serving(|pool_config, b| pool_config.then = Some(b));
    let (a, b) = (bench.a, bench.b);
    let first = bench.submit("one");
    let worker = bench.dispatched()[0].1;
    bench.answer(a, worker, first, "half done");
    assert_eq!(bench.ended(), []);
    let next = bench.dispatched();
    assert_eq!((next[0].0, next[0].2.as_str()), (b, "half done"));
    bench.answer(b, next[0].1, first, "done");
    assert_eq!(bench.ended(), [(0, ok("done"))]);
    let second = bench.submit("two");
    assert_eq!(bench.dispatched().len(), 1);
    bench.answer(a, worker, second, "!broken");
    assert_eq!(bench.ended(), [(1, Err(Cause::Worker))]);
    assert_eq!(bench.dispatched().len(), 0);
}

#[test]
fn a_request_is_refused_when_the_queue_is_full() {
    let mut bench = Bench::new(|pool_config, _| pool_config.pool.queue.length = 1);
    bench.submit("one");
    assert_eq!(bench.ended(), []);
    bench.submit("two");
    assert_eq!(bench.ended(), [(1, Err(Cause::Full))]);
}

#[test]
fn a_refusal_says_why_no_worker_can_be_started() {
    let mut bench = Bench::new(|pool_config, _| pool_config.pool.backoff.open_after = 1);
    bench.submit("one");
    let starts = bench.effects();
    let trouble = |kind: &str| {
        let (kind, detail) = (kind.to_owned(), String::new());
        BackendEvent::Trouble { trouble: Box::new(Trouble { kind, detail }) }
    };
    let start = starts.iter().find(|(pool, _)| *pool == bench.a);
    let Some((a, BackendEffect::Start { worker })) = start else { panic!("{starts:?}") };
    bench.report(*a, trouble("the program was not found"));
    bench.report(*a, BackendEvent::StartFailed { worker: *worker });
    bench.effects();
    let (_, reply_event) = bench.engine.finished.pop().unwrap();
    let ReplyEvent::End(outcome) = reply_event else { panic!("{reply_event:?}") };
    assert_eq!(outcome.end().cause, Cause::Down);
    assert!(outcome.text().0.ends_with(b"the program was not found"), "{outcome:?}");
}

#[test]
fn a_batch_is_dispatched_request_by_request_and_answered_together() {
    let mut bench = Bench::serving(|pool_config, _| {
        pool_config.traits.takes_batches = true;
        pool_config.pool.batch.rows = 3;
    });
    let a = bench.a;
    // A worker that is free is given the first alone; what comes meanwhile is a batch.
    let first = bench.submit("first");
    let worker = bench.dispatched()[0].1;
    let ids = ["one", "two", "three"].map(|body| bench.submit(body));
    bench.answer(a, worker, first, "stored");
    let given = bench.dispatched();
    let seen: Vec<_> = given.iter().map(|it| (it.2.as_str(), it.3)).collect();
    assert_eq!(seen, [("one", true), ("two", true), ("three", false)]);
    let answers = ids.map(|id| (id, Outcome::Reply(Slice::from("stored")))).to_vec();
    bench.report(a, BackendEvent::AllAnswered { answers });
    bench.report(a, BackendEvent::Released { worker });
    assert_eq!(bench.ended(), [0, 1, 2, 3].map(|number| (number, ok("stored"))));
}

#[test]
fn a_request_that_was_abandoned_after_its_pool_had_decided_is_given_to_nobody() {
    let mut bench = Bench::serving(|_, _| {});
    let first = bench.submit("one");
    bench.engine.abandon(first, Cause::Left);
    assert_eq!(bench.effects().len(), 0);
    bench.submit("two");
    let bodies: Vec<_> = bench.dispatched().into_iter().map(|it| it.2).collect();
    assert_eq!(bodies, ["two"], "the slot is free");
}

#[test]
fn a_worker_is_told_that_nobody_wants_the_reply_any_more() {
    let mut bench = Bench::serving(|_, _| {});
    let first = bench.submit("one");
    let worker = bench.dispatched()[0].1;
    bench.engine.abandon(first, Cause::Left);
    let told = bench.effects();
    let Some((_, BackendEffect::Control { worker: of, id, control })) = told.first() else {
        panic!("{told:?}");
    };
    assert_eq!((*of, *id), (worker, first));
    assert_eq!(*control, flow::request_control::RequestControl::Abandoned);
    bench.answer(bench.a, worker, first, "1");
    assert_eq!(bench.ended(), []);
}

/// Clients of `a` are bound by a cookie to its workers, which have no names.
fn with_cookie(pool_config: &mut PoolConfig) {
    let limits = pool::AffinityLimits { lifetime: Duration::from_secs(60), entries: 1 };
    pool_config.pool.sticky =
        Some(pool::Sticky { limits, gone: pool::Gone::Reschedule, shared: false });
    let codec = pool::CookieCodec::new(&[7; 32], "a", pool::CookieValue::Opaque, 60);
    pool_config.balance.cookie = Some(CookieConfig {
        name: b"s".to_vec(),
        mode: pool::CookieMode::Insert,
        codec: Some(codec),
        lifetime_s: 60,
        attributes: Vec::new(),
        servers: ByWorker::default(),
    });
}

/// The cookie that a reply to a new client sets.
fn cookie_set(bench: &mut Bench) -> String {
    bench.engine.finished.clear();
    let id = bench.submit("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (pool, worker, ..) = bench.dispatched()[0];
    let mut head = Head::default();
    head.status = 200;
    bench.report(pool, BackendEvent::Head { id, head: BoxedReplyHead::new(head) });
    bench.answer(pool, worker, id, "");
    let (_, reply_event) = bench.engine.finished.remove(0);
    let ReplyEvent::Head(mut head) = reply_event else { panic!("{reply_event:?}") };
    let place = head.head().fields.position_from("Set-Cookie", 0).expect("it sets a cookie");
    let field = head.head().fields.field(place).unwrap();
    text(field.value.bytes().unwrap())
}

/// Whether the request with this cookie is bound to a worker.
fn is_bound_by(bench: &mut Bench, cookie: &str) -> bool {
    let id = bench.submit(&format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
    let (pool, worker, ..) = bench.dispatched()[0];
    let is_bound = bench.engine.exchanges.get_mut(id).unwrap().attempt.named.is_some();
    bench.answer(pool, worker, id, "");
    is_bound
}

#[test]
fn clients_stay_bound_to_programs_by_their_cookies_after_a_reload() {
    let mut bench = Bench::serving(|pool_config, _| with_cookie(pool_config));
    let before = cookie_set(&mut bench);
    assert!(is_bound_by(&mut bench, &before));
    let mut pool_config = config("a");
    with_cookie(&mut pool_config);
    let a = bench.a;
    bench.engine.reload(a, (pool_config, false), None, &mut Vec::new()).expect("it is here");
    assert!(is_bound_by(&mut bench, &before));
    assert_eq!(cookie_set(&mut bench), before, "it is the same worker");
}

#[test]
fn the_cookie_of_a_program_that_is_gone_is_known_after_a_reload() {
    let mut bench = Bench::serving(|pool_config, _| with_cookie(pool_config));
    let before = cookie_set(&mut bench);
    assert!(is_bound_by(&mut bench, &before));
    let a = bench.a;
    let id = bench.submit("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (_, worker, ..) = bench.dispatched()[0];
    bench.answer(a, worker, id, "");
    bench.report(a, BackendEvent::Retired { worker });
    bench.report(a, BackendEvent::Ended { worker, expected: false, reached: true });
    let is_known = |bench: &mut Bench| {
        let id = bench.submit(&format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {before}\r\n\r\n"));
        bench.engine.exchanges.get_mut(id).unwrap().attempt.named.is_some()
    };
    assert!(is_known(&mut bench));
    for _ in 0..2 {
        let mut pool_config = config("a");
        with_cookie(&mut pool_config);
        bench.engine.reload(a, (pool_config, false), None, &mut Vec::new()).expect("it is here");
        assert!(is_known(&mut bench));
    }
}
