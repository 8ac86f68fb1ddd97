//! The session that `run --continue` goes on with.

use crate::core::error::{Error, ErrorKind};
use crate::core::store::Card;
use std::path::Path;

/// The newest conversation of a directory with an agent; the cards stand newest first.
pub fn newest(cards: &[Card], cwd: &str, agent: &str) -> Result<String, Error> {
    let here = |card: &&Card| card.messages > 0 && same_dir(&card.cwd, cwd);
    let its = |card: &&Card| card.agent.as_deref() == Some(agent);
    let mut stored = cards.iter().filter(here);
    if let Some(card) = stored.clone().find(its) {
        return Ok(card.session_id.clone());
    }
    let message = match stored.find_map(|card| Some((&card.session_id, card.agent.as_ref()?))) {
        Some((id, other)) => format!(
            "the agent {agent:?} has no session of {cwd} to continue; the newest there is {id:?}, of {other:?}: \
             name that agent after --, or leave --continue out to begin anew"
        ),
        None => format!(
            "there is no session of {cwd} to continue: leave --continue out to begin one; \
             acpipe sessions list shows those of other directories"
        ),
    };
    Err(Error::new(ErrorKind::SessionNotFound, message))
}

/// Whether two paths name one directory, be it there or not.
pub fn same_dir(a: &str, b: &str) -> bool {
    let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    Path::new(a) == Path::new(b) || real(a) == real(b)
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
    fn the_newest_of_directory_and_agent_is_chosen() {
        let cards = [
            card("elsewhere", "/q", "a", 2),
            card("other", "/p", "b", 2),
            card("empty", "/p", "a", 0),
            card("new", "/p/.", "a", 2),
            card("old", "/p", "a", 2),
        ];
        assert_eq!(newest(&cards, "/p", "a").unwrap(), "new");
        assert_eq!(newest(&cards, "/p", "b").unwrap(), "other");
        let advice = newest(&cards, "/p", "c").unwrap_err();
        assert_eq!(advice.kind, ErrorKind::SessionNotFound);
        assert!(advice.message.contains(r#""other", of "b""#), "{advice}");
        let advice = newest(&cards, "/nowhere", "a").unwrap_err();
        assert!(advice.message.contains("acpipe sessions list"), "{advice}");
    }
}
