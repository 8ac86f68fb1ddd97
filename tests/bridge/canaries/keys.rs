//! Private keys are known by their look: an agent may read one that acpipe never got.

use super::records;
use crate::harness::run::Run;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::json;
use std::fs;

#[test]
fn private_keys_that_an_agent_reads_stand_in_no_log_or_tape() {
    let (_records, paths, args) = records();
    let body =
        "Zmlyc3RMaW5lT2ZUaGVLZXlPZk5vS25vd25LaW5kQXRBbGwx\nc2Vjb25kTGluZU9mVGhlS2V5QWJDZA==\n";
    let other = "QW5vdGhlcktleVRoYXRBY3BpcGVLbm93c09mVGhlVmFyaWFi\n";
    let key = |kind: &str, body: &str| {
        format!("-----BEGIN {kind}PRIVATE KEY-----\n{body}-----END {kind}PRIVATE KEY-----\n")
    };
    let nested = json!({"private_key": key("", body)}).to_string();
    let texts = [key("OPENSSH ", body), key("RSA ", body), nested];
    let mut steps: Vec<_> = texts.iter().map(|text| say(text)).collect();
    // Each line of stderr is logged alone.
    steps.push(json!({"stderr": key("ENCRYPTED ", body)}));
    steps.extend([say("the-marker"), end("end_turn")]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut s = Server::launch(World::new(), &args, Framing::Lines, &[]);
    s.call("initialize", &json!({"protocolVersion": 1}));
    let script = s.world.script(&json!({"session/prompt": [steps]}));
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script]}),
    );
    s.agent_states(&["starting", "ready"]);
    s.call(
        "agent/updateEnvironment",
        &json!({"set": {"DEPLOY_ID": key("EC ", other)}}),
    );
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
    let env = s.call("agent/getEnvironment", &json!({}));
    assert_eq!(env["env"]["DEPLOY_ID"], "[redacted]", "{env}");
    s.ensure("default");
    s.prompt("go");
    s.finish();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        for part in ["Zmlyc3RMaW5l", "c2Vjb25kTGluZU9m", "QW5vdGhlcktleQ"] {
            assert!(!text.contains(part), "{path}: {part} in {text}");
        }
    }
    let log = fs::read_to_string(&paths[0]).unwrap();
    assert!(log.contains("-----END ENCRYPTED PRIVATE KEY-----"), "{log}");
    let tape = fs::read_to_string(&paths[1]).unwrap();
    assert!(tape.contains("the-marker") && tape.contains("PRIVATE KEY-----[hidden]"));
}

#[test]
fn lines_of_private_keys_behind_the_prefix_of_a_logger_stand_nowhere() {
    let line = |n: usize| format!("Zmlyc3RMaW5lT2ZUaGVLZXlPZk5vS25vd25LaW5k{n:08}");
    let mut steps = Vec::new();
    let mut crash = Vec::new();
    for prefix in ["[2026] INFO ", "> ", "\u{1b}[31m", "{\"line\":\""] {
        let write = |text: &str| json!({"stderr": format!("{prefix}{text}\"}}\n")});
        steps.push(write("-----BEGIN RSA PRIVATE KEY-----"));
        steps.extend((0..6).map(|n| write(&line(n))));
        steps.push(write("-----END CERTIFICATE-----"));
        steps.extend((6..9).map(|n| write(&line(n))));
        steps.push(write("-----END RSA PRIVATE KEY-----"));
        // Cut off before its end.
        crash = vec![write("-----BEGIN PRIVATE KEY-----"), write(&line(9))];
    }
    steps.extend(crash);
    steps.push(json!({"exit": 3}));
    let (_records, paths, args) = records();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let args = [&["run", "--session", "s"], &args[..], &["go"]].concat();
    let run = Run::new(&args).script(&json!({"session/prompt": [steps]}));
    let state = run.world.dir.join("state/sessions");
    let mut running = run.start();
    running.await_exit();
    let sessions = fs::read_dir(state)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut texts: Vec<String> = sessions
        .filter(|file| file.is_file())
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    assert!(texts.concat().contains("exit code 3"), "{texts:?}");
    texts.push(running.end().stderr);
    texts.extend(paths.map(|path| fs::read_to_string(path).unwrap()));
    for text in texts {
        assert!(!text.contains(&line(0)[..40]), "{text}");
    }
}
