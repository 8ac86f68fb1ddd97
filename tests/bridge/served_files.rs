//! Served files with a long search, and replaced directories.

use crate::harness::World;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::end;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// Starts a server that serves files in `project`, and whose agent performs these steps when prompted.
fn serve(world: World, steps: &[Value]) -> Server {
    let project = world.dir.join("project");
    let steps = [steps, &[end("end_turn")]].concat();
    let mut server = Server::launch(world, &["--serve", "fs"], Framing::Lines, &[]);
    server.initialize();
    server.connect(&json!({"session/prompt": [steps]}));
    server.call(
        "session/ensure",
        &json!({"sessionId": "default", "cwd": project}),
    );
    server
}

fn project(world: &World) -> String {
    let project = world.dir.join("project");
    fs::create_dir(&project).unwrap();
    project.to_str().unwrap().to_owned()
}

fn read(id: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["sessionId"] = json!("{session}");
    json!({"frame": {"jsonrpc": "2.0", "id": id, "method": "fs/read_text_file", "params": params}})
}

/// A search for the second line of a sparse 1 TiB file takes minutes. There are more such searches than
/// threads that read files, so the last read is served only because the agent withdraws them.
#[test]
fn withdrawn_search_makes_room_for_other_reads() {
    let world = World::new();
    let project = project(&world);
    let (sparse, plain) = (format!("{project}/sparse"), format!("{project}/plain"));
    fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    fs::write(&plain, "text").unwrap();
    let mut steps = Vec::new();
    for n in 0..12 {
        let id = format!("w{n}");
        steps.push(read(&id, &json!({"path": sparse, "line": 2, "limit": 1})));
        let params = json!({ "requestId": id });
        steps.push(json!({"notify": {"method": "$/cancel_request", "params": params}}));
    }
    let params = json!({"path": plain});
    steps.push(json!({"ask": {"method": "fs/read_text_file", "params": params}}));
    let mut server = serve(world, &steps);
    server.prompt("go");
    let log = server.finish().log;
    let withdrawn = log.iter().filter(|m| m["error"]["code"] == -32800);
    assert_eq!(withdrawn.count(), 12);
    let given = log.iter().filter(|m| m["result"]["content"] == "text");
    assert_eq!(given.count(), 1);
}

/// The search is also bounded if the agent does not withdraw it.
#[test]
fn search_that_finds_no_line_is_an_error() {
    let world = World::new();
    let sparse = format!("{}/sparse", project(&world));
    fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    let params = json!({"path": sparse, "line": 2, "limit": 1});
    let steps = [json!({"ask": {"method": "fs/read_text_file", "params": params}})];
    let mut server = serve(world, &steps);
    server.prompt("go");
    let log = server.finish().log;
    let error = log.iter().find_map(|m| m.get("error")).unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("line 2 does not begin within the first"),
        "{message}"
    );
}

#[test]
fn link_that_replaces_the_root_of_an_open_session_is_not_followed() {
    let world = World::new();
    let dir = world.dir.clone();
    let project = project(&world);
    fs::write(format!("{project}/file"), "inside").unwrap();
    fs::create_dir(dir.join("outside")).unwrap();
    fs::write(dir.join("outside/secret"), "secret").unwrap();
    fs::write(dir.join("outside/file"), "secret").unwrap();
    let ask = |method: &str, params: &Value| json!({"ask": {"method": method, "params": params}});
    let path = |name: &str| format!("{project}/{name}");
    let steps = [
        ask("fs/read_text_file", &json!({"path": path("secret")})),
        ask("fs/read_text_file", &json!({"path": path("file")})),
        ask(
            "fs/write_text_file",
            &json!({"path": path("secret"), "content": "changed"}),
        ),
        ask(
            "fs/write_text_file",
            &json!({"path": path("new"), "content": "new"}),
        ),
    ];
    let mut server = serve(world, &steps);
    fs::rename(&project, dir.join("moved")).unwrap();
    symlink(dir.join("outside"), &project).unwrap();
    server.prompt("go");
    assert_eq!(
        fs::read_to_string(dir.join("outside/secret")).unwrap(),
        "secret"
    );
    assert!(!dir.join("outside/new").exists());
    assert_eq!(fs::read_to_string(dir.join("moved/new")).unwrap(), "new");
    let log = server.finish().log;
    let read = log.iter().filter_map(|m| m["result"].get("content"));
    assert_eq!(read.collect::<Vec<_>>(), ["inside"]);
}
