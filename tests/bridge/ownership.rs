//! Ownership of sessions: a session is found by name and directory, and continues with its agent.

use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{end, resumable, say};
use crate::harness::{FAKE_AGENT, World, calls};
use crate::sessions::Home;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// Creates a directory in the world and returns its path.
fn directory(world: &World, name: &str) -> String {
    let dir = world.dir.join(name);
    fs::create_dir(&dir).unwrap();
    dir.to_str().unwrap().to_owned()
}

/// Script of an agent that resumes every session.
fn resuming() -> Value {
    resumable(json!({"session/prompt": [[say("answer"), end("end_turn")]]}))
}

/// Returns method and directory of the last call that opened a session.
fn last_opening(log: &[Value]) -> (&str, &str) {
    let asked = log
        .iter()
        .rev()
        .find_map(|m| Some((m["method"].as_str()?, m["params"]["cwd"].as_str()?)));
    asked.unwrap()
}

#[test]
fn run_finds_a_session_by_name_in_its_directory() {
    let home = Home::answering();
    let [a, b] = ["a", "b"].map(|name| directory(&home.world, name));
    let run = |dir: &str, text: &str| {
        let run = home.run(&["--cwd", dir, "--session", "work", text]);
        run.go().expect(0)
    };
    let first = run(&a, "in a");
    assert_eq!(last_opening(&first.log), ("session/new", a.as_str()));
    assert_eq!(first.stderr, "");
    let second = run(&b, "in b");
    assert_eq!(last_opening(&second.log), ("session/new", b.as_str()));
    assert!(second.stderr.contains(&a), "{}", second.stderr);
    // One directory under several paths.
    let link = home.world.dir.join("link");
    symlink(&b, &link).unwrap();
    for dir in [
        format!("{b}/"),
        format!("{b}/../b/."),
        link.to_str().unwrap().to_owned(),
    ] {
        let again = run(&dir, "again");
        assert_eq!(last_opening(&again.log).0, "session/resume", "{dir}");
    }
    let ids = home.ids();
    assert_eq!((ids.len(), ids[1].as_str()), (2, "work"), "{ids:?}");
    let listed = home.sessions(&["list"]).expect(0).text();
    let full = &ids[0];
    for part in [&a, &b, full] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    // Names are looked up in the directory; the full id is found from everywhere.
    for (dir, text) in [(&a, "in a"), (&b, "in b")] {
        let shown = home.sessions(&["show", "work", "--cwd", dir]).expect(0);
        assert!(shown.text().contains(&format!("> {text}\n")), "{dir}");
    }
    let shown = home.sessions(&["show", full]).expect(0).text();
    assert!(shown.contains("> in b\n"), "{shown}");
    let there = home
        .run(&["--session", full, "from elsewhere"])
        .go()
        .expect(0);
    assert_eq!(last_opening(&there.log), ("session/resume", b.as_str()));
    assert!(there.stderr.contains(&b), "{}", there.stderr);
    // If the directories differ, the error names both.
    let wrong = home
        .run(&["--cwd", &a, "--session", full, "go"])
        .go()
        .expect(2);
    assert!(
        wrong.stderr.contains(&a) && wrong.stderr.contains(&b),
        "{}",
        wrong.stderr
    );
    assert!(wrong.log.is_empty(), "no agent is started");
    let missing = home
        .run(&["--session", "work@00000000", "go"])
        .go()
        .expect(1);
    assert!(missing.stderr.contains("not found"), "{}", missing.stderr);
    home.sessions(&["delete", "work", "--cwd", &b]).expect(0);
    assert_eq!(home.ids(), ["work"]);
}

#[test]
fn a_run_without_a_name_is_continued_in_its_own_directory() {
    let home = Home::answering();
    let dir = directory(&home.world, "a");
    let first = home
        .run(&["--cwd", &dir, "-o", "json", "one"])
        .go()
        .expect(0)
        .json();
    let id = first["sessionId"].as_str().unwrap();
    let second = home.run(&["--session", id, "two"]).go().expect(0);
    assert_eq!(last_opening(&second.log), ("session/resume", dir.as_str()));
    assert!(second.stderr.contains(&dir), "{}", second.stderr);
}

#[test]
fn default_session_differs_by_directory() {
    let world = World::new();
    let [a, b] = ["a", "b"].map(|name| directory(&world, name));
    let script = world.script(&resuming());
    let agent = ["--", FAKE_AGENT, script.as_str()];
    let mut s = Server::in_world(world, &agent);
    let in_a = s.call("session/ensure", &json!({"cwd": a}));
    assert_eq!(
        (&in_a["sessionId"], &in_a["cwd"]),
        (&json!("default"), &json!(a))
    );
    s.prompt("in a");
    // An app as in the README, in another project. Real agents use a different id for each session.
    let mut script = resuming();
    script["session/new"] = json!([[{"reply": {"sessionId": "in b"}}]]);
    let script = s.world.script(&script);
    let mut s = s.restarted(&["--", FAKE_AGENT, script.as_str()]);
    let in_b = s.call("session/ensure", &json!({"cwd": b}));
    let id = in_b["sessionId"].as_str().unwrap().to_owned();
    assert!(id.starts_with("default@"), "{in_b}");
    assert_eq!(
        (&in_b["cwd"], &in_b["recovery"]["memory"]),
        (&json!(b), &json!("none"))
    );
    // Calls without an id mean the default session of the last `session/ensure`.
    let turn = s.send("session/prompt", &json!({"message": "in b"}));
    assert_eq!(s.turn(&turn).summary["sessionId"], json!(id));
    for same in [
        json!({}),
        json!({"cwd": format!("{b}/")}),
        json!({"sessionId": "default"}),
    ] {
        let again = s.call("session/ensure", &same);
        assert_eq!(
            (&again["sessionId"], &again["recovery"]["rung"]),
            (&json!(id), &json!("live"))
        );
    }
    let back = s.call("session/ensure", &json!({"cwd": a}));
    assert_eq!(
        (&back["sessionId"], &back["recovery"]["rung"]),
        (&json!("default"), &json!("resume"))
    );
    assert_eq!(s.prompt("in a again").summary["sessionId"], "default");
    // Other ids are global: a different directory is an error that names both.
    let error = s.call_error("session/ensure", &json!({"sessionId": id, "cwd": a}));
    assert_eq!(
        (&error["data"]["kind"], &error["data"]["field"]),
        (&json!("invalidParams"), &json!("cwd"))
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(&a) && message.contains(&b), "{message}");
    let kept = s.call("session/ensure", &json!({"sessionId": id}));
    assert_eq!(kept["cwd"], json!(b));
    let link = s.world.dir.join("link");
    symlink(&b, &link).unwrap();
    let listed = s.call("session/list", &json!({"cwd": link.to_str().unwrap()}));
    let listed = listed["sessions"].as_array().unwrap();
    assert_eq!((listed.len(), &listed[0]["sessionId"]), (1, &json!(id)));
    s.finish();
}

#[test]
fn default_session_in_memory_differs_by_directory() {
    let world = World::new();
    let [a, b] = ["a", "b"].map(|name| directory(&world, name));
    let link = world.dir.join("link");
    symlink(&a, &link).unwrap();
    let script = world.script(&resuming());
    let agent = ["--persist", "never", "--", FAKE_AGENT, script.as_str()];
    let mut s = Server::in_world(world, &agent);
    let mut ensure = |cwd: &str| {
        let ensured = s.call("session/ensure", &json!({"cwd": cwd}));
        ensured["sessionId"].as_str().unwrap().to_owned()
    };
    assert_eq!(ensure(&a), "default");
    assert!(ensure(&b).starts_with("default@"));
    assert_eq!(ensure(link.to_str().unwrap()), "default");
    s.finish();
}

#[test]
fn queued_setting_applies_to_the_default_session_of_its_call() {
    let world = World::new();
    let [a, b] = ["a", "b"].map(|name| directory(&world, name));
    let new = |id: &str| {
        let modes = json!({"currentModeId": "code", "availableModes": [
            {"id": "code", "name": "Code"}, {"id": "plan", "name": "Plan"}]});
        json!([{"reply": {"sessionId": id, "modes": modes}}])
    };
    let script =
        json!({"session/new": [new("in a"), new("in b")], "session/set_mode": [[{"reply": {}}]]});
    let script = world.script(&script);
    let mut s = Server::in_world(world, &["--", FAKE_AGENT, script.as_str()]);
    s.waive("session/state");
    let calls_made = [
        s.send("session/ensure", &json!({"cwd": a})),
        s.send("session/setMode", &json!({"mode": "plan"})),
        s.send("session/ensure", &json!({"cwd": b})),
    ];
    for call in &calls_made {
        s.result(call);
    }
    let end = s.finish();
    let set = calls(&end.log, "session/set_mode");
    assert_eq!(
        (set.len(), &set[0]["params"]["sessionId"]),
        (1, &json!("in a"))
    );
}

#[test]
fn session_continues_with_its_own_agent_by_default() {
    let home = Home::answering();
    home.run(&["--session", "mine", "one"]).go().expect(0);
    let follow_ups: [&[&str]; 2] = [
        &["run", "--session", "mine", "two"],
        &["run", "-q", "-c", "three"],
    ];
    for args in follow_ups {
        for variable in ["", "no-such-agent"] {
            let run = home.acpipe(args).env("ACPIPE_AGENT", variable);
            let outcome = run.go().expect(0);
            assert_eq!(outcome.text(), "answer\n", "{args:?}");
            assert_eq!(last_opening(&outcome.log).0, "session/resume", "{args:?}");
            assert!(!outcome.stderr.contains("demo"), "{}", outcome.stderr);
        }
    }
    // A new session without an agent is not given to the demo agent.
    let nobody = home
        .acpipe(&["run", "-q", "--session", "new", "go"])
        .go()
        .expect(2);
    assert_eq!(nobody.text(), "");
    assert!(nobody.stderr.contains("--agent NAME"), "{}", nobody.stderr);
    let other = home
        .acpipe(&["run", "--protocol", "acp", "-c", "go"])
        .go()
        .expect(0);
    assert_eq!(other.text(), "answer\n");
    assert_eq!(home.ids(), ["mine"]);
}

#[test]
fn session_without_a_stored_command_needs_an_agent_argument() {
    let home = Home::answering();
    // As earlier versions stored it: "agent acp" in one string.
    home.store("old", "2020-01-01T10:00:00.000Z");
    let log = fs::read_to_string(home.log("old")).unwrap();
    fs::write(home.log("old"), log.replace(r#""/p""#, r#""/""#)).unwrap();
    let args = ["run", "--cwd", "/", "--session", "old", "go"];
    let unknown = home.acpipe(&args).go().expect(2);
    assert!(
        unknown.stderr.contains("-- agent acp"),
        "{}",
        unknown.stderr
    );
    let other = home.acpipe(&args).env("ACPIPE_AGENT", "another").go();
    other.expect(2);
    let named = home.acpipe(&args).env("ACPIPE_AGENT", "agent --acp").go();
    let named = named.expect(127);
    assert!(named.stderr.contains("agent"), "{}", named.stderr);
}

#[test]
fn demo_agent_continues_only_its_own_sessions() {
    let home = Home::answering();
    home.acpipe(&["run", "--agent", "demo", "hello"])
        .go()
        .expect(0);
    let own = home.acpipe(&["run", "-q", "-c", "hello"]).go().expect(0);
    assert!(own.stderr.contains("demo agent"), "{}", own.stderr);

    let world = World::new();
    let script = world.script(&resuming());
    let agent = ["--", FAKE_AGENT, script.as_str()];
    let mut s = Server::in_world(world, &agent);
    s.ensure("mine");
    let turn = s.send_prompt("mine", "one");
    s.turn(&turn);
    // Without a named agent, a prompt starts the session's own agent.
    let mut s = s.restarted(&[]);
    let turn = s.send_prompt("mine", "two");
    assert_eq!(s.turn(&turn).summary["text"], "answer");
    assert_eq!(s.call("agent/status", &json!({}))["state"], "ready");
    s.call("agent/disconnect", &json!({}));
    // The client explicitly connects the demo agent.
    s.call("agent/connect", &json!({}));
    for (method, params) in [
        ("session/ensure", json!({"sessionId": "mine"})),
        (
            "session/ensure",
            json!({"sessionId": "mine", "strategy": "new"}),
        ),
        (
            "session/prompt",
            json!({"sessionId": "mine", "message": "x"}),
        ),
    ] {
        let error = s.call_error(method, &params);
        assert_eq!(error["data"]["kind"], "outOfOrder", "{error}");
        assert!(
            error["message"].as_str().unwrap().contains("fake-agent"),
            "{error}"
        );
    }
    s.ensure("another");
    s.finish();
}

/// Runs a prompt with this program and script. Returns the session's receipt, the agent's log and stderr.
fn run_with(home: &Home, program: &str, script: &str, text: &str) -> (Value, Vec<Value>, String) {
    let run: Run = home.acpipe(&["run", "--session", "mine", "-o", "chunks", text]);
    let outcome = run.agent(&[program, script]).go().expect(0);
    let chunks = outcome.chunks();
    let receipt = chunks.iter().find(|chunk| chunk["type"] == "data-recovery");
    let receipt = receipt.map_or(Value::Null, |chunk| chunk["data"].clone());
    (receipt, outcome.log, outcome.stderr)
}

#[test]
fn agent_keeps_its_session_across_arguments_and_other_agents() {
    let home = Home::answering();
    let [one, two] = [(); 2].map(|()| home.world.script(&resuming()));
    // Another program, identified by its name.
    let other = home.world.dir.join("other-agent");
    symlink(FAKE_AGENT, &other).unwrap();
    let other = other.to_str().unwrap();
    run_with(&home, FAKE_AGENT, &one, "a");
    let (receipt, log, _) = run_with(&home, FAKE_AGENT, &two, "other arguments");
    assert_eq!(
        (&receipt["memory"], &receipt["missed"]),
        (&json!("kept"), &json!(0))
    );
    let resumed = calls(&log, "session/resume");
    let id = resumed[0]["params"]["sessionId"].clone();
    let (receipt, log, stderr) = run_with(&home, other, &one, "another agent");
    assert_eq!(
        (&receipt["memory"], &receipt["rung"]),
        (&json!("lost"), &json!("new"))
    );
    let why = receipt["failed"][0]["message"].as_str().unwrap();
    assert!(
        why.contains("another agent") && why.contains(FAKE_AGENT),
        "{receipt}"
    );
    assert!(stderr.contains("another agent"), "{stderr}");
    assert!(
        calls(&log, "session/resume").is_empty(),
        "its ids are foreign"
    );
    let (receipt, log, stderr) = run_with(&home, FAKE_AGENT, &one, "back");
    assert_eq!(
        (&receipt["memory"], &receipt["missed"]),
        (&json!("kept"), &json!(2))
    );
    assert_eq!(calls(&log, "session/resume")[0]["params"]["sessionId"], id);
    assert!(stderr.contains("has not seen the last 2"), "{stderr}");
}

#[test]
fn an_ephemeral_run_is_not_stored() {
    let home = Home::answering();
    let run = home.run(&["--ephemeral", "go"]).go().expect(0);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("answer\n", ""));
    assert!(home.ids().is_empty());
    assert!(!home.world.dir.join("state").exists());
}
