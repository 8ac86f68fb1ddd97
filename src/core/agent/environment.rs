//! The agent's environment: implements `agent/getEnvironment` and `agent/updateEnvironment`.

use super::connection::Phase;
use super::cx::AgentCx;
use super::{AgentMachine, AgentSpec, State};
use crate::core::client::{Reply, Token};
use crate::core::error::{Error, ErrorKind, invalid};
use crate::core::secret::{REDACTED, is_secret};
use crate::proto::wire::{
    AuthMethod, EnvironmentResult, SignIn, UpdateEnvironmentParams, UpdateEnvironmentResult,
    Variables, WhenBusy,
};
use std::collections::BTreeSet;

impl AgentMachine {
    /// Returns the variables set on top of acpipe's own environment, with the values of secrets redacted.
    #[must_use]
    pub fn environment(&self) -> EnvironmentResult {
        let spec = match self.connection().map(|connection| &connection.phase) {
            Some(Phase::Stopping { next, .. }) => next
                .as_ref()
                .map_or(&self.definition.spec, |(spec, _)| spec),
            _ => &self.spec,
        };
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

    /// Returns the names of the variables that the agent declares as secret in its `authMethods`, now or when
    /// they were set.
    fn declared_secrets(&self) -> BTreeSet<&str> {
        let info = self.connection().and_then(|connection| connection.ready());
        let methods = info.map(|info| info.auth_methods.as_slice());
        let vars = methods.unwrap_or_default().iter().flat_map(secrets);
        let known = self.secret_variables.iter().map(String::as_str);
        known.chain(vars).collect()
    }

    /// Changes the environment of the agent now and after later restarts. A connected agent without these
    /// values is renewed.
    ///
    /// `is_busy`: whether a session of the agent runs a turn or has queued prompts. `ahead`: these prompts.
    ///
    /// # Errors
    /// `invalidParams`, and `busy` if the agent is busy and the call is not to wait.
    pub fn update_environment(
        &mut self,
        token: Token,
        p: UpdateEnvironmentParams,
        (is_busy, ahead): (bool, Vec<Token>),
        cx: &mut AgentCx<'_>,
    ) -> Result<(), Error> {
        let when_busy = p.when_busy;
        let update = changes(p)?;
        let is_stale = self.is_stale(&update);
        if when_busy == WhenBusy::Reject && is_busy && (is_stale || self.renewal.is_some()) {
            let message = "a session is in a turn; update the environment after the turn, or with whenBusy \"wait\"";
            return Err(Error::new(ErrorKind::Busy, message));
        }
        let changed = self.set_variables(&update);
        if !is_stale && self.renewal.is_none() {
            let result = UpdateEnvironmentResult {
                changed,
                restarted: false,
                sessions: Vec::new(),
            };
            cx.reply(token, Reply::UpdateEnvironment(result));
            return Ok(());
        }
        self.begin_renewal(is_stale, ahead).wait(token, changed);
        Ok(())
    }

    /// Returns `true` if the connected agent lacks one of these variables.
    pub(super) fn is_stale(&self, update: &Variables) -> bool {
        self.is_connected() && !self.is_stopping() && !self.spec.env.contains_all(update)
    }

    /// Sets variables for the agent and all its later restarts; returns `true` if any value changes.
    pub(super) fn set_variables(&mut self, update: &Variables) -> bool {
        let mut changed = false;
        for spec in self.specs() {
            changed |= !spec.env.contains_all(update);
            spec.env.0.extend(update.0.clone());
        }
        changed
    }

    /// Returns the value of a variable in the agent's environment.
    #[must_use]
    pub(super) fn variable(&self, name: &str, inherited: &Variables) -> Option<String> {
        let value = self.spec.env.0.get(name).or_else(|| inherited.0.get(name));
        value.cloned().flatten()
    }

    /// Returns all specifications by which the agent was or may be started.
    fn specs(&mut self) -> impl Iterator<Item = &mut AgentSpec> {
        let next = match &mut self.state {
            State::Connected(connection) => match &mut connection.phase {
                Phase::Stopping { next, .. } => next.as_mut().map(|(spec, _)| spec.as_mut()),
                Phase::Starting { .. } | Phase::Ready(_) => None,
            },
            State::Absent { .. } | State::Backoff { .. } => None,
        };
        let own = [&mut self.definition.spec, &mut self.spec];
        own.into_iter().chain(next)
    }
}

/// Returns the variables of a sign-in method that hold a secret.
pub(super) fn secrets(method: &AuthMethod) -> impl Iterator<Item = &str> {
    let vars = match &method.way {
        SignIn::EnvVar { vars, .. } => vars.as_slice(),
        SignIn::Agent | SignIn::Terminal(_) => &[],
    };
    let secret = vars.iter().filter(|var| var.secret);
    secret.map(|var| var.name.as_str())
}

/// Returns all changes of the call after validation.
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
            "{name:?} has the placeholder value that agent/getEnvironment shows for a secret; omit the variable to \
                 keep its value"
        );
        return Err(invalid("set", &why));
    }
    if let Some((name, _)) = set.0.iter().find(|(name, _)| unset.0.contains_key(*name)) {
        return Err(invalid(
            "unset",
            &format!("{name:?} is also in set; remove it from one of them"),
        ));
    }
    Ok(set.0.into_iter().chain(unset.0).collect())
}
