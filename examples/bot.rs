//! A bot: works in several sessions at once, answers permission requests, and prints what came of it.
//!
//! ```sh
//! cargo run --example bot -- claude
//! ```

#![expect(clippy::print_stdout, reason = "the program talks to its user")]

use acpipe::{Acpipe, PermissionReply, PermissionRequest, Policy, Session};

const TASKS: [(&str, &str); 3] = [
    (
        "docs",
        "List the files here, and say which of them are documentation.",
    ),
    (
        "tests",
        "List the files here, and say which of them are tests.",
    ),
    ("changelog", "Say hello to the readers of the changelog."),
];

#[tokio::main]
async fn main() -> acpipe::Result<()> {
    acpipe::init();
    let agent = std::env::args().nth(1);
    let acpipe = Acpipe::builder()
        .agent(agent.unwrap_or_else(|| "acpipe demo-agent".to_owned()))
        .policy(Policy::ask())
        .on_permission(decide)
        .start()?;
    let mut running = Vec::new();
    for (name, task) in TASKS {
        let session = acpipe.session(name).ensure().await?;
        running.push(tokio::spawn(work(session, task)));
    }
    for work in running {
        match work.await {
            Ok(Ok(line)) => println!("{line}"),
            Ok(Err(error)) => println!("failed ({:?}): {error}", error.kind()),
            Err(panic) => println!("failed: {panic}"),
        }
    }
    acpipe.shutdown().await;
    Ok(())
}

/// Runs one task; returns a line about it.
async fn work(session: Session, task: &str) -> acpipe::Result<String> {
    let summary = session.prompt(task).retry().await?.summary().await?;
    let text = summary.text.lines().next_back().unwrap_or_default();
    let tools = summary.tools_used.join(", ");
    Ok(format!("{}: {text} [{tools}]", session.id()))
}

/// Allows what stays in the working directory.
async fn decide(request: PermissionRequest) -> PermissionReply {
    let here = std::env::current_dir().unwrap_or_default();
    if request
        .paths()
        .iter()
        .all(|path| here.join(path).starts_with(&here))
    {
        request.allow()
    } else {
        request.deny_because("stay in the working directory")
    }
}
