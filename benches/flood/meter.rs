//! Measurement of a command's resource usage, in a separate process per run because usage is kept for all
//! children of a process together.

use std::fs;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};
use serde_json::{Value, json};

use crate::Outcome;

pub(crate) fn run(file: &str, program: &str, args: &[String]) -> Outcome {
    // An agent that its client leaves behind becomes a child of this process, so that its time counts, too.
    set_child_subreaper(Some(getpid()))?;
    let status = Command::new(program).args(args).status()?;
    while wait(WaitOptions::empty()).is_ok() {}
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    let report = json!({
        "cpuUs": micros(usage.user_time()) + micros(usage.system_time()),
        "rssKb": usage.max_rss(),
        "failed": if status.success() { Value::Null } else { json!(status.to_string()) },
    });
    Ok(fs::write(file, report.to_string())?)
}
