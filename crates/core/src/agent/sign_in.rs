//! Sign-in and sign-out: the open `agent/authenticate` and `agent/logout` calls, and the check of their parameters.
//!
//! Owns the open calls: which wait for an agent process that has their keys, which wait for the agent's response, and until when. It
//! may not call the agent, change its environment or answer clients: it says which calls to send, and with what to answer.
//! Keys are set in the agent's environment, so the agent is restarted before it is called to use them.

use super::specs::secrets;
use crate::client::{Reply, Token};
use acpipe_model::error::{Error, invalid, out_of_order};
use acpipe_model::event::{AgentInfo, CallId};
use acpipe_protocol::wire::{
    AuthVariable, AuthenticateParams, AuthenticateResult, Done, SignIn, Variables,
};
use std::time::{Duration, Instant};

/// Open `agent/authenticate` and `agent/logout` calls.
#[derive(Debug, Default)]
pub(super) struct SignIns(Vec<SignInCall>);

/// Open `agent/authenticate` or `agent/logout` call.
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

/// Call that the agent has not answered in time.
pub(super) struct OverdueSignIn {
    pub(super) token: Token,
    pub(super) call: Option<CallId>,
    /// `true` for a sign-in, `false` for a sign-out.
    pub(super) signs_in: bool,
}

/// Next step of an `agent/authenticate` call.
#[derive(Debug)]
pub(super) enum SignInStep {
    /// The variables have to be set in the agent's environment, then the agent is called. These of them are secret.
    SetKeys(Vec<String>),
    Call,
    /// The call is answered: the user signs in at a terminal.
    Answer(AuthenticateResult),
}

impl SignIns {
    /// Adds a sign-in that waits for an agent process with its keys.
    pub(super) fn wait_for_process(&mut self, token: Token, method: String) {
        self.0.push(SignInCall {
            token,
            method: Some(method),
            call: None,
            until: None,
        });
    }

    pub(super) fn wait_for_response(
        &mut self,
        token: Token,
        method: Option<String>,
        call: CallId,
        until: Option<Instant>,
    ) {
        self.0.push(SignInCall {
            token,
            method,
            call: Some(call),
            until,
        });
    }

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

    /// Removes the calls that wait for a process, and returns them with their methods.
    pub(super) fn take_waiting(&mut self) -> Vec<(Token, Option<String>)> {
        let waiting = self.take(|signing| signing.call.is_none());
        waiting
            .map(|signing| (signing.token, signing.method))
            .collect()
    }

    pub(super) fn take_sent(&mut self) -> Vec<Token> {
        let sent = self.take(|signing| signing.call.is_some());
        sent.map(|signing| signing.token).collect()
    }

    pub(super) fn answered(
        &mut self,
        call: CallId,
        answer: &Result<(), Error>,
    ) -> Vec<(Token, Result<Reply, Error>)> {
        let answered = self.take(|signing| signing.call == Some(call));
        let answers = answered.map(|signing| {
            let done = match signing.method {
                Some(_) => Reply::Authenticate(AuthenticateResult {
                    done: true,
                    run: None,
                }),
                None => Reply::Done(Done {}),
            };
            (signing.token, answer.clone().map(|()| done))
        });
        answers.collect()
    }

    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<OverdueSignIn> {
        let due = self.take(|signing| signing.until.is_some_and(|at| at <= now));
        let overdue = due.map(|signing| OverdueSignIn {
            token: signing.token,
            call: signing.call,
            signs_in: signing.method.is_some(),
        });
        overdue.collect()
    }

    fn take(&mut self, is: impl Fn(&SignInCall) -> bool) -> impl Iterator<Item = SignInCall> {
        self.0.extract_if(.., move |signing| is(signing))
    }
}

/// Returns the properties of an agent that can sign users in and out.
///
/// # Errors
/// `outOfOrder` if the agent is not ready.
pub(super) fn ready_info(ready: Option<&AgentInfo>) -> Result<&AgentInfo, Error> {
    ready.ok_or_else(|| {
        out_of_order("the agent is not ready; call agent/connect and wait for its response")
    })
}

/// Checks a sign-in and returns its next step. `has`: whether the agent's environment has a variable.
///
/// # Errors
/// `invalidParams`.
pub(super) fn step(
    info: &AgentInfo,
    p: &AuthenticateParams,
    has: impl Fn(&str) -> bool,
) -> Result<SignInStep, Error> {
    let methods = &info.auth_methods;
    let Some(method) = methods.iter().find(|method| method.id == p.method_id) else {
        let ids: Vec<&str> = methods.iter().map(|method| method.id.as_str()).collect();
        let known = match ids[..] {
            [] => "the agent has no sign-in methods; sign in with its own command line".to_owned(),
            _ => format!("use one of {}", ids.join(", ")),
        };
        let why = format!("method {:?} not found; {known}", p.method_id);
        return Err(invalid("methodId", &why));
    };
    match &method.way {
        SignIn::EnvVar { vars, .. } => {
            check_keys(vars, &p.env, has)?;
            let secret = secrets(method).filter(|name| p.env.0.contains_key(*name));
            Ok(SignInStep::SetKeys(secret.map(str::to_owned).collect()))
        }
        _ if !p.env.0.is_empty() => {
            let why =
                "only methods of type envVar accept variables; use agent/updateEnvironment instead";
            Err(invalid("env", why))
        }
        SignIn::Terminal(run) => Ok(SignInStep::Answer(AuthenticateResult {
            done: false,
            run: Some(run.clone()),
        })),
        SignIn::Agent => Ok(SignInStep::Call),
    }
}

/// Checks that these variables belong to the method, and that every required variable is given or already
/// in the agent's environment.
fn check_keys(
    vars: &[AuthVariable],
    given: &Variables,
    has: impl Fn(&str) -> bool,
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
        None => has(name),
    };
    let missing = |var: &&AuthVariable| !var.optional && !has(&var.name);
    let missing = names(&mut vars.iter().filter(missing));
    if missing.is_empty() {
        return Ok(());
    }
    Err(invalid("env", &format!("the method requires {missing}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CallId = CallId(7);

    #[test]
    fn a_call_waits_for_a_process_then_for_the_response() {
        let (mut calls, now) = (SignIns::default(), Instant::now());
        let token = Token::first(1);
        calls.wait_for_process(token, "key".to_owned());
        assert_eq!(calls.deadline(), None);
        assert!(calls.take_sent().is_empty());
        assert_eq!(calls.take_waiting(), [(token, Some("key".to_owned()))]);
        calls.wait_for_response(token, Some("key".to_owned()), CALL, Some(now));
        assert!(calls.take_waiting().is_empty());
        assert!(calls.answered(CallId(8), &Ok(())).is_empty());
        let answers = calls.answered(CALL, &Ok(()));
        assert!(matches!(
            answers[..],
            [(answered, Ok(Reply::Authenticate(AuthenticateResult { done: true, .. })))] if answered == token
        ));
        assert!(calls.is_empty());
    }

    #[test]
    fn a_response_is_due_later_while_the_user_is_asked() {
        let (mut calls, now) = (SignIns::default(), Instant::now());
        calls.wait_for_response(Token::first(1), None, CALL, Some(now));
        calls.postpone(Duration::from_secs(1));
        assert!(calls.take_overdue(now).is_empty());
        let overdue = calls.take_overdue(now + Duration::from_secs(1));
        assert!(matches!(
            overdue[..],
            [OverdueSignIn {
                call: Some(CALL),
                signs_in: false,
                ..
            }]
        ));
    }
}
