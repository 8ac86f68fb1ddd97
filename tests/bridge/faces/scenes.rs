//! Scenes with another client of the session, or with a daemon that is killed.

use super::actors::{Actor, BEFORE, Chat, Page, Printer, Program};
use super::situations::edit_question;
use crate::harness::steps::{end, say, until_cancelled};
use serde_json::{Value, json};

/// Event of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The face prompts while the turn of another client runs.
    Queue,
    /// Another client prompts.
    Turn,
    /// Another client prompts, and is gone in its turn.
    Leave,
    /// Another client answers the request for a permission.
    Answer,
    /// Another client cancels the turn of the face.
    Cancel,
    /// Another client closes the session between two turns of the face.
    CloseBetween,
    /// The daemon is killed before the turn of the face.
    KillBefore,
    /// The daemon is killed in the turn.
    KillIn,
    /// The daemon is killed while the request for a permission is open.
    KillAsking,
    /// The daemon is killed after the turn.
    KillAfter,
    /// The daemon is killed between two turns of the face.
    KillBetween,
}

/// A face at a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    Run,
    Chat,
    Attach,
    RunJson,
    RunAgui,
    RunChunks,
    Serve,
    Http,
    Library,
    Acp,
}

/// Faces in the order of the table.
pub const FACES: [Face; 10] = [
    Face::Run,
    Face::Chat,
    Face::Attach,
    Face::RunJson,
    Face::RunAgui,
    Face::RunChunks,
    Face::Serve,
    Face::Http,
    Face::Library,
    Face::Acp,
];

impl Face {
    /// Returns the face, or the reason why a scene cannot exist there.
    pub fn actor(self, event: Event) -> Result<Box<dyn Actor>, &'static str> {
        let is_run = matches!(
            self,
            Self::Run | Self::RunJson | Self::RunAgui | Self::RunChunks
        );
        match event {
            _ if self == Self::Library => {
                return Err("the library has no other clients and no daemon");
            }
            Event::Turn | Event::Leave if is_run => return Err("a run shows its own turn only"),
            Event::CloseBetween | Event::KillAfter | Event::KillBetween if is_run => {
                return Err("a run ends with its turn");
            }
            Event::CloseBetween | Event::KillAfter | Event::KillBetween if self == Self::Attach => {
                return Err("`attach` without a terminal ends with the turn");
            }
            Event::Queue if self == Self::Attach => {
                return Err("`attach` without a terminal sends no prompts");
            }
            Event::KillAfter if matches!(self, Self::Serve | Self::Acp) => {
                return Err("the program starts the daemon again, as between turns");
            }
            _ => {}
        }
        Ok(match self {
            Self::Run => Box::new(Printer::new(&["run", "go"])),
            Self::RunJson => Box::new(Printer::new(&["run", "-o", "json", "go"])),
            Self::RunAgui => Box::new(Printer::new(&["run", "-o", "agui", "go"])),
            Self::RunChunks => Box::new(Printer::new(&["run", "-o", "chunks", "go"])),
            Self::Attach => Box::new(Printer::new(&["attach", "c"])),
            Self::Chat => Box::new(Chat::new()),
            Self::Serve => Box::new(Program::new("serve")),
            Self::Acp => Box::new(Program::new("acp")),
            Self::Http => Box::new(Page::new()),
            Self::Library => return Err("the library has no other clients and no daemon"),
        })
    }
}

/// A situation of a face at a daemon, with other clients of its session.
pub struct Scene {
    /// Name, as in the heading of the page.
    pub name: &'static str,
    pub event: Event,
    /// Script of the agent.
    pub script: Value,
    /// Value of `--permissions` of all clients.
    pub permissions: &'static str,
    /// Text that a terminal shows last.
    pub last: &'static str,
}

fn scene(name: &'static str, event: Event, runs: &Value, last: &'static str) -> Scene {
    Scene {
        name,
        event,
        script: json!({ "session/prompt": runs }),
        permissions: "approve",
        last,
    }
}

/// Returns all scenes, in the order of the page.
pub fn all() -> Vec<Scene> {
    let [wait, cancelled] = until_cancelled();
    let is_released = json!({"wait": "session/new"});
    let first = json!([say("first"), end("end_turn")]);
    let second = json!([say("second"), end("end_turn")]);
    let hangs = json!([[say(BEFORE), {"hang": true}]]);
    let asks = json!([[say(BEFORE), edit_question(), say("after"), end("end_turn")]]);
    let lost = "the daemon ended during this turn";
    vec![
        scene(
            "Prompt in the turn of another client",
            Event::Queue,
            &json!([
                [say(BEFORE), is_released, say("after"), end("end_turn")],
                second
            ]),
            "second",
        ),
        scene(
            "Turn of another client",
            Event::Turn,
            &json!([[say(BEFORE), is_released, say("after"), end("end_turn")]]),
            "after",
        ),
        scene(
            "Other client that is killed in its turn",
            Event::Leave,
            &json!([[say(BEFORE), is_released, say("after"), end("end_turn")]]),
            "after",
        ),
        Scene {
            permissions: "ask",
            ..scene(
                "Permission, answered by another client",
                Event::Answer,
                &asks,
                "after",
            )
        },
        scene(
            "Turn that another client cancels",
            Event::Cancel,
            &json!([[say(BEFORE), wait, cancelled]]),
            "the turn was cancelled",
        ),
        scene(
            "Session that another client closes between turns",
            Event::CloseBetween,
            &json!([first]),
            "first",
        ),
        scene(
            "Daemon that is killed before the turn",
            Event::KillBefore,
            &json!([first]),
            "first",
        ),
        scene(
            "Daemon that is killed in the turn",
            Event::KillIn,
            &hangs,
            lost,
        ),
        Scene {
            permissions: "ask",
            ..scene(
                "Daemon that is killed while a permission is open",
                Event::KillAsking,
                &asks,
                lost,
            )
        },
        scene(
            "Daemon that is killed after the turn",
            Event::KillAfter,
            &json!([first]),
            "",
        ),
        scene(
            "Daemon that is killed between turns",
            Event::KillBetween,
            &json!([first]),
            "first",
        ),
    ]
}
