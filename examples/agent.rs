//! An agent in one file. Try it: `acpipe run "one two" -- target/debug/examples/agent`.

use acpipe::agent::{Agent, AgentError, StopReason, Tool, Turn};

struct Counter;

impl Agent for Counter {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        let call = turn.tool(Tool::new("count", "Count the words")).await?;
        if call.permission().await.is_allowed() {
            let count = turn.prompt().text().split_whitespace().count();
            call.output(&count.to_string()).await;
            turn.text(format!("Your prompt has {count} words.")).await;
        } else {
            call.failed("permission refused").await;
            turn.text("I may not count your words.").await;
        }
        Ok(StopReason::EndTurn)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AgentError> {
    acpipe::agent::serve_acp(Counter).await
}
