//! The limit on requests that wait in the mailbox of a shard.

use crate::script::Script;

/// The maximum number of bytes that may wait there.
const MAX: usize = 64 << 20;
const LINE: usize = 16 << 20;

#[test]
fn requests_to_a_shard_that_does_not_take_them_hold_64_mib_and_the_next_one_is_rejected() {
    // Pools are assigned to the shards in turn, and the program of this one never starts: requests wait in its queue.
    let mut script = Script::on_shards(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"second\"\nframe_max = \"16MiB\"\n\
         [pool.first]\nprogram = [\"cat\"]\n[pool.second]\nprogram = [\"cat\"]\n\
         queue = { max_bytes = \"1GiB\", timeout = \"60s\" }\n",
        2,
    );
    let (large, small) = (script.connect_to(0, 1000), script.connect_to(0, 1000));
    let queued = |script: &Script| script.metric("roadstead_queue_length", &["second"]);
    let lines = (MAX / LINE) as u64;
    for round in 0..2 {
        script.held(1, |script| {
            let line = [vec![b'x'; LINE], vec![b'\n']].concat();
            for _ in 0..lines {
                script.say(large, &line);
            }
            let rejected = script.metric("roadstead_requests_finished_total", &["\"full\""]);
            assert_eq!((rejected, queued(script)), (round, round * lines));
            script.say(small, b"a\n");
            let said = script.taken(small);
            let said = said.lines().nth(usize::try_from(round).unwrap()).unwrap_or_default();
            assert!(said.starts_with("!full ") && said.contains("67108864"), "{said}");
        });
        // They are in the queue now, which has another limit.
        assert_eq!((queued(&script), script.taken(large).as_str()), ((round + 1) * lines, ""));
    }
    script.say(small, b"b\n");
    assert_eq!(queued(&script), 2 * lines + 1);
    assert_eq!(script.metric("roadstead_requests_finished_total", &["\"full\""]), 2);
}
