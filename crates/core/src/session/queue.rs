//! Queue of the prompts of a session, in the order of their arrival.

use crate::client::{ClientId, Token};
use crate::session::CallerSettings;
use acpipe_protocol::wire;
use acpipe_protocol::wire::WaitingPrompt;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::fmt;

/// Maximum number of queued prompts per session: more than a person types ahead, and few enough to be listed
/// in each `session/state`.
pub const MAX_PROMPTS: usize = 32;

/// Maximum memory for the queued prompts of a session, in bytes: room for several prompts with photos, or for
/// the largest text that an agent can use. A larger prompt is accepted only by an empty queue.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub struct Queued {
    /// The client's call, which is answered when the turn ends.
    pub token: Token,
    /// Id of the turn that the prompt will begin.
    pub turn_id: String,
    /// Settings of the client, for its terms and for the comparison with those of the session.
    pub caller: Box<CallerSettings>,
    pub prompt: wire::PromptParams,
    /// `true` if the prompt is the user's answer to what the running turn asks.
    pub is_answer: bool,
}

impl Queued {
    /// Answers the call of another client at the end of the turn, under the terms of both clients. Returns the call of
    /// before.
    pub fn take_over(&mut self, token: Token, mut caller: Box<CallerSettings>) -> Token {
        if let (Some(former), Some(own)) = (self.caller.terms.take(), &mut caller.terms) {
            own.terms = former.terms.with_caller(&own.terms, Some(&own.options));
            let refused = &mut own.options.disallowed_tools;
            refused.extend(former.options.disallowed_tools);
        }
        self.caller = caller;
        std::mem::replace(&mut self.token, token)
    }
}

#[derive(Debug, Default)]
pub struct Queue {
    prompts: VecDeque<QueuedPrompt>,
    /// Memory of the queued prompts, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct QueuedPrompt {
    queued: Queued,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueFull {
    TooMany,
    TooLarge,
}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "{MAX_PROMPTS} prompts are queued"),
            Self::TooLarge => write!(
                f,
                "this prompt and the queued prompts have more than {} MiB",
                MAX_BYTES >> 20
            ),
        }
    }
}

impl Queue {
    pub fn len(&self) -> usize {
        self.prompts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// Checks that another prompt can be queued.
    ///
    /// # Errors
    /// Too many prompts are queued, or they would take too much memory.
    pub fn check_room(&self, prompt: &wire::PromptParams) -> Result<(), QueueFull> {
        if self.prompts.is_empty() {
            return Ok(());
        }
        if self.prompts.len() >= MAX_PROMPTS {
            return Err(QueueFull::TooMany);
        }
        if self.bytes.saturating_add(prompt_size(prompt)) > MAX_BYTES {
            return Err(QueueFull::TooLarge);
        }
        Ok(())
    }

    pub fn push(&mut self, queued: Queued) {
        let bytes = prompt_size(&queued.prompt);
        self.bytes = self.bytes.saturating_add(bytes);
        self.prompts.push_back(QueuedPrompt { queued, bytes });
    }

    /// Takes the first prompt if `goes` returns `true` for its call.
    pub fn next_if(&mut self, goes: impl Fn(Token) -> bool) -> Option<Queued> {
        let goes = goes(self.prompts.front()?.queued.token);
        if goes { self.remove(0) } else { None }
    }

    /// Takes the prompt of turn `turn_id`, or without an id the first one.
    pub fn take(&mut self, turn_id: Option<&str>) -> Option<Queued> {
        let meant = |w: &QueuedPrompt| turn_id.is_none_or(|turn_id| w.queued.turn_id == turn_id);
        let at = self.prompts.iter().position(meant)?;
        self.remove(at)
    }

    /// Removes one prompt of a client. Returns `false` if there is none.
    pub fn take_from_client(&mut self, client: ClientId) -> bool {
        let own = |waiting: &QueuedPrompt| waiting.queued.token.client == client;
        let at = self.prompts.iter().position(own);
        at.and_then(|at| self.remove(at)).is_some()
    }

    pub fn prompt_of(&mut self, turn_id: &str) -> Option<&mut Queued> {
        let mut prompts = self.prompts.iter_mut().map(|waiting| &mut waiting.queued);
        prompts.find(|queued| queued.turn_id == turn_id)
    }

    /// Returns the first of these clients whose prompt is its user's answer to what the running turn asks.
    pub fn answering(&self, clients: &[ClientId]) -> Option<ClientId> {
        let prompts = self.prompts.iter().map(|waiting| &waiting.queued);
        let mut answering = prompts.filter(|queued| queued.is_answer);
        answering
            .find(|queued| clients.contains(&queued.token.client))
            .map(|queued| queued.token.client)
    }

    pub fn take_call(&mut self, token: Token) -> Option<Queued> {
        let at = self.prompts.iter().position(|w| w.queued.token == token)?;
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Option<Queued> {
        let QueuedPrompt { queued, bytes } = self.prompts.remove(at)?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(queued)
    }

    pub fn take_all(&mut self) -> Vec<Token> {
        let all = std::mem::take(self).prompts.into_iter();
        all.map(|waiting| waiting.queued.token).collect()
    }

    pub fn tokens(&self) -> impl Iterator<Item = Token> {
        self.prompts.iter().map(|waiting| waiting.queued.token)
    }

    pub fn waiting_prompts(&self) -> Vec<WaitingPrompt> {
        let prompts = self.prompts.iter();
        let turn_ids = prompts.map(|waiting| waiting.queued.turn_id.clone());
        turn_ids.map(|turn_id| WaitingPrompt { turn_id }).collect()
    }

    pub fn has(&self, turn_id: &str) -> bool {
        let mut prompts = self.prompts.iter();
        prompts.any(|waiting| waiting.queued.turn_id == turn_id)
    }
}

/// Estimates the memory of a prompt in bytes. Small JSON values take many times the size of their text.
fn prompt_size(prompt: &wire::PromptParams) -> usize {
    let message = &prompt.message;
    let parts: usize = message.parts.iter().map(value_size).sum();
    parts + map_size(&message.other) + map_size(&prompt.context)
}

fn value_size(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_size).sum(),
        Value::Object(members) => map_size(members),
    };
    size_of::<Value>() + content
}

fn map_size(members: &Map<String, Value>) -> usize {
    let member =
        |(name, value): (&String, &Value)| size_of::<String>() + name.len() + value_size(value);
    members.iter().map(member).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prompt(bytes: usize) -> wire::PromptParams {
        let text = "x".repeat(bytes);
        serde_json::from_value(json!({ "message": text })).unwrap()
    }

    fn queued(n: u64, bytes: usize) -> Queued {
        Queued {
            token: Token::first(n),
            turn_id: n.to_string(),
            caller: Box::default(),
            prompt: prompt(bytes),
            is_answer: false,
        }
    }

    #[test]
    fn queue_is_bounded_in_number() {
        let mut queue = Queue::default();
        for n in 0..32 {
            assert_eq!(queue.check_room(&prompt(1)), Ok(()));
            queue.push(queued(n, 1));
        }
        assert_eq!(queue.check_room(&prompt(1)), Err(QueueFull::TooMany));
        queue.take(Some("7")).unwrap();
        assert_eq!(queue.check_room(&prompt(1)), Ok(()));
    }

    #[test]
    fn queue_is_bounded_in_bytes_however_prompts_leave_it() {
        let leave: [fn(&mut Queue); 3] = [
            |queue| drop(queue.next_if(|_| true).unwrap()),
            |queue| drop(queue.take(Some("1")).unwrap()),
            |queue| assert_eq!(queue.take_all().len(), 1),
        ];
        for leave in leave {
            let mut queue = Queue::default();
            queue.push(queued(1, MAX_BYTES / 2));
            assert_eq!(queue.check_room(&prompt(MAX_BYTES / 4)), Ok(()));
            let large = prompt(MAX_BYTES / 2);
            assert_eq!(queue.check_room(&large), Err(QueueFull::TooLarge));
            assert!(queue.next_if(|_| false).is_none());
            leave(&mut queue);
            queue.push(queued(2, 1));
            assert_eq!(queue.check_room(&prompt(MAX_BYTES / 2)), Ok(()));
        }
    }

    #[test]
    fn large_prompt_waits_where_no_other_does() {
        let mut queue = Queue::default();
        assert_eq!(queue.check_room(&prompt(2 * MAX_BYTES)), Ok(()));
        queue.push(queued(1, 2 * MAX_BYTES));
        assert!(queue.check_room(&prompt(1)).is_err());
        assert!(queue.next_if(|_| true).is_some());
        assert_eq!(queue.check_room(&prompt(2 * MAX_BYTES)), Ok(()));
    }

    #[test]
    fn queued_prompt_size_counts_the_memory_of_small_values() {
        let part = json!({"type": "data-x", "data": vec![1; 100_000]});
        let message = json!({"message": {"parts": [part]}});
        let dense: wire::PromptParams = serde_json::from_value(message).unwrap();
        assert!(prompt_size(&dense) > 2_000_000, "{}", prompt_size(&dense));
    }
}
