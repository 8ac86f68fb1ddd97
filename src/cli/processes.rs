//! `acpipe processes`: processes that acpipe started, and leftovers of killed acpipes. Starts no agent.

use super::aligned::{CutColumn, aligned};
use super::args::shared::PlaceArgs;
use super::screen::ScreenContent;
use super::styles::Styles;
use super::{print_note, state_dir};
use crate::cli::screen::to_stdout;
use acpipe_host::{LaunchedProcess, end_left, launched};
use acpipe_model::error::ErrorKind;
use clap::Args;
use std::io;

#[derive(Debug, Args)]
#[command(
    after_help = "Each acpipe that starts also ends the orphaned processes of a killed acpipe. Processes are found on \
        Linux only.\n\n\
        Exit codes: 0 success, 70 if a process did not end (with --end)."
)]
pub struct ProcessesArgs {
    /// End the processes that a killed acpipe left behind: SIGTERM, then SIGKILL
    #[arg(long)]
    pub end: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

const COLUMNS: usize = 4;
const HEAD: [&str; COLUMNS] = ["PID", "STATE", "ACPIPE", "COMMAND"];
const CUTS: [CutColumn; 1] = [CutColumn::end(3, 20)];

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
            "no processes to end"
        } else {
            "no processes"
        };
        print_note(&format!("{what} found with state in {}", state.display()));
    }
    to_stdout(ScreenContent::styled_or_json(args.json), |out| {
        if !args.json {
            let rows: Vec<[String; COLUMNS]> = processes.iter().map(|p| row(p, args.end)).collect();
            let text = aligned(HEAD, &rows, Some(0), &CUTS, Styles::stdout());
            return Ok(out.write_all(text.as_bytes())?);
        }
        for process in &processes {
            serde_json::to_writer(&mut *out, process).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })?;
    if remaining > 0 {
        print_note(&format!(
            "cannot end {remaining} of the processes; they may belong to another user"
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
