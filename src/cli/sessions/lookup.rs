//! Lookup of a session by name and directory, and of the session that `run --continue` continues.

use acpipe_core::session_id::{IdHolder, ResolvedSession, resolve};
use acpipe_core::store::Card;
use acpipe_host::{real_path, stored};
use acpipe_model::error::{Error, ErrorKind};
use anyhow::Context as _;
use std::path::Path;

/// Returns the absolute path of the argument, or of the working directory without one.
pub fn directory(cwd: Option<&Path>) -> anyhow::Result<String> {
    let cwd =
        std::path::absolute(cwd.unwrap_or(Path::new("."))).or_else(|_| std::env::current_dir());
    let cwd = cwd.context("cannot read the working directory")?;
    Ok(cwd.to_string_lossy().into_owned())
}

/// Returns the newest session with messages in a directory, whatever its agent. `cards` must be sorted newest
/// first.
pub fn newest(cards: Vec<Card>, cwd: &str) -> Result<Card, Error> {
    let mut here = cards
        .into_iter()
        .filter(|card| card.messages > 0 && same_dir(&card.cwd, cwd));
    here.next().ok_or_else(|| {
        let message = format!(
            "no session to continue in {cwd}; omit --continue to start one, or list the sessions of all directories \
                 with acpipe sessions list"
        );
        Error::new(ErrorKind::SessionNotFound, message)
    })
}

/// Resolves a name in a directory to an existing session or to the id for a new one.
pub fn in_directory(state: &Path, name: &str, cwd: &str) -> Result<ResolvedSession, Error> {
    resolve(name, &real_path(cwd), |id| {
        Ok(match stored(state, id)? {
            None => IdHolder::Free,
            Some(card) if card.cwd.is_empty() => IdHolder::Unknown,
            Some(card) => IdHolder::Directory(real_path(&card.cwd)),
        })
    })
}

/// Returns the id of the session with this name in this directory; otherwise the name itself, taken as an id.
pub fn find(state: &Path, name: &str, cwd: &str) -> Result<String, Error> {
    let found = in_directory(state, name, cwd)?;
    Ok(if found.exists {
        found.id
    } else {
        name.to_owned()
    })
}

/// Returns `true` if two paths name one directory, which need not exist.
pub fn same_dir(a: &str, b: &str) -> bool {
    a == b || real_path(a) == real_path(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(id: &str, cwd: &str, agent: &str, messages: u64) -> Card {
        Card {
            session_id: id.to_owned(),
            cwd: cwd.to_owned(),
            agent: Some(agent.to_owned()),
            messages,
            ..Card::default()
        }
    }

    #[test]
    fn newest_session_of_the_directory_is_continued_for_any_agent() {
        let cards = vec![
            card("elsewhere", "/q", "a", 2),
            card("empty", "/p", "a", 0),
            card("new", "/p/.", "b", 2),
            card("old", "/p", "a", 2),
        ];
        assert_eq!(newest(cards.clone(), "/p").unwrap().session_id, "new");
        let advice = newest(cards, "/nowhere").unwrap_err();
        assert_eq!(advice.kind, ErrorKind::SessionNotFound);
        assert!(advice.message.contains("acpipe sessions list"), "{advice}");
    }
}
