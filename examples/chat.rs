//! A chat loop: reads prompts from stdin, one a line, and prints the answers as they come.
//!
//! ```sh
//! cargo run --example chat                   # the demo agent of the program acpipe
//! cargo run --example chat -- claude         # a built-in agent
//! cargo run --example chat -- "my-agent --acp"
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program talks to its user"
)]

use acpipe::{Acpipe, ChunkKind, PermissionReply, PermissionRequest, Policy};
use std::io::{self, BufRead as _, Write as _};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    acpipe::init();
    let agent = std::env::args().nth(1);
    let acpipe = Acpipe::builder()
        .agent(agent.unwrap_or_else(|| "acpipe demo-agent".to_owned()))
        .policy(Policy::reads())
        .on_permission(ask_user)
        .start()?;
    let session = acpipe.session("chat").ensure().await?;
    while let Some(line) = read_line().await? {
        let mut turn = session.prompt(line).await?;
        while let Some(chunk) = turn.next().await {
            match chunk.kind() {
                ChunkKind::TextDelta { delta, .. } => print!("{delta}"),
                ChunkKind::ToolInputAvailable {
                    tool_name, title, ..
                } => println!("[{}]", title.as_ref().unwrap_or(tool_name)),
                _ => continue,
            }
            io::stdout().flush()?;
        }
        println!();
        if let Err(error) = turn.summary().await {
            eprintln!("{error}");
        }
    }
    acpipe.shutdown().await;
    Ok(())
}

/// Asks the user on the terminal: the next line of stdin is the answer.
async fn ask_user(request: PermissionRequest) -> PermissionReply {
    let tool = request.tool();
    let title = tool.title.as_ref().unwrap_or(&tool.tool_name);
    println!("{title}: allow? [y/N]");
    match read_line().await {
        Ok(Some(line)) if line.trim() == "y" => request.allow(),
        _ => request.deny(),
    }
}

/// Reads a line of stdin without blocking the runtime.
async fn read_line() -> io::Result<Option<String>> {
    let read = || io::stdin().lock().lines().next().transpose();
    tokio::task::spawn_blocking(read).await?
}
