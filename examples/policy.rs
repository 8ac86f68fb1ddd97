//! A policy in code: what an agent may do without a question, what it must not do, and what a function decides.
//!
//! ```sh
//! cargo run --example policy -- claude
//! ```

#![expect(clippy::print_stdout, reason = "the program talks to its user")]

use acpipe::{Acpipe, Policy, Rule};

#[tokio::main]
async fn main() -> acpipe::Result<()> {
    acpipe::init();
    let agent = std::env::args().nth(1);
    let policy = Policy::reads()
        .allow("Bash(cargo test:*)")
        .allow("Edit(src/**)")
        .deny("Bash(git push:*)")
        .rule(Rule::deny("no secrets").path("**/.env"))
        .rule(Rule::ask("network").kind("fetch"));
    let acpipe = Acpipe::builder()
        .agent(agent.unwrap_or_else(|| "acpipe demo-agent".to_owned()))
        .policy(policy)
        // Called for what no rule decides, and for the rule that asks.
        .on_permission(|request| async move {
            println!(
                "not decided by a rule ({}): {:?}",
                request.rule(),
                request.tool().title
            );
            request.deny_because("not in this program")
        })
        .start()?;
    let session = acpipe.session("policy").ensure().await?;
    let turn = session
        .prompt("List the files here and run the tests.")
        .await?;
    let summary = turn.summary().await?;
    let failed = summary.tool_results.iter().filter(|result| result.is_error);
    println!(
        "tools: {} ({} refused or failed)",
        summary.tool_calls.len(),
        failed.count()
    );
    println!("{}", summary.text);
    acpipe.shutdown().await;
    Ok(())
}
