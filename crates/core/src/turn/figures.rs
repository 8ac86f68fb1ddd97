//! Figures of a turn: cost, context, and token usage and agent turns over all attempts.
//!
//! Owns them. It may not report anything to the view: it says which context figures are new.

use acpipe_json::{Members, to_raw, value};
use acpipe_model::event::TurnEnd;
use acpipe_protocol::wire::TokenUsage;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub struct TurnFigures {
    context: Option<Box<RawValue>>,
    cost: Option<f64>,
    usage: Option<TokenUsage>,
    num_turns: Option<u64>,
}

impl TurnFigures {
    /// Cost of the session, as last reported in this turn.
    pub fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// Token usage of all attempts.
    pub fn usage(&self) -> Option<TokenUsage> {
        self.usage
    }

    /// Turns of the agent's own loop in all attempts.
    pub fn num_turns(&self) -> Option<u64> {
        self.num_turns
    }

    pub fn context_figures(&self) -> Option<Value> {
        self.context.as_deref().map(value)
    }

    /// Takes over reported figures; returns those of the context if they are new.
    pub(super) fn report(&mut self, figures: &Members<'_>, cost: Option<f64>) -> Option<&RawValue> {
        self.cost = cost.or(self.cost);
        let figures = to_raw(figures);
        let same = |known: &RawValue| known.get() == figures.get();
        if self.context.as_deref().is_some_and(same) {
            return None;
        }
        Some(self.context.insert(figures))
    }

    pub(super) fn account(&mut self, end: &TurnEnd) {
        self.cost = end.cost.or(self.cost);
        self.num_turns = sum(self.num_turns, end.num_turns);
        let (Some(known), Some(more)) = (self.usage, end.usage) else {
            self.usage = self.usage.or(end.usage);
            return;
        };
        self.usage = Some(TokenUsage {
            input_tokens: sum(known.input_tokens, more.input_tokens),
            output_tokens: sum(known.output_tokens, more.output_tokens),
            total_tokens: sum(known.total_tokens, more.total_tokens),
            cached_read_tokens: sum(known.cached_read_tokens, more.cached_read_tokens),
            cached_write_tokens: sum(known.cached_write_tokens, more.cached_write_tokens),
            thought_tokens: sum(known.thought_tokens, more.thought_tokens),
        });
    }
}

fn sum(known: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (known, more) {
        (Some(known), Some(more)) => Some(known.saturating_add(more)),
        _ => known.or(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(num_turns: u64, cost: Option<f64>) -> TurnEnd {
        TurnEnd {
            num_turns: Some(num_turns),
            cost,
            ..TurnEnd::default()
        }
    }

    #[test]
    fn agent_turns_are_added_and_the_last_cost_stays() {
        let mut figures = TurnFigures::default();
        figures.account(&end(2, Some(0.5)));
        figures.account(&end(3, None));
        assert_eq!((figures.num_turns(), figures.cost()), (Some(5), Some(0.5)));
        assert_eq!(figures.usage(), None);
    }

    #[test]
    fn context_figures_are_new_once() {
        let (mut figures, mut said) = (TurnFigures::default(), Members::default());
        said.set_owned("used", &7);
        assert!(figures.report(&said, Some(0.1)).is_some());
        assert!(figures.report(&said, None).is_none());
        assert_eq!(figures.context_figures().unwrap()["used"], 7);
        assert_eq!(figures.cost(), Some(0.1));
    }
}
