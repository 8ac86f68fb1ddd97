//! Agents that a client of the daemon defines: the settings of the client that opened a session hold for the prompts of
//! the others.

use super::client::Client;
use super::{Daemon, attach};
use crate::harness::steps::{ask, end, say};
use crate::harness::{FAKE_AGENT, World, chosen_options};
use serde_json::json;

const APPROVE: &str = "approve";
const DENY: &str = "deny";

/// Way of a prompt of another client.
#[derive(Debug, Clone, Copy)]
enum Face {
    Prompt,
    Run,
    Attach,
}

/// A daemon, and an agent that requests permission in each turn.
struct House {
    daemon: Daemon,
    script: String,
}

impl House {
    fn new() -> Self {
        let world = World::new();
        let tool = json!({"toolCallId": "edit", "title": "Edit", "kind": "edit"});
        let question = ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")]);
        let script =
            world.script(&json!({"session/prompt": [[question, say("done"), end("end_turn")]]}));
        for mode in [APPROVE, DENY] {
            let rules = format!("[permissions]\ndefault = {mode:?}\n");
            world.file(&format!("{mode}.toml"), &rules);
        }
        let daemon = Daemon::start_in(world, &[]);
        Self { daemon, script }
    }

    fn config(&self, mode: &str) -> String {
        let file = self.daemon.world.dir.join(format!("{mode}.toml"));
        file.to_str().unwrap().to_owned()
    }

    fn client(&self, mode: &str) -> Client {
        let config = self.config(mode);
        self.daemon
            .client(&["--config", &config, "--", FAKE_AGENT, &self.script])
    }

    fn prompt(&self, face: Face, id: &str, mode: &str) {
        match face {
            Face::Prompt => {
                let prompt = json!({"sessionId": id, "message": "go"});
                self.client(mode).call("session/prompt", &prompt);
            }
            Face::Run => {
                let config = self.config(mode);
                let args = [
                    "run",
                    "--daemon",
                    "--config",
                    &config,
                    "--session",
                    id,
                    "go",
                ];
                let output = self.daemon.command(&args).output().unwrap();
                assert!(output.status.success(), "{output:?}");
            }
            Face::Attach => {
                let variables = [("ACPIPE_CONFIG", self.config(mode))];
                let mut screen = attach::at_terminal_with(&self.daemon, &[id], variables.into());
                screen.await_text("Ctrl-D leaves the session");
                screen.keys("go\n");
                screen.await_text("done");
                screen.keys("/detach\n");
                let (code, text, _) = screen.end();
                assert_eq!(code, 0, "{text}");
            }
        }
    }
}

#[test]
fn opener_and_caller_both_decide_by_every_face() {
    let house = House::new();
    let mut asked = 0;
    for method in ["agent/register", "agent/connect"] {
        for (opener, caller) in [(APPROVE, DENY), (DENY, APPROVE), (APPROVE, APPROVE)] {
            for face in [Face::Prompt, Face::Run, Face::Attach] {
                let case = format!("{}-{opener}-{caller}-{face:?}", method.replace('/', "-"));
                let mut first = house.client(opener);
                let (agent, script) = (format!("own-{case}"), &house.script);
                let own = json!({"agent": agent, "command": FAKE_AGENT, "args": [script]});
                first.call(method, &own);
                let wish = json!({"sessionId": case, "agent": agent});
                first.call("session/ensure", &wish);
                house.prompt(face, &case, caller);
                let log = house.daemon.world.log();
                let chosen = chosen_options(&log);
                asked += 1;
                assert_eq!(chosen.len(), asked, "{case}");
                let both = opener == APPROVE && caller == APPROVE;
                let want = if both { "yes" } else { "no" };
                assert_eq!(chosen.last(), Some(&want), "{case}");
            }
        }
    }
    house.daemon.stop();
}

/// Only the stored session knows the agent then.
#[test]
fn agent_of_a_stored_session_has_the_settings_of_the_client_that_opens_it() {
    let house = House::new();
    let mut first = house.client(APPROVE);
    let own = json!({"agent": "own", "command": FAKE_AGENT, "args": [house.script]});
    first.call("agent/register", &own);
    let wish = json!({"sessionId": "s", "agent": "own"});
    first.call("session/ensure", &wish);
    first.call(
        "session/prompt",
        &json!({"sessionId": "s", "message": "go"}),
    );
    house.daemon.run(&["daemon", "restart"], 0);
    house.client(DENY).ensure("s");
    house.prompt(Face::Prompt, "s", APPROVE);
    assert_eq!(chosen_options(&house.daemon.world.log()), ["yes", "no"]);
    house.daemon.stop();
}
