//! Where a run takes place: its session, its directory, its agent, and the store that keeps it.

use super::view::View;
use crate::cli::args::RunArgs;
use crate::cli::logs::Secrets;
use crate::cli::{Mistake, Origin, complain, directory, persists, sessions, state_dir};
use crate::core::agent_command::{AgentCommand, key_of_line};
use crate::core::claude::CLAUDE;
use crate::core::error::{Error, ErrorKind};
use crate::core::hub::Settings;
use crate::core::session_id::{is_full, unnamed};
use crate::core::store::{Card, Store};
use crate::proto::wire::{AgentSource, Protocol};
use crate::shell::{Events, Memory};

/// All that a run needs to begin.
pub struct Found {
    pub settings: Settings,
    /// The id of the session.
    pub session: String,
    pub store: Box<dyn Store>,
    /// What the store answers later.
    pub stored: Events,
}

/// Finds the session and its agent, and opens the store.
pub fn find(args: &RunArgs, secrets: &Secrets, view: &mut View) -> anyhow::Result<Found> {
    let cwd = directory(&args.agent)?;
    let chosen = choose(args, &cwd, view)?;
    let origin = origin(args, chosen.as_ref())?;
    let settings = crate::cli::settings(&args.agent, &origin, secrets)?;
    if settings.default_agent.source == AgentSource::Demo {
        // With --quiet too: the demo agent's text looks like an answer.
        let why = match &chosen {
            Some(chosen) => format!("session {:?} is of the built-in demo agent", chosen.id),
            None => "no agent was named: the built-in demo agent answers".to_owned(),
        };
        complain(&format!(
            "{why}. To use another: acpipe run \"…\" -- COMMAND, or ACPIPE_AGENT=COMMAND"
        ));
    }
    let session = chosen.map_or_else(|| unnamed(&settings.id_prefix), |chosen| chosen.id);
    let (store, stored) = store(args, &session, view)?;
    Ok(Found {
        settings,
        session,
        store,
        stored,
    })
}

/// The session that a run goes on with, or begins under a name.
struct Chosen {
    id: String,
    /// What is stored of it.
    card: Option<Card>,
}

/// The session that was named, or the newest one; `None` for a run without a name.
fn choose(args: &RunArgs, cwd: &str, view: &mut View) -> anyhow::Result<Option<Chosen>> {
    if is_stored(args) && !persists(&args.agent.store)? {
        let message = "--session and --continue need stored sessions: leave --persist never and \
                       PERSIST_MESSAGES=false out";
        return Err(Mistake(message.to_owned()).into());
    }
    if let Some(name) = &args.session {
        return named(args, name, cwd, view).map(Some);
    }
    if !args.r#continue {
        return Ok(None);
    }
    let cards = sessions::cards(&state_dir(&args.agent.store.place)?)?;
    let card = sessions::newest(cards, cwd)?;
    Ok(Some(Chosen {
        id: card.session_id.clone(),
        card: Some(card),
    }))
}

/// The session of this name in this directory, or of this full id in any.
fn named(args: &RunArgs, name: &str, cwd: &str, view: &mut View) -> anyhow::Result<Chosen> {
    let state = state_dir(&args.agent.store.place)?;
    let exact = crate::shell::stored(&state, name)?;
    if is_full(name) {
        let card = exact.ok_or_else(|| {
            let message = format!(
                "session {name:?} not found in {}; acpipe sessions list --all shows what is stored",
                state.display()
            );
            Error::new(ErrorKind::SessionNotFound, message)
        })?;
        if !sessions::same_dir(&card.cwd, cwd) {
            let own = &card.cwd;
            if args.agent.cwd.is_some() {
                let message = format!(
                    "session {name:?} works in {own}, not in {cwd}: leave --cwd out to go on with it there, or take \
                     another name for {cwd}"
                );
                return Err(Mistake(message).into());
            }
            view.note(&format!("session {name:?} works in {own}, not here"));
        }
        let (id, card) = (name.to_owned(), Some(card));
        return Ok(Chosen { id, card });
    }
    let found = sessions::in_directory(&state, name, cwd)?;
    if found.exists {
        let card = crate::shell::stored(&state, &found.id)?;
        let id = found.id;
        return Ok(Chosen { id, card });
    }
    if let Some(other) = exact {
        view.note(&format!(
            "session {name:?} is new in {cwd}, as {:?}; to go on with the one of {other}: --cwd {other}",
            found.id,
            other = other.cwd
        ));
    }
    let (id, card) = (found.id, None);
    Ok(Chosen { id, card })
}

/// What the session says of the run: its directory, and its agent where the command line names none. The agent of a
/// session goes before `ACPIPE_AGENT`, which is for sessions that have none.
fn origin(args: &RunArgs, chosen: Option<&Chosen>) -> anyhow::Result<Origin> {
    let Some(chosen) = chosen else {
        return Ok(Origin::default());
    };
    let card = chosen.card.as_ref();
    let mut origin = Origin {
        cwd: card.map(|card| card.cwd.clone()),
        agent: None,
    };
    if args.agent.names_agent() {
        return Ok(origin);
    }
    let line = card.and_then(|card| card.agent.as_deref());
    origin.agent = match (card.and_then(|card| card.agent_command.clone()), line) {
        (Some(command), _) => Some(command),
        (None, Some(line)) => of_line(line),
        (None, None) => None,
    };
    if origin.agent.is_some() {
        return Ok(origin);
    }
    let id = &chosen.id;
    let variable = std::env::var("ACPIPE_AGENT").unwrap_or_default();
    match line {
        // Its words are not known, but the variable names the same program.
        Some(line) if key_of_line(line) == key_of_line(variable.trim()) => Ok(origin),
        Some(line) => Err(Mistake(format!(
            "session {id:?} was stored with its agent's words joined: name the agent, as in acpipe run --session \
             {id} \"…\" -- {line}"
        ))
        .into()),
        None if variable.trim().is_empty() => Err(Mistake(format!(
            "no agent is named for session {id:?}, and none is stored: acpipe run --session {id} \"…\" -- COMMAND, or \
             ACPIPE_AGENT=COMMAND; the demo agent is acpipe demo-agent"
        ))
        .into()),
        None => Ok(origin),
    }
}

/// The command of an agent of which an earlier version stored the words joined by spaces: known only where there
/// is one word, or acpipe made the words itself.
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

/// Whether the run is about a session that is to be there the next time too.
fn is_stored(args: &RunArgs) -> bool {
    args.session.is_some() || args.r#continue
}

/// The store. A run that nobody wants to go on with does without, where there is none to be had.
fn store(
    args: &RunArgs,
    session: &str,
    view: &mut View,
) -> anyhow::Result<(Box<dyn Store>, Events)> {
    if args.ephemeral {
        return Ok((Box::<Memory>::default(), Events::none()));
    }
    let opened = crate::cli::store(&args.agent.store);
    if is_stored(args) {
        return opened;
    }
    // Whether a log can be made is known once it was; one that nothing came into would be in the way.
    let opened = opened.and_then(|(mut store, stored)| {
        store.open(session)?.remove(false)?;
        Ok((store, stored))
    });
    match opened {
        Err(error) if !error.is::<Mistake>() => {
            view.note(&format!("this run is not kept: {error:#}"));
            Ok((Box::<Memory>::default(), Events::none()))
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_word_is_read_back_from_a_joined_command_line() {
        assert_eq!(of_line("claude").unwrap().protocol, Protocol::Claude);
        assert_eq!(of_line("/opt/my-agent").unwrap().command, "/opt/my-agent");
        assert!(of_line("/old/bin/acpipe demo-agent").unwrap().demo);
        assert_eq!(of_line("opencode acp"), None);
    }
}
