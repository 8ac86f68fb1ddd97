//! The agent that a command line, the environment and the configuration choose, and the rules of its
//! definition.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// Environment variables, arguments, and the expected stdout of a command.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a str);

/// Result of a command: exit code, stdout, stderr.
type Ended = (i32, String, String);

/// Runs acpipe in the test's directory, with these variables.
fn acpipe(world: &World, env: &[(&str, &str)], args: &[&str]) -> Ended {
    let mut command = world.acpipe(args);
    let command = command.current_dir(&world.dir).stdin(Stdio::null());
    let output = command.envs(env.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

/// Like [`acpipe`], for a command that must succeed; returns its stdout.
fn stdout(world: &World, args: &[&str]) -> String {
    let (code, out, err) = acpipe(world, &[], args);
    assert_eq!(code, 0, "{args:?}: {err}");
    out
}

/// Writes the user's configuration.
fn configure(world: &World, text: &str) {
    let dir = world.dir.join("config/acpipe");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), text).unwrap();
}

/// Returns the table of an agent with this script.
fn agent(world: &World, name: &str, script: &Value) -> String {
    let script = world.script(script);
    format!("[agents.{name}]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\n")
}

/// Returns the table of an agent that answers every prompt with its name, and can resume.
fn named(world: &World, name: &str) -> String {
    let turn = json!([say(name), end("end_turn")]);
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [turn, turn, turn],
    });
    agent(world, name, &script)
}

/// Returns the table of an agent that asks before it writes a file.
fn asking(world: &World, name: &str) -> String {
    let options = json!([
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No", "kind": "reject_once"},
    ]);
    let tool = json!({"toolCallId": "t", "title": "Write", "kind": "edit", "locations": [{"path": "/w/a"}]});
    let ask = json!({"ask": {"method": "session/request_permission",
        "params": {"toolCall": tool, "options": options}}});
    let turn = json!([ask, say("done"), end("end_turn")]);
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [turn],
    });
    agent(world, name, &script)
}

/// Returns the decisions of the ledger: whether the call was approved, and by which rule.
fn decisions(world: &World) -> Vec<(bool, String)> {
    let out = stdout(world, &["permissions", "show", "--json"]);
    let entry = |line: &str| {
        let entry: Value = serde_json::from_str(line).unwrap();
        let rule = entry["rule"].as_str().unwrap_or_default().to_owned();
        (entry["approved"] == true, rule)
    };
    out.lines().map(entry).collect()
}

#[test]
fn command_line_environment_and_configuration_choose_in_this_order() {
    let world = World::new();
    let tables = ["alpha", "beta", "gamma"].map(|name| named(&world, name));
    configure(&world, &format!("agent = \"alpha\"\n{}", tables.concat()));
    let script = world.script(&json!({"session/prompt": [[say("delta"), end("end_turn")]]}));
    let variable = [("ACPIPE_AGENT", "beta")];
    let cases: [Case<'_>; 5] = [
        (&[], &["run", "hi"], "alpha\n"),
        (&variable, &["run", "hi"], "beta\n"),
        (&variable, &["run", "--agent", "gamma", "hi"], "gamma\n"),
        // A unique beginning of a name is enough.
        (&variable, &["run", "--agent", "gam", "hi"], "gamma\n"),
        (
            &variable,
            &["run", "hi", "--", FAKE_AGENT, &script],
            "delta\n",
        ),
    ];
    for (env, args, want) in cases {
        let (code, out, err) = acpipe(&world, env, args);
        assert_eq!((code, out.as_str()), (0, want), "{args:?}: {err}");
    }
    let (code, out, err) = acpipe(&world, &[], &["run", "--agent", "alpah", "hi"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("did you mean alpha?"), "{err}");
}

#[test]
fn run_without_an_agent_names_the_agents_of_the_machine_and_starts_none() {
    let world = World::new();
    let bin = world.dir.join("bin");
    fs::create_dir(&bin).unwrap();
    let started = world.dir.join("started");
    world.executable(
        "bin/opencode",
        &format!("#!/bin/sh\ntouch '{}'\n", started.display()),
    );
    let env = [("PATH", bin.to_str().unwrap())];
    let (code, out, err) = acpipe(&world, &env, &["run", "-q", "hi"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("acpipe run --agent opencode"), "{err}");
    assert!(!started.exists());
    let (code, out, err) = acpipe(&world, &env, &["run", "--agent", "demo", "hi"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("demo agent"), "{out}");
}

#[test]
fn variant_of_an_agent_has_its_own_permissions_in_every_run_of_its_session() {
    let world = World::new();
    let table = asking(&world, "writer");
    configure(
        &world,
        &format!(
            "{table}\n[agents.reviewer]\nextends = \"writer\"\nprompt = \"Only review.\"\npermissions = \"reads\"\n"
        ),
    );
    stdout(
        &world,
        &["run", "--session", "w", "--agent", "writer", "go"],
    );
    stdout(
        &world,
        &["run", "--session", "r", "--agent", "reviewer", "go"],
    );
    // The session keeps its agent's definition, and not only its command.
    stdout(&world, &["run", "--session", "r", "again"]);
    let rules = decisions(&world);
    assert_eq!(rules[0], (true, "permissions \"approve\"".to_owned()));
    for (approved, rule) in &rules[1..] {
        assert!(!approved, "{rule}");
        assert!(
            rule.starts_with("agent \"reviewer\": permissions \"reads\""),
            "{rule}"
        );
    }
    assert_eq!(rules.len(), 3);
    let log = world.log();
    let prompts: Vec<usize> = calls(&log, "session/prompt")
        .iter()
        .map(|call| call["params"]["prompt"].as_array().unwrap().len())
        .collect();
    assert_eq!(
        prompts,
        [1, 2, 1],
        "the instructions are sent with the first prompt of the reviewer"
    );
}

#[test]
fn tool_lists_of_a_definition_decide_and_are_named_in_the_ledger() {
    let world = World::new();
    let table = asking(&world, "writer");
    configure(&world, &format!("{table}disallowed_tools = [\"Edit\"]\n"));
    stdout(&world, &["run", "--agent", "writer", "go"]);
    let [(approved, rule)] = &decisions(&world)[..] else {
        panic!("{:?}", decisions(&world));
    };
    assert_eq!(
        (*approved, rule.as_str()),
        (false, "agent \"writer\": disallowed_tools \"Edit\"")
    );
}

#[test]
fn untrusted_project_file_starts_no_program_and_loosens_nothing() {
    let world = World::new();
    let table = asking(&world, "writer");
    configure(
        &world,
        &format!("{table}[permissions]\ndefault = \"deny\"\n"),
    );
    let own = agent(
        &world,
        "own",
        &json!({"session/prompt": [[say("own"), end("end_turn")]]}),
    );
    let file = world.file(
        ".acpipe.toml",
        &format!("agent = \"own\"\n{own}[permissions]\ndefault = \"approve\"\n"),
    );
    let (code, out, err) = acpipe(&world, &[], &["run", "hi"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("acpipe agents trust"), "{err}");
    assert!(world.log().is_empty(), "nothing was started");
    // An agent of the user works, with the user's permissions.
    stdout(&world, &["run", "--agent", "writer", "hi"]);
    assert!(!decisions(&world)[0].0);

    acpipe(&world, &[], &["agents", "trust"]);
    assert_eq!(stdout(&world, &["run", "hi"]), "own\n");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "# changed\n").unwrap();
    assert_eq!(
        acpipe(&world, &[], &["run", "hi"]).0,
        2,
        "a change ends the trust"
    );
}

#[test]
fn unknown_mode_or_model_is_a_usage_error_before_any_turn() {
    let world = World::new();
    configure(&world, &named(&world, "alpha"));
    for options in [
        &["--mode", "plan", "--model", "nope"][..],
        &["--model", "nope"],
    ] {
        let args = [&["run", "--agent", "alpha"], options, &["hi"]].concat();
        let (code, out, err) = acpipe(&world, &[], &args);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("options.mo"), "{err}");
    }
    assert!(calls(&world.log(), "session/prompt").is_empty());
}

#[test]
fn configured_agents_start_on_demand_and_hand_sessions_over() {
    let world = World::new();
    let tables = ["alpha", "beta"].map(|name| named(&world, name)).concat();
    configure(
        &world,
        &format!("agent = \"alpha\"\n{tables}description = \"Second\"\n"),
    );
    let mut server = Server::launch(world, &[], Framing::Lines, &[]);
    server.waive("agent/state");
    let default = &server.initialize()["defaultAgent"];
    assert_eq!(
        (&default["name"], &default["source"]),
        (&json!("alpha"), &json!("configuration"))
    );
    let list = server.call("agent/list", &json!({}));
    let listed: Vec<(&str, bool)> = list["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| (agent["agent"].as_str().unwrap(), agent["isDefault"] == true))
        .collect();
    assert_eq!(listed, [("alpha", true), ("beta", false)]);
    assert_eq!(list["agents"][1]["description"], "Second");

    for (agent, rung) in [
        (None, "new"),
        (Some("beta"), "new"),
        (Some("alpha"), "live"),
    ] {
        let mut params = json!({"sessionId": "s"});
        if let Some(agent) = agent {
            params["agent"] = json!(agent);
        }
        let session = server.call("session/ensure", &params);
        let name = agent.unwrap_or("alpha");
        assert_eq!(session["agentName"], name);
        if rung == "new" {
            assert_eq!(session["recovery"]["rung"], rung);
        }
        let id = server.send_prompt("s", "hi");
        assert_eq!(server.turn(&id).summary["text"], name);
    }
    let error = server.call_error(
        "agent/connect",
        &json!({"agent": "beta", "command": FAKE_AGENT}),
    );
    assert_eq!(error["data"]["kind"], "duplicateAgent");
    server.finish();
}

#[test]
fn agents_are_added_shown_and_removed_by_command() {
    let world = World::new();
    let list = |world: &World| -> Vec<Value> {
        let out = stdout(world, &["agents", "--json"]);
        let agents = out.lines().map(|line| serde_json::from_str(line).unwrap());
        agents
            .filter(|agent: &Value| agent["source"] == "configuration")
            .collect()
    };
    stdout(
        &world,
        &[
            "agents",
            "add",
            "mine",
            "--description",
            "Mine",
            "--",
            FAKE_AGENT,
            "--x",
        ],
    );
    stdout(
        &world,
        &[
            "agents",
            "add",
            "strict",
            "--extends",
            "mine",
            "--permissions",
            "deny",
        ],
    );
    stdout(&world, &["agents", "default", "strict"]);
    let listed = list(&world);
    let names: Vec<&Value> = listed.iter().map(|agent| &agent["agent"]).collect();
    assert_eq!(names, ["mine", "strict"]);
    assert_eq!(
        (
            &listed[1]["args"],
            &listed[1]["state"],
            &listed[1]["isDefault"]
        ),
        (&json!(["--x"]), &json!("installed"), &json!(true))
    );
    let shown = stdout(&world, &["agents", "show", "strict"]);
    assert!(
        shown.contains("--x") && shown.contains("config.toml:"),
        "{shown}"
    );

    let (code, _, err) = acpipe(&world, &[], &["agents", "add", "mine", "--", "other"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("mine"), "{err}");
    // An agent that another one extends cannot be removed first.
    let (code, _, err) = acpipe(&world, &[], &["agents", "remove", "mine"]);
    assert_eq!(code, 2, "{err}");
    for name in ["strict", "mine"] {
        stdout(&world, &["agents", "remove", name]);
    }
    assert!(list(&world).is_empty());
    let (code, _, err) = acpipe(&world, &[], &["agents", "remove", "claude"]);
    assert_eq!(code, 2);
    assert!(err.contains("built in"), "{err}");
}

#[test]
fn list_shows_the_version_of_an_installed_agent() {
    let world = World::new();
    fs::create_dir(world.dir.join("bin")).unwrap();
    world.executable("bin/opencode", "#!/bin/sh\necho \"opencode $1 1.18.33\"\n");
    // It prints no version and does not exit by itself.
    world.executable("bin/goose", "#!/bin/sh\necho '{}'\nexec /bin/sleep 1000\n");
    let path = world.dir.join("bin").to_str().unwrap().to_owned();
    let (code, out, err) = acpipe(&world, &[("PATH", &path)], &["agents", "--json"]);
    assert_eq!(code, 0, "{err}");
    let listed: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let version = |name: &str| {
        let found = listed.iter().find(|agent| agent["agent"] == name);
        found.map(|agent| agent["version"].clone())
    };
    assert_eq!(version("opencode"), Some(json!("1.18.33")));
    assert_eq!(version("goose"), Some(Value::Null));
    assert_eq!(version("gemini"), None, "not installed");
    assert_eq!(world.alive(), []);
}

#[test]
fn agents_of_a_registry_file_are_imported() {
    let world = World::new();
    let file = world.file(
        "registry.json",
        &json!({"version": "1.0.0", "agents": [
            {"id": "one", "name": "One", "version": "1.0.0", "description": "First",
             "distribution": {"npx": {"package": "one-agent", "args": ["--acp"]}}},
            {"id": "two", "name": "Two", "version": "1.0.0", "description": "Second",
             "distribution": {"uvx": {"package": "two-agent", "env": {"A": "b"}}}},
        ]})
        .to_string(),
    );
    let (code, _, err) = acpipe(&world, &[], &["agents", "import", &file]);
    assert_eq!(code, 0, "{err}");
    let config = fs::read_to_string(world.dir.join("config/acpipe/config.toml")).unwrap();
    for line in [
        "[agents.one]",
        "args = [\"-y\", \"one-agent\", \"--acp\"]",
        "[agents.two]",
        "command = \"uvx\"",
    ] {
        assert!(config.contains(line), "{line}: {config}");
    }
    let (_, _, err) = acpipe(&world, &[], &["agents", "import", &file, "one"]);
    assert!(err.contains("skipped \"one\""), "{err}");
    let (code, _, err) = acpipe(
        &world,
        &[],
        &["agents", "import", "https://example.org/registry.json"],
    );
    assert_eq!(code, 2);
    assert!(err.contains("curl"), "{err}");
}

#[test]
fn stored_session_of_an_undefined_agent_is_readable_but_not_started() {
    let world = World::new();
    let table = asking(&world, "writer");
    configure(&world, &format!("{table}permissions = \"deny\"\n"));
    stdout(
        &world,
        &["run", "--session", "s", "--agent", "writer", "go"],
    );
    configure(&world, "");
    let before = world.log().len();
    let (code, _, err) = acpipe(&world, &[], &["run", "--session", "s", "again"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("not defined any more"), "{err}");

    let mut server = Server::launch(world, &[], Framing::Lines, &[]);
    server.waive("agent/state");
    server.initialize();
    let error = server.call_error("session/ensure", &json!({"sessionId": "s"}));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("not defined any more"), "{message}");
    let messages = server.call("message/list", &json!({"sessionId": "s"}));
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
    assert_eq!(server.world.log().len(), before, "nothing was started");
    server.finish();
}

#[test]
fn alias_of_a_built_in_agent_means_the_own_agent_of_its_name() {
    let world = World::new();
    let table = asking(&world, "codex");
    configure(&world, &format!("{table}permissions = \"deny\"\n"));
    for name in ["codex", "codex-acp", "CODEX-ACP"] {
        stdout(&world, &["run", "--agent", name, "go"]);
    }
    let decided = decisions(&world);
    assert_eq!(decided.len(), 3);
    for (approved, rule) in decided {
        assert!(!approved && rule.starts_with("agent \"codex\""), "{rule}");
    }
}

#[test]
fn untrusted_project_cannot_redefine_a_built_in_agent() {
    let world = World::new();
    world.file(".acpipe.toml", "[agents.demo]\nuse = \"opencode\"\n");
    let (code, _, err) = acpipe(&world, &[], &["run", "--agent", "demo", "hi"]);
    assert_eq!(code, 2);
    assert!(err.contains("has the name of a built-in agent"), "{err}");
}

#[test]
fn trust_holds_for_one_directory_and_commands_are_relative_to_the_file() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("own"), end("end_turn")]]}));
    for (dir, text) in [("a", "exec"), ("a/sub", "exit 3 #"), ("b", "exit 3 #")] {
        fs::create_dir_all(world.dir.join(dir).join("bin")).unwrap();
        let program = format!("#!/bin/sh\n{text} '{FAKE_AGENT}' '{script}'\n");
        world.executable(&format!("{dir}/bin/agent"), &program);
    }
    let table = "agent = \"own\"\n[agents.own]\ncommand = \"./bin/agent\"\n";
    world.file("a/.acpipe.toml", table);
    std::os::unix::fs::symlink("../a/.acpipe.toml", world.dir.join("b/.acpipe.toml")).unwrap();
    let in_dir = |dir: &str, args: &[&str]| {
        let mut command = world.acpipe(args);
        let command = command.current_dir(world.dir.join(dir));
        let output = command.stdin(Stdio::null()).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    assert_eq!(in_dir("a", &["agents", "trust"]).0, 0);
    assert_eq!(in_dir("a", &["run", "hi"]), (0, "own\n".to_owned()));
    assert_eq!(in_dir("a/sub", &["run", "hi"]), (0, "own\n".to_owned()));
    assert_eq!(in_dir("b", &["run", "hi"]).0, 2, "the link is not trusted");
}

#[test]
fn untrusted_project_neither_replaces_your_default_agent_nor_downloads_one() {
    let world = World::new();
    let bin = world.dir.join("bin");
    fs::create_dir(&bin).unwrap();
    let started = world.dir.join("started");
    let program = format!("#!/bin/sh\ntouch '{}'\nexit 1\n", started.display());
    for runner in ["npx", "uvx"] {
        world.executable(&format!("bin/{runner}"), &program);
    }
    let env = [("PATH", bin.to_str().unwrap())];
    // Without a default agent of the user, the file chooses: aloud, and without a download.
    for (project, is_said) in [
        ("agent = \"codex\"\n", true),
        (
            "agent = \"p\"\n[agents.p]\nuse = \"codex\"\nprompt = \"Obey.\"\n",
            true,
        ),
        ("agent = \"p\"\n[agents.p]\nuse = \"dirac\"\n", false),
        ("agent = \"dirac\"\n", false),
    ] {
        world.file(".acpipe.toml", project);
        let (code, out, err) = acpipe(&world, &env, &["run", "-q", "hi"]);
        assert_ne!((code, out.as_str()), (0, ""), "{project}: {err}");
        assert_eq!(
            err.contains("you do not trust, chooses the agent"),
            is_said,
            "{err}"
        );
        assert_eq!(
            err.contains("instructions of its own"),
            project.contains("prompt")
        );
        assert!(!started.exists(), "{project}: {err}");
    }
    let own = agent(
        &world,
        "own",
        &json!({"session/prompt": [[say("own"), end("end_turn")]]}),
    );
    configure(&world, &format!("agent = \"own\"\n{own}"));
    world.file(
        ".acpipe.toml",
        "agent = \"p\"\n[agents.p]\nuse = \"demo\"\nprompt = \"x\"\n",
    );
    let (code, out, err) = acpipe(&world, &[], &["run", "-q", "hi"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "own\n", ""));
    // Named by the user.
    assert!(stdout(&world, &["run", "-q", "--agent", "p", "hi"]).contains("demo"));
}

#[test]
fn run_warns_even_quietly_before_the_prompt_of_an_agent_that_does_not_ask() {
    let world = World::new();
    let own = agent(
        &world,
        "own",
        &json!({"session/prompt": [[say("done"), end("end_turn")]]}),
    );
    configure(&world, &format!("{own}asks = \"never\"\n"));
    for output in ["text", "json", "chunks", "sse", "agui"] {
        let args = ["run", "-q", "-o", output, "--agent", "own", "--permissions"];
        let (code, _, err) = acpipe(&world, &[], &[&args[..], &["deny", "hi"]].concat());
        assert_eq!(code, 0, "{output}: {err}");
        assert!(
            err.contains("The agent may run tools without asking"),
            "{output}: {err}"
        );
        assert_eq!(err.lines().count(), 1, "{err}");
        let (_, _, err) = acpipe(&world, &[], &[&args[..], &["approve", "hi"]].concat());
        assert_eq!(err, "", "{output}");
    }
}
