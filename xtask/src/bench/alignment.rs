//! `bench programs --only alignment`: the cost of watching programs for unsolicited lines, and how many replies reach
//! the wrong client before the mismatch is detected.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::clients::{connect, on_threads};
use super::driver::Part;
use super::goals::at_most;
use super::ground::Ground;
use super::page::{Template, row};
use super::server::Server;
use crate::shell::{self, Failure};
use serde_json::{Value, json};

/// The share of throughput that `auto` may cost.
const COST_MAX: f64 = 0.03;
/// The time after which the programs of a pool have ended their probation.
const WARM_UP: Duration = Duration::from_secs(2);
/// Replies to each of the two clients of a program that prints stray lines.
const REPLIES: u32 = 2000;
/// The maximum time for these replies.
const TIME_MAX: Duration = Duration::from_secs(8);

/// A program that prints a stray line before one of `every` replies, and the reply this number of seconds later.
const STRAY: &str = "import random, sys, time\n\
    every, delay = int(sys.argv[1]), float(sys.argv[2])\n\
    for line in sys.stdin:\n    \
        if random.randrange(every) == 0:\n        \
            sys.stdout.write('cache miss\\n')\n        \
            sys.stdout.flush()\n        \
            time.sleep(delay)\n    \
        sys.stdout.write(line)\n    \
        sys.stdout.flush()\n";

/// The values of `alignment` that are compared.
const MODES: [&str; 2] = ["auto", "off"];

pub(super) fn measure(ground: &Ground, text: Template) -> Result<Part, Failure> {
    let (mut rows, mut goals) = (String::new(), Vec::new());
    let shapes = ["near", "any"].map(|cpu| [(1, 2), (1, 16), (4, 16)].map(|shape| (cpu, shape)));
    for (cpu, (workers, clients)) in shapes.into_iter().flatten() {
        let name = format!("{workers} programs ({cpu}), {clients} clients");
        let trial = ground
            .rounds(&name, &MODES, |_, at| throughput(ground, MODES[at], cpu, workers, clients))?;
        // The share of throughput that is lost, in percent.
        let cost = trial.ratio("lines_s", "off", "auto").map(|ratio| (1.0 - 1.0 / ratio) * 100.0);
        let [auto, off] = MODES.map(|mode| trial.of(mode, "lines_s").shown());
        rows += &row(&[&cpu, &workers, &clients, &auto, &off, &format!("{} %", cost.shown())]);
        let goal = format!(
            "`alignment = \"auto\"` with {workers} `cat` and {clients} clients, `cpu_affinity = \"{cpu}\"`, costs at most 3 % of throughput"
        );
        goals.push(at_most(goal, cost.median, COST_MAX * 100.0));
    }
    let mut strayed = String::new();
    for (every, share) in [(1, "100 %"), (20, "5 %"), (1000, "0.1 %")] {
        for delay_ms in [0, 2, 20] {
            let auto = misdirected(ground, "auto", every, delay_ms)?;
            let off = misdirected(ground, "off", every, delay_ms)?;
            strayed += &row(&[&share, &format!("{delay_ms} ms"), &auto, &off]);
            if every == 1 {
                let goal = format!(
                    "no reply is misdirected by a program that always strays, {delay_ms} ms"
                );
                goals.push((goal, auto.to_string(), auto.misdirected == 0));
            }
        }
    }
    let replies = 2 * REPLIES;
    let text = text.fill(
        "alignment",
        &[("throughput", &rows), ("misdirected", &strayed), ("replies", &replies)],
    );
    Ok(Part { goals, ..Part::text(text) })
}

/// Measures lines per second of this number of clients.
fn throughput(
    ground: &Ground,
    mode: &str,
    cpu: &str,
    workers: u32,
    clients: usize,
) -> Result<Value, Failure> {
    let pool = format!(
        "program = [\"cat\"]\nworkers = {workers}\ncpu_affinity = \"{cpu}\"\nalignment = \"{mode}\"\n"
    );
    let server = start(ground, &pool)?;
    let from = Instant::now() + WARM_UP;
    let until = from + ground.window;
    let each = on_threads(clients, |who| {
        let mut lines = 0_u32;
        let mut client = Client::connect(&server.address)?;
        while Instant::now() < until {
            client.ask(&format!("{who} x"))?;
            lines += u32::from(Instant::now() >= from);
        }
        Ok(lines)
    })?;
    server.stop()?;
    let lines = f64::from(each.iter().sum::<u32>());
    Ok(json!({ "lines_s": lines / ground.window.as_secs_f64() }))
}

/// The replies that two clients of a program with stray lines received.
struct Strayed {
    misdirected: u32,
    of: u32,
}

impl fmt::Display for Strayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.misdirected, self.of)
    }
}

fn misdirected(ground: &Ground, mode: &str, every: u32, delay_ms: u32) -> Result<Strayed, Failure> {
    let program = ground.folder.join("stray.py");
    shell::write(&program, STRAY)?;
    let seconds = f64::from(delay_ms) / 1000.0;
    let pool = format!(
        "program = [\"python3\", {:?}, \"{every}\", \"{seconds}\"]\nworkers = 1\nmin_uptime = \"0s\"\n\
         alignment = \"{mode}\"\n",
        program.display().to_string()
    );
    let server = start(ground, &pool)?;
    let until = Instant::now() + TIME_MAX;
    let each = on_threads(2, |who| {
        let (mut misdirected, mut of) = (0, 0);
        let mut client = Client::connect(&server.address)?;
        for round in 0..REPLIES {
            if Instant::now() > until {
                break;
            }
            let reply = client.ask(&format!("client{who} {round}"))?;
            let owner = reply.strip_prefix("client");
            misdirected += u32::from(owner.is_some_and(|it| !it.starts_with(&format!("{who} "))));
            of += 1;
        }
        Ok((misdirected, of))
    })?;
    server.stop()?;
    let sum = |of: fn(&(u32, u32)) -> u32| each.iter().map(of).sum();
    let strayed = Strayed { misdirected: sum(|it| it.0), of: sum(|it| it.1) };
    eprintln!("{mode}, 1 of {every} replies, {delay_ms} ms: {strayed} misdirected");
    Ok(strayed)
}

fn start(ground: &Ground, pool: &str) -> Result<Server, Failure> {
    let text =
        format!("[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"main\"\n[pool.main]\n{pool}");
    ground.serve("alignment", &text)
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(address: &str) -> io::Result<Self> {
        connect(address).map(BufReader::new).map(Self)
    }

    fn ask(&mut self, line: &str) -> io::Result<String> {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes())?;
        let mut reply = String::new();
        match self.0.read_line(&mut reply)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(reply),
        }
    }
}
