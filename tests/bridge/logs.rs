//! Logs: their destination, their content, and what they must hide.

use crate::harness::run::Run;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{World, claude as cli};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// Long enough to be treated as a secret, but of no known format.
const SECRET: &str = "hunter-2-and-3";

/// Script of a turn with a body of each kind.
fn bodies() -> Value {
    json!({
        "session/new": [[{"stderr": "the-stderr-body"}, {"reply": {"sessionId": "a"}}]],
        "session/prompt": [[
            {"line": "{\"the-malformed-body"},
            {"line": "{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{\"code\":1,\"message\":\"the-unasked-body\"}}"},
            say("the-answer-body"),
            end("end_turn")
        ]],
    })
}

#[test]
fn no_body_is_logged_above_debug() {
    for (level, shown) in [
        ("error", false),
        ("warn", false),
        ("info", false),
        ("debug", true),
    ] {
        let run = Run::new(&["run", "--log-level", level, "the-prompt-body"]);
        let outcome = run.script(&bodies()).go().expect(0);
        let log = outcome.stderr;
        for body in ["the-stderr-body", "the-malformed-body", "the-unasked-body"] {
            assert_eq!(log.contains(body), shown, "{level}: {body} in {log}");
        }
        assert!(
            level == "error" || log.contains("skipped"),
            "{level}: {log}"
        );
        assert_eq!(
            log.contains("process of the agent started"),
            level == "info" || shown
        );
    }
}

#[test]
fn log_file_collects_run_and_serve() {
    let world = World::new();
    let file = world.dir.join("acpipe.log");
    let name = file.to_str().unwrap();
    let args = [
        "--log-file",
        name,
        "--log-level",
        "info",
        "--log-format",
        "json",
    ];
    let run = Run::new(&[&["run"], &args[..], &["hello"]].concat());
    let outcome = run.script(&bodies()).go().expect(0);
    assert_eq!(outcome.stderr, "");
    let first = fs::read_to_string(&file).unwrap();
    let mut s = Server::launch(World::new(), &args, Framing::Lines, &[]);
    s.initialize();
    s.connect(&json!({}));
    let end = s.finish();
    assert_eq!(end.stderr, "");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with(&first) && text.len() > first.len(),
        "{text}"
    );
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        for field in ["timestamp", "level", "target", "message"] {
            assert!(line[field].is_string(), "{line}");
        }
    }
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn no_log_shows_a_secret() {
    let says = format!("key={SECRET}, sk-ant-0123456789abcdefgh, \"quo\\\"ted-secret\"");
    for format in ["text", "json"] {
        let world = World::new();
        let args = [
            "--log-level",
            "trace",
            "--log-format",
            format,
            "-e",
            "OWN=own-secret",
        ];
        let inherited = [("MY_API_KEY", "inherited-secret")];
        let mut s = Server::launch(world, &args, Framing::Lines, &inherited);
        s.initialize();
        let hello =
            json!({"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": true}}});
        let script = s.world.script(
            &json!({"initialize": [[{"reply": hello}]], "session/new": [[
                {"stderr": says},
                {"stderr": " header-secret own-secret inherited-secret plain-words"},
                {"line": format!("no frame: {says} header-secret")},
                {"reply": {"sessionId": "a"}}
            ]]}),
        );
        let connect = json!({"command": crate::harness::FAKE_AGENT, "args": [script],
            "env": {"A": SECRET, "B": "quo\"ted-secret"}});
        s.call("agent/connect", &connect);
        s.agent_states(&["starting", "ready"]);
        let server = json!({"type": "http", "name": "m", "url": "http://h",
            "headers": [{"name": "X", "value": "header-secret"}]});
        s.call("session/ensure", &json!({"mcpServers": [server]}));
        let log = s.finish().stderr;
        assert!(
            log.contains("plain-words") && log.contains("no frame"),
            "{log}"
        );
        assert!(log.contains("[hidden]"), "{log}");
        for secret in [
            SECRET,
            "0123456789",
            "ted-secret",
            "header-secret",
            "own-secret",
            "inherited-secret",
        ] {
            assert!(!log.contains(secret), "{format}: {secret} in {log}");
        }
    }
}

#[test]
fn claude_frames_are_logged_like_acp_frames() {
    let steps =
        json!([{"stderr": format!("the-stderr-body {SECRET}")}, {"say": "the-answer-body"}]);
    for (level, shown) in [("info", false), ("debug", true)] {
        let mut s = cli::server(&["--log-level", level], &json!({}));
        s.waive("session/state");
        let env = json!({"A": SECRET});
        s.call("agent/connect", &json!({"protocol": "claude", "env": env}));
        s.agent_states(&["starting", "ready"]);
        s.ensure("default");
        s.steps(&steps);
        let log = s.finish().stderr;
        assert!(!log.contains("the-answer-body"), "{log}");
        assert!(!log.contains(SECRET), "{log}");
        assert_eq!(log.contains("the-stderr-body"), shown, "{log}");
    }
}

#[test]
fn levels_are_chosen_by_flag_and_variable() {
    let stderr = |args: &[&str], level: &str| {
        let mut run = Run::new(&["run", "hello"]);
        for arg in args {
            run = run.arg(arg);
        }
        let run = run.env("ACPIPE_LOG", level);
        run.script(&bodies()).go().expect(0).stderr
    };
    let (warns, tells) = ("skipped", "process of the agent started");
    let cases: [(&[&str], &str, bool, bool); 7] = [
        (&[], "off", false, false),
        (&[], "warn", true, false),
        (&[], "off,acpipe_host=info", false, true),
        (&["-v"], "off", true, true),
        (&["-q"], "info", false, false),
        (&["--log-level", "info"], "off", true, true),
        (&["--log-level", "error"], "trace", false, false),
    ];
    for (args, level, warned, told) in cases {
        let log = stderr(args, level);
        assert_eq!(log.contains(warns), warned, "{args:?} {level}: {log}");
        assert_eq!(log.contains(tells), told, "{args:?} {level}: {log}");
    }
    let outcome = Run::new(&["run", "x"])
        .env("ACPIPE_LOG", "loud")
        .go()
        .expect(2);
    assert!(
        outcome.stderr.contains("not a log level"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn unusable_log_file_is_a_usage_error() {
    let outcome = Run::new(&["run", "--log-file", "/no/such/dir/log", "x"])
        .go()
        .expect(2);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("/no/such/dir/log"),
        "{}",
        outcome.stderr
    );
}
