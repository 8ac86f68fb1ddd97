//! Ids of tool calls towards clients: an agent's id that is used again for another call gets an id of its own.
//!
//! Models and agents use the id of a finished call again: some count from 1 in each message or process. An
//! agent's id is therefore a name, which stands for its latest call. [`CallIds`] gives each call an id that no
//! other call of the session has: the agent's own one for its first call, then `ID#2`, `ID#3` and so on.
//! Everything behind the entry of an update (turn, policy, approvals, ledger, views, log) only has these ids.

mod rename;

use acpipe_model::event::ToolUpdate;
pub use rename::{OpenTurns, Renamed, with_asked_call_id, with_call_id, with_call_id_of_chunk};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Maximum number of ids whose uses are counted, as hashes: 1 MiB. If a session has more, the count begins
/// again with the calls of the open turns, and ids are unique among these and the later ones.
const MAX_COUNTED: usize = 65_536;

/// Size of the ids that stand for other calls than their first, in bytes, above which those of calls that no
/// open turn has are forgotten.
const MAX_RENAMED: usize = 256 << 10;

/// State of a call in the open turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    Open,
    /// The call completed or failed.
    Ended,
    Denied,
}

#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    /// Number of calls; an id that was made here counts as used once.
    count: u32,
    /// `true` if the id was made here: it is no name of the agent's for that call.
    is_made: bool,
}

#[derive(Debug, Default)]
pub struct CallIds {
    /// Uses of each id by its hash.
    uses: HashMap<u64, Uses>,
    /// `true` from the first id that was made here. Before, no id has to be looked up.
    has_made: bool,
    /// Number of ids that were counted when the count last began again.
    kept: usize,
    /// Id of the latest call by the agent's id, within each caller (the agent itself, or a subagent), if the
    /// two differ.
    renamed: HashMap<Box<str>, HashMap<Box<str>, Box<str>>>,
    /// Sizes of the ids in `renamed`, in bytes.
    size: usize,
    /// Id of a call that began with the output of its terminal, which precedes the call in the same message.
    begun: Option<Box<str>>,
}

impl CallIds {
    /// Returns the id of the latest call that the caller named `id`; `None` if that is only the id of a call
    /// that has another name.
    pub fn latest<'a>(&'a self, caller: Option<&str>, id: &'a str) -> Option<&'a str> {
        let of_caller = self.renamed.get(caller.unwrap_or_default());
        match of_caller.and_then(|ids| ids.get(id)) {
            Some(own) => Some(own),
            None => (!self.is_made(id)).then_some(id),
        }
    }

    /// Returns the id of the latest call that the caller named `id`, or of a new call if there can be none.
    fn latest_or_new(&mut self, caller: Option<&str>, id: &str) -> String {
        match self.latest(caller, id) {
            Some(own) => own.to_owned(),
            None => self.begin(caller, id),
        }
    }

    /// Returns the id of the call that an update of the caller belongs to. `state` is the state of the latest
    /// call of that id in the open turns, `repeats` whether the update only repeats that call.
    pub fn of_update(
        &mut self,
        caller: Option<&str>,
        update: &ToolUpdate<'_>,
        state: Option<CallState>,
        repeats: impl FnOnce() -> bool,
    ) -> String {
        let id = update.id.as_ref();
        let begun = self.begun.take();
        let has_begun = begun.is_some() && begun.as_deref() == self.latest(caller, id);
        let begins = match state.filter(|_| !has_begun) {
            Some(CallState::Open) => false,
            Some(CallState::Ended) => update.begins && !repeats(),
            // An agent that announces no call reports the refusal of one by a call that has failed.
            Some(CallState::Denied) => update.begins && !update.fails(),
            // Other updates belong to a call of an earlier turn.
            None => !has_begun && (update.begins || !self.is_used(id)),
        };
        if begins {
            self.begin(caller, id)
        } else {
            self.latest_or_new(caller, id)
        }
    }

    /// Returns the id of the call that a terminal belongs to. `begins` is `true` if the same message begins a
    /// call.
    pub fn of_terminal(&mut self, id: &str, begins: bool, state: Option<CallState>) -> String {
        let latest = self.latest(None, id);
        if let Some(latest) = latest.filter(|_| !begins || state == Some(CallState::Open)) {
            return latest.to_owned();
        }
        let own = self.begin(None, id);
        self.begun = Some(own.as_str().into());
        own
    }

    /// Returns the id of the call that a permission request of the caller concerns: a request for a call that
    /// is over begins another one. `may_be_late` is `true` if the request may concern a call of an earlier
    /// turn.
    pub fn of_request(
        &mut self,
        caller: Option<&str>,
        id: &str,
        state: Option<CallState>,
        may_be_late: bool,
    ) -> String {
        let begins = match state {
            Some(CallState::Open) => false,
            Some(CallState::Ended | CallState::Denied) => true,
            None => !may_be_late || !self.is_used(id),
        };
        if begins {
            self.begin(caller, id)
        } else {
            self.latest_or_new(caller, id)
        }
    }

    /// Returns an id for a call that acpipe makes itself. An agent that uses the same id means another call.
    pub fn own(&mut self, id: &str) -> String {
        let own = self.unused(id);
        if own == id {
            self.begin(None, id);
        }
        own
    }

    /// Begins the count again if it has become large. The uses of `open`, the ids of the open turns, and of
    /// the ids that the agent has names for are kept: these calls keep their ids to themselves.
    fn make_room<'a>(&mut self, open: impl Iterator<Item = &'a str>) {
        // Twice as many: a turn with more calls than the maximum does not begin again with each of them.
        if self.uses.len() < MAX_COUNTED.max(2 * self.kept) {
            return;
        }
        let renamed = self.renamed.values().flat_map(HashMap::values);
        let renamed = renamed.map(|own| hash(own));
        let open: HashSet<u64> = open.map(hash).chain(renamed).collect();
        self.uses.retain(|id, _| open.contains(id));
        self.kept = self.uses.len();
    }

    /// Counts the id of a stored call as used once. This precedes the calls of all turns.
    pub fn note_stored(&mut self, id: &str) {
        if !self.is_used(id) {
            self.make_room(std::iter::empty());
            self.count(id);
        }
    }

    /// Returns the agent's id of a call; `None` if the two are the same, or the call is not the latest one of
    /// that id.
    pub fn agents_id(&self, own: &str) -> Option<&str> {
        let mut all = self.renamed.values().flatten();
        let found = all.find(|(_, latest)| latest.as_ref() == own);
        found.map(|(id, _)| id.as_ref())
    }

    /// Forgets the calls that no open turn has, if their ids have become large. Later updates of them belong
    /// to the first call of their id.
    pub fn prune(&mut self, is_open: impl Fn(&str) -> bool) {
        if self.size <= MAX_RENAMED {
            return;
        }
        self.renamed.retain(|_, ids| {
            ids.retain(|_, own| is_open(own));
            !ids.is_empty()
        });
        let ids = self.renamed.values().flatten();
        self.size = ids.map(|(id, own)| id.len() + own.len()).sum();
    }

    /// Returns an id that no call has, for the next call of an id.
    fn unused(&mut self, id: &str) -> String {
        let mut number = self.count(id);
        let mut own = id.to_owned();
        while number > 1 {
            own = format!("{id}#{number}");
            if self.count(&own) == 1 {
                self.uses.entry(hash(&own)).or_default().is_made = true;
                self.has_made = true;
                break;
            }
            number += 1;
        }
        own
    }

    /// Gives the next call of an id its own one.
    fn begin(&mut self, caller: Option<&str>, id: &str) -> String {
        let own = self.unused(id);
        let caller = caller.unwrap_or_default();
        if own != id {
            self.size += id.len() + own.len();
            let ids = self.renamed.entry(caller.into()).or_default();
            ids.insert(id.into(), own.as_str().into());
        } else if let Some(ids) = self.renamed.get_mut(caller) {
            ids.remove(id);
        }
        own
    }

    fn is_used(&self, id: &str) -> bool {
        self.uses.contains_key(&hash(id))
    }

    fn is_made(&self, id: &str) -> bool {
        self.has_made && self.uses.get(&hash(id)).is_some_and(|uses| uses.is_made)
    }

    fn count(&mut self, id: &str) -> u32 {
        let uses = self.uses.entry(hash(id)).or_default();
        uses.count = uses.count.saturating_add(1);
        uses.count
    }
}

/// Returns a hash that is the same in every process.
pub fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(id: &str, begins: bool, status: Option<&'static str>) -> ToolUpdate<'static> {
        ToolUpdate {
            id: id.to_owned().into(),
            begins,
            status: status.map(Into::into),
            ..ToolUpdate::default()
        }
    }

    #[test]
    fn call_of_an_id_whose_call_is_over_gets_an_id_of_its_own() {
        use CallState::{Denied, Ended, Open};
        // (begins, status, state of the latest call, whether the update repeats it, id)
        for (begins, status, state, repeats, want) in [
            (true, None, Some(Open), false, "a"),
            (true, Some("completed"), Some(Open), false, "a"),
            (false, Some("completed"), Some(Ended), false, "a"),
            (false, Some("in_progress"), Some(Ended), false, "a"),
            (true, Some("completed"), Some(Ended), true, "a"),
            (true, Some("completed"), Some(Ended), false, "a#2"),
            (true, Some("pending"), Some(Ended), false, "a#2"),
            (true, Some("failed"), Some(Denied), false, "a"),
            (false, Some("completed"), Some(Denied), false, "a"),
            (true, Some("in_progress"), Some(Denied), false, "a#2"),
            (true, Some("completed"), Some(Denied), false, "a#2"),
            (true, None, None, false, "a#2"),
            (false, None, None, false, "a"),
        ] {
            let mut ids = CallIds::default();
            assert_eq!(
                ids.of_update(None, &update("a", true, None), None, || false),
                "a"
            );
            let update = update("a", begins, status);
            let own = ids.of_update(None, &update, state, || repeats);
            assert_eq!(own, want, "{update:?} {state:?}");
            assert_eq!(ids.latest(None, "a"), Some(want));
            let back = (want != "a").then_some("a");
            assert_eq!(ids.agents_id(want), back);
        }
    }

    #[test]
    fn permission_request_for_a_call_that_is_over_begins_another_one() {
        use CallState::{Denied, Ended, Open};
        for (state, may_be_late, want) in [
            (Some(Open), false, "a"),
            (Some(Ended), true, "a#2"),
            (Some(Denied), true, "a#2"),
            (None, true, "a"),
            (None, false, "a#2"),
        ] {
            let mut ids = CallIds::default();
            ids.of_request(None, "a", None, false);
            assert_eq!(ids.of_request(None, "a", state, may_be_late), want);
        }
    }

    #[test]
    fn ids_are_unique_among_all_callers_and_all_ids_that_look_like_made_ones() {
        let mut ids = CallIds::default();
        let mut begin = |caller, id| {
            let update = update(id, true, None);
            ids.of_update(caller, &update, None, || false)
        };
        let owns = [
            begin(None, "a"),
            begin(Some("sub"), "a"),
            begin(None, "a#2"),
            begin(None, "a"),
            begin(None, "a#2"),
            begin(None, ""),
            begin(None, ""),
        ];
        assert_eq!(owns, ["a", "a#2", "a#2#2", "a#3", "a#2#3", "", "#2"]);
        assert_eq!(ids.latest(Some("sub"), "a"), Some("a#2"));
        assert_eq!(ids.latest(None, "a"), Some("a#3"));
    }

    #[test]
    fn call_of_acpipe_is_another_one_than_that_of_an_agent_with_its_id() {
        let mut ids = CallIds::default();
        assert_eq!(ids.own("host-1"), "host-1");
        assert_eq!(ids.latest(None, "host-1"), Some("host-1#2"));
        ids.of_request(None, "host-2", None, false);
        assert_eq!(ids.own("host-2"), "host-2#2");
        assert_eq!(ids.latest(None, "host-2"), Some("host-2"));
    }

    #[test]
    fn stored_calls_count_as_used() {
        let mut ids = CallIds::default();
        ids.note_stored("a");
        let update = update("a", true, None);
        assert_eq!(ids.of_update(None, &update, None, || false), "a#2");
    }

    #[test]
    fn terminal_at_the_beginning_of_a_call_belongs_to_that_call() {
        let mut ids = CallIds::default();
        let first = update("a", true, None);
        ids.of_update(None, &first, None, || false);
        let ended = Some(CallState::Ended);
        assert_eq!(ids.of_terminal("a", false, ended), "a");
        assert_eq!(ids.of_terminal("a", true, Some(CallState::Open)), "a");
        assert_eq!(ids.of_terminal("a", true, ended), "a#2");
        assert_eq!(ids.of_update(None, &first, None, || false), "a#2");
        assert_eq!(ids.of_update(None, &first, ended, || false), "a#3");
    }

    #[test]
    fn memory_is_bounded() {
        let mut ids = CallIds::default();
        for n in 0..2 * MAX_COUNTED {
            ids.note_stored(&n.to_string());
        }
        assert!(ids.uses.len() <= MAX_COUNTED);
        let long = "x".repeat(MAX_RENAMED);
        for _ in 0..2 {
            ids.of_update(None, &update(&long, true, None), None, || false);
        }
        ids.prune(|_| true);
        assert_eq!(ids.latest(None, &long), Some(&*format!("{long}#2")));
        ids.prune(|_| false);
        assert_eq!(
            (ids.latest(None, &long), ids.size),
            (Some(long.as_str()), 0)
        );
    }
}
