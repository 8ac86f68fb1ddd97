//! Where a run takes place: its session, and the store that keeps it.

use super::view::View;
use crate::cli::args::RunArgs;
use crate::cli::{Mistake, persists, sessions, state_dir};
use crate::core::bridge::Settings;
use crate::core::store::{Store, Volatile};
use crate::shell::Events;

/// The id of the session, and the store with what it answers later.
pub type Found = (String, Box<dyn Store>, Events);

/// Finds the session and opens the store.
pub fn find(args: &RunArgs, settings: &Settings, view: &mut View) -> anyhow::Result<Found> {
    let session = session(args, settings)?;
    let (store, stored) = store(args, &session, view)?;
    Ok((session, store, stored))
}

/// The id of the session: the one that was named, the newest one, or a new one.
fn session(args: &RunArgs, settings: &Settings) -> anyhow::Result<String> {
    if is_stored(args) && !persists(&args.agent.store)? {
        let message = "--session and --continue need stored sessions: leave --persist never and \
                       PERSIST_MESSAGES=false out";
        return Err(Mistake(message.to_owned()).into());
    }
    if let Some(id) = &args.session {
        return Ok(id.clone());
    }
    if !args.r#continue {
        return Ok(format!("run-{}", settings.id_prefix));
    }
    let cards = sessions::cards(&state_dir(&args.agent.store.place)?)?;
    let agent = &settings.default_agent;
    Ok(sessions::newest(&cards, &settings.cwd, &agent.key())?)
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
            Ok((Box::new(Volatile), Events::none()))
        }
        opened => opened,
    }
}
