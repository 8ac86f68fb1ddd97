//! `acpipe trace`: shows a tape or a stored session as a timeline, an HTML page or text. Starts no agent.

pub mod args;
mod chunks;
mod claude;
mod frames;
mod label;
mod page;
mod row;
mod rpc;
mod session_log;
mod tape;
mod text;
mod timeline;
mod updates;

use super::pager::to_pager;
use super::print_note;
use super::save::{Readers, save};
use super::screen::{ScreenContent, to_stdout};
use super::sessions::{directory, find};
use super::styles::Styles;
use acpipe_core::store::LogFile as _;
use acpipe_host as shell;
use acpipe_host::{open_foreign, read_input};
use acpipe_model::error::{Error, ErrorKind};
use anyhow::Context as _;
use args::TraceArgs;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use timeline::Timeline;

/// Maximum size of a recording that becomes a page, in bytes; browsers limit the length of a text.
const MAX_PAGE: usize = 256 << 20;

/// Bytes of a file in which the mark of a page is searched.
const HEAD: u64 = 512;

/// Runs the subcommand and returns the exit code.
pub fn trace(args: &TraceArgs) -> anyhow::Result<u8> {
    let timeline = load(args)?;
    if timeline.unreadable > 0 {
        print_note(&format!(
            "cannot read {} lines of {}",
            timeline.unreadable, timeline.name
        ));
    }
    let write = |width: Option<usize>, out: &mut dyn Write| {
        if args.text {
            text::write(&timeline, width, out)
        } else {
            page::write(&timeline, out)
        }
    };
    let Some(file) = target(args)? else {
        let styles = Styles::stdout();
        let write = |out: &mut dyn Write| Ok(write(styles.width, out)?);
        if args.text && args.output.is_none() {
            to_pager(&args.pager, ScreenContent::Text, write)?;
        } else {
            to_stdout(ScreenContent::Text, write)?;
        }
        return Ok(0);
    };
    save(&file, Readers::Owner, |out| write(None, out))?;
    print_note(&format!("wrote {}", file.display()));
    Ok(0)
}

/// Reads the file or session that the arguments name.
fn load(args: &TraceArgs) -> anyhow::Result<Timeline> {
    let path = Path::new(&args.source);
    let is_file = path.exists();
    let bytes = if is_file {
        read_input(path, u64::MAX).with_context(|| format!("cannot read {}", args.source))?
    } else {
        session(args)?
    };
    if !args.text && bytes.len() > MAX_PAGE {
        let message = format!(
            "cannot make a page of {}: it has {} MiB, and browsers show at most {}; use --text",
            args.source,
            bytes.len() >> 20,
            MAX_PAGE >> 20
        );
        return Err(Error::new(ErrorKind::InvalidParams, message).into());
    }
    let mut timeline = Timeline::of(&args.source);
    if !is_file || session_log::is_log(&bytes) {
        session_log::read(&bytes, &mut timeline);
    } else {
        tape::read(&bytes, &mut timeline)?;
    }
    Ok(timeline)
}

/// Reads the log of the stored session that the arguments name.
fn session(args: &TraceArgs) -> anyhow::Result<Vec<u8>> {
    let state = super::state_dir(&args.place)?;
    let id = find(&state, &args.source, &directory(args.cwd.as_deref())?)?;
    let log = shell::read_only(&state, &id).map_err(|error| match error.kind {
        ErrorKind::SessionNotFound => {
            let message = format!(
                "cannot find {:?}: it is neither a file nor a session in {}; list the sessions with acpipe sessions list",
                args.source,
                state.display()
            );
            Error::new(ErrorKind::SessionNotFound, message)
        }
        _ => error,
    })?;
    let bytes = log.read(log.begin()..log.end());
    bytes.map_err(|e| {
        let message = format!("cannot read the session's log: {e}");
        Error::new(ErrorKind::Storage, message).into()
    })
}

/// Returns the file to write; `None` for stdout. A page does not go to a terminal unless `-o -` requests it.
fn target(args: &TraceArgs) -> anyhow::Result<Option<PathBuf>> {
    if let Some(file) = &args.output {
        let is_source = |file: &Path| {
            let real = |path: &Path| path.canonicalize().ok();
            file.exists() && real(file) == real(Path::new(&args.source))
        };
        if is_source(file) {
            let message = format!(
                "cannot write {}: it is the file to read; choose another file with -o",
                file.display()
            );
            return Err(Error::new(ErrorKind::InvalidParams, message).into());
        }
        return Ok(Some(file.clone()).filter(|file| file != Path::new("-")));
    }
    if args.text || !Styles::stdout().is_terminal {
        return Ok(None);
    }
    let file = default_file(&args.source, Path::new(&args.source).exists());
    if is_foreign(&file) {
        let message = format!(
            "cannot write {}: it exists, and acpipe trace did not write it; choose a file with -o",
            file.display()
        );
        return Err(Error::new(ErrorKind::InvalidParams, message).into());
    }
    Ok(Some(file))
}

/// Returns the file of a page: beside a tape, or in the working directory for a session.
fn default_file(source: &str, is_file: bool) -> PathBuf {
    if is_file {
        return format!("{source}.html").into();
    }
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = source
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    format!("{name}.trace.html").into()
}

/// Returns `true` if the file exists and is not a page of this command.
fn is_foreign(file: &Path) -> bool {
    if !file.exists() {
        return false;
    }
    let mut head = Vec::new();
    let opened = open_foreign(file);
    let read = opened.and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_err() || !String::from_utf8_lossy(&head).contains(page::MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_written_beside_a_tape_and_in_the_working_directory_for_a_session() {
        let tape = default_file("bugs/a.tape", true);
        assert_eq!(tape, Path::new("bugs/a.tape.html"));
        let session = default_file("../fix tests", false);
        assert_eq!(session, Path::new(".._fix_tests.trace.html"));
    }
}
