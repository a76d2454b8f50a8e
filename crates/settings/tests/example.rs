//! The configuration of the design document, parsed into the model and compared field by field.

use std::path::PathBuf;
use std::time::Duration;

use settings::*;

const EXAMPLE: &str = r#"[admin]
listen = "127.0.0.1:7070"             # dashboard, API, metrics

[listener.hits]
listen = "0.0.0.0:7000"
protocol = "lines"
pool = "parse"

[pool.parse]                          # twenty programs on pipes
program = ["perl", "parse.pl"]
framing = "lines"
workers = { min = 2, max = 20, spare = 2, idle_timeout = "30s" }
then = "store"

[pool.store]                          # rows in a transaction, the ack after COMMIT
database = "sqlite:hits.db"
insert = { table = "hits", columns = ["at", "path", "status"], on_conflict = "nothing", key = ["at"] }
batch = { rows = 1000, timeout = "2ms" }
"#;

fn read(text: &str) -> Configuration {
    let source = Source { name: "roadstead.toml".into(), text: text.into() };
    parse(&source, &|_| None).unwrap_or_else(|errors| panic!("{errors}"))
}

fn address(text: &str) -> Address {
    Address::Internet(text.parse().expect("the test writes it right"))
}

fn example() -> Configuration {
    Configuration {
        daemon: Daemon {
            memory_max: None,
            drain_timeout: Duration::from_secs(30),
            drain_keepalive_timeout: Duration::from_secs(1),
            event: EventKernel::Auto,
            shards: Shards::Count(1),
        },
        admin: Some(Admin {
            listen: address("127.0.0.1:7070"),
            token: None,
            group: None,
            allowed_hosts: Vec::new(),
            max_connections: 64,
            header_timeout: Duration::from_secs(10),
        }),
        access_log: None,
        cluster: None,
        variables: Default::default(),
        listeners: vec![Listener {
            name: "hits".into(),
            listen: address("0.0.0.0:7000"),
            protocol: Protocol::Frames(Framing::Lines),
            pool: Some("parse".into()),
            reply: ReplyStyle::Auto,
            half_close: HalfClose::Keep,
            last_line: LastLine::Refuse,
            connections_max: 10_000,
            frame_max: 64 << 10,
            frame_over: FrameOver::Skip,
            in_flight_max: 64,
            reply_held_max: 1 << 20,
            send_max: 4 << 20,
            idle_timeout: Duration::from_secs(600),
            first_request_timeout: Duration::from_secs(10),
            request_read_timeout: Duration::from_secs(10),
            send_timeout: Duration::from_secs(30),
            send_rate_min: 512,
            backlog: 4096,
            tcp_keepalive_interval: Duration::from_secs(120),
            access_log: true,
            addresses: Addresses::default(),
            http: HttpListener {
                head_max: 16 << 10,
                body_max: 1 << 20,
                bodies_max: 64 << 20,
                body_rate_min: 240,
                tunnel_timeout: Duration::from_secs(3600),
                forwarded: Forwarded::Legacy,
                via: Some("roadstead".into()),
                allow_trace: false,
                allow_upgrade: true,
                trusted: Vec::new(),
                routes: Vec::new(),
                authenticate: None,
                request: route::Edits::none(),
                reply: route::Edits::none(),
            },
        }],
        pools: vec![programs(), database()],
    }
}

fn queue() -> Queue {
    Queue { requests_max: 10_000, bytes_max: 64 << 20, timeout: Duration::from_secs(5) }
}

fn programs() -> Pool {
    Pool {
        name: "parse".into(),
        worker: Worker::Program(Box::new(Program {
            command: vec!["perl".into(), "parse.pl".into()],
            framing: Framing::Lines,
            dispatch: Dispatch::Auto,
            reset: None,
            alignment: Alignment::Auto,
            line_breaks: LineBreaks::Reject,
            carries: None,
            handshake: Handshake::Off,
            stream: None,
            pipeline: 1,
            reply_max: 1 << 20,
            cwd: None,
            env: vec![],
            stop_timeout: Duration::from_secs(2),
            min_uptime: Duration::from_secs(1),
            wiring: Wiring { io: Io::Auto, fds: Fds::Standard, unbuffer: Unbuffer::Off },
            bounds: Bounds {
                env_clear: false,
                user: None,
                group: None,
                no_new_privs: false,
                limits: no_limits(),
                cpu_affinity: Processors::Any,
                nice: 0,
                cgroup: Cgroup::Auto,
            },
            recycle: Recycle {
                requests_max: None,
                age_max: None,
                memory_max: None,
                jitter: 15,
                share: 20,
            },
            socket: HttpSocket::Inherited,
            ready: Ready::Start,
            start_timeout: Duration::from_secs(30),
            first_byte_timeout: Duration::ZERO,
            slowlog_timeout: Duration::ZERO,
            send_timeout: Duration::ZERO,
            exit_message: ExitMessage::Auto,
        })),
        workers: Workers {
            min: 2,
            max: 20,
            spare: 2,
            idle_timeout: Duration::from_secs(30),
            grow_after: Duration::from_millis(10),
            grow_above: None,
        },
        queue: queue(),
        balance: BalanceMethod::RoundRobin,
        batch: Batch { rows: 1, bytes: 1 << 20, timeout: Duration::ZERO },
        then: Some("store".into()),
        response_timeout: Duration::from_secs(30),
        idempotent: Idempotent::Methods,
        response: ResponseLimits { head_max: 32 << 10, fields_max: 100 },
        balancing: Balancing::default(),
    }
}

fn no_limits() -> Limits {
    Limits {
        files: None,
        processes: None,
        core: None,
        cpu_time: None,
        memory: None,
        address_space: None,
        file_size: None,
        stack: None,
    }
}

fn database() -> Pool {
    Pool {
        name: "store".into(),
        worker: Worker::Database(Box::new(Database {
            target: Target::Sqlite(PathBuf::from("hits.db")),
            action: Action::Insert(Insert {
                table: "hits".into(),
                columns: vec!["at".into(), "path".into(), "status".into()],
                on_conflict: OnConflict::Nothing,
                key: vec!["at".to_owned()],
            }),
            create: None,
            input_format: InputFormat::Json,
            ack: "ok".into(),
            durability: Durability::Full,
            lock_timeout: Duration::from_secs(5),
            retry_timeout: Duration::from_secs(10),
            resend: true,
            dead_letter_table: None,
            affected: Affected::Row,
            unknown_fields: UnknownFields::Reject,
            log_error_details: false,
            password: None,
            tls: Tls::Auto,
            tls_ca: None,
            connect_timeout: Duration::from_secs(5),
        })),
        workers: Workers {
            min: 1,
            max: 1,
            spare: 0,
            idle_timeout: Duration::from_secs(30),
            grow_after: Duration::from_millis(10),
            grow_above: None,
        },
        queue: queue(),
        balance: BalanceMethod::RoundRobin,
        batch: Batch { rows: 1000, bytes: 1 << 20, timeout: Duration::from_millis(2) },
        then: None,
        response_timeout: Duration::from_secs(30),
        idempotent: Idempotent::Methods,
        response: ResponseLimits { head_max: 32 << 10, fields_max: 100 },
        balancing: Balancing::default(),
    }
}

#[test]
fn the_example_of_the_design_is_read_whole() {
    assert_eq!(read(EXAMPLE), example());
}

/// A file, and behind each option the fields that it fills.
const FIELDS: &str = r#"
[daemon]
drain_timeout = "0s"                    # drain_timeout: 0ns
shards = "auto"                         # shards: Auto
event = "select"                        # event: Select
[listener.main]
listen = "unix:run/main.sock"           # listen: Unix("run/main.sock")
pool = "echo"                           # pool: Some("echo")
protocol = "lines"                      # protocol: Frames(Lines)
reply = "status"                        # reply: Status
half_close = "left"                     # half_close: Left
last_line = "accept"                    # last_line: Accept
connections_max = 5                     # connections_max: 5,
frame_max = 100                         # frame_max: 100,
in_flight_max = 2                       # in_flight_max: 2,
reply_held_max = "2KiB"                 # reply_held_max: 2048,
send_max = "3MiB"                       # send_max: 3145728,
idle_timeout = "off"                    # idle_timeout: 0ns
request_read_timeout = "250ms"          # request_read_timeout: 250ms
send_timeout = "1h"                     # send_timeout: 3600s
backlog = 16                            # backlog: 16,
[pool.echo]
program = ["cat", ""]                   # command: ["cat", ""]
workers = "2..20"                       # min: 2, max: 20, spare: 0,
queue = { max_requests = 7, max_bytes = "1GiB", timeout = "1m" } # requests_max: 7, bytes_max: 1073741824, timeout: 60s
balance = "least-requests"              # balance: LeastRequests
response_timeout = "2s"                 # response_timeout: 2s
framing = "lines"                       # framing: Lines
pipeline = 8                            # pipeline: 8,
reply_max = "64KiB"                     # reply_max: 65536,
cwd = "scripts"                         # cwd: Some("scripts")
env = { B = "2", A = "" }               # env: [("B", "2"), ("A", "")]
stop_timeout = "0s"                     # stop_timeout: 0ns
min_uptime = "0s"                       # min_uptime: 0ns
env_clear = true                        # env_clear: true
io = "socket"                           # io: Socket
fds = "3/4"                             # fds: ThreeFour
unbuffer = "stdbuf"                     # unbuffer: Stdbuf
user = "nobody"                         # user: Some("nobody")
group = "65534"                         # group: Some("65534")
no_new_privs = true                     # no_new_privs: true
limits.files = 64                       # files: Some(64)
limits.processes = 10                   # processes: Some(10)
limits.memory = "1GiB"                  # memory: Some(1073741824)
limits.address_space = "2GiB"           # address_space: Some(2147483648)
limits.cpu_time = "1m"                  # cpu_time: Some(60s)
limits.core = 0                         # core: Some(0)
limits.file_size = "1MiB"               # file_size: Some(1048576)
limits.stack = "8MiB"                   # stack: Some(8388608)
cpu_affinity = [0, 2]                   # cpu_affinity: List([0, 2])
nice = 10                               # nice: 10,
cgroup = "/sys/fs/cgroup/roadstead"     # cgroup: Under("/sys/fs/cgroup/roadstead")
ready = "line"                          # ready: Line
start_timeout = "3s"                    # start_timeout: 3s
first_byte_timeout = "1s"               # first_byte_timeout: 1s
slowlog_timeout = "500ms"               # slowlog_timeout: 500ms
send_timeout = "4s"                     # send_timeout: 4s
exit_message = "tail"                   # exit_message: Tail
recycle.max_requests = 1000             # requests_max: Some(1000)
recycle.max_age = "1h"                  # age_max: Some(3600s)
recycle.max_memory = "100MiB"           # memory_max: Some(104857600)
recycle.jitter = "30%"                  # jitter: 30,
recycle.share = "50%"                   # share: 50 }
[pool.store]
database = "sqlite:/var/lib/hits.db"    # target: Sqlite("/var/lib/hits.db")
statement = "insert into hits values (:at)" # action: Statement("insert into hits values (:at)")
create = "create table if not exists hits (at)" # create: Some("create table if not exists hits (at)")
input_format = "json"                   # input_format: Json
ack = "ok {id}"                         # ack: "ok {id}"
durability = "normal"                   # durability: Normal
lock_timeout = "1s"                     # lock_timeout: 1s
workers = 3                             # min: 3, max: 3,
order = "any"
batch.rows = 10                         # rows: 10, bytes: 1024, timeout: 0ns
batch.bytes = "1KiB"                    # bytes: 1024,
"#;

#[test]
fn each_option_fills_its_field() {
    let read = read(FIELDS);
    let sections = [
        format!("{:?}", read.daemon),
        format!("{:?}", read.listeners[0]),
        format!("{:?}", read.pools[0]),
        format!("{:?}", read.pools[1]),
    ];
    for (text, section) in FIELDS.split("\n[").skip(1).zip(sections) {
        for (option, field) in text.lines().filter_map(|line| line.split_once(" # ")) {
            assert!(section.contains(field), "{option}: {section}");
        }
    }
}

#[test]
fn threads_of_handlers_are_woken_in_their_order_unless_something_else_is_given() {
    let handler = "[pool.own]\nhandler = \"own\"\n";
    let given = format!("{handler}balance = \"round-robin\"\n");
    for (pool, schedule) in [
        (handler, BalanceMethod::First),
        (&given, BalanceMethod::RoundRobin),
        ("[pool.own]\nprogram = [\"cat\"]\n", BalanceMethod::RoundRobin),
    ] {
        let text = format!("[listener.main]\nlisten = \":7000\"\npool = \"own\"\n{pool}");
        assert_eq!(read(&text).pools[0].balance, schedule, "{pool}");
    }
}

#[test]
fn a_number_of_workers_above_the_default_limit_raises_the_limit() {
    let pool = "[pool.a]\nprogram = [\"cat\"]\nworkers";
    assert_eq!(read(&format!("{pool} = 7\n")).pools[0].workers.max, 7);
    assert_eq!(read(&format!("{pool} = {{ min = 7 }}\n")).pools[0].workers.max, 7);
    assert_eq!(read(&format!("{pool} = {{ min = 2 }}\n")).pools[0].workers.max, 4);
    assert_eq!(read(&format!("{pool}.max = 2\n")).pools[0].workers.min, 1);
}

#[test]
fn a_command_line_is_the_same_configuration_as_a_file() {
    let flag = |path: &str, value: FlagValue, shown: &str| Flag {
        path: path.into(),
        value,
        shown: shown.into(),
    };
    let flags = [
        flag("listener.main.listen", FlagValue::Text(":7000".into()), "--listen :7000"),
        flag("listener.main.pool", FlagValue::Text("main".into()), ""),
        flag("pool.main.workers", FlagValue::Text("2..20".into()), "--workers 2..20"),
        flag("pool.main.pipeline", FlagValue::Integer(8), "--pipeline 8"),
        flag("pool.main.env", FlagValue::Table(vec![("A".into(), "b".into())]), "--env A=b"),
        flag(
            "pool.main.program",
            FlagValue::List(vec!["perl".into(), "parse.pl".into()]),
            "-- perl parse.pl",
        ),
    ];
    let file = read(
        "[listener.main]\nlisten = \":7000\"\npool = \"main\"\n[pool.main]\nworkers = \"2..20\"\n\
         pipeline = 8\nenv = { A = \"b\" }\nprogram = [\"perl\", \"parse.pl\"]\n",
    );
    assert_eq!(from_flags(&flags).unwrap(), file);
}

#[test]
fn retries_are_set_for_servers_and_programs_that_serve_http() {
    for worker in ["servers = [\"127.0.0.1:1\"]", "program = [\"cat\"]\nframing = \"http\""] {
        let read = read(&format!(
            "[listener.main]\nlisten = \":7000\"\npool = \"echo\"\nprotocol = \"http\"\n[pool.echo]\n{worker}\n\
             retries = {{ tries = 5, budget = \"50%\", min_retries = 2 }}\n"
        ));
        let retries = read.pools[0].balancing.retries;
        assert_eq!((retries.tries, retries.budget, retries.min_retries), (5, 50, 2));
    }
}

#[test]
fn a_number_of_shards_is_read() {
    let pool = "[pool.echo]\nprogram = [\"cat\"]\n";
    assert_eq!(read(pool).daemon.shards, Shards::Count(1));
    assert_eq!(read(&format!("{pool}[daemon]\nshards = 64\n")).daemon.shards, Shards::Count(64));
}
