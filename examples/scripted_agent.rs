//! A stand-in for `acpipe serve` with a model: it speaks acpipe's neutral protocol, and its agent follows a
//! script. Tests of an app start it in place of acpipe.

use acpipe::agent::{Tool, ToolKind};
use acpipe::testing::{Reply, ScriptedAgent};
use std::process::ExitCode;

fn main() -> ExitCode {
    let list = Tool::new("list_files", "List the files").kind(ToolKind::Read);
    acpipe::serve_stdio(
        ScriptedAgent::new()
            .on(
                "list",
                Reply::new().ask(list, "a.txt").then_text("One file: a.txt"),
            )
            .on("wait", Reply::text("I am waiting").hang())
            .on("fail", Reply::text("Half an answer").panic("out of cheese"))
            .on("crash", Reply::text("Half an answer").crash("disk on fire"))
            .on_any(Reply::text("Hello!"))
            .resumes(),
    )
}
