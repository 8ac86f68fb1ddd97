//! Agents written with the library: as a program, and inside a program that speaks the neutral protocol.

use crate::docs::moving_from::has;
use crate::harness::World;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Builds an example and returns its path.
fn example(name: &str) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--example", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // The variable of the running test would have ring built again, and all crates that need it.
        .env_remove("CARGO_MANIFEST_DIR")
        .status()
        .unwrap();
    assert!(built.success(), "{name} does not build");
    // Beside the program under test, which cargo has built with the same settings.
    let program = Path::new(crate::harness::ACPIPE);
    program.with_file_name("examples").join(name)
}

#[test]
fn example_agent_runs_as_a_program() {
    let agent = example("agent");
    check_example(&[agent.to_str().unwrap()]);
}

#[test]
fn example_agent_in_javascript_runs_as_a_program() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/agent.mjs");
    if has("node", "examples/agent.mjs") {
        check_example(&["node", file.to_str().unwrap()]);
    }
}

/// Checks the answers of an example agent.
#[track_caller]
fn check_example(agent: &[&str]) {
    let world = World::new();
    for (mode, answer) in [
        ("approve", "Your prompt has 3 words.\n"),
        ("deny", "I may not count your words.\n"),
    ] {
        let args = [
            "run",
            "--permissions",
            mode,
            "--persist",
            "never",
            "one two three",
            "--",
        ];
        let args = [&args[..], agent].concat();
        let output = world.acpipe(&args).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), answer, "{stderr}");
        assert!(output.status.success(), "{stderr}");
    }
    assert_eq!(world.leak(), None);
}

#[test]
fn example_agent_stands_in_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = fs::read_to_string(root.join("examples/agent.rs")).unwrap();
    let (_, code) = example.split_once("\n\n").unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let block = format!("```rust\n{code}```\n");
    assert!(
        readme.contains(&block),
        "README.md does not show examples/agent.rs"
    );
}

/// Client of a program that speaks the neutral protocol.
struct App {
    program: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

impl App {
    fn start(world: &World, args: &[&str]) -> Self {
        // The environment of the test, for another program.
        let mut command = Command::new(example("scripted_agent"));
        for (name, value) in world.acpipe::<&str>(&[]).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut program = command
            .args(args)
            .current_dir(&world.dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = program.stdin.take().unwrap();
        let stdout = BufReader::new(program.stdout.take().unwrap());
        let mut app = Self {
            program,
            stdin,
            stdout,
            last_id: 0,
        };
        app.call("initialize", &json!({ "protocolVersion": 1 }));
        app
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.stdin, "{request}").unwrap();
        id
    }

    /// Returns the next message that fits.
    fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "the program ended"
            );
            let message = serde_json::from_str(&line).unwrap();
            if fits(&message) {
                return message;
            }
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.wait(|message| message["id"] == id)
    }

    fn prompt(&mut self, message: &str) -> Value {
        self.call("session/prompt", &json!({ "message": message }))
    }

    /// Closes stdin and checks that the program ends well.
    fn finish(mut self) {
        drop(self.stdin);
        assert!(self.program.wait().unwrap().success());
    }
}

#[test]
fn agent_inside_a_program_plays_a_thousand_turns() {
    let world = World::new();
    let mut app = App::start(&world, &["--persist", "never"]);
    let agents = app.call("agent/list", &json!({}));
    let own = &agents["result"]["agents"][0];
    assert_eq!(
        (&own["agent"], &own["source"]),
        (&json!("scripted"), &json!("inProcess"))
    );
    assert_eq!(
        (&own["installed"], &own["program"]),
        (&json!(true), &Value::Null)
    );
    app.call("session/ensure", &json!({ "sessionId": "default" }));
    for number in 0..1000 {
        let response = app.prompt("hello");
        assert_eq!(response["result"]["text"], "Hello!", "{number}: {response}");
    }
    // The only process is the program itself.
    assert_eq!(world.alive().len(), 1, "{:?}", world.alive());
    app.finish();
    assert_eq!(world.leak(), None);
}

#[test]
fn failures_of_an_agent_inside_a_program_reach_its_client() {
    let world = World::new();
    let mut app = App::start(&world, &[]);
    app.call("session/ensure", &json!({ "sessionId": "default" }));
    let failed = app.prompt("fail");
    let result = &failed["result"];
    assert_eq!(
        (&result["text"], &result["isError"]),
        (&json!("Half an answer"), &json!(true)),
        "{failed}"
    );
    assert!(
        result["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("out of cheese"),
        "{failed}"
    );
    let crashed = app.prompt("crash");
    let error = &crashed["result"]["errors"][0];
    assert_eq!(error["kind"], "agentExited", "{crashed}");
    assert!(error.to_string().contains("disk on fire"), "{crashed}");
    assert_eq!(crashed["result"]["text"], "Half an answer");
    // The next prompt makes a new agent, which resumes the session.
    let next = app.prompt("hello");
    assert_eq!(next["result"]["text"], "Hello!", "{next}");
    let id = app.send("session/prompt", &json!({ "message": "wait" }));
    app.wait(|message| message["params"]["chunk"]["type"] == "text-delta");
    app.send("session/cancel", &json!({}));
    let cancelled = app.wait(|message| message["id"] == id);
    assert_eq!(
        cancelled["result"]["stopReason"], "cancelled",
        "{cancelled}"
    );
    app.finish();
    // A second program continues the stored session with its own agent.
    let mut app = App::start(&world, &["--permissions", "deny"]);
    let ensured = app.call("session/ensure", &json!({ "sessionId": "default" }));
    assert_eq!(ensured["result"]["recovery"]["memory"], "kept", "{ensured}");
    let refused = app.prompt("list the files");
    assert_eq!(refused["result"]["text"], "One file: a.txt", "{refused}");
    app.finish();
    assert_eq!(world.leak(), None);
}
