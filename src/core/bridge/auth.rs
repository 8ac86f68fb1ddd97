//! Signing in to the agent, and out.
//!
//! Keys are set in its environment, so that it is started again before it is asked to take them.

use super::commands::{invalid, out_of_order};
use super::environment::secrets;
use super::{Bridge, Call, Phase};
use crate::core::client::{Outlet, Reply, Token};
use crate::core::error::Error;
use crate::core::event::{AgentInfo, CallId};
use crate::core::limits::Wait;
use crate::proto::wire::{
    AuthVariable, AuthenticateParams, AuthenticateResult, Done, Protocol, SignIn, Variables,
};
use std::time::Instant;

/// A client that waits for the agent to sign in, or out.
#[derive(Debug)]
pub(super) struct Signing {
    token: Token,
    /// The id of the method; `None` to sign out.
    method: Option<String>,
    /// `None` until the agent is there that has the keys.
    call: Option<CallId>,
    /// When it is not waited for any longer.
    pub until: Option<Instant>,
}

impl Bridge {
    pub(super) fn authenticate(
        &mut self,
        token: Token,
        p: AuthenticateParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let methods = &self.ready_agent()?.auth_methods;
        let Some(method) = methods.iter().find(|method| method.id == p.method_id) else {
            let ids: Vec<&str> = methods.iter().map(|method| method.id.as_str()).collect();
            let known = match ids[..] {
                [] => "the agent offers none: sign in with its own command line".to_owned(),
                _ => format!("take one of {}", ids.join(", ")),
            };
            let why = format!("there is no method {:?}: {known}", p.method_id);
            return Err(invalid("methodId", &why));
        };
        match &method.way {
            SignIn::EnvVar { vars, .. } => {
                self.check_keys(vars, &p.env)?;
                let secret: Vec<String> = secrets(method).map(str::to_owned).collect();
                let given = secret.into_iter().filter(|name| p.env.0.contains_key(name));
                self.secret_variables.extend(given);
                if self.set_keys(&p.env) {
                    self.signing.push(Signing {
                        token,
                        method: Some(p.method_id),
                        call: None,
                        until: None,
                    });
                    return Ok(());
                }
            }
            _ if !p.env.0.is_empty() => {
                let why = "only methods of type envVar take variables: see agent/updateEnvironment";
                return Err(invalid("env", why));
            }
            SignIn::Terminal(run) => {
                let run = Some(run.clone());
                let result = AuthenticateResult { done: false, run };
                outlet.reply(token, Ok(Reply::Authenticate(result)));
                return Ok(());
            }
            SignIn::Agent => {}
        }
        self.ask_to_sign(token, Some(p.method_id), now, outlet);
        Ok(())
    }

    pub(super) fn logout(
        &mut self,
        token: Token,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        if !self.ready_agent()?.capabilities.logout {
            let how = match self.spec_in_use().protocol {
                Protocol::Claude => "run `claude auth logout` in a terminal",
                Protocol::Acp => "sign out with its own command line",
            };
            let message = format!("the agent offers no logout: {how}");
            return Err(out_of_order(&message));
        }
        self.ask_to_sign(token, None, now, outlet);
        Ok(())
    }

    fn ready_agent(&self) -> Result<&AgentInfo, Error> {
        match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => Ok(info),
            _ => Err(out_of_order(
                "no agent is ready: call agent/connect, and wait for its answer",
            )),
        }
    }

    /// Whether these variables are those of a method, and none is missing that the agent does not have already.
    fn check_keys(&self, vars: &[AuthVariable], given: &Variables) -> Result<(), Error> {
        if let Some(why) = given.fault() {
            return Err(invalid("env", &why));
        }
        let known = |name: &&String| vars.iter().any(|var| var.name == **name);
        let names = |vars: &mut dyn Iterator<Item = &AuthVariable>| -> String {
            let names: Vec<&str> = vars.map(|var| var.name.as_str()).collect();
            names.join(", ")
        };
        if let Some(other) = given.0.keys().find(|name| !known(name)) {
            let all = names(&mut vars.iter());
            let why = format!("{other:?} is none of the method's variables: {all}");
            return Err(invalid("env", &why));
        }
        let has = |name: &str| match given.0.get(name) {
            Some(value) => value.is_some(),
            None => self.variable(name).is_some(),
        };
        let missing = |var: &&AuthVariable| !var.optional && !has(&var.name);
        let missing = names(&mut vars.iter().filter(missing));
        if missing.is_empty() {
            return Ok(());
        }
        Err(invalid("env", &format!("the method needs {missing}")))
    }

    /// Sets keys in the agent's environment; true where it has to be started again for them.
    fn set_keys(&mut self, keys: &Variables) -> bool {
        let stale = self.is_stale(keys);
        self.lay_over(keys);
        let renews = stale || self.is_renewing();
        if renews {
            self.begin_renewal(stale);
        }
        renews
    }

    fn ask_to_sign(
        &mut self,
        token: Token,
        method: Option<String>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let call = self.next_call(Call::Sign);
        let Some(agent) = &mut self.agent else { return };
        let asked = if let Some(method) = &method {
            agent.dialect.authenticate(call, method, &mut agent.out)
        } else {
            agent.dialect.logout(call, &mut agent.out);
            true
        };
        self.signing.push(Signing {
            token,
            method,
            call: Some(call),
            until: self.settings.limits.until(Wait::Authenticate, now),
        });
        if !asked {
            self.calls.remove(&call);
            self.signed(call, &Ok(()), outlet);
        }
    }

    /// The agent is there that has the keys: it is asked before its sessions are brought back.
    pub(super) fn sign_in_anew(&mut self, now: Instant, outlet: &mut impl Outlet) {
        for waiting in self.take_signing(|signing| signing.call.is_none()) {
            self.ask_to_sign(waiting.token, waiting.method, now, outlet);
        }
    }

    /// The agent answered.
    pub(super) fn signed(
        &mut self,
        call: CallId,
        answer: &Result<(), Error>,
        outlet: &mut impl Outlet,
    ) {
        for signing in self.take_signing(|signing| signing.call == Some(call)) {
            let done = || match signing.method {
                Some(_) => Reply::Authenticate(AuthenticateResult {
                    done: true,
                    run: None,
                }),
                None => Reply::Done(Done {}),
            };
            let answer = answer.clone().map(|()| done());
            outlet.reply(signing.token, answer);
        }
    }

    /// The agent that was asked is no more.
    pub(super) fn signing_failed(&mut self, error: &Error, outlet: &mut impl Outlet) {
        for signing in self.take_signing(|signing| signing.call.is_some()) {
            outlet.reply(signing.token, Err(error.clone()));
        }
    }

    /// There will be no agent that has the keys.
    pub(super) fn keys_are_lost(&mut self, error: &Error, outlet: &mut impl Outlet) {
        for signing in self.take_signing(|signing| signing.call.is_none()) {
            outlet.reply(signing.token, Err(error.clone()));
        }
    }

    /// Gives up agents that do not answer.
    pub(super) fn tick_signing(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let due = |signing: &Signing| signing.until.is_some_and(|at| at <= now);
        for signing in self.take_signing(due) {
            if let Some(call) = signing.call {
                self.calls.remove(&call);
            }
            let error = self.signed_too_late(signing.method.is_some(), now);
            outlet.reply(signing.token, Err(error));
        }
    }

    fn take_signing(&mut self, is: impl Fn(&Signing) -> bool) -> Vec<Signing> {
        self.signing.extract_if(.., |signing| is(signing)).collect()
    }
}
