//! Setup of a run: session, directory, agent and store.

use super::unstored::StoreFailures;
use super::view::RunView;
use crate::cli::agent_choice::{StoredAgent, is_unnamed_demo, no_agent};
use crate::cli::agents::installed_agents;
use crate::cli::args::RunArgs;
use crate::cli::daemon::SessionOrigin;
use crate::cli::styles::Styles;
use crate::cli::{
    ContinuedSession, UsageError, directory, persists, print_note, sessions, state_dir,
};
use acpipe_core::agent_command::{AgentCommand, key_of_line};
use acpipe_core::hub::Settings;
use acpipe_core::session_id::{is_full, unnamed};
use acpipe_core::store::{Card, OptionalStore, Store};
use acpipe_dialects::claude::CLAUDE;
use acpipe_host::{MemorySessions, StoreEvents};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::{Secrets, shown_words};
use acpipe_protocol::wire::Protocol;
use std::io::IsTerminal as _;

/// Settings and session of a run.
pub struct RunSession {
    pub settings: Settings,
    /// Id of the session.
    pub session: String,
    /// Directory and agent of the session, if it exists.
    pub origin: SessionOrigin,
}

/// Finds session and agent.
pub fn find(args: &RunArgs, secrets: &Secrets, view: &mut RunView) -> anyhow::Result<RunSession> {
    let cwd = directory(&args.agent)?;
    let chosen = choose(args, &cwd, view)?;
    let origin = origin(args, chosen.as_ref())?;
    let settings = crate::cli::settings(&args.agent, &origin, secrets)?;
    if is_unnamed_demo(&settings, &args.agent) {
        let why = if let Some(chosen) = &chosen {
            if let Some(why) = &origin.missing_agent {
                return Err(UsageError(why.clone()).into());
            }
            format!("session {:?} uses the built-in demo agent", chosen.id)
        } else {
            refuse_if_installed(&settings)?;
            // A script would take the text of the demo agent for an answer.
            if !(Styles::stdout().is_terminal && std::io::stderr().is_terminal()) {
                return Err(no_agent().into());
            }
            "no agent given, and none found on this machine; using the built-in demo agent"
                .to_owned()
        };
        // Shown with --quiet too, because the demo agent's text looks like an answer.
        print_note(&format!(
            "{why}. To use another agent: acpipe run --agent NAME \"…\", or acpipe run \"…\" -- COMMAND; acpipe agents \
             lists the names"
        ));
    }
    let session = chosen.map_or_else(|| unnamed(&settings.id_prefix), |chosen| chosen.id);
    Ok(RunSession {
        settings,
        session,
        origin: SessionOrigin {
            cwd: origin.cwd,
            agent: origin.agent,
        },
    })
}

/// Maximum number of installed agents that an error names.
const MOST_NAMED: usize = 6;

/// Returns an error if agents are installed on this machine: the user has to choose one, since the demo
/// agent's text looks like an answer.
fn refuse_if_installed(settings: &Settings) -> anyhow::Result<()> {
    let names: Vec<&str> = installed_agents(settings).take(MOST_NAMED).collect();
    let Some(first) = names.first() else {
        return Ok(());
    };
    Err(UsageError(format!(
        "no agent chosen; found on this machine: {}. Use one with acpipe run --agent {first} \"…\", or make it the \
         default with acpipe agents default {first}; the demo agent is --agent demo",
        names.join(", ")
    ))
    .into())
}

/// Existing session that the run continues, or named session that it creates.
struct SelectedSession {
    id: String,
    /// Stored description of the session; `None` if it is new.
    card: Option<Card>,
}

/// Returns the session of `--session` or `--continue`; `None` without these options.
fn choose(
    args: &RunArgs,
    cwd: &str,
    view: &mut RunView,
) -> anyhow::Result<Option<SelectedSession>> {
    if is_stored(args) && !persists(&args.agent.store)? {
        let message = "--session and --continue require stored sessions; omit --persist never and \
                           PERSIST_MESSAGES=false";
        return Err(UsageError(message.to_owned()).into());
    }
    if let Some(name) = &args.session {
        return named(args, name, cwd, view).map(Some);
    }
    if !args.r#continue {
        return Ok(None);
    }
    let cards = sessions::cards(&state_dir(&args.agent.store.place)?)?;
    let card = sessions::newest(cards, cwd)?;
    Ok(Some(SelectedSession {
        id: card.session_id.clone(),
        card: Some(card),
    }))
}

/// Returns the session with this name in this directory, or with this full id in any directory.
fn named(
    args: &RunArgs,
    name: &str,
    cwd: &str,
    view: &mut RunView,
) -> anyhow::Result<SelectedSession> {
    let state = state_dir(&args.agent.store.place)?;
    let exact = acpipe_host::stored(&state, name)?;
    if is_full(name) {
        let card = exact.ok_or_else(|| {
            let message = format!(
                "session {name:?} not found in {}; list the stored sessions with acpipe sessions list --all",
                state.display()
            );
            Error::new(ErrorKind::SessionNotFound, message)
        })?;
        if !sessions::same_dir(&card.cwd, cwd) {
            let own = &card.cwd;
            if args.agent.cwd.is_some() {
                let message = format!(
                    "session {name:?} belongs to the directory {own}, not {cwd}; omit --cwd to continue it there, or \
                         use another name"
                );
                return Err(UsageError(message).into());
            }
            view.note(&format!("session {name:?} runs in its own directory {own}"));
        }
        let (id, card) = (name.to_owned(), Some(card));
        return Ok(SelectedSession { id, card });
    }
    let found = sessions::in_directory(&state, name, cwd)?;
    if found.exists {
        let card = acpipe_host::stored(&state, &found.id)?;
        let id = found.id;
        return Ok(SelectedSession { id, card });
    }
    if let Some(other) = exact {
        view.note(&format!(
            "starting a new session {name:?} in {cwd}, with the id {:?}; to continue the one in {other}, use --cwd \
                 {other}",
            found.id,
            other = other.cwd
        ));
    }
    let (id, card) = (found.id, None);
    Ok(SelectedSession { id, card })
}

/// Returns the session's directory, and its agent if the command line names none. The session's agent takes
/// precedence over `ACPIPE_AGENT`.
fn origin(args: &RunArgs, chosen: Option<&SelectedSession>) -> anyhow::Result<ContinuedSession> {
    let Some(chosen) = chosen else {
        return Ok(ContinuedSession::default());
    };
    let card = chosen.card.as_ref();
    let mut origin = ContinuedSession {
        cwd: card.map(|card| card.cwd.clone()),
        ..ContinuedSession::default()
    };
    if args.agent.names_agent() {
        return Ok(origin);
    }
    let line = card.and_then(|card| card.agent.as_deref());
    let command = match (card.and_then(|card| card.agent_command.clone()), line) {
        (Some(command), _) => Some(command),
        (None, Some(line)) => of_line(line),
        (None, None) => None,
    };
    origin.agent = command.map(|command| StoredAgent {
        name: card.and_then(|card| card.agent_name.clone()),
        command,
    });
    if origin.agent.is_some() {
        return Ok(origin);
    }
    let id = &chosen.id;
    let variable = std::env::var("ACPIPE_AGENT").unwrap_or_default();
    match line {
        // The stored line cannot be split into arguments, but `ACPIPE_AGENT` names the same program.
        Some(line) if key_of_line(line) == key_of_line(variable.trim()) => Ok(origin),
        Some(line) => {
            let line = shown_words(line);
            Err(UsageError(format!(
            "the agent of session {id:?} is not stored completely; give its command line: acpipe run --session {id} \
                 \"…\" -- {line}"
        ))
        .into())
        }
        None => {
            origin.missing_agent = Some(format!(
                "session {id:?} has no stored agent; give one: acpipe run --session {id} --agent NAME \"…\", or -- COMMAND, \
                 or set a default with acpipe agents default NAME (the demo agent is --agent demo)"
            ));
            Ok(origin)
        }
    }
}

/// Parses an agent command that an earlier version stored as one line. `None` unless the split is certain: a
/// single word, or a line that acpipe itself composed.
fn of_line(line: &str) -> Option<AgentCommand> {
    let (command, demo) = match line.split_once(' ') {
        None => (line, false),
        Some((_, "demo-agent")) if key_of_line(line) == "acpipe" => (line, true),
        Some(_) => return None,
    };
    Some(AgentCommand {
        command: command.to_owned(),
        protocol: match command {
            CLAUDE => Protocol::Claude,
            _ => Protocol::Acp,
        },
        demo,
        ..AgentCommand::default()
    })
}

/// Returns `true` if the run's session must be stored: `--session` or `--continue`.
fn is_stored(args: &RunArgs) -> bool {
    args.session.is_some() || args.r#continue
}

/// Opens the store. If it cannot be used, a run without `--session` or `--continue` uses memory only.
pub fn store(args: &RunArgs, view: &mut RunView) -> anyhow::Result<(Box<dyn Store>, StoreEvents)> {
    if args.ephemeral {
        return Ok(crate::cli::store_in_memory(&args.agent.store));
    }
    let opened = crate::cli::store(&args.agent.store);
    if is_stored(args) {
        return opened;
    }
    match opened {
        Ok((store, stored)) => {
            let (report, failures) = StoreFailures::channel();
            view.unstored = failures;
            Ok((Box::new(OptionalStore::new(store, report)), stored))
        }
        Err(error) if !error.is::<UsageError>() => {
            view.note(&format!("this run is not stored: {error:#}"));
            Ok((Box::<MemorySessions>::default(), StoreEvents::none()))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_command_line_with_arguments_is_not_split() {
        assert_eq!(of_line("claude").unwrap().protocol, Protocol::Claude);
        assert_eq!(of_line("/opt/my-agent").unwrap().command, "/opt/my-agent");
        assert!(of_line("/old/bin/acpipe demo-agent").unwrap().demo);
        assert_eq!(of_line("opencode acp"), None);
    }
}
