//! A client of the daemon in a session that another client opened: the stricter permissions of both decide about its
//! prompts.

use super::client::Client;
use super::{Daemon, asking, attach, question, with_agent};
use crate::harness::claude::answers;
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, World, chosen_options, words};
use serde_json::{Value, json};

/// Settings of a client.
const SETTINGS: [&str; 3] = [APPROVE, DENY, RULE];
const APPROVE: &str = "approve";
const DENY: &str = "deny";
/// A rule against the call of the test, above a mode that approves.
const RULE: &str = "rule";

/// State of the session when the prompt comes.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Live,
    /// The opener has disconnected the agent.
    Resting,
    /// The opener has moved the session to another agent.
    HandedOver,
}

/// Way of the prompt.
#[derive(Debug, Clone, Copy)]
enum Face {
    /// `session/prompt` of a client that has not opened the session.
    Prompt,
    /// `acpipe run`.
    Run,
    /// A line at the terminal of `acpipe attach`, whose configuration is that of `ACPIPE_CONFIG`.
    Attach,
}

/// A daemon with a configuration file for each setting, and two agents with one script.
struct House {
    daemon: Daemon,
    script: String,
    /// Number of permission requests that the test has looked at.
    seen: usize,
}

impl House {
    fn new() -> Self {
        let world = World::new();
        let script = world.script(&asking());
        for name in SETTINGS {
            let rules = match name {
                RULE => {
                    "[permissions]\ndefault = \"approve\"\n[[permissions.rules]]\neffect = \"deny\"\nkind = [\"edit\"]\n"
                }
                mode => &format!("[permissions]\ndefault = {mode:?}\n"),
            };
            let agent = format!("[agents.other]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\n");
            world.file(&format!("{name}.toml"), &format!("{rules}{agent}"));
        }
        let daemon = Daemon::start_in(world, &[]);
        Self {
            daemon,
            script,
            seen: 0,
        }
    }

    fn config(&self, setting: &str) -> String {
        let file = self.daemon.world.dir.join(format!("{setting}.toml"));
        file.to_str().unwrap().to_owned()
    }

    fn client(&self, setting: &str) -> Client {
        let config = self.config(setting);
        self.daemon
            .client(&["--config", &config, "--", FAKE_AGENT, &self.script])
    }

    /// Returns whether the last request of the agent was allowed. It must be the only one since the last look.
    fn allowed(&mut self) -> bool {
        let log = self.daemon.world.log();
        let chosen = chosen_options(&log);
        assert_eq!(chosen.len(), self.seen + 1, "{chosen:?}");
        self.seen += 1;
        chosen[chosen.len() - 1] == "yes"
    }

    /// Sends a prompt of a client with this setting.
    fn prompt(&self, face: Face, id: &str, setting: &str) {
        match face {
            Face::Prompt => {
                self.client(setting).prompt(id);
            }
            Face::Run => {
                let config = self.config(setting);
                let line = format!("run --daemon --config {config} --session {id} go");
                let args = with_agent(&line, &self.script);
                let output = self.daemon.command(&args).output().unwrap();
                assert!(output.status.success() || setting != APPROVE, "{output:?}");
            }
            Face::Attach => {
                let variables = [("ACPIPE_CONFIG", self.config(setting))];
                let mut screen = attach::at_terminal_with(&self.daemon, &[id], variables.into());
                screen.await_text("Ctrl-D leaves");
                screen.keys("go\n");
                screen.await_text("done");
                screen.keys("/detach\n");
                let (code, text, _) = screen.end();
                assert_eq!(code, 0, "{text}");
            }
        }
    }
}

/// The call is allowed only if both settings allow it. A session that no agent has takes the settings of the client that
/// opens it again.
#[test]
fn prompt_in_a_session_of_others_runs_under_the_stricter_permissions() {
    let mut house = House::new();
    for stage in [Stage::Live, Stage::Resting, Stage::HandedOver] {
        // The hub's tests have all pairs of settings, and clients that ensure the session before.
        for (opener, caller) in [(APPROVE, RULE), (DENY, APPROVE), (APPROVE, APPROVE)] {
            for face in [Face::Prompt, Face::Run, Face::Attach] {
                let id = format!("{stage:?}-{opener}-{caller}-{face:?}");
                let mut first = house.client(opener);
                first.ensure(&id);
                match stage {
                    Stage::Resting => {
                        first.call("agent/disconnect", &json!({}));
                    }
                    Stage::HandedOver => {
                        let other = json!({"sessionId": id, "agent": "other"});
                        first.call("session/ensure", &other);
                    }
                    Stage::Live => {}
                }
                house.prompt(face, &id, caller);
                // The run names its agent, which moves the session back. `attach` names none, and keeps that of the
                // session with its settings.
                let reopened = matches!(
                    (stage, face),
                    (Stage::Resting | Stage::HandedOver, Face::Run)
                );
                let want = caller == APPROVE && (opener == APPROVE || reopened);
                assert_eq!(house.allowed(), want, "{id}");
            }
        }
    }
    house.daemon.stop();
}

#[test]
fn queued_prompt_keeps_the_permissions_of_its_client() {
    let asked = [question(), say("done"), end("end_turn")];
    let steps = json!({"if": {"params": "hold", "then": until_cancelled(), "else": asked}});
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [[steps]]}));
    let options = |mode: &'static str| ["--permissions", mode, "--", FAKE_AGENT, script.as_str()];
    for (n, (opener, caller)) in [(APPROVE, DENY), (DENY, APPROVE), (APPROVE, APPROVE)]
        .into_iter()
        .enumerate()
    {
        let id = format!("{opener}-{caller}");
        let mut first = daemon.client(&options(opener));
        first.ensure(&id);
        let params = json!({"sessionId": id, "message": "go"});
        let hold = json!({"sessionId": id, "message": "hold"});
        let running = first.send("session/prompt", &hold);
        first.next("session/chunk");
        let mut second = daemon.client(&options(caller));
        let mut queued = params.clone();
        queued["turnId"] = json!(format!("{id}-queued"));
        let waiting = second.send("session/prompt", &queued);
        let is_queued = |state: &Value| {
            state["params"]["queue"]
                .as_array()
                .is_some_and(|q| !q.is_empty())
        };
        while !is_queued(&second.next("session/state")) {}
        first.call("session/cancel", &json!({"sessionId": id}));
        first.answer(running).unwrap();
        second.answer(waiting).unwrap();
        let want = if opener == APPROVE && caller == APPROVE {
            "yes"
        } else {
            "no"
        };
        let log = daemon.world.log();
        assert_eq!(chosen_options(&log)[n], want, "{id}");
    }
    daemon.stop();
}

/// A closes the session of B and opens it with weaker permissions: the prompts of B run under those of B.
#[test]
fn session_that_another_client_opened_again_does_not_weaken_permissions() {
    let mut house = House::new();
    let mut strict = house.client(DENY);
    strict.ensure("s");
    let mut weak = house.client(APPROVE);
    weak.call("session/close", &json!({"sessionId": "s"}));
    weak.call("session/ensure", &json!({"sessionId": "s"}));
    strict.prompt("s");
    assert!(!house.allowed());
    weak.prompt("s");
    assert!(house.allowed());
    strict.call("session/clients", &json!({"sessionId": "s"}));
    // Both learn that the permissions changed from one turn to the next.
    for client in [&strict, &weak] {
        let notices = changes(client);
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(notices[0].contains("permissions \"deny\""), "{notices:?}");
    }
    house.daemon.stop();
}

/// Returns the texts of the notices that the permissions of session "s" changed.
fn changes(client: &Client) -> Vec<&str> {
    let chunks = client.chunks.get("s").into_iter().flatten();
    let notices = chunks.filter(|(_, _, chunk)| {
        chunk["type"] == "data-notice"
            && chunk["data"]["title"] == "The permissions of this session changed"
    });
    notices
        .map(|(_, _, chunk)| chunk["data"]["description"].as_str().unwrap())
        .collect()
}

/// The receipt and the output name what the session has and the caller does not want.
#[test]
fn caller_learns_which_of_its_settings_a_live_session_does_not_have() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("x"), end("end_turn")]]}));
    let agent = format!("[agents.helper]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\n");
    let cases = [
        (
            "permissions",
            "[permissions]\ndefault = \"deny\"\n",
            "",
            true,
        ),
        ("limits", "", "timeout = \"1h\"\n", true),
        ("mode", "", "mode = \"plan\"\n", false),
        ("model", "", "model = \"large\"\n", false),
        ("instructions", "", "prompt = \"Be brief.\"\n", false),
        ("environment", "", "env = { A = \"b\" }\n", false),
        ("childPerSession", "", "child_per_session = true\n", false),
        (
            "mcpServers",
            "",
            "[agents.helper.mcp_servers.files]\ncommand = \"files\"\n",
            false,
        ),
    ];
    let plain = world.file("plain.toml", &agent);
    let files = cases.map(|(name, before, after, _)| {
        world.file(&format!("{name}.toml"), &format!("{before}{agent}{after}"))
    });
    let daemon = Daemon::start_in(world, &[]);
    let mut opener = daemon.client(&["--config", &plain]);
    let open = json!({"sessionId": "s", "agent": "helper"});
    opener.call("session/ensure", &open);
    for ((name, _, _, holds), file) in cases.iter().zip(&files) {
        let mut client = daemon.client(&["--config", file]);
        let receipt = client.call("session/ensure", &json!({"sessionId": "s"}));
        let differing = &receipt["recovery"]["differingSettings"];
        assert_eq!(*differing, json!([name]), "{receipt}");
        let run = |options: &str, code: i32| {
            let line = format!("run{options} --daemon --config {file} --session s go");
            let output = daemon.run(&words(&line), code);
            String::from_utf8(output.stderr).unwrap()
        };
        if matches!(*name, "mode" | "model") {
            let text = run(" -q", 2);
            assert!(text.contains("session/close"), "{text}");
            continue;
        }
        let says = format!("differs from this client in {name}");
        for (options, is_said) in [(" -q", !holds), ("", true)] {
            let text = run(options, 0);
            assert_eq!(text.contains(&says), is_said, "{name}: {text}");
        }
    }
    let own = opener.call("session/ensure", &open);
    assert!(own["recovery"].get("differingSettings").is_none(), "{own}");
    let servers = json!([{"name": "files", "command": "files", "args": []}]);
    let more = json!({"sessionId": "s", "mcpServers": servers});
    let receipt = opener.call("session/ensure", &more);
    assert_eq!(
        receipt["recovery"]["differingSettings"],
        json!(["mcpServers"])
    );
    daemon.stop();
}

/// The daemon starts Claude Code so that it reports each tool, since any client can bring rules.
#[test]
fn rules_of_a_caller_apply_to_tools_that_claude_runs_unasked() {
    let world = World::new();
    let fake = format!("FAKE_CLAUDE={}", world.script(&json!({})));
    let rules =
        "[[permissions.rules]]\nname = \"secrets\"\neffect = \"deny\"\npath = \"/**/.env\"\n";
    let config = world.file("rules.toml", rules);
    let daemon = Daemon::start_in(world, &[]);
    let agent = ["--protocol", "claude", "-e", &fake, "--", FAKE_CLAUDE];
    let mut opener = daemon.client(&[&["--permissions", "approve"], &agent[..]].concat());
    opener.ensure("s");
    let call = json!([{"request": {"subtype": "hook_callback", "callback_id": "acpipe", "tool_use_id": "t1", "input": {
        "hook_event_name": "PreToolUse", "tool_name": "Read", "tool_use_id": "t1", "tool_input": {"file_path": "/w/.env"}}}}]);
    let prompt = json!({"sessionId": "s", "message": call.to_string()});
    opener.call("session/prompt", &prompt);
    let mut caller = daemon.client(&[&["--config", &config], &agent[..]].concat());
    caller.call("session/prompt", &prompt);
    let log = daemon.world.log();
    let answers = answers(&log);
    let answers = answers
        .iter()
        .map(|answer| &answer["response"]["hookSpecificOutput"]);
    let decisions: Vec<&Value> = answers
        .map(|output| &output["permissionDecision"])
        .collect();
    assert_eq!(decisions, [&Value::Null, &json!("deny")]);
    daemon.stop();
}

#[test]
fn client_that_takes_over_a_turn_brings_its_time_limits() {
    let steps = [&[say("begun")][..], &until_cancelled()].concat();
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [steps]}));
    let options = ["--", FAKE_AGENT, script.as_str()];
    for limit in ["prompt=200ms", "turn=200ms"] {
        let mut opener = daemon.client(&options);
        opener.ensure(limit);
        let prompt = json!({"sessionId": limit, "message": "go", "turnId": limit});
        let mut first = daemon.client(&options);
        first.send("session/prompt", &prompt);
        opener.next("session/userMessage");
        drop(first);
        opener.next("session/presence");
        let mut second = daemon.client(&[&["--timeout", limit], &options[..]].concat());
        second.call("session/attach", &json!({"sessionId": limit}));
        let summary = second.call("session/prompt", &prompt);
        assert_eq!(summary["errors"][0]["kind"], "timeout", "{summary}");
    }
    daemon.stop();
}
