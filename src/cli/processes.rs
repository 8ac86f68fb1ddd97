//! `acpipe processes`: processes that acpipe started, and leftovers of killed acpipes. Starts no agent.

use super::args::shared::PlaceArgs;
use super::screen::Content;
use super::sessions::{Cut, Look, aligned, to_stdout};
use super::{complain, state_dir};
use crate::core::error::ErrorKind;
use crate::shell::{LaunchedProcess, end_left, launched};
use clap::Args;
use std::io;

#[derive(Debug, Args)]
#[command(
    after_help = "Each acpipe ends what killed ones left when it starts; this command shows it, and ends it at once. It \
        finds processes on Linux only.\n\n\
        Exit codes: 0 done, 1 with --end, where a process does not end."
)]
pub struct ProcessesArgs {
    /// End the processes of which acpipe was killed: SIGTERM, then SIGKILL
    #[arg(long)]
    pub end: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

const COLUMNS: usize = 4;
const HEAD: [&str; COLUMNS] = ["PID", "STATE", "ACPIPE", "COMMAND"];
const CUTS: [Cut; 1] = [Cut::end(3, 20)];

/// Lists the processes; with `--end`, ends and lists the leftover ones. Returns the exit code.
pub fn processes(args: &ProcessesArgs) -> anyhow::Result<u8> {
    let state = state_dir(&args.place)?;
    let (processes, remaining) = if args.end {
        let ended = end_left(&state);
        let remaining: usize = ended.iter().map(|ended| ended.remaining).sum();
        let processes = ended.into_iter().flat_map(|ended| ended.processes);
        (processes.collect(), remaining)
    } else {
        (launched(&state), 0)
    };
    if processes.is_empty() {
        let what = if args.end {
            "no process to end"
        } else {
            "no process"
        };
        complain(&format!(
            "{what} of an acpipe with state in {}",
            state.display()
        ));
    }
    to_stdout(Content::of(args.json), |out| {
        if !args.json {
            let rows: Vec<[String; COLUMNS]> = processes.iter().map(|p| row(p, args.end)).collect();
            let text = aligned(HEAD, &rows, Some(0), &CUTS, &Look::of_stdout());
            return Ok(out.write_all(text.as_bytes())?);
        }
        for process in &processes {
            serde_json::to_writer(&mut *out, process).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })?;
    if remaining > 0 {
        complain(&format!(
            "{remaining} of them do not end; another user may own them"
        ));
        return Ok(ErrorKind::Internal.exit_code());
    }
    Ok(0)
}

fn row(process: &LaunchedProcess, end: bool) -> [String; COLUMNS] {
    let state = match (process.left, end) {
        (true, true) => "ended",
        (true, false) => "left",
        (false, _) => "running",
    };
    [
        process.pid.to_string(),
        state.to_owned(),
        process.acpipe.to_string(),
        process.command.clone(),
    ]
}
