//! Agent written with the library, for the list of requirements in `tests/bridge/conformance.rs`.

use acpipe::agent::{Agent, AgentError, Capability, Message, Session, StopReason, Tool, Turn};

struct Words;

impl Agent for Words {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        match turn.prompt().text().as_str() {
            "count" => {
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
                let is_allowed = call.permission().await.is_allowed();
                call.output("done").await;
                turn.text(if is_allowed { "allowed" } else { "refused" })
                    .await;
            }
            _ => turn.text("hi").await,
        }
        Ok(StopReason::EndTurn)
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![Capability::Resume]
    }

    async fn resume(&self, _: &Session) -> Result<Vec<Message>, AgentError> {
        Ok(Vec::new())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AgentError> {
    acpipe::agent::serve_acp(Words).await
}
