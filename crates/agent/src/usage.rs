//! Tokens that a turn used.

use serde_json::{Map, Value};

/// Tokens of one or more model calls; a count that is not known is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the input.
    pub input_tokens: Option<u64>,
    /// Tokens of the output.
    pub output_tokens: Option<u64>,
    /// Input tokens that were read from a cache.
    pub cached_read_tokens: Option<u64>,
    /// Input tokens that were written to a cache.
    pub cached_write_tokens: Option<u64>,
    /// Output tokens of thoughts.
    pub thought_tokens: Option<u64>,
}

impl Usage {
    /// Creates counts of input and output tokens.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            ..Self::default()
        }
    }

    /// Adds the counts of another model call.
    pub(super) fn add(&mut self, other: Self) {
        let sum = |count: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *count = Some(count.unwrap_or(0).saturating_add(more));
            }
        };
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.cached_read_tokens, other.cached_read_tokens);
        sum(&mut self.cached_write_tokens, other.cached_write_tokens);
        sum(&mut self.thought_tokens, other.thought_tokens);
    }

    /// Returns the `usage` of a prompt's result; `None` if no count is known.
    pub(super) fn json(&self) -> Option<Value> {
        let total = self
            .input_tokens
            .zip(self.output_tokens)
            .map(|(input, output)| input.saturating_add(output));
        let counts = [
            ("inputTokens", self.input_tokens),
            ("outputTokens", self.output_tokens),
            ("totalTokens", total),
            ("cachedReadTokens", self.cached_read_tokens),
            ("cachedWriteTokens", self.cached_write_tokens),
            ("thoughtTokens", self.thought_tokens),
        ];
        let known = counts
            .into_iter()
            .filter_map(|(name, count)| Some((name.to_owned(), count?.into())));
        let known: Map<String, Value> = known.collect();
        (!known.is_empty()).then_some(Value::Object(known))
    }
}
