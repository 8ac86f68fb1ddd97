//! A daemon with a session, another client of the session, and the events that happen to a face.

use super::actors::{Actor, BEFORE};
use super::plain::{SESSION, first_choice};
use super::scenes::{Event, Scene};
use crate::daemon::client::Client;
use crate::harness::{FAKE_AGENT, World, signal};
use crate::http::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;

/// Where a scene is played.
pub struct Stage {
    pub server: Arc<Server>,
    /// The other client; it has opened the session.
    owner: Option<Client>,
    /// Prompt of the other client.
    turn: Option<u64>,
    terms: Vec<String>,
    /// `true` while a daemon runs.
    pub is_up: bool,
    /// `true` if the face has started another daemon.
    pub is_restarted: bool,
    /// `true` if the face follows the turn of the other client.
    pub is_followed: bool,
}

impl Stage {
    fn new(scene: &Scene) -> Self {
        let world = World::new();
        let script = world.script(&scene.script);
        let agent = [FAKE_AGENT.to_owned(), script];
        let permissions = ["--permissions", scene.permissions];
        let server = Server::of_agent(world, &permissions, &agent);
        let terms = [&permissions, &["--"][..]].concat();
        let terms = terms.into_iter().map(str::to_owned).chain(agent);
        let mut stage = Self {
            server: Arc::new(server),
            owner: None,
            turn: None,
            terms: terms.collect(),
            is_up: true,
            is_restarted: false,
            is_followed: matches!(scene.event, Event::Turn | Event::Leave),
        };
        let mut owner = stage.client();
        owner.call("session/ensure", &json!({"sessionId": SESSION}));
        stage.owner = Some(owner);
        stage
    }

    fn client(&self) -> Client {
        self.server.daemon.client(&self.terms())
    }

    /// Returns the permissions and the agent of every client.
    pub fn terms(&self) -> Vec<&str> {
        self.terms.iter().map(String::as_str).collect()
    }

    /// Returns the arguments of a client that runs turns in the session.
    pub fn args(&self, args: &[&str]) -> Vec<String> {
        let cwd = self.server.daemon.world.dir.to_str().unwrap();
        let session = ["--daemon", "--session", SESSION, "--cwd", cwd];
        let args = [args, &session, &self.terms()[..]].concat();
        args.into_iter().map(str::to_owned).collect()
    }

    fn owner(&mut self) -> &mut Client {
        self.owner.as_mut().unwrap()
    }

    pub fn owner_prompts(&mut self) {
        let prompt = json!({"sessionId": SESSION, "message": "hi"});
        self.turn = Some(self.owner().send("session/prompt", &prompt));
    }

    /// Waits until the session has so many clients.
    pub fn await_clients(&mut self, count: usize) {
        let clients = |message: &Value| message["params"]["clients"].as_array().unwrap().len();
        while clients(&self.owner().next("session/presence")) < count {}
    }

    fn await_before(&mut self) {
        self.owner()
            .await_chunk(SESSION, |chunk| chunk["delta"] == BEFORE);
    }

    /// Lets the agent continue: it waits for a second session.
    fn release(&mut self) {
        let session = json!({"sessionId": "release"});
        self.owner().send("session/ensure", &session);
    }

    fn await_own_turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.owner().answer(turn).unwrap();
        }
    }

    fn kill_daemon(&mut self) {
        signal(self.server.daemon.pid(), Signal::KILL);
        // Its connection ends after the process.
        self.owner.take().unwrap().read_to_end();
        self.is_up = false;
    }

    /// Stops the daemon that runs, if there is one.
    pub fn stop(&mut self) {
        let mut stop = self.server.daemon.command(&["daemon", "stop"]);
        let stop = stop.stdin(Stdio::null()).output().unwrap();
        assert!(stop.status.success() || !self.is_up, "{stop:?}");
        self.is_up = false;
    }
}

/// Plays a scene with a face, and describes what the face shows.
pub fn play(scene: &Scene, mut actor: Box<dyn Actor>) -> Vec<String> {
    let mut stage = Stage::new(scene);
    actor.open(&mut stage);
    happen(scene, &mut stage, &mut *actor);
    let shown = actor.end(&mut stage);
    drop(stage.owner.take());
    stage.stop();
    assert_eq!(stage.server.daemon.world.leak(), None);
    shown
}

fn happen(scene: &Scene, stage: &mut Stage, actor: &mut dyn Actor) {
    match scene.event {
        Event::Queue => {
            stage.owner_prompts();
            stage.await_before();
            actor.await_other();
            actor.prompt(stage);
            let is_queued =
                |message: &Value| message["params"]["queue"].as_array().unwrap().len() == 1;
            while !is_queued(&stage.owner().next("session/state")) {}
            stage.release();
            stage.await_own_turn();
        }
        Event::Turn => {
            stage.owner_prompts();
            actor.join(stage);
            actor.await_before();
            stage.release();
            stage.await_own_turn();
        }
        Event::Leave => {
            let mut watcher = stage.client();
            let session = json!({"sessionId": SESSION, "afterSeq": 0});
            watcher.call("session/attach", &session);
            stage.owner_prompts();
            actor.join(stage);
            actor.await_before();
            let clients = |client: &mut Client| {
                let result = client.call("session/clients", &json!({"sessionId": SESSION}));
                result["clients"].as_array().unwrap().len()
            };
            let before = clients(&mut watcher);
            stage.owner = None;
            while clients(&mut watcher) == before {}
            watcher.send("session/ensure", &json!({"sessionId": "release"}));
            watcher.await_chunk(SESSION, |chunk| chunk["type"] == "finish");
            stage.owner = Some(watcher);
        }
        Event::Answer => {
            actor.prompt(stage);
            actor.await_question();
            let request = stage.owner().next("permission/request");
            let answer = first_choice(&request).unwrap();
            stage.owner().respond(&request, &answer);
        }
        Event::Cancel => {
            actor.prompt(stage);
            stage.await_before();
            actor.await_before();
            let session = json!({"sessionId": SESSION});
            stage.owner().call("session/cancel", &session);
        }
        Event::CloseBetween => {
            actor.prompt(stage);
            actor.finish("first");
            let session = json!({"sessionId": SESSION});
            stage.owner().call("session/close", &session);
            actor.await_closed();
            actor.prompt(stage);
        }
        Event::KillBefore => {
            stage.kill_daemon();
            actor.await_loss();
            actor.prompt(stage);
        }
        Event::KillIn | Event::KillAsking => {
            actor.prompt(stage);
            if scene.event == Event::KillIn {
                stage.await_before();
                actor.await_before();
            } else {
                actor.await_question();
                stage.owner().next("permission/request");
            }
            stage.kill_daemon();
        }
        Event::KillAfter => {
            actor.prompt(stage);
            actor.finish("first");
            stage.kill_daemon();
            return actor.await_loss();
        }
        Event::KillBetween => {
            actor.prompt(stage);
            actor.finish("first");
            stage.kill_daemon();
            actor.await_loss();
            actor.prompt(stage);
        }
    }
    actor.finish(scene.last);
    stage.is_restarted = match scene.event {
        Event::KillBefore | Event::KillBetween => true,
        Event::KillIn | Event::KillAsking => actor.prompts_again(),
        _ => false,
    };
}
