//! The agent's environment, and its renewal: an agent whose environment was changed is started again.
//!
//! No turn is broken off: a renewal waits for the turns that run and for the prompts that came before it.
//! Those that come later wait for the new agent. Its sessions are brought back, then everyone is answered.

use super::commands::invalid;
use super::restart::Crashed;
use super::{Agent, AgentSpec, Bridge, Phase};
use crate::core::client::{Outlet, Reply, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::secret::{REDACTED, is_secret};
use crate::core::session::{Session, Stage};
use crate::proto::wire::{
    AuthMethod, BroughtBack, EnvironmentResult, Recovery, SignIn, UpdateEnvironmentParams,
    UpdateEnvironmentResult, Variables, WhenBusy,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// An agent on its way to be started again with another environment.
#[derive(Default)]
pub(super) struct Renewal {
    /// Who is answered when it is done, and whether their call changed anything.
    waiters: Vec<(Token, bool)>,
    /// The prompts that came before: the old agent gets them.
    ahead: Vec<Token>,
    /// Whether the old agent has ended and the new one was started.
    started: bool,
    /// The sessions to bring back, and what became of them.
    sessions: BTreeMap<String, Option<Result<Recovery, Error>>>,
}

impl Bridge {
    /// The variables set on top of acpipe's own environment for the agent, without the values of secrets.
    pub(super) fn environment(&self) -> EnvironmentResult {
        let agent = self.agent.as_ref().and_then(|agent| match &agent.phase {
            Phase::Stopping { next, .. } => next.as_ref().map(|(spec, _)| spec.as_ref()),
            Phase::Starting { .. } | Phase::Ready(_) => Some(&agent.spec),
        });
        let crashed = self.crashed.as_ref().map(|crashed| &crashed.spec);
        let spec = agent.or(crashed).unwrap_or(&self.settings.default_agent);
        let declared = self.declared_secrets();
        let (mut env, mut redacted) = (spec.env.clone(), Vec::new());
        for (name, value) in &mut env.0 {
            if let Some(value) = value
                && !value.is_empty()
                && (declared.contains(name.as_str()) || is_secret(name, value))
            {
                REDACTED.clone_into(value);
                redacted.push(name.clone());
            }
        }
        EnvironmentResult { env, redacted }
    }

    /// The variables that the agent declares as secret in its `authMethods`, now or when they were set.
    fn declared_secrets(&self) -> BTreeSet<&str> {
        let info = self.agent.as_ref().and_then(|agent| match &agent.phase {
            Phase::Ready(info) => Some(info),
            Phase::Starting { .. } | Phase::Stopping { .. } => None,
        });
        let methods = info.map(|info| info.auth_methods.as_slice());
        let vars = methods.unwrap_or_default().iter().flat_map(secrets);
        let known = self.secret_variables.iter().map(String::as_str);
        known.chain(vars).collect()
    }

    /// Changes the environment of every agent there may be, and renews the one that runs with another.
    pub(super) fn update_environment(
        &mut self,
        token: Token,
        p: UpdateEnvironmentParams,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let when_busy = p.when_busy;
        let update = changes(p)?;
        let stale = self.is_stale(&update);
        let is_busy = |s: &Session| s.running.is_some() || !s.queue.is_empty();
        let busy = self.sessions.values().any(is_busy);
        if when_busy == WhenBusy::Reject && busy && (stale || self.renewal.is_some()) {
            let message = "a session is in a turn: update the environment when that has ended, or with whenBusy \
                           \"wait\"";
            return Err(Error::new(ErrorKind::Busy, message));
        }
        let changed = self.lay_over(&update);
        if !stale && self.renewal.is_none() {
            let result = UpdateEnvironmentResult {
                changed,
                restarted: false,
                sessions: Vec::new(),
            };
            outlet.reply(token, Ok(Reply::UpdateEnvironment(result)));
            return Ok(());
        }
        self.begin_renewal(stale).waiters.push((token, changed));
        Ok(())
    }

    /// Whether the agent that runs has not all of these.
    pub(super) fn is_stale(&self, update: &Variables) -> bool {
        let stale = |agent: &Agent| !agent.is_stopping() && !agent.spec.env.include(update);
        self.agent.as_ref().is_some_and(stale)
    }

    /// Changes the environment of every agent there may be; true where anything is other than before.
    pub(super) fn lay_over(&mut self, update: &Variables) -> bool {
        let mut changed = false;
        for spec in self.specs() {
            changed |= !spec.env.include(update);
            spec.env.0.extend(update.0.clone());
        }
        changed
    }

    /// The agent is to be renewed, anew if it is on its way with what is stale by now.
    pub(super) fn begin_renewal(&mut self, stale: bool) -> &mut Renewal {
        let ahead = self.sessions.values().flat_map(|s| s.queue.tokens());
        let ahead = ahead.collect();
        let renewal = self.renewal.get_or_insert_default();
        // The first of several that wait says what came before.
        if renewal.waiters.is_empty() || (stale && renewal.started) {
            renewal.started = false;
            renewal.ahead = ahead;
        }
        renewal
    }

    /// The value of a variable that the agent gets.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let own = self.spec_in_use().env.0.get(name);
        let value = own.or_else(|| self.settings.inherited.0.get(name));
        value.cloned().flatten()
    }

    /// The command lines of all agents that there are or may be.
    fn specs(&mut self) -> impl Iterator<Item = &mut AgentSpec> {
        let (own, next) = match &mut self.agent {
            Some(Agent {
                spec,
                phase: Phase::Stopping { next, .. },
                ..
            }) => (Some(spec), next.as_mut().map(|(spec, _)| spec.as_mut())),
            Some(agent) => (Some(&mut agent.spec), None),
            None => (None, None),
        };
        let crashed = self.crashed.as_mut().map(|crashed| &mut crashed.spec);
        let default = std::iter::once(&mut self.settings.default_agent);
        default.chain(own).chain(next).chain(crashed)
    }

    /// Whether the agent that runs is to be replaced.
    pub(super) fn is_renewing(&self) -> bool {
        self.renewal.as_ref().is_some_and(|r| !r.started)
    }

    /// Whether a prompt has to wait for the new agent.
    pub(super) fn is_held(&self, prompt: Token) -> bool {
        self.renewal.as_ref().is_some_and(|r| r.holds(prompt))
    }

    /// Goes on with a renewal: stops the old agent as soon as nothing is left for it to do, answers everyone
    /// once the new one has what it had.
    pub(super) fn renew(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let Some(renewal) = &self.renewal else { return };
        if renewal.started {
            self.answer_renewal(outlet);
            return;
        }
        let ahead = |token| renewal.ahead.contains(&token);
        let has_to_do = |s: &Session| s.running.is_some() || s.queue.tokens().any(ahead);
        if self.sessions.values().any(has_to_do) {
            return;
        }
        self.replace_agent(now, outlet);
    }

    /// The agent that runs is to be started again, with the environment that it has.
    pub(super) fn start_anew(&mut self) {
        let renewal = self.renewal.get_or_insert_default();
        renewal.started = false;
        // The one that runs takes no prompts any more: those that came before go to the next as well.
        renewal.ahead.clear();
    }

    /// Stops the agent; when it has ended it is started with its new environment.
    pub(super) fn replace_agent(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let Some(agent) = &mut self.agent else { return };
        let waiters = match &mut agent.phase {
            Phase::Stopping { .. } => return,
            Phase::Starting { waiters, .. } => std::mem::take(waiters),
            Phase::Ready(_) => Vec::new(),
        };
        let next = Some((Box::new(agent.spec.clone()), waiters));
        self.begin_stopping(next, None, now, outlet);
    }

    /// The old agent is no more: notes which sessions it had, and sends them on their way to the new one.
    pub(super) fn keep_sessions(&mut self) {
        let Some(renewal) = &mut self.renewal else {
            return;
        };
        for session in self.sessions.values_mut() {
            match session.stage {
                Stage::Resting => continue,
                Stage::Live { .. } => {
                    renewal.sessions.insert(session.id.clone(), None);
                }
                Stage::Opening { .. } => {}
            }
            session.reopen();
        }
    }

    /// The new agent was started.
    pub(super) fn renewal_started(&mut self, now: Instant) {
        if let (Some(renewal), Some(agent)) = (&mut self.renewal, &self.agent) {
            renewal.started = true;
            // Should it fail, the next prompt tries again.
            self.crashed = Some(Crashed {
                spec: agent.spec.clone(),
                at: now,
            });
        }
    }

    /// What became of a session that was brought back.
    pub(super) fn brought_back(&mut self, id: &str, outcome: Result<&Recovery, &Error>) {
        let sessions = self.renewal.as_mut().map(|renewal| &mut renewal.sessions);
        if let Some(known) = sessions.and_then(|sessions| sessions.get_mut(id)) {
            *known = Some(outcome.cloned().map_err(Error::clone));
        }
    }

    /// Answers everyone once the agent is ready and each of its sessions is brought back, or cannot be.
    pub(super) fn answer_renewal(&mut self, outlet: &mut impl Outlet) {
        let opening = |id: &String| {
            let session = self.sessions.get(id);
            session.is_some_and(|s| matches!(s.stage, Stage::Opening { .. }))
        };
        let done = |renewal: &mut Renewal| !renewal.sessions.keys().any(opening);
        if let Some(Phase::Ready(_)) = self.agent.as_ref().map(|agent| &agent.phase)
            && let Some(renewal) = self.renewal.take_if(done)
        {
            for (token, changed) in &renewal.waiters {
                let result = UpdateEnvironmentResult {
                    changed: *changed,
                    restarted: true,
                    sessions: renewal.outcomes(),
                };
                outlet.reply(*token, Ok(Reply::UpdateEnvironment(result)));
            }
        }
    }

    /// There will be no new agent: everyone is told why. The environment stays changed.
    pub(super) fn renewal_failed(&mut self, error: &Error, outlet: &mut impl Outlet) {
        self.keys_are_lost(error, outlet);
        let waiters = self.renewal.take().map(|renewal| renewal.waiters);
        for (token, _) in waiters.unwrap_or_default() {
            outlet.reply(token, Err(error.clone()));
        }
    }
}

impl Renewal {
    /// Whether a prompt has to wait for the new agent.
    pub(super) fn holds(&self, prompt: Token) -> bool {
        !self.started && !self.ahead.contains(&prompt)
    }

    fn outcomes(&self) -> Vec<BroughtBack> {
        let told = self.sessions.iter().filter_map(|(id, outcome)| {
            let outcome = outcome.as_ref()?;
            Some(BroughtBack {
                session_id: id.clone(),
                recovery: outcome.as_ref().ok().cloned(),
                error: outcome.as_ref().err().map(Into::into),
            })
        });
        told.collect()
    }
}

/// The variables of a method that hold a secret.
pub(super) fn secrets(method: &AuthMethod) -> impl Iterator<Item = &str> {
    let vars = match &method.way {
        SignIn::EnvVar { vars, .. } => vars.as_slice(),
        SignIn::Agent | SignIn::Terminal(_) => &[],
    };
    let secret = vars.iter().filter(|var| var.secret);
    secret.map(|var| var.name.as_str())
}

/// All that is to be changed, checked.
fn changes(p: UpdateEnvironmentParams) -> Result<Variables, Error> {
    let UpdateEnvironmentParams { set, unset, .. } = p;
    let unset: Variables = unset.into_iter().map(|name| (name, None)).collect();
    for (field, variables) in [("set", &set), ("unset", &unset)] {
        if let Some(why) = variables.fault() {
            return Err(invalid(field, &why));
        }
    }
    let redacted = |value: &Option<String>| value.as_deref() == Some(REDACTED);
    if let Some((name, _)) = set.0.iter().find(|(_, value)| redacted(value)) {
        let why = format!(
            "{name:?} has the value that agent/getEnvironment shows in place of a secret: leave the variable out to \
             keep its value"
        );
        return Err(invalid("set", &why));
    }
    if let Some((name, _)) = set.0.iter().find(|(name, _)| unset.0.contains_key(*name)) {
        return Err(invalid("unset", &format!("{name:?} is in set too")));
    }
    Ok(set.0.into_iter().chain(unset.0).collect())
}
