//! `acpipe sessions`: lists, shows, exports and removes stored sessions. Starts no agent; reading takes no
//! lock.

mod age;
pub mod args;
mod conversation;
mod export;
mod lookup;
mod remove;
mod search;
mod show;
mod table;

use super::daemon::live_sessions;
use super::pager::{PagerArgs, to_pager};
use super::print_note;
use super::screen::ScreenContent;
use super::styles::Styles;
use crate::cli::screen::to_stdout;
use acpipe_core::agent_command::hide_command_lines;
use acpipe_core::log::Log;
use acpipe_core::store::Card;
use acpipe_host as shell;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::SessionInfo;
pub use age::{exact, now};
use args::{ExportFormat, ListSessionsArgs, SessionsArgs, SessionsVerb};
pub use conversation::{PlanEntryStatus, plan_entries};
pub use lookup::{directory, find, in_directory, newest, same_dir};
use serde_json::json;
pub use show::{message_text, show_last};
use std::collections::BTreeMap;
use std::path::Path;

/// Runs the subcommand and returns the exit code.
pub async fn sessions(args: SessionsArgs) -> anyhow::Result<u8> {
    let state = super::state_dir(&args.place)?;
    match &args.verb {
        SessionsVerb::List(list_args) => {
            let live = live_sessions(&state).await;
            list(&state, list_args, &live, &args.pager)?;
        }
        SessionsVerb::Show(show_args) => {
            let cwd = directory(show_args.place.cwd.as_deref())?;
            let id = find(&state, &show_args.id, &cwd)?;
            let log = read(shell::read_only(&state, &id)?)?;
            let styles = Styles::stdout();
            to_pager(&args.pager, ScreenContent::Styled, |out| {
                show::show(&log, styles, out)
            })?;
        }
        SessionsVerb::Search(search_args) => {
            return search::search(&state, search_args, &args.pager);
        }
        SessionsVerb::Export(args) => {
            let id = find(&state, &args.id, &directory(args.place.cwd.as_deref())?)?;
            let file = shell::read_only(&state, &id)?;
            args.check()?;
            let profile = args.chunk_profile.into();
            match args.format {
                ExportFormat::Json => to_stdout(ScreenContent::Json, |out| {
                    export::export(file, args.output, profile, out)
                })?,
                format => to_stdout(ScreenContent::Text, |out| {
                    export::export_document(file, format, out)
                })?,
            }
        }
        SessionsVerb::Delete(args) => return remove::delete(&state, args),
        SessionsVerb::Gc(args) => return remove::gc(&state, args),
    }
    Ok(0)
}

/// Returns the cards of all sessions, last changed first.
pub fn cards(state: &Path) -> Result<Vec<Card>, Error> {
    let mut cards = shell::cards(state).map_err(|e| {
        let message = format!("cannot read the sessions in {}: {e}", state.display());
        Error::new(ErrorKind::Storage, message)
    })?;
    cards.sort_by(|a, b| (&b.updated_at, &b.session_id).cmp(&(&a.updated_at, &a.session_id)));
    Ok(cards)
}

fn list(
    state: &Path,
    args: &ListSessionsArgs,
    open: &BTreeMap<String, SessionInfo>,
    pager: &PagerArgs,
) -> anyhow::Result<()> {
    let mut cards = cards(state)?;
    if let Some(cwd) = &args.cwd {
        let cwd = directory(Some(cwd))?;
        cards.retain(|card| same_dir(&card.cwd, &cwd));
    }
    // As in `session/list`.
    cards.retain(|card| {
        args.all || args.json || card.is_used() || open.contains_key(&card.session_id)
    });
    if cards.is_empty() {
        let whose = args
            .cwd
            .as_ref()
            .map_or_else(String::new, |cwd| format!(" of {}", cwd.display()));
        print_note(&format!("no sessions{whose} found in {}", state.display()));
    }
    to_pager(pager, ScreenContent::styled_or_json(args.json), |out| {
        if !args.json {
            let text = table::table(&cards, open, args.all, Styles::stdout());
            return Ok(out.write_all(text.as_bytes())?);
        }
        for card in &cards {
            let mut line = json!(card);
            hide_command_lines(&mut line);
            if let Some(session) = open.get(&card.session_id) {
                line["activity"] = json!(session.activity);
                line["clients"] = json!(session.clients);
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    })
}

/// Opens a log and reports unreadable lines on stderr.
pub fn read(file: shell::ReadOnly) -> Result<Log, Error> {
    let log = Log::open(Box::new(file))?;
    if log.corrupt() > 0 {
        print_note(&format!("cannot read {} lines of the log", log.corrupt()));
    }
    Ok(log)
}
