//! Programs whose last frame has no end: cut by their exit, or by silence, in each framing that could take the
//! following bytes for the rest of the frame. Also a program that exits before its last output is read.

use std::fs;

use crate::daemon::{Daemon, folder, is_alive, until};
use crate::framings::serve;

/// A listener and a framing, the request, half a frame, and a complete one with its answer.
struct Cut {
    listener: &'static str,
    framing: &'static str,
    asked: &'static str,
    half: &'static str,
    whole: &'static str,
    answer: &'static str,
}

const CUTS: [Cut; 4] = [
    Cut {
        listener: "lines",
        framing: "len4",
        asked: "a\n",
        half: r"\0\0\0\012half",
        whole: r"\0\0\0\005whole",
        answer: "whole",
    },
    Cut {
        listener: "lines",
        framing: "netstring",
        asked: "a\n",
        half: r"10:half",
        whole: r"5:whole,",
        answer: "whole",
    },
    // Complete except for its last byte.
    Cut {
        listener: "lines",
        framing: "netstring",
        asked: "a\n",
        half: r"4:half",
        whole: r"5:whole,",
        answer: "whole",
    },
    Cut {
        listener: "jsonrpc",
        framing: "content-length",
        asked: "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\"}\n",
        half: r#"Content-Length: 20\r\n\r\n{"id":7,"res"#,
        whole: r#"Content-Length: 19\r\n\r\n{"id":7,"result":1}"#,
        answer: "{\"id\":7,\"result\":1}",
    },
];

/// Starts a program whose first process answers with half a frame and then acts as given. Each later process answers
/// with a complete frame.
fn serve_cut(folder: &std::path::Path, cut: &Cut, then: &str) -> Daemon {
    let mark = folder.join("first");
    let mark = mark.display();
    let program = format!(
        "dd bs=1 count=1 of={mark}.asked 2>&-; if [ -e {mark} ]; then printf '%b' '{}'; exec sleep 1000; fi; \
         : > {mark}; printf '%b' '{}'; {then}",
        cut.whole, cut.half
    );
    let framing = cut.framing;
    // Longer than the 2 s after which a program that has never answered is checked.
    let pool = format!(
        "framing = \"{framing}\"\ndispatch = \"in-order\"\nworkers = 1\nresponse_timeout = \"2500ms\"\nmin_uptime = \"0s\"\n"
    );
    serve(folder, cut.listener, &["sh", "-c", &program], &pool)
}

#[test]
fn half_a_frame_is_no_answer_and_its_rest_is_not_the_next_ones() {
    for cut in &CUTS {
        for (then, cause) in [("exit 0", "died"), ("exec sleep 1000", "deadline")] {
            let folder = folder();
            let daemon = serve_cut(folder.path(), cut, then);
            let (mut one, mut next) = (daemon.connect(), daemon.connect());
            one.send(cut.asked);
            let told = one.line();
            assert!(
                told.contains(cause) && !told.contains("half"),
                "{} {then}: {told}",
                cut.framing
            );
            next.send(cut.asked);
            assert_eq!(next.line(), cut.answer, "{} {then}", cut.framing);
        }
    }
}

#[test]
fn what_a_program_said_last_is_read_though_it_has_exited() {
    let folder = folder();
    let go = folder.path().join("go");
    // It fits into a pipe, so the program does not wait for its reader.
    let program = format!(
        "$| = 1; my $asked = <STDIN>; select(undef, undef, undef, 0.01) until -e '{}'; \
         print 'x' x 60000, \"\\n\"; exit 3",
        go.display()
    );
    let pool = "workers = 1\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", &program], pool);
    let mut client = daemon.connect();
    client.send("a\n");
    until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    let program = daemon.programs()[0];
    daemon.stopped(|| {
        fs::write(&go, "").unwrap();
        until("it has exited, and nobody has read it", || !is_alive(program));
    });
    assert_eq!(client.line(), "x".repeat(60_000));
    // The same for the next one.
    assert_eq!(client.ask("b").len(), 60_000);
}
