//! Agent written with the library, for the lists of requirements in `tests/bridge/conformance.rs` and
//! `tests/bridge/acp/conformance.rs`.
//!
//! It stores its sessions as JSON lines beside the file that `FAKE_AGENT_LOG` names.

use acpipe::agent::{
    Agent, AgentError, Capability, FailureKind, Message, SelectOption, Session, StopReason,
    StoredSession, Tool, Turn,
};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

struct Words {
    store: PathBuf,
}

impl Words {
    fn file(&self, session: &str) -> PathBuf {
        self.store.join(format!("{session}.jsonl"))
    }

    /// Appends a line to the file of a session, which is created if `creates`.
    fn append(&self, session: &Session, creates: bool, line: &Value) -> Result<(), AgentError> {
        let file = File::options()
            .append(true)
            .create(creates)
            .open(self.file(session.id()));
        let written = file.and_then(|mut file| writeln!(file, "{line}"));
        written.map_err(|error| AgentError::fatal(error.to_string()))
    }

    /// Reads the lines of a session.
    fn lines(&self, session: &str) -> Option<Vec<Value>> {
        let text = fs::read_to_string(self.file(session)).ok()?;
        text.lines()
            .map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    fn messages(&self, session: &Session) -> Result<Vec<Message>, AgentError> {
        let lines = self.lines(session.id()).ok_or_else(|| {
            let why = format!("session `{}` not found", session.id());
            AgentError::new(FailureKind::SessionNotFound, why)
        })?;
        let message = |line: &Value| {
            let text = |role: &str| line[role].as_str();
            text("user")
                .map(Message::user)
                .or_else(|| text("agent").map(Message::agent))
        };
        Ok(lines.iter().filter_map(message).collect())
    }
}

impl Agent for Words {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        let word = turn.prompt().text();
        let mut answer = "hi";
        match word.as_str() {
            "count" => {
                answer = "1 2 3";
                for piece in ["1 ", "2 ", "3"] {
                    turn.text(piece).await;
                }
            }
            "hang" => {
                turn.text("half").await;
                std::future::pending::<()>().await;
            }
            "crash" => {
                turn.text("half").await;
                return Err(AgentError::fatal("out of paper"));
            }
            "ask" => {
                let call = turn.tool(Tool::new("write", "Write a file")).await?;
                if call.permission().await.is_allowed() {
                    call.output("done").await;
                    answer = "allowed";
                } else {
                    call.failed("permission refused").await;
                    answer = "refused";
                }
                turn.text(answer).await;
            }
            _ => turn.text(answer).await,
        }
        self.append(turn.session(), false, &json!({ "user": word }))?;
        self.append(turn.session(), false, &json!({ "agent": answer }))?;
        Ok(StopReason::EndTurn)
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![
            Capability::Audio,
            Capability::Files,
            Capability::Images,
            Capability::List,
            Capability::Load,
            Capability::Resume,
        ]
    }

    fn options(&self) -> Vec<SelectOption> {
        vec![
            SelectOption::new("model", "Model")
                .choice("fast", "Fast")
                .choice("careful", "Careful"),
            SelectOption::new("tone", "Tone")
                .choice("plain", "Plain")
                .choice("warm", "Warm"),
        ]
    }

    async fn open(&self, session: &Session) -> Result<(), AgentError> {
        self.append(session, true, &json!({ "cwd": session.cwd() }))
    }

    async fn resume(&self, session: &Session) -> Result<Vec<Message>, AgentError> {
        self.messages(session)
    }

    async fn load(&self, session: &Session) -> Result<Vec<Message>, AgentError> {
        self.messages(session)
    }

    async fn list(&self, cwd: Option<&Path>) -> Result<Vec<StoredSession>, AgentError> {
        let files =
            fs::read_dir(&self.store).map_err(|error| AgentError::fatal(error.to_string()))?;
        let stored = files.flatten().filter_map(|file| {
            let id = file.path().file_stem()?.to_str()?.to_owned();
            let of = PathBuf::from(self.lines(&id)?.first()?["cwd"].as_str()?);
            let is_wanted = cwd.is_none_or(|cwd| cwd == of);
            is_wanted.then_some(StoredSession {
                id,
                cwd: of,
                title: None,
            })
        });
        Ok(stored.collect())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AgentError> {
    let log = std::env::var("FAKE_AGENT_LOG").unwrap_or_else(|_| "library-agent.log".to_owned());
    let store = Path::new(&log).with_extension("sessions");
    fs::create_dir_all(&store).map_err(|error| AgentError::fatal(error.to_string()))?;
    acpipe::agent::serve_acp(Words { store }).await
}
