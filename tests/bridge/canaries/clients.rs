//! Several clients of one daemon: what one of them passes stands in no log, error or output of another.

use super::{assert_silent, canary, forms};
use crate::daemon::Daemon;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::json;

#[test]
fn secret_of_a_client_stands_in_no_record_of_another() {
    let canaries = ["flag", "server", "register"].map(canary);
    let [flag, server, register] = &canaries;
    let said: Vec<String> = canaries.iter().flat_map(|canary| forms(canary)).collect();
    let world = World::new();
    let mut steps: Vec<_> = said
        .iter()
        .map(|form| json!({"stderr": format!("the-marker {form}")}))
        .collect();
    let crash = [steps.clone(), vec![json!({"exit": 3})]].concat();
    steps.extend([say("done"), end("end_turn")]);
    let script = world.script(&json!({"session/prompt": [steps, crash]}));
    let daemon = Daemon::start_in(world, &["--log-level", "trace"]);
    let variable = format!("FLAG={flag}");
    let mut first = daemon.client(&["-e", &variable, "--", FAKE_AGENT, &script]);
    let own = json!({"agent": "own", "command": FAKE_AGENT, "env": {"A": register}});
    first.call("agent/register", &own);
    let servers =
        json!([{"name": "m", "command": "m", "args": [], "env": [{"name": "A", "value": server}]}]);
    first.call(
        "session/ensure",
        &json!({"sessionId": "s", "mcpServers": servers}),
    );
    // Another client prompts in the session, in a process of its own with a log of its own.
    let log = daemon.world.dir.join("other.log");
    let log = log.to_str().unwrap();
    let run = |code: i32| {
        let args = [
            "run",
            "--daemon",
            "--session",
            "s",
            "--no-retry",
            "-o",
            "chunks",
            "--log-level",
            "trace",
            "--log-file",
            log,
            "go",
        ];
        let args = [&args[..], &["--", FAKE_AGENT, &script]].concat();
        let output = daemon
            .command(&args)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let texts = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy);
        assert_eq!(output.status.code(), Some(code), "{texts:?}");
        assert_silent("run", &texts.concat(), &canaries);
        texts.concat()
    };
    run(0);
    let shown = run(1);
    assert!(shown.contains("the-marker"), "{shown}");
    let mut second = daemon.client(&[]);
    for (method, params) in [
        ("session/list", json!({})),
        ("agent/list", json!({})),
        ("agent/status", json!({"agent": "own"})),
        ("session/get", json!({"sessionId": "s"})),
    ] {
        if let Some(answer) = second.try_call(method, &params) {
            assert_silent(method, &answer.to_string(), &canaries);
        }
    }
    let written = std::fs::read_to_string(log).unwrap_or_default();
    assert_silent("log of a client", &written, &canaries);
    let written = daemon.run(&["daemon", "logs", "--lines", "0"], 0).stdout;
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains("the-marker"), "{written}");
    assert_silent("log of the daemon", &written, &canaries);
    daemon.stop();
}
