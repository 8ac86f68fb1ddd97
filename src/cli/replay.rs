//! `acpipe replay`: repeats the agent of a tape on stdin and stdout.

pub mod args;
mod inbox;
mod message;
mod player;
mod script;

use super::{UsageError, print_note};
use acpipe_host::{StdoutWriter, read_input};
use acpipe_protocol::tape::{EventKind, TapeRecord, records, text};
use args::ReplayArgs;
use inbox::ClientInbox;
use message::Language;
use player::{Pace, Player};
use rustix::process::{Signal, getpid, kill_process};
use script::{ProcessExit, Script, option, scripts};
use serde_json::Value;
use std::io::{self, BufReader, BufWriter, Write as _};

/// Version of Claude Code if the tape does not have it.
const CLAUDE_VERSION: &str = "2.1.0 (Claude Code)";

/// Repeats an agent. Returns its exit code.
pub fn replay(args: &ReplayArgs) -> anyhow::Result<u8> {
    let shown = args.tape.display();
    let wrong = |why: String| UsageError(format!("cannot replay {shown}: {why}"));
    let bytes = read_input(&args.tape, u64::MAX)
        .map_err(|error| wrong(format!("{error}; give the path of a tape")))?;
    let tape = text(&bytes);
    let records: Vec<TapeRecord<'_>> =
        records(&tape).collect::<Result<_, _>>().map_err(|fault| {
            wrong(format!(
                "{fault}; give a file that was recorded with --record"
            ))
        })?;
    note_gaps(&records);
    let mut scripts = scripts(records.into_iter());
    if args.args.iter().any(|arg| arg == "--version") {
        StdoutWriter.write_all(format!("{}\n", version(&scripts)).as_bytes())?;
        return Ok(0);
    }
    let chosen = choose(&scripts, args).map_err(wrong)?;
    let script = scripts.swap_remove(chosen);
    let ending = play(script, args)?;
    Ok(end(&ending))
}

/// Notes that frames are missing.
fn note_gaps(records: &[TapeRecord<'_>]) {
    for record in records {
        let what = match record {
            TapeRecord::Frame(frame) if frame.cut.is_some() => {
                "long frames of the tape are shortened"
            }
            TapeRecord::Event(event) if event.kind == EventKind::Dropped => {
                "frames are missing in the tape"
            }
            TapeRecord::Event(event) if event.kind == EventKind::Full => {
                "the end of the tape is missing"
            }
            _ => continue,
        };
        return print_note(&format!("replay: {what}; the replay may differ"));
    }
}

/// Returns the answer to `claude --version`.
fn version(scripts: &[Script]) -> String {
    let queries = scripts.iter().filter(|script| script.is_version_query());
    if let Some(line) = queries.flat_map(Script::sent).next() {
        return line.to_owned();
    }
    let mut sent = scripts.iter().flat_map(Script::sent);
    let found = sent.find_map(|line| {
        let frame: Value = serde_json::from_str(line).ok()?;
        Some(format!(
            "{} (Claude Code)",
            frame["claude_code_version"].as_str()?
        ))
    });
    found.unwrap_or_else(|| CLAUDE_VERSION.to_owned())
}

/// Returns the index of the process to repeat.
fn choose(scripts: &[Script], args: &ReplayArgs) -> Result<usize, String> {
    let is_named = |script: &Script| {
        let process = &script.process;
        args.child.is_none_or(|child| process.child == Some(child))
            && (args.agent.is_none() || args.agent == process.agent)
    };
    let named: Vec<usize> = (0..scripts.len())
        .filter(|at| is_named(&scripts[*at]))
        .collect();
    if named.is_empty() && !scripts.is_empty() {
        let all: Vec<String> = scripts.iter().map(Script::described).collect();
        return Err(format!(
            "the tape does not have this process; it has {}. Choose one with --child or --agent",
            all.join(", ")
        ));
    }
    let can_play = |at: &usize| {
        let script = &scripts[*at];
        script.has_messages()
            && !script.is_http()
            && (args.child.is_some() || !script.is_version_query())
    };
    let playable: Vec<usize> = named.iter().copied().filter(can_play).collect();
    let Some(first) = playable.first() else {
        return Err(if named.iter().any(|at| scripts[*at].is_http()) {
            "it has only messages of HTTP endpoints, which are not processes; record an agent that acpipe starts"
                .to_owned()
        } else {
            "the tape has no frames of an agent; record it with acpipe run --record FILE".to_owned()
        });
    };
    // Claude Code has a process for each session.
    let resumed = option(&args.args, "--resume");
    let same = |at: &&usize| scripts[**at].option("--resume") == resumed;
    let same_kind = |at: &&usize| scripts[**at].option("--resume").is_some() == resumed.is_some();
    let found = playable
        .iter()
        .find(same)
        .or_else(|| playable.iter().find(same_kind));
    Ok(*found.unwrap_or(first))
}

fn play(script: Script, args: &ReplayArgs) -> anyhow::Result<ProcessExit> {
    let pace = (!args.at_once).then_some(Pace {
        speed: args.speed,
        longest: args.max_pause.0,
    });
    let language = script.language;
    let inbox = ClientInbox::start(BufReader::new(io::stdin()), language)?;
    let out = BufWriter::new(StdoutWriter);
    let note = |text: &str| print_note(&format!("replay: {text}"));
    let session = (language == Language::Claude)
        .then(|| claude_session(&script))
        .flatten();
    let mut player = Player::new((language, script.steps), pace, inbox, out, note);
    let own = option(&args.args, "--session-id").or_else(|| option(&args.args, "--resume"));
    if let (Some(recorded), Some(own)) = (session, own) {
        player.rename(&recorded, own);
    }
    match player.play() {
        // The client has left.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ProcessExit::default()),
        ending => Ok(ending?),
    }
}

/// Returns the session of a process of Claude Code.
fn claude_session(script: &Script) -> Option<String> {
    let named = script
        .option("--session-id")
        .or_else(|| script.option("--resume"));
    named.map(str::to_owned).or_else(|| {
        script.sent().find_map(|line| {
            let frame: Value = serde_json::from_str(line).ok()?;
            Some(frame["session_id"].as_str()?.to_owned())
        })
    })
}

/// Ends as the process of the tape did. Returns the exit code.
fn end(ending: &ProcessExit) -> u8 {
    let mut stderr = io::stderr();
    if !ending.stderr.is_empty() {
        // A closed stderr changes nothing.
        let _ = writeln!(stderr, "{}", ending.stderr.trim_end());
    }
    if let Some(signal) = ending.signal.and_then(Signal::from_named_raw) {
        // Fails only for a process that does not exist.
        let _ = kill_process(getpid(), signal);
    }
    let code = ending.code.or(ending.signal.map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(0) & 0xff).unwrap_or(1)
}

#[cfg(test)]
mod tests;
