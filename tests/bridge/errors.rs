//! Table of errors: every kind is provoked, with its code and name.

use crate::evidence;
use crate::harness::server::Server;
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::{FAKE_AGENT, claude};
use acpipe_model::error::ErrorKind;
use serde_json::{Value, json};

/// Evidence of an error kind.
enum Evidence {
    /// Error of an answer.
    Answer(Value),
    /// Error in a turn's summary.
    Turn(Value),
    /// Another test that provokes the kind: its file and its name.
    Elsewhere(&'static str, &'static str),
}

fn connect_error(params: &Value) -> Evidence {
    let mut s = Server::initialized(&[]);
    s.waive("agent/state");
    Evidence::Answer(s.call_error("agent/connect", params))
}

fn connect_error_of(script: &Value) -> Evidence {
    let mut s = Server::initialized(&[]);
    s.waive("agent/state");
    let script = s.world.script(script);
    let agent = json!({"command": FAKE_AGENT, "args": [script]});
    Evidence::Answer(s.call_error("agent/connect", &agent))
}

fn open_error(steps: &[Value]) -> Evidence {
    let mut s = Server::initialized(&[]);
    s.connect(&json!({"session/new": [steps]}));
    s.waive("agent/state");
    Evidence::Answer(s.call_error("session/ensure", &json!({})))
}

fn call_error(method: &str, params: &Value) -> Evidence {
    let mut s = Server::ready(&json!({}));
    Evidence::Answer(s.call_error(method, params))
}

fn raw_error(text: &str) -> Evidence {
    let mut s = Server::start(&[]);
    s.raw(text);
    Evidence::Answer(s.null_answer()["error"].clone())
}

fn turn_error(steps: &[Value]) -> Evidence {
    let mut s = Server::ready(&json!({"session/prompt": [steps]}));
    s.waive("agent/state");
    Evidence::Turn(s.prompt("x").summary["errors"][0].clone())
}

fn provoke(kind: ErrorKind) -> Evidence {
    let failure = |message: &str| json!({"error": {"code": -32603, "message": message}});
    match kind {
        ErrorKind::AgentNotFound => connect_error(&json!({"command": "no-such-agent-anywhere"})),
        ErrorKind::AgentStart => connect_error_of(&json!({"start": [{"exit": 1}]})),
        ErrorKind::Initialize => {
            connect_error_of(&json!({"initialize": [[{"reply": {"protocolVersion": 2}}]]}))
        }
        ErrorKind::AuthRequired => {
            open_error(&[json!({"error": {"code": -32000, "message": "sign in"}})])
        }
        ErrorKind::Session => open_error(&[failure("no")]),
        ErrorKind::AgentExited => open_error(&[json!({"exit": 1})]),
        ErrorKind::MaxTurns => turn_error(&[end("max_turn_requests")]),
        ErrorKind::EmptyTurn => turn_error(&[end("end_turn")]),
        ErrorKind::Timeout => hub("timeouts", "unanswered_initialize_times_out"),
        ErrorKind::Network => open_error(&[failure("connect ECONNREFUSED 127.0.0.1:1")]),
        ErrorKind::Malformed => open_error(&[json!({"reply": {"no": "session"}})]),
        ErrorKind::Streaming => open_error(&[json!({"closeStdout": true}), json!({"hang": true})]),
        ErrorKind::Overloaded => hub(
            "flood",
            "agent_that_does_not_read_its_stdin_is_stopped_as_overloaded",
        ),
        ErrorKind::Cancelled => {
            let mut s = Server::initialized(&[]);
            let script = s.world.script(&json!({"initialize": [[{"hang": true}]]}));
            let agent = json!({"command": FAKE_AGENT, "args": [script]});
            let connect = s.send("agent/connect", &agent);
            s.agent_states(&["starting"]);
            s.call("agent/disconnect", &json!({}));
            Evidence::Answer(s.error(&connect))
        }
        ErrorKind::InvalidTool => {
            let mut s = claude::server(&[], &json!({}));
            s.connect_claude(&json!({}));
            let options = json!({"allowedTools": ["Reed"]});
            Evidence::Answer(s.call_error("session/ensure", &json!({ "options": options })))
        }
        ErrorKind::Busy => {
            let [wait, stop] = until_cancelled();
            let mut s = Server::ready(&json!({"session/prompt": [[say("x"), wait, stop]]}));
            let id = s.send_prompt("default", "x");
            let second = json!({"message": "y", "whenBusy": "reject"});
            let error = s.call_error("session/prompt", &second);
            s.call("session/cancel", &json!({}));
            s.turn(&id);
            Evidence::Answer(error)
        }
        ErrorKind::OutOfOrder => {
            let mut s = Server::start(&[]);
            Evidence::Answer(s.call_error("agent/status", &json!({})))
        }
        ErrorKind::Forbidden => {
            let mut s = Server::ready(&json!({}));
            s.call("session/attach", &json!({"role": "observer"}));
            Evidence::Answer(s.call_error("session/prompt", &json!({"message": "x"})))
        }
        ErrorKind::SessionNotFound => call_error(
            "session/prompt",
            &json!({"sessionId": "none", "message": "x"}),
        ),
        ErrorKind::SessionExists => call_error("session/create", &json!({"sessionId": "default"})),
        ErrorKind::SessionLocked => hub("store", "two_programs_cannot_have_one_session"),
        ErrorKind::Storage => hub("faults", "full_disk_ends_the_turn_and_keeps_the_log_intact"),
        ErrorKind::TurnUnfinished => hub("store", "interrupted_turn_is_reported_and_can_rerun"),
        ErrorKind::MessageNotFound => call_error(
            "message/update",
            &json!({"messageId": "none", "message": {}}),
        ),
        ErrorKind::MessageExists => hub("store", "messages_are_added_changed_listed_and_cleared"),
        ErrorKind::ResourceNotFound | ErrorKind::Resource => {
            hub("hosting/files", "host_request_errors_explain_the_cause")
        }
        ErrorKind::SchemaMismatch => {
            let mut s = Server::initialized(&[]);
            s.connect(&json!({}));
            let wish = json!({"message": "go", "outputSchema": {"type": "integer"}});
            let id = s.send("execute", &wish);
            Evidence::Turn(s.turn(&id).summary["errors"][0].clone())
        }
        ErrorKind::InvalidParams => call_error("session/prompt", &json!({})),
        ErrorKind::MethodNotFound => call_error("no/such/method", &json!({})),
        ErrorKind::InvalidRequest => raw_error("{}"),
        ErrorKind::Parse => raw_error("{"),
        // Only a bug in acpipe provokes it, so a test within the library simulates one.
        ErrorKind::Internal => Evidence::Elsewhere(
            "crates/core/src/hub/tests/panics.rs",
            "panic_in_a_command_is_answered",
        ),
        ErrorKind::DuplicateAgent => {
            let mut s = Server::initialized(&[]);
            let definition = json!({"agent": "mine", "command": "some-agent"});
            s.call("agent/register", &definition);
            Evidence::Answer(s.call_error("agent/register", &definition))
        }
    }
}

/// Evidence in another test of this program.
fn hub(file: &str, test: &'static str) -> Evidence {
    let file = match file {
        "timeouts" => "tests/bridge/timeouts.rs",
        "faults" => "tests/bridge/faults.rs",
        "flood" => "tests/bridge/flood.rs",
        "hosting/files" => "tests/bridge/hosting/files.rs",
        "store" => "tests/bridge/store.rs",
        other => panic!("tests/bridge/{other}.rs"),
    };
    Evidence::Elsewhere(file, test)
}

#[test]
fn every_kind_of_error_is_provoked() {
    for &kind in ErrorKind::ALL {
        let name = kind.name();
        let seen = provoke(kind);
        match seen {
            Evidence::Answer(error) => {
                assert_eq!(error["code"], kind.rpc_code(), "{name}: {error}");
                assert_eq!(error["data"]["kind"], name, "{error}");
                let message = error["message"].as_str().unwrap();
                assert!(!message.is_empty() && !message.contains('\n'), "{message}");
            }
            Evidence::Turn(error) => {
                assert_eq!(error["kind"], name, "{error}");
                let message = error["message"].as_str().unwrap();
                assert!(!message.is_empty() && !message.contains('\n'), "{message}");
                assert!(error["data"].is_object(), "{error}");
            }
            Evidence::Elsewhere(path, test) => {
                let body = evidence::body(path, test).unwrap_or_else(|why| panic!("{name}: {why}"));
                let spellings = [format!("\"{name}\""), format!(".{name}(")];
                let is_named = spellings.iter().any(|word| body.contains(word));
                assert!(is_named, "{path}: {test} does not name {name}");
            }
        }
    }
}

#[test]
fn error_messages_stay_on_one_line() {
    let long = format!("first line\nsecond line\r\n{}", "x".repeat(10_000));
    let script = json!({
        "session/new": [[{"error": {"code": 1, "message": long, "data": {"details": "a\nb"}}}], [{"default": true}]],
        "session/prompt": [
            [{"error": {"code": 1, "message": long}}],
            [{"stderr": "one\ntwo\n\n\n"}, {"exit": 1}],
        ],
    });
    let mut s = Server::initialized(&[]);
    s.connect(&script);
    s.waive("agent/state");
    let mut messages: Vec<String> = Vec::new();
    let mut note = |error: &Value| messages.push(error["message"].as_str().unwrap().to_owned());
    let error = s.call_error("session/ensure", &json!({}));
    note(&error);
    assert!(error["data"].to_string().len() < 5000);
    s.ensure("default");
    for _ in 0..2 {
        let turn = s.prompt("x");
        note(&turn.summary["errors"][0]);
        assert!(turn.summary["errors"][0]["data"].to_string().len() < 5000);
    }
    for message in messages {
        assert!(!message.contains(['\n', '\r']), "{message:?}");
        assert!(message.len() < 2500, "{}", message.len());
    }
}
