//! States that the agent reports whole under an id, such as plans: each replaces the one before.

use crate::difference::added;
use crate::output_budget::{FRAME, OutputBudget, SMALL};
use serde_json::value::RawValue;

/// Maximum number of states that are held back. Further ones are shown at every change.
const MOST: usize = 64;

/// States of one kind.
#[derive(Debug, Default)]
pub struct Replaced(Vec<ReplacedState>);

#[derive(Debug)]
struct ReplacedState {
    id: String,
    last: Box<RawValue>,
    proportion: OutputBudget,
    is_shown: bool,
}

impl Replaced {
    /// Takes a state. Returns `true` if it is to be shown now.
    pub fn take(&mut self, id: &str, state: &RawValue) -> bool {
        let size = state.get().len() + FRAME;
        let at = match self.0.iter().position(|known| known.id == id) {
            Some(at) => at,
            None if size <= SMALL || self.0.len() >= MOST => return true,
            None => {
                self.0.push(ReplacedState {
                    id: id.to_owned(),
                    last: RawValue::NULL.to_owned(),
                    proportion: OutputBudget::default(),
                    is_shown: true,
                });
                self.0.len() - 1
            }
        };
        let known = &mut self.0[at];
        let added = added(known.last.get(), state.get());
        known.proportion.grow(size, added);
        state.clone_into(&mut known.last);
        known.is_shown = known.proportion.allows(size);
        if known.is_shown {
            known.proportion.show(size);
        }
        known.is_shown
    }

    /// Drops a state, as the agent has reported its end.
    pub fn end(&mut self, id: &str) {
        self.0.retain(|known| known.id != id);
    }

    /// Takes out the states that were held back.
    pub fn flush(&mut self) -> impl Iterator<Item = (String, Box<RawValue>)> + use<> {
        let held = std::mem::take(&mut self.0).into_iter();
        let held = held.filter(|state| !state.is_shown);
        held.map(|state| (state.id, state.last))
    }
}
