//! The configuration as a value: what the table of options describes, parsed.
//!
//! Listeners and pools are known by their names, which outlive any one configuration.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::Balance;

/// A whole configuration, checked: every name that it mentions is defined in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Settings of the daemon as a whole.
    pub daemon: Daemon,
    /// The admin address, if there is one.
    pub admin: Option<Admin>,
    /// Listeners, in the order of the file.
    pub listeners: Vec<Listener>,
    /// Pools, in the order of the file.
    pub pools: Vec<Pool>,
}

/// Settings of the daemon as a whole (`[daemon]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Daemon {
    /// How long a drain may take before it is cut.
    pub drain: Duration,
    /// What its loops wait with.
    pub event: EventKernel,
}

/// What the loops of the daemon wait for the kernel with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKernel {
    /// The best of this system.
    Auto,
    /// epoll.
    Epoll,
    /// poll.
    Poll,
    /// select.
    Select,
}

/// The admin address (`[admin]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Where metrics and status are served.
    pub listen: Address,
}

/// Where to listen or to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IPv4 or IPv6 address with a port; port 0 lets the system choose.
    Internet(SocketAddr),
    /// A Unix socket, written `unix:/path`.
    Unix(PathBuf),
    /// A listening socket that whoever starts the daemon hands over under this name, as systemd
    /// does; written `fd:NAME`.
    Inherited(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(name) => write!(f, "fd:{name}"),
        }
    }
}

/// One listener (`[listener.NAME]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub listen: Address,
    /// What its clients speak.
    pub protocol: Protocol,
    /// The pool that answers.
    pub pool: String,
    /// How replies are marked.
    pub reply: ReplyStyle,
    /// What the end of a client's bytes means.
    pub half_close: HalfClose,
    /// What becomes of a last line without a newline.
    pub last_line: LastLine,
    /// Connections at once.
    pub connections_max: u32,
    /// Bytes of a request, without what marks its ends.
    pub frame_max: usize,
    /// What becomes of a client with a request over that.
    pub frame_over: FrameOver,
    /// Requests of one client at once; at the limit it is not read.
    pub in_flight_max: u32,
    /// Bytes of replies that wait for their turn, a client.
    pub reply_held_max: usize,
    /// Bytes of output that wait for a client to read them.
    pub send_max: usize,
    /// A client that sends nothing and is owed nothing for so long is closed; zero: never.
    pub idle: Duration,
    /// A request that was begun must be complete after so long; zero: never.
    pub read: Duration,
    /// A client that takes none of its output for so long is closed; zero: never.
    pub write_stall: Duration,
    /// Connections that the kernel holds until they are accepted.
    pub backlog: u32,
    /// Whether to bind an address whose former connections the kernel still remembers.
    pub reuse_address: bool,
    /// What only a listener of HTTP has.
    pub http: HttpListener,
}

/// What only a listener of HTTP has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpListener {
    /// Bytes of the head of a request.
    pub head_max: usize,
    /// Bytes of the body of a request.
    pub body_max: usize,
    /// Which fields tell a server who asked.
    pub forwarded: Forwarded,
    /// Clients that are proxies.
    pub trusted: Vec<Network>,
}

/// Which fields tell a server who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// None.
    Nothing,
    /// `X-Forwarded-For` and its siblings.
    Legacy,
    /// `Forwarded` of RFC 7239.
    Standard,
}

/// Addresses that begin with the same bits, written `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The first of them.
    pub address: IpAddr,
    /// How many bits are the same.
    pub bits: u8,
}

impl Network {
    /// Whether an address is one of them. An IPv4 address that came over IPv6 is an IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let number = |address: IpAddr| match address.to_canonical() {
            IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, true),
            IpAddr::V6(address) => (u128::from(address), false),
        };
        let (ours, theirs) = (number(self.address), number(address));
        let differ = ours.0 ^ theirs.0;
        ours.1 == theirs.1 && (self.bits == 0 || differ >> (128 - u32::from(self.bits)) == 0)
    }
}

/// What the clients of a listener speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Requests and replies are frames.
    Frames(Framing),
    /// The connection is the request.
    Connect,
    /// A datagram is a request.
    Datagrams,
    /// HTTP/1.1 and 1.0.
    Http,
}

/// How replies are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStyle {
    /// As they are; refusals begin with `!`.
    Plain,
    /// Every line begins with `+` (answered), `!` (refused) or `-` (failed or unknown).
    Status,
}

/// What the end of a client's bytes means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// It still wants its replies.
    Keep,
    /// It has left.
    Left,
}

/// What becomes of a client that sends a request over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOver {
    /// The request is refused and passed over.
    Skip,
    /// The request is refused, and the client gets what it is owed and no more.
    End,
}

/// What becomes of a last line without a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// It is refused: it may have been cut off.
    Refuse,
    /// It is a request like any other.
    Accept,
}

/// One pool (`[pool.NAME]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// What its workers are.
    pub worker: Worker,
    /// How many of them.
    pub workers: Workers,
    /// How many requests may wait, and how long.
    pub queue: Queue,
    /// Which free worker is next.
    pub schedule: Schedule,
    /// How many requests one slot takes at once.
    pub batch: Batch,
    /// The pool that a reply goes to as a request.
    pub then: Option<String>,
    /// How long a worker may take for one request before it is ended.
    pub deadline: Duration,
    /// Who is bound, who is fit, who waits how, and what it says when it is sorry.
    pub balance: Balance,
}

/// What the workers of a pool are.
#[derive(Clone, Debug, PartialEq)]
pub enum Worker {
    /// Local programs on pipes.
    Program(Box<Program>),
    /// A database, through threads of ours.
    Database(Box<Database>),
    /// A handler of the program that embeds us, by its name.
    Handler(String),
    /// Servers that speak HTTP.
    Servers(Servers),
}

/// Servers that speak HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Each of them.
    pub servers: Vec<Server>,
    /// Requests that one of them has at once.
    pub requests_max: u32,
    /// How long a connection may take.
    pub connect: Duration,
    /// How long nothing may come of a reply.
    pub between: Duration,
    /// How long a request may take in all; zero: as long as it goes on.
    pub total: Duration,
    /// How long a connection is kept for the next request.
    pub keep: Duration,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub address: Address,
    /// How much it gets compared with the others, 0 to 256.
    pub weight: u32,
    /// It serves only when no other can.
    pub backup: bool,
}

/// A local program on pipes.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The program and its arguments; no shell is involved.
    pub command: Vec<String>,
    /// How requests and replies are told apart on the pipes.
    pub framing: Framing,
    /// How replies find their requests.
    pub dispatch: Dispatch,
    /// Requests in flight at once.
    pub pipeline: u32,
    /// What makes a program forget the connection that it served; without it, it is replaced.
    pub reset: Option<String>,
    /// What a program must say before it serves.
    pub handshake: Handshake,
    /// A reply has many frames, and this ends it; without it, one frame.
    pub stream: Option<Stream>,
    /// Bytes of one reply.
    pub reply_max: usize,
    /// Working folder; the daemon's own when none is given.
    pub cwd: Option<PathBuf>,
    /// Variables added to the daemon's environment.
    pub env: Vec<(String, String)>,
    /// How long a program may take to end after its input was closed, and again after TERM.
    pub grace: Duration,
    /// A program that lived shorter than this counts towards the crash loop.
    pub settle: Duration,
    /// How it is connected.
    pub wiring: Wiring,
    /// What it is held to.
    pub bounds: Bounds,
    /// When it is replaced though nothing is wrong with it.
    pub recycle: Recycle,
    /// How it says that it is ready.
    pub ready: Ready,
    /// How long it may take until it is ready.
    pub start_timeout: Duration,
    /// How long it may take for the first byte of a reply; zero: as long as for all of it.
    pub first_byte: Duration,
    /// A request that takes so long is logged; zero: never.
    pub slow: Duration,
    /// How long it may read nothing of what waits for it; zero: as long as the deadline allows.
    pub write_stall: Duration,
}

/// How a program is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// What requests and replies go through.
    pub io: Io,
    /// Which of its descriptors they are.
    pub fds: Fds,
    /// What is done about output that it keeps in a buffer.
    pub unbuffer: Unbuffer,
}

/// What requests and replies of a program go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Pipes.
    Pipe,
    /// Unix sockets.
    Socket,
}

/// Which descriptors of a program its requests and replies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fds {
    /// 0 and 1.
    Standard,
    /// 3 and 4.
    ThreeFour,
}

/// What is done about output that a program keeps in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbuffer {
    /// Nothing.
    No,
    /// The C library is told to flush every line.
    Stdbuf,
    /// Its output is a terminal.
    Pty,
}

/// What a program is held to. What is not given is as the daemon's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// It starts without the daemon's variables.
    pub env_clear: bool,
    /// The user it runs as.
    pub user: Option<String>,
    /// The group it runs as.
    pub group: Option<String>,
    /// It can gain no rights by what it executes.
    pub no_new_privs: bool,
    /// What it may use.
    pub limits: Limits,
    /// Where it runs.
    pub cpu: Processors,
    /// How much less urgent than the daemon it is; 0 to 19.
    pub nice: u32,
    /// Where its control group is made.
    pub cgroup: Cgroup,
}

/// What one process of a program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open descriptors.
    pub files: Option<u64>,
    /// Processes and threads of its user.
    pub processes: Option<u64>,
    /// Bytes of a core file.
    pub core: Option<u64>,
    /// Processor time, whole seconds.
    pub cpu: Option<Duration>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Bytes of address space.
    pub address_space: Option<u64>,
    /// Bytes of a file.
    pub file_size: Option<u64>,
    /// Bytes of a stack.
    pub stack: Option<u64>,
}

/// Processors for the programs of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processors {
    /// Wherever the kernel puts them.
    Any,
    /// On the one of the loop, which stays on it.
    Near,
    /// Each on another, in turn.
    Spread,
    /// On these.
    List(Vec<usize>),
}

/// Where control groups of programs are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cgroup {
    /// In the daemon's own, if it was delegated.
    Auto,
    /// Nowhere.
    Off,
    /// In this folder.
    Under(PathBuf),
}

/// How requests and replies are told apart in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One line each.
    Lines,
    /// A NUL behind each.
    Nul,
    /// A length of one byte before each.
    Len1,
    /// A big-endian length of two bytes before each.
    Len2,
    /// A big-endian length of four bytes before each.
    Len4,
    /// `5:hello,`
    Netstring,
    /// A head with `Content-Length`, as the Language Server Protocol has it.
    ContentLength,
    /// One JSON-RPC message a line, as the stdio transport of the Model Context Protocol.
    JsonRpc,
    /// Bytes as they come.
    Raw,
    /// One request, up to the end of the stream.
    Oneshot,
}

/// Which requests a program may have in its hands at once, and how replies find them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// `Tagged` where frames are JSON-RPC, `InOrder` elsewhere.
    Auto,
    /// Replies come in the order of the requests.
    InOrder,
    /// Requests carry ids, and replies come in any order.
    Tagged,
    /// A program serves one connection, in order, until that ends.
    Session,
}

/// What a program must say before it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Nothing.
    None,
    /// It answers `initialize` of the Model Context Protocol.
    Mcp,
}

/// When a reply of several frames is complete. One of the two at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// This frame ends it, and belongs to it.
    pub until: Option<String>,
    /// Silence of this length ends it.
    pub gap: Option<Duration>,
}

/// A database as the worker of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// Which database.
    pub target: Target,
    /// What is done with a request.
    pub action: Action,
    /// Makes a missing table at start, if given.
    pub create: Option<String>,
    /// How a request is read into named values.
    pub record: Record,
    /// The reply after the commit; `{name}` stands for a value of the record.
    pub ack: String,
    /// What a commit waits for.
    pub sync: Sync,
    /// How long to wait for a lock that another process holds.
    pub lock_wait: Duration,
    /// How long a batch that is known not to be stored is tried again.
    pub retry: Duration,
    /// The table that keeps the rows which the database does not accept, if there is one.
    pub dead: Option<String>,
    /// What proves to a server who we are.
    pub password: Option<Secret>,
    /// Whether the way to a server is encrypted.
    pub tls: Tls,
    /// The certificates that may stand for a server; those of the system when none are given.
    pub tls_ca: Option<PathBuf>,
    /// How long it may take to connect to a server.
    pub connect_wait: Duration,
}

/// Which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An SQLite file, written `sqlite:PATH`.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, written `postgres://USER@HOST:PORT/DATABASE`.
    Postgres(ServerTarget),
    /// A database of MySQL or MariaDB, written `mysql://USER@HOST:PORT/DATABASE`.
    Mysql(ServerTarget),
}

/// A database on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTarget {
    /// Where the server is.
    pub host: DatabaseHost,
    /// Who we are there.
    pub user: String,
    /// Which of its databases.
    pub database: String,
}

/// Where a server of a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseHost {
    /// A name or an IP address, and a port.
    Internet(String, u16),
    /// A socket in the file system, written `?socket=/path`: for PostgreSQL the folder that it lies
    /// in, with the port that is a part of its name.
    Socket(PathBuf, u16),
}

impl DatabaseHost {
    /// Whether it is this machine, so that nobody else sees what is sent there.
    #[must_use]
    pub fn is_here(&self) -> bool {
        match self {
            Self::Internet(host, _) => {
                host == "localhost"
                    || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            Self::Socket(..) => true,
        }
    }
}

/// A text that does not stand in the configuration itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// The daemon's variable of that name, written `env:NAME`.
    Environment(String),
    /// What the file holds, without a line end at its end; written `file:PATH`.
    File(PathBuf),
}

/// Whether the way to a server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Unless the server is this machine.
    Auto,
    /// Always, with a certificate that is valid for its name.
    On,
    /// Never.
    Off,
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Its named values become a row.
    Insert(Insert),
    /// Any statement, prepared once, with `:name` parameters.
    Statement(String),
    /// A statement that reads; its rows are the reply.
    Query(Query),
}

/// A statement that reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The statement, prepared once, with `:name` parameters.
    pub sql: String,
    /// How its rows are written.
    pub rows: RowFormat,
    /// Rows of one reply at most.
    pub rows_max: u32,
    /// Bytes of one reply at most.
    pub reply_max: usize,
}

/// How the rows of a query are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// One line with a JSON array.
    Json,
    /// A line of JSON for each row, with line feeds between them.
    Lines,
    /// A line of TSV for each row, with line feeds between them.
    Tsv,
}

/// In which order rows are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those of one client in its order.
    Client,
    /// In any.
    Any,
}

/// A row for a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert {
    /// The table.
    pub table: String,
    /// Its columns, which are also the names in the record.
    pub columns: Vec<String>,
    /// What happens when the row is there already.
    pub on_conflict: OnConflict,
}

/// What happens when a row is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The row is refused.
    Refuse,
    /// The row that is there stays, and the request is acknowledged.
    Nothing,
}

/// How a request is read into named values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// One JSON object.
    Json,
    /// Values with tabs between, in the order of the columns or parameters.
    Tsv,
    /// `name=value` with blanks between.
    Logfmt,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The disk has it: nothing acknowledged is lost when power fails.
    Full,
    /// The operating system has it: nothing acknowledged is lost when the daemon dies.
    Normal,
}

/// How many workers a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Never fewer.
    pub min: u32,
    /// Never more.
    pub max: u32,
    /// Kept free beyond the busy ones, as far as `max` allows.
    pub spare: u32,
    /// A worker beyond `min` and `spare` that had nothing to do for so long is ended.
    pub idle: Duration,
    /// A request that waited so long is a reason to start another worker.
    pub grow_after: Duration,
    /// More waiting requests than this are a reason to start workers at once; none: only age is.
    pub grow_above: Option<u32>,
}

/// A rule for the number of workers that people know by a name: other defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The defaults of the table.
    Elastic,
    /// Always the same number.
    Static,
    /// Some are kept ready before they are needed.
    Prefork,
    /// None until somebody asks.
    OnDemand,
    /// Grows with the length of the queue.
    Queue,
}

/// How many requests may wait, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Requests.
    pub length: u32,
    /// Bytes of memory that they hold.
    pub bytes: usize,
    /// How long one may wait before it is refused.
    pub wait: Duration,
}

/// How a program says that it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It is as soon as it runs.
    Start,
    /// By its first frame.
    Line,
}

/// When a worker is replaced though nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recycle {
    /// After so many requests.
    pub requests: Option<u64>,
    /// When it has served for so long.
    pub age: Option<Duration>,
    /// When it occupies more than so many bytes.
    pub memory: Option<u64>,
    /// By how many percent each of these may be less for one worker.
    pub jitter: u32,
    /// How many percent of the workers may be replaced at once.
    pub share: u32,
}

/// Which free worker is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Each in its turn.
    RoundRobin,
    /// Each in its turn, as often as its weight says.
    WeightedRoundRobin,
    /// The one with the fewest requests in its hands.
    LeastOutstanding,
    /// Of two drawn by chance, the one with fewer requests in its hands.
    TwoChoices,
    /// Drawn by chance.
    Random,
    /// The one that the request's key belongs to.
    Hash,
    /// The first that is free.
    First,
}

/// How many requests one slot takes at once. A batch leaves when a slot is free and `rows` or
/// `bytes` are reached or its oldest request waited for `wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Requests; 1 for workers that take one at a time.
    pub rows: u32,
    /// Bytes of their bodies.
    pub bytes: usize,
    /// How long a batch that is not full waits for more; zero: not at all.
    pub wait: Duration,
}
