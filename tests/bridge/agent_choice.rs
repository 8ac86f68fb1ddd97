//! The agent that a command line, the environment and the configuration choose, and the rules of its
//! definition.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{ask, end, resumable, say};
use crate::harness::{FAKE_AGENT, World, calls, words};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// Result of a command: exit code, stdout, stderr.
type Ended = (i32, String, String);

/// Runs acpipe with this line of arguments in the test's directory, with these variables.
fn acpipe(world: &World, env: &[(&str, &str)], line: &str) -> Ended {
    let mut command = world.acpipe(&words(line));
    let command = command.current_dir(&world.dir).stdin(Stdio::null());
    let output = command.envs(env.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

/// Like [`acpipe`], for a command that must succeed; returns its stdout.
#[track_caller]
fn stdout(world: &World, line: &str) -> String {
    let (code, out, err) = acpipe(world, &[], line);
    assert_eq!(code, 0, "{line}: {err}");
    out
}

/// Script of an agent that answers with its name.
fn says(name: &str) -> Value {
    json!({"session/prompt": [[say(name), end("end_turn")]]})
}

/// Like `acpipe`, for a command that must be refused with this code; returns its stderr.
#[track_caller]
fn refused(world: &World, line: &str, code: i32) -> String {
    let (ended, out, err) = acpipe(world, &[], line);
    assert_eq!((ended, out.as_str()), (code, ""), "{line}: {err}");
    err
}

/// Returns the table of an agent with this script.
fn agent(world: &World, name: &str, script: &Value) -> String {
    let script = world.script(script);
    format!("[agents.{name}]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\n")
}

/// Returns the table of an agent that answers every prompt with its name, and can resume.
fn named(world: &World, name: &str) -> String {
    agent(world, name, &resumable(says(name)))
}

/// Returns the table of an agent that asks before it writes a file.
fn asking(world: &World, name: &str) -> String {
    let tool = json!({"toolCallId": "t", "title": "Write", "kind": "edit", "locations": [{"path": "/w/a"}]});
    let question = ask(&tool, &[("y", "allow_once"), ("n", "reject_once")]);
    let turn = json!([question, say("done"), end("end_turn")]);
    agent(world, name, &resumable(json!({ "session/prompt": [turn] })))
}

/// Returns the decisions of the ledger: whether the call was approved, and by which rule.
fn decisions(world: &World) -> Vec<(bool, String)> {
    let out = stdout(world, "permissions show --json");
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
    world.configure(&format!("agent = \"alpha\"\n{}", tables.concat()));
    let delta = world.script(&says("delta"));
    let delta = format!("run hi -- {FAKE_AGENT} {delta}");
    let variable = [("ACPIPE_AGENT", "beta")];
    for (env, line, want) in [
        (&[][..], "run hi", "alpha\n"),
        (&variable, "run hi", "beta\n"),
        (&variable, "run --agent gamma hi", "gamma\n"),
        // A unique beginning of a name is enough.
        (&variable, "run --agent gam hi", "gamma\n"),
        (&variable, &delta, "delta\n"),
    ] {
        let (code, out, err) = acpipe(&world, env, line);
        assert_eq!((code, out.as_str()), (0, want), "{line}: {err}");
    }
    let err = refused(&world, "run --agent alpah hi", 2);
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
    let (code, out, err) = acpipe(&world, &env, "run -q hi");
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("acpipe run --agent opencode"), "{err}");
    assert!(!started.exists());
    let (code, out, err) = acpipe(&world, &env, "run --agent demo hi");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("demo agent"), "{out}");
}

#[test]
fn variant_of_an_agent_has_its_own_permissions_in_every_run_of_its_session() {
    let world = World::new();
    let table = asking(&world, "writer");
    let reviewer = "[agents.reviewer]\nextends = \"writer\"\nprompt = \"Only review.\"\npermissions = \"reads\"\n";
    let listed = "[agents.listed]\nextends = \"writer\"\ndisallowed_tools = [\"Edit\"]\n";
    world.configure(&format!("{table}{reviewer}{listed}"));
    for line in [
        "run --session w --agent writer go",
        "run --session r --agent reviewer go",
        // The session keeps its agent's definition, and not only its command.
        "run --session r again",
        "run --session l --agent listed go",
    ] {
        stdout(&world, line);
    }
    let reads = "agent \"reviewer\": permissions \"reads\"";
    let listed = "agent \"listed\": disallowed_tools \"Edit\"";
    let want = [
        (true, "permissions \"approve\""),
        (false, reads),
        (false, reads),
        (false, listed),
    ];
    let decided = decisions(&world);
    assert_eq!(decided.len(), want.len());
    for ((approved, rule), (want, by)) in decided.iter().zip(want) {
        assert!(*approved == want && rule.starts_with(by), "{rule}");
    }
    let log = world.log();
    let prompts = calls(&log, "session/prompt").into_iter();
    let parts = prompts.map(|call| call["params"]["prompt"].as_array().unwrap().len());
    assert_eq!(
        parts.collect::<Vec<_>>(),
        [1, 2, 1, 1],
        "the instructions are sent with the first prompt of the reviewer"
    );
}

#[test]
fn untrusted_project_file_starts_no_program_and_loosens_nothing() {
    let world = World::new();
    let table = asking(&world, "writer");
    world.configure(&format!("{table}[permissions]\ndefault = \"deny\"\n"));
    let own = agent(&world, "own", &says("own"));
    let text = format!("agent = \"own\"\n{own}[permissions]\ndefault = \"approve\"\n");
    world.file(".acpipe.toml", &text);
    let err = refused(&world, "run hi", 2);
    assert!(err.contains("acpipe agents trust"), "{err}");
    assert!(world.log().is_empty(), "nothing was started");
    // An agent of the user works, with the user's permissions.
    stdout(&world, "run --agent writer hi");
    assert!(!decisions(&world)[0].0);

    acpipe(&world, &[], "agents trust");
    assert_eq!(stdout(&world, "run hi"), "own\n");
    world.file(".acpipe.toml", &(text + "# changed\n"));
    // A change ends the trust.
    refused(&world, "run hi", 2);
}

#[test]
fn unknown_mode_or_model_is_a_usage_error_before_any_turn() {
    let world = World::new();
    world.configure(&named(&world, "alpha"));
    for options in ["--mode plan --model nope", "--model nope"] {
        let err = refused(&world, &format!("run --agent alpha {options} hi"), 2);
        assert!(err.contains("options.mo"), "{err}");
    }
    assert!(calls(&world.log(), "session/prompt").is_empty());
}

#[test]
fn configured_agents_start_on_demand_and_hand_sessions_over() {
    let world = World::new();
    let tables = ["alpha", "beta"].map(|name| named(&world, name)).concat();
    world.configure(&format!(
        "agent = \"alpha\"\n{tables}description = \"Second\"\n"
    ));
    let mut server = Server::launch(world, &[], Framing::Lines, &[]);
    server.waive("agent/state");
    let default = &server.initialize()["defaultAgent"];
    assert_eq!(
        (&default["name"], &default["source"]),
        (&json!("alpha"), &json!("configuration"))
    );
    let list = server.call("agent/list", &json!({}));
    let listed = list["agents"].as_array().unwrap().iter();
    let listed = listed.map(|a| json!([a["agent"], a["isDefault"] == true, a["description"]]));
    let want = json!([["alpha", true, null], ["beta", false, "Second"]]);
    assert_eq!(listed.collect::<Value>(), want);
    for (named, name) in [(None, "alpha"), (Some("beta"), "beta")] {
        let params = json!({"sessionId": "s", "agent": named});
        let session = server.call("session/ensure", &params);
        assert_eq!(session["agentName"], name);
        assert_eq!(session["recovery"]["rung"], "new");
        let id = server.send_prompt("s", "hi");
        assert_eq!(server.turn(&id).summary["text"], name);
    }
    let other = json!({"agent": "beta", "command": FAKE_AGENT});
    let error = server.call_error("agent/connect", &other);
    assert_eq!(error["data"]["kind"], "duplicateAgent");
    server.finish();
}

#[test]
fn agents_are_added_shown_and_removed_by_command() {
    let world = World::new();
    let list = || {
        let out = stdout(&world, "agents --json");
        let agents = out.lines().map(|line| serde_json::from_str(line).unwrap());
        let own = agents.filter(|agent: &Value| agent["source"] == "configuration");
        let shown = own.map(|a| json!([a["agent"], a["args"], a["state"], a["isDefault"] == true]));
        shown.collect::<Vec<_>>()
    };
    let line = format!("agents add mine --description Mine -- {FAKE_AGENT} --x");
    stdout(&world, &line);
    stdout(
        &world,
        "agents add strict --extends mine --permissions deny",
    );
    stdout(&world, "agents default strict");
    let want = [("mine", false), ("strict", true)];
    let want = want.map(|(name, is_default)| json!([name, ["--x"], "installed", is_default]));
    assert_eq!(list(), want);
    let shown = stdout(&world, "agents show strict");
    let is_shown = shown.contains("--x") && shown.contains("config.toml:");
    assert!(is_shown, "{shown}");

    let err = refused(&world, "agents add mine -- other", 2);
    assert!(err.contains("mine"), "{err}");
    // An agent that another one extends cannot be removed first.
    refused(&world, "agents remove mine", 2);
    for name in ["strict", "mine"] {
        stdout(&world, &format!("agents remove {name}"));
    }
    assert!(list().is_empty());
    let err = refused(&world, "agents remove claude", 2);
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
    let (code, out, err) = acpipe(&world, &[("PATH", &path)], "agents --json");
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
    stdout(&world, &format!("agents import {file}"));
    let config = fs::read_to_string(world.dir.join("config/acpipe/config.toml")).unwrap();
    for line in [
        "[agents.one]",
        "args = [\"-y\", \"one-agent\", \"--acp\"]",
        "[agents.two]",
        "command = \"uvx\"",
    ] {
        assert!(config.contains(line), "{line}: {config}");
    }
    let line = format!("agents import {file} one");
    let (_, _, err) = acpipe(&world, &[], &line);
    assert!(err.contains("skipped \"one\""), "{err}");
    let line = "agents import https://example.org/registry.json";
    let err = refused(&world, line, 2);
    assert!(err.contains("curl"), "{err}");
}

#[test]
fn stored_session_of_an_undefined_agent_is_readable_but_not_started() {
    let world = World::new();
    let table = asking(&world, "writer");
    world.configure(&format!("{table}permissions = \"deny\"\n"));
    stdout(&world, "run --session s --agent writer go");
    world.configure("");
    let before = world.log().len();
    let err = refused(&world, "run --session s again", 2);
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
    world.configure(&format!("{table}permissions = \"deny\"\n"));
    for name in ["codex", "codex-acp", "CODEX-ACP"] {
        stdout(&world, &format!("run --agent {name} go"));
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
    let err = refused(&world, "run --agent demo hi", 2);
    assert!(err.contains("has the name of a built-in agent"), "{err}");
}

#[test]
fn trust_holds_for_one_directory_and_commands_are_relative_to_the_file() {
    let world = World::new();
    let script = world.script(&says("own"));
    for (dir, text) in [("a", "exec"), ("a/sub", "exit 3 #"), ("b", "exit 3 #")] {
        fs::create_dir_all(world.dir.join(dir).join("bin")).unwrap();
        let program = format!("#!/bin/sh\n{text} '{FAKE_AGENT}' '{script}'\n");
        world.executable(&format!("{dir}/bin/agent"), &program);
    }
    let table = "agent = \"own\"\n[agents.own]\ncommand = \"./bin/agent\"\n";
    world.file("a/.acpipe.toml", table);
    std::os::unix::fs::symlink("../a/.acpipe.toml", world.dir.join("b/.acpipe.toml")).unwrap();
    let in_dir = |dir: &str, line: &str| {
        let mut command = world.acpipe(&words(line));
        let command = command.current_dir(world.dir.join(dir));
        let output = command.stdin(Stdio::null()).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    assert_eq!(in_dir("a", "agents trust").0, 0);
    assert_eq!(in_dir("a", "run hi"), (0, "own\n".to_owned()));
    assert_eq!(in_dir("a/sub", "run hi"), (0, "own\n".to_owned()));
    assert_eq!(in_dir("b", "run hi").0, 2, "the link is not trusted");
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
        let (code, out, err) = acpipe(&world, &env, "run -q hi");
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
    let own = agent(&world, "own", &says("own"));
    world.configure(&format!("agent = \"own\"\n{own}"));
    let text = "agent = \"p\"\n[agents.p]\nuse = \"demo\"\nprompt = \"x\"\n";
    world.file(".acpipe.toml", text);
    let (code, out, err) = acpipe(&world, &[], "run -q hi");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "own\n", ""));
    // Named by the user.
    assert!(stdout(&world, "run -q --agent p hi").contains("demo"));
}

#[test]
fn run_warns_even_quietly_before_the_prompt_of_an_agent_that_does_not_ask() {
    let world = World::new();
    let own = agent(&world, "own", &says("done"));
    world.configure(&format!("{own}asks = \"never\"\n"));
    for output in ["text", "json", "chunks", "sse", "agui"] {
        let run = |mode: &str| {
            let line = format!("run -q -o {output} --agent own --permissions {mode} hi");
            let (code, _, err) = acpipe(&world, &[], &line);
            assert_eq!(code, 0, "{output}: {err}");
            err
        };
        let err = run("deny");
        let says = "The agent may run tools without asking";
        assert!(err.contains(says), "{output}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert_eq!(run("approve"), "", "{output}");
    }
}
