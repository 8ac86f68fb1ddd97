//! Terms of a session: policy and timeouts under which its agent works for the last prompt.
//!
//! Each prompt of a daemon's client runs under the terms of the session's agent and those of that client. They hold until
//! the next prompt, so that they hold for background work, too.
//!
//! Owns the terms of the last prompt, the clients that may use the session's list of allowed tools, those that know in which
//! settings the session differs from theirs, and the warning that the agent may run tools without asking. It reads the settings that are passed in, and may not change them, judge a
//! tool, or ask a client.

pub mod asking;

use super::caller_settings::CallerSettings;
use super::output::SessionOutput;
use super::policy_notices::PolicyNotice;
use super::session_agents::SessionAgents;
use super::settings::SessionSettings;
use crate::client::ClientId;
use crate::client_sink::ClientSinks;
use crate::cx::Cx;
use crate::terms::{CallerTerms, OTHER_SETTINGS, Terms};
use acpipe_model::asking::Asking;
use acpipe_policy::Policy;
use acpipe_protocol::wire::SessionOptions;
use asking::AskingWatch;
use std::sync::Arc;

/// Title of the notice that a prompt runs under another policy than the one before it.
pub const PERMISSIONS_CHANGED: &str = "The permissions of this session changed";

/// Terms of the last prompt of a session.
#[derive(Debug, Default)]
pub struct PromptTerms {
    /// The terms that hold, if they are stricter than those of the session's agent.
    stricter: Option<Arc<Terms>>,
    /// The terms of the prompt and of the clients that joined its turn, if they are stricter than those of the agent.
    alone: Option<Arc<Terms>>,
    /// The terms that held before the prompt, if they are stricter than those of the agent.
    before: Option<Arc<Terms>>,
    /// `true` while the prompt waits for work of the turn before, for which the terms before hold, too.
    waits: bool,
    /// The policy; `None` before the first prompt.
    policy: Option<Policy>,
    /// Description of the change from the policy before, until a turn has shown it.
    change: Option<String>,
    /// Description of the settings in which the session differs from the client of the prompt, until its turn has shown it.
    differing: Option<String>,
    /// Clients that have got the settings in which the session differs from theirs since it was opened last.
    compared: Vec<ClientId>,
    /// Those of them that opened or joined the session: they have a receipt.
    openers: Vec<ClientId>,
    /// Client that sent the last prompt or joined its turn last; `None` for clients with the settings of the hub.
    caller: Option<ClientId>,
    /// Clients that opened the session with its list of allowed tools, for which it counts.
    listing: Vec<ClientId>,
    /// When the agent asks, by the own definitions of the clients of the last prompt.
    asking: Vec<Asking>,
}

/// Terms of a session. Both parts are absent in most sessions.
#[derive(Debug, Default)]
pub struct SessionTerms {
    /// Terms of the last prompt; `None` unless its client may have settings of its own.
    prompt: Option<Box<PromptTerms>>,
    /// Watch over the agent; `None` unless the policy needs an agent that asks.
    asking: Option<Box<AskingWatch>>,
}

/// State of the session that the watch over the agent reads, and the turn in which it warns.
pub struct WatchedSession<'a> {
    pub settings: &'a SessionSettings,
    pub output: &'a mut SessionOutput,
    pub turn: Option<&'a str>,
}

impl PromptTerms {
    fn forget_stricter(&mut self) {
        self.stricter = None;
        self.alone = None;
        self.before = None;
    }

    /// Makes the terms hold that result from those of the prompt and those before. `own` are those of the session's agent.
    fn apply(&mut self, own: &Terms, cx: &mut Cx<'_>) {
        let alone = self.alone.as_deref().unwrap_or(own);
        let terms = if self.waits {
            let before = self.before.as_deref().unwrap_or(own);
            Terms {
                policy: before.policy.with_caller(&alone.policy, None),
                // The time limits of the work before have ended with its turn.
                limits: alone.limits,
            }
        } else {
            alone.clone()
        };
        let last = self.policy.as_ref().unwrap_or(&own.policy);
        self.change = (!last.judges_like(&terms.policy)).then(|| {
            let (now, before) = (terms.policy.summary(), last.summary());
            let others = if now == before {
                " with other rules or settings"
            } else {
                ""
            };
            format!(
                "this prompt runs under {now}, the one before it under {before}{others}. Each prompt runs under the \
                 permissions of the client that opened the session and of the client that sent the prompt; the stricter \
                 of both decide"
            )
        });
        self.policy = Some(terms.policy.clone());
        self.stricter = (terms != *own).then(|| Arc::new(terms));
        cx.terms.clone_from(&self.stricter);
    }
}

impl SessionTerms {
    /// Forgets what is stricter than the terms of the agent that the session had.
    pub fn forget_stricter(&mut self) {
        if let Some(terms) = &mut self.prompt {
            terms.forget_stricter();
        }
    }

    /// Returns the terms that hold in place of those of the session's agent.
    #[must_use]
    pub fn stricter(&self) -> Option<Arc<Terms>> {
        self.prompt.as_ref()?.stricter.clone()
    }

    /// Notes that a client opened the session with its list of allowed tools, if it has one.
    pub fn claim_lists(&mut self, client: ClientId, wish: &SessionOptions, output: &SessionOutput) {
        if wish.allowed_tools.is_empty() {
            return;
        }
        let listing = &mut self.prompt.get_or_insert_default().listing;
        listing.retain(|other| output.subscribers().has(*other) && *other != client);
        listing.push(client);
    }

    /// Returns the clients that opened the session with its list of allowed tools.
    #[must_use]
    pub fn listing_clients(&self) -> &[ClientId] {
        let terms = self.prompt.as_ref();
        terms.map_or(&[], |terms| &terms.listing)
    }

    /// Notes that the session is opened with other tool lists.
    pub fn forget_lists(&mut self) {
        if let Some(terms) = &mut self.prompt {
            terms.listing.clear();
        }
    }

    /// Notes that a client gets the settings in which the session differs from its own. Returns `false` if it has got them
    /// since the session was opened last.
    pub fn note_compared(&mut self, client: ClientId, output: &SessionOutput) -> bool {
        let compared = &mut self.prompt.get_or_insert_default().compared;
        compared.retain(|other| output.subscribers().has(*other));
        let is_new = !compared.contains(&client);
        if is_new {
            compared.push(client);
        }
        is_new
    }

    /// Notes that a client gets a receipt of the opening.
    pub fn note_opener(&mut self, client: ClientId, output: &SessionOutput) {
        self.note_compared(client, output);
        let openers = &mut self.prompt.get_or_insert_default().openers;
        openers.retain(|other| output.subscribers().has(*other) && *other != client);
        openers.push(client);
    }

    /// Returns `true` if a client opened or joined the session since it was opened last.
    #[must_use]
    pub fn has_opener(&self, client: ClientId) -> bool {
        let terms = self.prompt.as_ref();
        terms.is_some_and(|terms| terms.openers.contains(&client))
    }

    /// Notes that the session is opened, perhaps with other settings.
    pub fn forget_compared(&mut self) {
        if let Some(terms) = &mut self.prompt {
            terms.compared.clear();
            terms.openers.clear();
        }
    }

    /// Compares the session with the client of a prompt, unless it has got the result. Its turn shows it.
    pub fn compare(
        &mut self,
        caller: &CallerSettings,
        held: (&SessionSettings, &SessionAgents),
        output: &SessionOutput,
        cx: &Cx<'_>,
    ) {
        let Some(terms) = &caller.terms else {
            return;
        };
        if self.note_compared(terms.client, output) {
            let differing = caller.differing_text(output.session(), held, cx);
            self.prompt.get_or_insert_default().differing = differing;
        }
    }

    /// Takes what is to be kept of the terms while the session is not in memory.
    pub fn take_terms(&mut self) -> Option<Box<PromptTerms>> {
        let mut terms = self.prompt.take()?;
        terms.forget_stricter();
        Some(terms)
    }

    /// Puts back what [`take_terms`](Self::take_terms) returned.
    pub fn put_terms(&mut self, terms: Option<Box<PromptTerms>>) {
        self.prompt = terms;
    }

    /// Begins the terms of a prompt. While it waits for work of the turn before (`waits`), the terms before hold, too.
    pub fn begin_prompt(
        &mut self,
        caller: &CallerTerms,
        waits: bool,
        settings: &SessionSettings,
        cx: &mut Cx<'_>,
    ) {
        let kept = self.prompt.get_or_insert_default();
        kept.asking.clear();
        kept.before = kept.stricter.take();
        kept.alone = None;
        kept.waits = waits;
        self.join_prompt(caller, settings, cx);
    }

    /// Adds the terms of a client to those of the last prompt.
    pub fn join_prompt(
        &mut self,
        caller: &CallerTerms,
        settings: &SessionSettings,
        cx: &mut Cx<'_>,
    ) {
        let kept = self.prompt.get_or_insert_default();
        let claims = kept.listing.contains(&caller.client);
        let lists = caller.lists(settings.options(), claims);
        let own = Terms::of(cx.agent.definition, &cx.shared.settings);
        let held = kept.alone.as_deref().unwrap_or(&own);
        let terms = held.with_caller(&caller.terms, lists.as_ref());
        kept.alone = (terms != own).then(|| Arc::new(terms));
        let asking = caller.asking.clone();
        kept.asking
            .extend(asking.filter(|own| !kept.asking.contains(own)));
        kept.caller = caller.has_own_settings.then_some(caller.client);
        kept.apply(&own, cx);
    }

    /// Notes whether the last prompt waits for work of the turn before. Returns `true` if other terms may hold now.
    pub fn set_waiting(&mut self, waits: bool, cx: &mut Cx<'_>) -> bool {
        let changed = self.prompt.as_mut().filter(|kept| kept.waits != waits);
        let Some(kept) = changed else {
            return false;
        };
        kept.waits = waits;
        kept.apply(&Terms::of(cx.agent.definition, &cx.shared.settings), cx);
        true
    }

    /// Shows in the running turn which other terms hold for it, and that the agent may run tools without asking.
    pub fn show(
        &mut self,
        turn: Option<&str>,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) {
        if let Some(turn) = turn {
            self.show_changed_terms(turn, output, clients);
            self.show_asking_warning(turn, output, clients);
        }
    }

    /// Shows in a turn that it runs under another policy than the last one, and in which other settings the session differs
    /// from the client of its prompt.
    pub fn show_changed_terms(
        &mut self,
        turn_id: &str,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) {
        let Some(terms) = self.prompt.as_deref_mut() else {
            return;
        };
        for (severity, title, text) in [
            ("info", PERMISSIONS_CHANGED, terms.change.take()),
            ("warning", OTHER_SETTINGS, terms.differing.take()),
        ] {
            let Some(description) = text else {
                continue;
            };
            let notice = PolicyNotice {
                severity,
                title,
                description: &description,
                call: None,
            };
            notice.show(Some(turn_id), output, clients);
        }
    }
}
