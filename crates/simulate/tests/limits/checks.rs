//! Programs that check servers.

use std::time::Duration;

use crate::script::Script;

#[test]
fn a_check_program_that_no_signal_ends_is_the_only_one_of_its_server() {
    // The scripted program ignores every signal.
    let mut script = Script::new(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"servers\"\n\
         [pool.servers]\nservers = [\"10.0.0.1:80\", \"10.0.0.2:80\"]\n\
         health_check = { check = \"program\", command = [\"scripted\"], interval = \"200ms\", timeout = \"200ms\" }\n",
    );
    script.pass(Duration::from_secs(60));
    assert_eq!(script.programs().len(), 2, "one for each server");
    let failed = script.metric("roadstead_health_check_failures_total", &[]);
    assert!(failed > 100, "{failed}: the check fails as long as it runs");
}
