//! Search of the agent's session list during a restore: for a session that the agent refused, and for one that is to be
//! adopted.

use super::{Phase, Restore};
use acpipe_model::error::Error;

/// Page of an agent's sessions: their ids, and the cursor of the next page. `None` if the agent has no
/// session list.
pub type ListPage<'a> = Option<(&'a [String], Option<&'a str>)>;

/// Maximum number of pages of an agent's session list that are searched.
pub const PAGES: u32 = 50;

/// Result of looking up a loaded session in the agent's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// The id was not looked up.
    Unknown,
    Listed,
    /// The agent has no list, or did not return all of it.
    NotListed,
}

/// Result of a page of the agent's session list.
#[derive(Debug)]
pub enum Listed {
    More,
    /// The agent still has the session that it refused with this error.
    StillThere(Error),
    /// The agent does not have the session that it refused.
    Gone,
    Adopted(String, Adoption),
    /// The agent does not have the session that was to be adopted.
    NotThere(String),
}

impl Restore {
    /// Begins to search the agent's session list for the session, which the agent refused with this error.
    pub fn look_up(&mut self, error: Error) {
        self.phase = Phase::LookingUp { error, pages: 0 };
    }

    /// Begins to search the agent's session list for a session that is to be adopted.
    pub fn look_up_adopted(&mut self, agent_session: String) {
        self.phase = Phase::Adopting {
            agent_session,
            pages: 0,
        };
    }

    pub fn is_looking_up(&self) -> bool {
        matches!(self.phase, Phase::LookingUp { .. } | Phase::Adopting { .. })
    }

    /// Handles a page of the agent's session list; `known` is the agent's id of the session. `None` if the restore did
    /// not ask for it.
    pub fn listed(&mut self, page: ListPage<'_>, known: Option<&str>) -> Option<Listed> {
        let has = |id: Option<&str>| {
            let ids = page.map_or(&[][..], |(ids, _)| ids);
            id.is_some_and(|id| ids.iter().any(|listed| listed == id))
        };
        let has_more = matches!(page, Some((_, Some(_))));
        let is_whole = matches!(page, Some((_, None)));
        let phase = std::mem::take(&mut self.phase);
        let listed = match phase {
            Phase::LookingUp { error, .. } if has(known) => Listed::StillThere(error),
            Phase::LookingUp { error, pages } if has_more && pages + 1 < PAGES => {
                let pages = pages + 1;
                self.phase = Phase::LookingUp { error, pages };
                Listed::More
            }
            Phase::LookingUp { .. } => Listed::Gone,
            Phase::Adopting { agent_session, .. } if has(Some(&agent_session)) => {
                Listed::Adopted(agent_session, Adoption::Listed)
            }
            Phase::Adopting {
                agent_session,
                pages,
            } if has_more && pages + 1 < PAGES => {
                let pages = pages + 1;
                self.phase = Phase::Adopting {
                    agent_session,
                    pages,
                };
                Listed::More
            }
            Phase::Adopting { agent_session, .. } if is_whole => Listed::NotThere(agent_session),
            Phase::Adopting { agent_session, .. } => {
                Listed::Adopted(agent_session, Adoption::NotListed)
            }
            other => {
                self.phase = other;
                return None;
            }
        };
        self.call = None;
        Some(listed)
    }
}
