//! Sessions of the Claude Code CLI: how they are restored, and sessions that the CLI created by itself.

use crate::harness::claude::{self, args};
use crate::harness::server::Server;
use crate::harness::{FAKE_CLAUDE, World};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const CLI: &[(&str, &str)] = &[("CLAUDE_CLI_PATH", FAKE_CLAUDE)];

fn restart(s: Server) -> Server {
    let mut s = s.restart_in(&[], CLI);
    s.initialize();
    s.connect_claude(&json!({}));
    s
}

/// Returns the history files of the CLI's sessions.
fn files(world: &World) -> Vec<PathBuf> {
    let projects = fs::read_dir(world.dir.join("claude/projects")).unwrap();
    let dirs = projects.map(|dir| fs::read_dir(dir.unwrap().path()).unwrap());
    let files = dirs.flatten().map(|file| file.unwrap().path());
    files
        .filter(|file| file.extension().unwrap() == "jsonl")
        .collect()
}

fn failed(recovery: &Value) -> Vec<String> {
    let failed = recovery["failed"].as_array().unwrap().iter();
    failed
        .map(|f| {
            format!(
                "{} {}",
                f["rung"].as_str().unwrap(),
                f["kind"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn restored_claude_session_keeps_its_cost() {
    let mut s = claude::ready(&json!({}));
    assert_eq!(s.prompt("one").summary["cost"], 0.25);
    let mut s = restart(s);
    let ensured = s.ensure("default");
    assert_eq!(ensured["recovery"]["rung"], "resume");
    assert_eq!(ensured["recovery"]["memory"], "kept");
    let turn = s.prompt("two");
    assert_eq!(turn.summary["cost"], 0.25, "the CLI counts on");
    let loaded = s.call("message/list", &json!({}));
    assert_eq!(loaded["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn resume_adopts_messages_from_direct_use_of_the_cli() {
    let mut s = claude::ready(&json!({}));
    s.prompt("one");
    // Records as the CLI writes them when a user works in this session directly.
    let file = files(&s.world).remove(0);
    let text = fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let record = |role: &str, content: Value, uuid: &str, parent: &Value| {
        let mut record = last.clone();
        record["type"] = role.into();
        record["uuid"] = uuid.into();
        record["parentUuid"] = parent.clone();
        record["message"] = json!({"id": uuid, "role": role, "content": content});
        record
    };
    let asked = record("user", json!("by hand"), "u-1", &last["uuid"]);
    let said = json!([{"type": "text", "text": "answered"}]);
    let said = record("assistant", said, "u-2", &json!("u-1"));
    fs::write(&file, format!("{text}{asked}\n{said}\n")).unwrap();
    let mut s = restart(s);
    let recovery = s.ensure("default")["recovery"].clone();
    assert_eq!(recovery["rung"], "resume");
    assert_eq!(recovery["memory"], "kept");
    assert_eq!(recovery["replayed"], Value::Null);
    assert_eq!(
        (&recovery["adopted"], &recovery["messages"]),
        (&json!(2), &json!(4))
    );
    let history = s.call("message/list", &json!({}));
    let messages = history["messages"].as_array().unwrap();
    let texts = messages
        .iter()
        .map(|m| m["parts"].as_array().unwrap().last().unwrap()["text"].clone());
    assert_eq!(
        texts.collect::<Vec<_>>(),
        ["one", "one", "by hand", "answered"]
    );
    // The messages are known now.
    s.prompt("two");
    let mut s = restart(s);
    assert_eq!(s.ensure("default")["recovery"]["adopted"], 0);
    assert_eq!(s.prompt("three").summary["text"], "three");
}

#[test]
fn session_lost_by_claude_is_replaced() {
    let mut s = claude::ready(&json!({}));
    s.prompt("one");
    for file in files(&s.world) {
        fs::remove_file(file).unwrap();
    }
    let mut s = restart(s);
    let recovery = s.ensure("default")["recovery"].clone();
    assert_eq!(recovery["rung"], "new", "{recovery}");
    assert_eq!(recovery["memory"], "lost");
    let failed = failed(&recovery);
    assert_eq!(failed[0], "resume sessionNotFound");
    assert_eq!(failed.len(), 2, "{failed:?}");
    let turn = s.prompt("two");
    assert_eq!(turn.summary["text"], "two");
    assert_eq!(turn.summary["cost"], 0.25);
    // The process that was to load the session may log its start later.
    let processes = s.processes();
    let made = processes.iter().flat_map(|p| args(p, "--session-id="));
    assert_eq!(made.count(), 2);
}

#[test]
fn session_made_by_the_cli_is_listed_and_adopted() {
    let world = World::new();
    let real = world.dir.join("real dir");
    fs::create_dir(&real).unwrap();
    let link = world.dir.join("link");
    symlink(&real, &link).unwrap();
    let mut s = claude::launch(world, &[], &json!({}), &[]);
    s.connect_claude(&json!({}));
    let first = s.call("session/ensure", &json!({"sessionId": "mine", "cwd": real}));
    for said in ["hello", "more"] {
        let id = s.send_prompt("mine", said);
        assert_eq!(s.turn(&id).summary["text"], said);
    }
    s.call("session/clear", &json!({"sessionId": "mine"}));
    // The CLI names the directory of its sessions by the real path.
    for cwd in [&real, &link] {
        let list = s.call("session/list", &json!({"cwd": cwd, "agent": true}));
        let sessions = list["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{list}");
        assert_eq!(sessions[0]["state"], "foreign");
        assert_eq!(sessions[0]["agentSessionId"], first["agentSessionId"]);
    }
    let adopted = s.call(
        "session/ensure",
        &json!({"sessionId": "theirs", "cwd": link, "agentSessionId": first["agentSessionId"]}),
    );
    assert_eq!(adopted["recovery"]["rung"], "load", "{adopted}");
    assert_eq!(adopted["recovery"]["adopted"], 4);
    let list = s.call("message/list", &json!({"sessionId": "theirs"}));
    let said: Vec<&str> = list["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| {
            m["parts"]
                .as_array()
                .unwrap()
                .iter()
                .find_map(|p| p["text"].as_str())
                .unwrap()
        })
        .collect();
    assert_eq!(said, ["hello", "hello", "more", "more"]);
    let id = s.send_prompt("theirs", "on");
    assert_eq!(s.turn(&id).summary["text"], "on");
    let nobody =
        json!({"sessionId": "x", "agentSessionId": "22222222-2222-4222-8222-222222222222"});
    let error = s.call_error("session/ensure", &nobody);
    assert_eq!(error["data"]["kind"], "sessionNotFound");
}

#[test]
fn messages_of_a_session_of_the_cli_are_read_without_starting_it() {
    let mut s = claude::ready(&json!({}));
    let own = s.ensure("default")["agentSessionId"].clone();
    s.prompt("one");
    let cwd = std::env::current_dir().unwrap().display().to_string();
    // Nothing but the CLI's file has the session.
    s.call("session/clear", &json!({}));
    let mut s = s.restart_in(&[], CLI);
    s.initialize();
    let processes = s.processes().len();
    let of = json!({"agent": "claude", "agentSessionId": own, "cwd": cwd});
    let read = |s: &mut Server, more: Value| {
        let mut params = of.clone();
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        s.call("message/list", &params)
    };
    let page = read(&mut s, json!({}));
    let roles: Vec<&Value> = page["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant"]);
    // The file is read again for each call.
    let file = files(&s.world).remove(0);
    let text = fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let mut asked = last.clone();
    asked["type"] = "user".into();
    asked["uuid"] = "u-1".into();
    asked["parentUuid"] = last["uuid"].clone();
    asked["message"] = json!({"role": "user", "content": "by hand"});
    fs::write(&file, format!("{text}{asked}\n")).unwrap();
    let page = read(&mut s, json!({"after": page["messages"][1]["id"]}));
    assert_eq!(page["messages"][0]["parts"][0]["text"], "by hand", "{page}");
    assert_eq!((&page["total"], &page["more"]), (&json!(3), &json!(false)));
    assert_eq!(s.processes().len(), processes);
    let error = s.call_error(
        "message/list",
        &json!({"agent": "claude", "agentSessionId": "../x", "cwd": cwd}),
    );
    assert_eq!(error["data"]["field"], "agentSessionId");
    let error = s.call_error(
        "message/list",
        &json!({"agent": "claude", "agentSessionId": "missing", "cwd": cwd}),
    );
    assert_eq!(error["data"]["kind"], "sessionNotFound");
    let error = s.call_error(
        "message/list",
        &json!({"agentSessionId": own, "sessionId": "default"}),
    );
    assert_eq!(error["data"]["field"], "agentSessionId");
}

#[test]
fn session_clear_deletes_the_file_of_its_session_only() {
    let mut s = claude::ready(&json!({}));
    s.prompt("one");
    let cwd = s.world.dir.display().to_string();
    s.call("session/ensure", &json!({"sessionId": "other", "cwd": cwd}));
    let id = s.send_prompt("other", "two");
    s.turn(&id);
    assert_eq!(files(&s.world).len(), 2);
    let other = s.call("session/get", &json!({"sessionId": "other"}));
    s.call("session/clear", &json!({"deleteAgentFiles": true}));
    let left = files(&s.world);
    let name = format!("{}.jsonl", other["agentSessionId"].as_str().unwrap());
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].file_name().unwrap().to_str().unwrap(), name);
    // A link is not followed, and not deleted.
    let target = s.world.dir.join("target");
    fs::rename(&left[0], &target).unwrap();
    symlink(&target, &left[0]).unwrap();
    let error = s.call_error(
        "session/clear",
        &json!({"sessionId": "other", "deleteAgentFiles": true}),
    );
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("it is not a regular file"),
        "{error}"
    );
    assert!(target.exists());
}

#[test]
fn files_of_an_unknown_agent_are_not_deleted() {
    let mut s = Server::ready(&json!({}));
    let error = s.call_error("session/clear", &json!({"deleteAgentFiles": true}));
    assert_eq!(error["data"]["field"], "deleteAgentFiles", "{error}");
    let error = s.call_error("message/list", &json!({"agentSessionId": "x"}));
    assert_eq!(error["data"]["field"], "agentSessionId", "{error}");
    // Nothing was cleared.
    s.call("session/get", &json!({}));
}
