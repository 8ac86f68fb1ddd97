//! How the agent is started: its definition, the specification in use, and which of its variables are secret.
//!
//! Owns these three; every change of the agent's command, directory or environment is made here. It may not touch the
//! connection, restarts or calls: the specification of a process that waits to be started belongs to the connection, and the
//! machine passes it in.

use crate::agent_definition::AgentDefinition;
use crate::agent_spec::{AgentSpec, DEFAULT_AGENT, identity};
use acpipe_model::error::{Error, ErrorKind, invalid};
use acpipe_model::secret::{REDACTED, is_secret};
use acpipe_protocol::wire::{
    AgentSource, AuthMethod, EnvironmentResult, SignIn, UpdateEnvironmentParams, Variables,
};
use std::collections::BTreeSet;

/// Definition and specification of an agent.
pub(super) struct Specs {
    /// Definition; its specification is used when the client connects the agent without a command.
    definition: AgentDefinition,
    /// Specification of the connected agent, or of the one to be restarted; otherwise that of the definition.
    current: AgentSpec,
    /// Names of variables that `agent/authenticate` set and that the agent declared as secret.
    secret_variables: BTreeSet<String>,
}

impl Specs {
    /// Begins with the specification of the definition.
    pub(super) fn new(definition: AgentDefinition) -> Self {
        Self {
            current: definition.spec.clone(),
            definition,
            secret_variables: BTreeSet::new(),
        }
    }

    pub(super) fn definition(&self) -> &AgentDefinition {
        &self.definition
    }

    /// Specification of the connected agent, or of the one to be restarted; otherwise the configured one.
    pub(super) fn current(&self) -> &AgentSpec {
        &self.current
    }

    /// Identity under which sessions store the agent's session ids.
    pub(super) fn identity(&self) -> String {
        identity(&self.definition.name, &self.current)
    }

    /// Checks that the agent may be started.
    pub(super) fn check_unlocked(&self) -> Result<(), Error> {
        match &self.definition.locked {
            None => Ok(()),
            Some(reason) => Err(invalid("agent", reason)),
        }
    }

    /// Returns `true` if a call may start the agent. The demo agent is started only if it was chosen by its name.
    pub(super) fn is_chosen(&self) -> bool {
        self.definition.spec.source != AgentSource::Demo || self.definition.name != DEFAULT_AGENT
    }

    /// Sets the specification that is used when the client connects the agent without a command.
    pub(super) fn set_configured(&mut self, spec: AgentSpec) {
        self.definition.spec = spec;
    }

    /// Takes over the specification with which a client names a command, unless this is the default agent, which the
    /// user configures.
    ///
    /// # Errors
    /// `duplicateAgent` if the user defined the agent.
    pub(super) fn redefine(&mut self, spec: &AgentSpec) -> Result<(), Error> {
        let name = &self.definition.name;
        if self.definition.is_fixed() {
            let message = format!(
                "agent {name:?} is already defined; omit command and protocol, or use another name"
            );
            return Err(Error::new(ErrorKind::DuplicateAgent, message).with("field", "agent"));
        }
        if name != DEFAULT_AGENT {
            self.definition.spec = spec.clone();
        }
        Ok(())
    }

    pub(super) fn set_current(&mut self, spec: AgentSpec) {
        self.current = spec;
    }

    /// Resets the specification to the configured one, when no agent is in use.
    pub(super) fn reset(&mut self) {
        self.current = self.definition.spec.clone();
    }

    /// Returns variables as clients may see them: with the values of secrets redacted. Secret are also the variables that
    /// `methods` declare.
    pub(super) fn shown(&self, variables: &Variables, methods: &[AuthMethod]) -> EnvironmentResult {
        let known = self.secret_variables.iter().map(String::as_str);
        let declared: BTreeSet<&str> = known.chain(methods.iter().flat_map(secrets)).collect();
        let (mut env, mut redacted) = (variables.clone(), Vec::new());
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

    pub(super) fn has(&self, variables: &Variables) -> bool {
        self.current.env.contains_all(variables)
    }

    /// Sets variables for the agent and all its later restarts, and in the specification that is to be started next;
    /// returns `true` if any value changes.
    pub(super) fn set_variables(
        &mut self,
        update: &Variables,
        next: Option<&mut AgentSpec>,
    ) -> bool {
        let mut changed = false;
        let own = [&mut self.definition.spec, &mut self.current];
        for spec in own.into_iter().chain(next) {
            changed |= !spec.env.contains_all(update);
            spec.env.0.extend(update.0.clone());
        }
        changed
    }

    /// Notes variables of a sign-in method as secret.
    pub(super) fn note_secrets(&mut self, names: impl IntoIterator<Item = String>) {
        self.secret_variables.extend(names);
    }

    pub(super) fn variable(&self, name: &str, inherited: &Variables) -> Option<String> {
        let value = self.current.env.0.get(name);
        let value = value.or_else(|| inherited.0.get(name));
        value.cloned().flatten()
    }
}

pub(super) fn secrets(method: &AuthMethod) -> impl Iterator<Item = &str> {
    let vars = match &method.way {
        SignIn::EnvVar { vars, .. } => vars.as_slice(),
        SignIn::Agent | SignIn::Terminal(_) => &[],
    };
    let secret = vars.iter().filter(|var| var.secret);
    secret.map(|var| var.name.as_str())
}

/// Returns all changes of an `agent/updateEnvironment` call after validation.
///
/// # Errors
/// `invalidParams`.
pub(super) fn changes(p: UpdateEnvironmentParams) -> Result<Variables, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(source: AgentSource) -> Specs {
        let spec = AgentSpec {
            source,
            ..AgentSpec::in_process("agent", "/work")
        };
        Specs::new(AgentDefinition::new("agent", spec))
    }

    fn variables(given: &[(&str, &str)]) -> Variables {
        let given = given.iter();
        given
            .map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())))
            .collect()
    }

    #[test]
    fn variables_are_set_in_every_specification() {
        let mut specs = specs(AgentSource::Client);
        let mut next = specs.current().clone();
        let update = variables(&[("MODE", "fast")]);
        assert!(!specs.has(&update));
        assert!(specs.set_variables(&update, Some(&mut next)));
        assert!(specs.has(&update) && next.env == update);
        assert!(!specs.set_variables(&update, None));
        specs.reset();
        assert!(specs.has(&update));
    }

    #[test]
    fn values_of_noted_variables_are_hidden() {
        let mut specs = specs(AgentSource::Client);
        specs.set_variables(&variables(&[("MODE", "fast"), ("CODE", "1234")]), None);
        specs.note_secrets(["CODE".to_owned()]);
        let shown = specs.shown(&specs.current().env, &[]);
        assert_eq!(shown.redacted, ["CODE"]);
        assert_eq!(
            shown.env,
            variables(&[("MODE", "fast"), ("CODE", REDACTED)])
        );
    }

    #[test]
    fn clients_redefine_their_own_agents_only() {
        let mut own = specs(AgentSource::Client);
        let other = AgentSpec::in_process("other", "/work");
        own.redefine(&other).unwrap();
        assert_eq!(own.definition().spec, other);
        let error = specs(AgentSource::Configuration)
            .redefine(&other)
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::DuplicateAgent);
    }
}
