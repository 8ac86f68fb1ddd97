//! Files and terminals that agents request from their client: served by acpipe or by the client, under the
//! policy.

mod client;
mod files;
mod policy;
mod terminals;

use crate::harness::server::{Framing, Server, Turn};
use crate::harness::steps::end;
use crate::harness::{World, calls};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Directory of the session, and a file beside it.
struct TestProject {
    world: World,
    project: PathBuf,
}

impl TestProject {
    fn new() -> Self {
        let world = World::new();
        let project = world.dir.join("project");
        fs::create_dir(&project).unwrap();
        fs::write(world.dir.join("secret"), "secret").unwrap();
        Self { world, project }
    }

    fn path(&self, name: &str) -> String {
        self.project.join(name).to_str().unwrap().to_owned()
    }

    /// Starts a server whose client declares these capabilities, and whose agent performs these steps when
    /// prompted.
    fn serve(self, args: &[&str], client: &Value, steps: &[Value]) -> Server {
        let steps = [steps, &[end("end_turn")]].concat();
        let mut server = Server::launch(self.world, args, Framing::Lines, &[]);
        server.call(
            "initialize",
            &json!({"protocolVersion": 1, "capabilities": client}),
        );
        server.connect(&json!({"session/prompt": [steps]}));
        server.call(
            "session/ensure",
            &json!({"sessionId": "default", "cwd": self.project}),
        );
        server
    }

    /// Runs the steps in one turn with files and terminals served by acpipe. Returns the answers that the
    /// agent received, and the turn.
    fn answers(self, args: &[&str], steps: &[Value]) -> (Vec<Value>, Turn) {
        let args = [&["--serve", "fs,terminal"], args].concat();
        let mut server = self.serve(&args, &json!({}), steps);
        let turn = server.prompt("go");
        (answers(&server.finish().log), turn)
    }
}

fn want(method: &str, params: &Value) -> Value {
    json!({"ask": {"method": method, "params": params}})
}

fn run(line: &str) -> Value {
    want("terminal/create", &json!({"command": line}))
}

fn terminal(method: &str) -> Value {
    want(
        &format!("terminal/{method}"),
        &json!({"terminalId": "terminal-1"}),
    )
}

/// Returns the answers that the agent received, without ids; errors as their codes.
fn answers(log: &[Value]) -> Vec<Value> {
    let answer = |message: &Value| match message.get("error") {
        Some(error) => Some(error["code"].clone()),
        None => message.get("result").cloned(),
    };
    log.iter().filter_map(answer).collect()
}

fn ledger(server: &Server) -> Vec<Value> {
    let log = server.world.dir.join("state/sessions/default.jsonl");
    let text = fs::read_to_string(log).unwrap();
    // A later record may be in the middle of its write.
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let records = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decisions = records.filter(|record| record["record"] == "decision");
    decisions.map(|record| record["decision"].clone()).collect()
}

#[test]
fn only_served_capabilities_are_offered() {
    for (args, client, fs, terminal) in [
        (&[][..], json!({}), (false, false), false),
        (&["--serve", "fs"], json!({}), (true, true), false),
        (&["--serve", "terminal"], json!({}), (false, false), true),
        (
            &[],
            json!({"fs": {"readTextFile": true}, "terminal": true}),
            (true, false),
            true,
        ),
    ] {
        let place = TestProject::new();
        let path = place.path("x");
        let steps = [
            want("fs/write_text_file", &json!({"path": path, "content": "x"})),
            run("true"),
        ];
        let mut server = if client["terminal"] == true {
            place.serve(args, &client, &steps[..1])
        } else {
            place.serve(args, &client, &steps)
        };
        server.prompt("go");
        let log = server.finish().log;
        let told = &calls(&log, "initialize")[0]["params"]["clientCapabilities"];
        assert_eq!(told["fs"]["readTextFile"], fs.0, "{told}");
        assert_eq!(told["fs"]["writeTextFile"], fs.1, "{told}");
        assert_eq!(told["terminal"], terminal, "{told}");
        let written = &answers(&log)[0];
        assert_eq!(*written == json!({}), fs.1, "{written}");
        assert!(fs.1 || *written == -32601, "{written}");
    }
}
