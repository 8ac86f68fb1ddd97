//! The session that a name means in a directory, and the one that `run --continue` goes on with.

use crate::core::error::{Error, ErrorKind};
use crate::core::session_id::{Holder, Resolved, resolve};
use crate::core::store::Card;
use crate::shell::{real_path, stored};
use anyhow::Context as _;
use std::path::Path;

/// The directory that an argument names, absolute; else the working directory.
pub fn directory(cwd: Option<&Path>) -> anyhow::Result<String> {
    let cwd =
        std::path::absolute(cwd.unwrap_or(Path::new("."))).or_else(|_| std::env::current_dir());
    let cwd = cwd.context("the working directory cannot be read")?;
    Ok(cwd.to_string_lossy().into_owned())
}

/// The newest conversation of a directory, whatever its agent; the cards stand newest first.
pub fn newest(cards: Vec<Card>, cwd: &str) -> Result<Card, Error> {
    let mut here = cards
        .into_iter()
        .filter(|card| card.messages > 0 && same_dir(&card.cwd, cwd));
    here.next().ok_or_else(|| {
        let message = format!(
            "no session of {cwd} to continue: leave --continue out to begin one; acpipe sessions list shows those of \
             other directories"
        );
        Error::new(ErrorKind::SessionNotFound, message)
    })
}

/// The session of this name in this directory, or the id that a new one gets.
pub fn in_directory(state: &Path, name: &str, cwd: &str) -> Result<Resolved, Error> {
    resolve(name, &real_path(cwd), |id| {
        Ok(match stored(state, id)? {
            None => Holder::Free,
            Some(card) if card.cwd.is_empty() => Holder::Unknown,
            Some(card) => Holder::Directory(real_path(&card.cwd)),
        })
    })
}

/// The id of a stored session: that of this name in this directory, else the session of this id.
pub fn find(state: &Path, name: &str, cwd: &str) -> Result<String, Error> {
    let found = in_directory(state, name, cwd)?;
    Ok(if found.exists {
        found.id
    } else {
        name.to_owned()
    })
}

/// Whether two paths name one directory, whether it exists or not.
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
    fn the_newest_of_the_directory_is_continued_whatever_its_agent() {
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
