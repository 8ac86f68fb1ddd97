//! Sign-in and sign-out: implements `agent/authenticate` and `agent/logout`.
//!
//! Keys are set in the agent's environment, so the agent is restarted before it is called to use them.

use super::AgentMachine;
use super::connection::Call;
use super::cx::AgentCx;
use super::environment::secrets;
use crate::core::client::{Reply, Token};
use crate::core::dialect::AgentCall;
use crate::core::dialects;
use crate::core::error::{Error, invalid, out_of_order};
use crate::core::event::{AgentInfo, CallId};
use crate::core::limits::Timeout;
use crate::proto::wire::{
    self, AuthVariable, AuthenticateParams, AuthenticateResult, Done, Variables,
};
use std::time::{Duration, Instant};

/// Open `agent/authenticate` and `agent/logout` calls.
#[derive(Debug, Default)]
pub(super) struct SignIn(Vec<SignInCall>);

/// An open `agent/authenticate` or `agent/logout` call.
#[derive(Debug)]
struct SignInCall {
    token: Token,
    /// Id of the sign-in method; `None` for a sign-out.
    method: Option<String>,
    /// Call to the agent; `None` until the agent process that has the keys is ready.
    call: Option<CallId>,
    /// Deadline of the agent's response.
    until: Option<Instant>,
}

impl SignIn {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.iter().filter_map(|signing| signing.until).min()
    }

    pub(super) fn postpone(&mut self, by: Duration) {
        for until in self.0.iter_mut().filter_map(|s| s.until.as_mut()) {
            *until += by;
        }
    }

    fn take(&mut self, is: impl Fn(&SignInCall) -> bool) -> Vec<SignInCall> {
        self.0.extract_if(.., |signing| is(signing)).collect()
    }
}

impl AgentMachine {
    /// Signs the user in by one of the agent's methods. `ahead` are the queued prompts; if the agent is
    /// restarted for its keys, the old process gets them.
    ///
    /// # Errors
    /// `invalidParams`, and `outOfOrder` if the agent is not ready.
    pub fn authenticate(
        &mut self,
        token: Token,
        p: AuthenticateParams,
        ahead: Vec<Token>,
        cx: &mut AgentCx<'_>,
    ) -> Result<(), Error> {
        let methods = &self.ready_info()?.auth_methods;
        let Some(method) = methods.iter().find(|method| method.id == p.method_id) else {
            let ids: Vec<&str> = methods.iter().map(|method| method.id.as_str()).collect();
            let known = match ids[..] {
                [] => {
                    "the agent has no sign-in methods; sign in with its own command line".to_owned()
                }
                _ => format!("use one of {}", ids.join(", ")),
            };
            let why = format!("method {:?} not found; {known}", p.method_id);
            return Err(invalid("methodId", &why));
        };
        match &method.way {
            wire::SignIn::EnvVar { vars, .. } => {
                self.check_keys(vars, &p.env, &cx.shared.settings.inherited)?;
                let secret: Vec<String> = secrets(method).map(str::to_owned).collect();
                let given = secret.into_iter().filter(|name| p.env.0.contains_key(name));
                self.secret_variables.extend(given);
                if self.set_keys(&p.env, ahead) {
                    self.sign_in.0.push(SignInCall {
                        token,
                        method: Some(p.method_id),
                        call: None,
                        until: None,
                    });
                    return Ok(());
                }
            }
            _ if !p.env.0.is_empty() => {
                let why = "only methods of type envVar accept variables; use agent/updateEnvironment instead";
                return Err(invalid("env", why));
            }
            wire::SignIn::Terminal(run) => {
                let run = Some(run.clone());
                let result = AuthenticateResult { done: false, run };
                cx.reply(token, Reply::Authenticate(result));
                return Ok(());
            }
            wire::SignIn::Agent => {}
        }
        self.send_sign_in(token, Some(p.method_id), cx);
        Ok(())
    }

    /// Signs the user out.
    ///
    /// # Errors
    /// `outOfOrder` if the agent is not ready or cannot sign out.
    pub fn logout(&mut self, token: Token, cx: &mut AgentCx<'_>) -> Result<(), Error> {
        if !self.ready_info()?.capabilities.logout {
            let how = dialects::traits(self.spec.protocol).logout_hint;
            let message = format!("the agent does not support logout; {how}");
            return Err(out_of_order(&message));
        }
        self.send_sign_in(token, None, cx);
        Ok(())
    }

    fn ready_info(&self) -> Result<&AgentInfo, Error> {
        let info = self.connection().and_then(|connection| connection.ready());
        info.ok_or_else(|| {
            out_of_order("the agent is not ready; call agent/connect and wait for its response")
        })
    }

    /// Checks that these variables belong to the method, and that every required variable is given or already
    /// in the agent's environment.
    fn check_keys(
        &self,
        vars: &[AuthVariable],
        given: &Variables,
        inherited: &Variables,
    ) -> Result<(), Error> {
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
            let why = format!("{other:?} is not a variable of the method; use {all}");
            return Err(invalid("env", &why));
        }
        let has = |name: &str| match given.0.get(name) {
            Some(value) => value.is_some(),
            None => self.variable(name, inherited).is_some(),
        };
        let missing = |var: &&AuthVariable| !var.optional && !has(&var.name);
        let missing = names(&mut vars.iter().filter(missing));
        if missing.is_empty() {
            return Ok(());
        }
        Err(invalid("env", &format!("the method requires {missing}")))
    }

    /// Sets keys in the agent's environment; returns `true` if the agent has to be restarted for them.
    fn set_keys(&mut self, keys: &Variables, ahead: Vec<Token>) -> bool {
        let is_stale = self.is_stale(keys);
        self.set_variables(keys);
        let renews = is_stale || self.is_renewing();
        if renews {
            self.begin_renewal(is_stale, ahead);
        }
        renews
    }

    fn send_sign_in(&mut self, token: Token, method: Option<String>, cx: &mut AgentCx<'_>) {
        let call = cx.shared.ids.call();
        let until = self.until(Timeout::Authenticate, cx);
        let Some(connection) = self.connection_mut() else {
            return;
        };
        let is_asked = if let Some(method) = &method {
            connection.tell(AgentCall::Authenticate { call, method })
        } else {
            connection.tell(AgentCall::Logout(call))
        };
        if is_asked {
            connection.calls.insert(call, Call::Sign);
        }
        self.sign_in.0.push(SignInCall {
            token,
            method,
            call: Some(call),
            until,
        });
        if !is_asked {
            self.sign_in_answered(call, &Ok(()), cx);
        }
    }

    /// Sends the waiting calls to the agent process that has the keys, before its sessions are restored.
    pub(super) fn sign_in_pending(&mut self, cx: &mut AgentCx<'_>) {
        for signing in self.sign_in.take(|signing| signing.call.is_none()) {
            self.send_sign_in(signing.token, signing.method, cx);
        }
    }

    /// Handles the agent's response to a sign-in or sign-out.
    pub fn sign_in_answered(
        &mut self,
        call: CallId,
        answer: &Result<(), Error>,
        cx: &mut AgentCx<'_>,
    ) {
        for signing in self.sign_in.take(|signing| signing.call == Some(call)) {
            let done = || match signing.method {
                Some(_) => Reply::Authenticate(AuthenticateResult {
                    done: true,
                    run: None,
                }),
                None => Reply::Done(Done {}),
            };
            let answer = answer.clone().map(|()| done());
            cx.clients.reply(signing.token, answer);
        }
    }

    /// Fails the calls whose agent has ended.
    pub(super) fn fail_sign_ins(&mut self, error: &Error, cx: &mut AgentCx<'_>) {
        let failed = self.sign_in.take(|signing| signing.call.is_some());
        cx.fail(failed.into_iter().map(|signing| signing.token), error);
    }

    /// Fails the calls that wait for an agent process with the keys, since there will be none.
    pub(super) fn fail_pending_sign_ins(&mut self, error: &Error, cx: &mut AgentCx<'_>) {
        let failed = self.sign_in.take(|signing| signing.call.is_none());
        cx.fail(failed.into_iter().map(|signing| signing.token), error);
    }

    /// Extends the deadlines of sign-ins while the user answers an elicitation.
    pub fn wait_for_user(&mut self, by: Duration) {
        self.sign_in.postpone(by);
    }

    /// Fails the calls that the agent has not answered in time.
    pub(super) fn time_out_sign_ins(&mut self, cx: &mut AgentCx<'_>) {
        let now = cx.now;
        let due = |signing: &SignInCall| signing.until.is_some_and(|at| at <= now);
        for signing in self.sign_in.take(due) {
            if let (Some(call), Some(connection)) = (signing.call, self.connection_mut()) {
                connection.calls.remove(&call);
            }
            let error = self.sign_in_timeout(signing.method.is_some(), cx);
            cx.clients.reply(signing.token, Err(error));
        }
    }
}
