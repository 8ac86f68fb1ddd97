//! Terms of the session's prompts. Each prompt of a daemon's client runs under the terms of the session's agent and
//! those of that client. They hold until the next prompt, so that they hold for background work, too.

use super::SessionMachine;
use super::policy_notices::PolicyNotice;
use crate::core::client::ClientId;
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::ids::AgentRef;
use crate::core::limits::Timeout;
use crate::core::policy::Policy;
use crate::core::terms::{CallerTerms, Terms};
use crate::proto::wire::SessionOptions;
use std::sync::Arc;

/// Title of the notice that a prompt runs under another policy than the one before it.
pub const PERMISSIONS_CHANGED: &str = "The permissions of this session changed";

/// Terms of the last prompt of a session.
#[derive(Debug, Default)]
pub struct PromptTerms {
    /// The terms, if they are stricter than those of the session's agent.
    stricter: Option<Arc<Terms>>,
    /// The policy; `None` before the first prompt.
    policy: Option<Policy>,
    /// Description of the change from the policy before, until a turn has shown it.
    change: Option<String>,
    /// Clients that opened the session with its list of allowed tools, for which it counts.
    listing: Vec<ClientId>,
}

impl SessionMachine {
    /// Returns the terms that hold in place of those of the session's agent.
    #[must_use]
    pub fn terms(&self) -> Option<Arc<Terms>> {
        self.prompt_terms.as_ref()?.stricter.clone()
    }

    /// Moves the session to another agent, or to another definition of its agent, whose terms it then has.
    pub fn set_agent(&mut self, agent: AgentRef) {
        self.agent = agent;
        if let Some(terms) = &mut self.prompt_terms {
            terms.stricter = None;
        }
    }

    /// Notes that a client opened the session with its list of allowed tools, if it has one.
    pub fn claim_lists(&mut self, client: ClientId, wish: &SessionOptions) {
        if wish.allowed_tools.is_empty() {
            return;
        }
        let listing = &mut self.prompt_terms.get_or_insert_default().listing;
        listing.retain(|other| self.output.subscribers().has(*other) && *other != client);
        listing.push(client);
    }

    /// Returns the clients that opened the session with its list of allowed tools.
    #[must_use]
    pub fn listing_clients(&self) -> &[ClientId] {
        let terms = self.prompt_terms.as_ref();
        terms.map_or(&[], |terms| &terms.listing)
    }

    /// Notes that the session is opened with other tool lists.
    pub(super) fn forget_lists(&mut self) {
        if let Some(terms) = &mut self.prompt_terms {
            terms.listing.clear();
        }
    }

    /// Takes what is to be kept of the terms while the session is not in memory.
    pub fn take_terms(&mut self) -> Option<Box<PromptTerms>> {
        let mut terms = self.prompt_terms.take()?;
        terms.stricter = None;
        Some(terms)
    }

    /// Puts back what [`take_terms`](Self::take_terms) returned.
    pub fn put_terms(&mut self, terms: Option<Box<PromptTerms>>) {
        self.prompt_terms = terms;
    }

    /// Sets the terms of a prompt, given those of the client that sent it.
    pub(super) fn begin_terms(&mut self, caller: Option<&CallerTerms>, cx: &mut Cx<'_>) {
        if let Some(caller) = caller {
            let own = Terms::of(cx.agent.definition, &cx.shared.settings);
            self.set_terms(&own, caller, cx);
        }
    }

    /// Adds the terms of a client that steers or takes over the running turn.
    pub(super) fn add_terms(&mut self, caller: Option<&CallerTerms>, cx: &mut Cx<'_>) {
        let Some(caller) = caller else {
            return;
        };
        let held = Terms {
            policy: cx.policy().clone(),
            limits: *cx.limits(),
        };
        self.set_terms(&held, caller, cx);
        if let Some(running) = self.turns.prompted_mut() {
            let limit = cx.limits().of(Timeout::Turn);
            let until = limit.and_then(|limit| running.started.checked_add(limit));
            running.limit = running.limit.into_iter().chain(until).min();
        }
        if let Some(timer) = &mut self.idle_timer {
            timer.shorten(cx.limits().of(Timeout::Prompt));
        }
        if let Some(turn) = self.turns.id().map(str::to_owned) {
            self.show_changed_terms(&turn, cx.clients);
        }
    }

    /// Sets the terms that hold beside those of a caller.
    fn set_terms(&mut self, held: &Terms, caller: &CallerTerms, cx: &mut Cx<'_>) {
        let mut kept = self.prompt_terms.take().unwrap_or_default();
        let claims = kept.listing.contains(&caller.client);
        let lists = caller.lists(self.settings.options(), claims);
        let terms = held.with_caller(&caller.terms, lists.as_ref());
        let own = Terms::of(cx.agent.definition, &cx.shared.settings);
        let last = kept.policy.as_ref().unwrap_or(&own.policy);
        let change = (*last != terms.policy).then(|| {
            format!(
                "this prompt runs under {}, the one before it under {}. Each prompt runs under the permissions of the \
                 client that opened the session and of the client that sent the prompt; the stricter of both decide",
                terms.policy.summary(),
                last.summary(),
            )
        });
        kept.change = change;
        kept.policy = Some(terms.policy.clone());
        kept.stricter = (terms != own).then(|| Arc::new(terms));
        cx.terms.clone_from(&kept.stricter);
        self.prompt_terms = Some(kept);
        self.recheck_asking(cx);
    }

    /// Shows in a turn that it runs under another policy than the last one.
    pub(super) fn show_changed_terms(&mut self, turn_id: &str, clients: &mut dyn ClientSinks) {
        let terms = self.prompt_terms.as_deref_mut();
        let Some(change) = terms.and_then(|terms| terms.change.take()) else {
            return;
        };
        let notice = PolicyNotice {
            severity: "info",
            title: PERMISSIONS_CHANGED,
            description: &change,
            call: None,
        };
        notice.show(&self.id, Some(turn_id), &mut self.output, clients);
    }
}
