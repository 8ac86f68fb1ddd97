//! Options of the command line and of the configuration in sessions that exist: they hold for a session that is opened,
//! and the receipt names those that a live session does not have.

use super::client::Client;
use super::{Daemon, with_agent};
use crate::acp::peer::Peer;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, calls};
use serde_json::{Value, json};

/// Script of an agent with the modes `plan`, `ask` and `code`, which can resume sessions.
fn script() -> Value {
    let modes = json!({"currentModeId": "ask", "availableModes": [
        {"id": "plan", "name": "Plan"}, {"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
    let can = json!({"sessionCapabilities": {"resume": {}, "close": {}}});
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": can}}]],
        "session/new": [[{"reply": {"sessionId": "fake-1", "modes": modes}}]],
        "session/resume": [[{"reply": {"modes": modes}}]],
        "session/close": [[{"reply": {}}]],
        "session/set_mode": [[{"reply": {}}]],
        "session/prompt": [[say("done"), end("end_turn")]],
    })
}

fn daemon() -> (Daemon, String) {
    Daemon::with_script(&script())
}

/// Returns the mode that the agent was set to last.
fn last_mode(daemon: &Daemon) -> Value {
    let log = daemon.world.log();
    let set = calls(&log, "session/set_mode");
    set.last().unwrap()["params"]["modeId"].clone()
}

fn differing(result: &Value) -> &Value {
    &result["recovery"]["differingSettings"]
}

/// Stores session `s` in the mode `code`.
fn leave(daemon: &Daemon, script: &str) {
    daemon.run(&with_agent("run --session s --mode code go", script), 0);
    assert_eq!(last_mode(daemon), "code");
}

fn open_with_prompt(client: &mut Client) {
    client.prompt("s");
}

fn open_with_setting(client: &mut Client) {
    // Sessions have options of their own, too, but the agent of this test has none.
    let option = json!({"sessionId": "s", "option": "x", "value": "y"});
    client.error("session/setOption", &option);
}

fn open_with_ensure(client: &mut Client) {
    let opened = client.ensure("s");
    assert_eq!(opened["state"]["modes"]["currentModeId"], "plan");
    assert_eq!(*differing(&opened), Value::Null);
}

#[test]
fn mode_of_the_command_line_holds_for_a_stored_session_however_a_client_opens_it() {
    let (daemon, script) = daemon();
    let opens: [fn(&mut Client); 3] = [open_with_prompt, open_with_setting, open_with_ensure];
    for open in opens {
        leave(&daemon, &script);
        let mut client = daemon.client(&["--mode", "plan", "--", FAKE_AGENT, &script]);
        open(&mut client);
        assert_eq!(last_mode(&daemon), "plan");
        client.call("session/close", &json!({"sessionId": "s"}));
    }
    leave(&daemon, &script);
    let editor = with_agent("acp --daemon --mode plan", &script);
    let mut editor = Peer::start(daemon.command(&editor));
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
    editor.result("initialize", &hello).unwrap();
    let place = json!({"sessionId": "s", "cwd": daemon.world.dir, "mcpServers": []});
    let loaded = editor.result("session/load", &place).unwrap();
    assert_eq!(loaded["modes"]["currentModeId"], "plan");
    editor.close().unwrap();
    editor.wait().unwrap();
    daemon.stop();
}

/// The session is opened again for the client that has opened it, and for another one with the same options.
#[test]
fn mode_that_was_set_after_the_opening_stays_when_the_session_is_opened_again() {
    let mut ends = script();
    ends["session/prompt"] = json!([[say("done"), end("end_turn"), {"exit": 1}]]);
    let (daemon, script) = Daemon::with_script(&ends);
    let options = ["--mode", "plan", "--", FAKE_AGENT, &script];
    let mut client = daemon.client(&options);
    client.ensure("s");
    let code = json!({"sessionId": "s", "mode": "code"});
    client.call("session/setMode", &code);
    open_with_prompt(&mut client);
    open_with_prompt(&mut client);
    assert_eq!(last_mode(&daemon), "code");
    let mut other = daemon.client(&options);
    assert_eq!(*differing(&other.ensure("s")), json!(["mode"]));
    let mut third = daemon.client(&["--mode", "code", "--", FAKE_AGENT, &script]);
    assert_eq!(*differing(&third.ensure("s")), Value::Null);
    daemon.stop();
}

/// The session was opened in `plan`, and another client changed it to `code`.
#[test]
fn receipt_compares_with_the_present_mode_of_a_live_session() {
    let (daemon, script) = daemon();
    let with_mode = |mode: &'static str| ["--mode", mode, "--", FAKE_AGENT, &script];
    let mut opener = daemon.client(&with_mode("plan"));
    opener.ensure("s");
    let mut plain = daemon.client(&["--", FAKE_AGENT, &script]);
    assert_eq!(*differing(&plain.ensure("s")), json!(["mode"]));
    let code = json!({"sessionId": "s", "mode": "Code"});
    plain.call("session/setMode", &code);
    assert_eq!(*differing(&opener.ensure("s")), json!(["mode"]));
    assert_eq!(*differing(&plain.ensure("s")), Value::Null);
    let mut other = daemon.client(&with_mode("Code"));
    assert_eq!(*differing(&other.ensure("s")), Value::Null);
    // The mode is in `notRestored` if the call itself names it.
    let named = json!({"sessionId": "s", "options": {"mode": "plan"}});
    let receipt = opener.call("session/ensure", &named);
    assert_eq!(receipt["recovery"]["notRestored"][0]["setting"], "mode");
    assert_eq!(*differing(&receipt), Value::Null);
    for (mode, is_said) in [("plan", true), ("code", false)] {
        let line = format!("run -q --daemon --mode {mode} --session s go");
        let output = daemon.run(&with_agent(&line, &script), 0);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.contains("cannot restore mode"), is_said, "{text}");
    }
    daemon.stop();
}

#[test]
fn next_prompt_names_the_mode_in_which_another_client_opened_the_session() {
    let (daemon, script) = daemon();
    let plain = ["--", FAKE_AGENT, &script];
    let mut first = daemon.client(&plain);
    let mut other = daemon.client(&["--mode", "plan", "--", FAKE_AGENT, &script]);
    let mut texts = |client: &mut Client, is_set: bool| {
        let place = json!({"sessionId": "s"});
        other.call("session/close", &place);
        other.ensure("s");
        if is_set {
            client.call(
                "session/setMode",
                &json!({"sessionId": "s", "mode": "code"}),
            );
        }
        client.chunks.clear();
        open_with_prompt(client);
        open_with_prompt(client);
        let chunks = client.chunks.remove("s").unwrap();
        let chunks = chunks.into_iter().map(|(_, _, chunk)| chunk);
        let notices =
            chunks.filter(|chunk| chunk["data"]["title"] == "The session has other settings");
        notices
            .map(|notice| notice["data"]["description"].clone())
            .collect::<Vec<_>>()
    };
    first.ensure("s");
    open_with_prompt(&mut first);
    let named = texts(&mut first, false);
    assert_eq!(named.len(), 1, "{named:?}");
    let text = named[0].as_str().unwrap();
    assert!(
        text.contains("differs from the client that sent this prompt in mode"),
        "{text}"
    );
    assert_eq!(texts(&mut first, true), [Value::Null; 0]);
    daemon.stop();
}
