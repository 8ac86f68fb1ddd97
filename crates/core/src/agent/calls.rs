//! Calls of clients to an agent's machine, answers of the agent to them, and elicitations that belong to no session.
//!
//! Each method passes values between the parts: a change of the environment to the renewal, a sign-in to the environment and to
//! the connection, a decision about an elicitation to the agent. None of them changes the state of the connection.

use super::connection::{Call, Connection};
use super::cx::AgentCx;
use super::questions::{AgentQuestions, DecidedQuestion};
use super::sign_in::{self, SignInStep};
use super::specs::{self, Specs};
use super::{AgentMachine, Renewal, timeouts};
use crate::client::{Reply, Token};
use crate::effect::{AgentId, Effect, Measure};
use acpipe_dialects as dialects;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::dialect::{AgentAnswer, AgentCall, Child};
use acpipe_model::error::{Error, ErrorKind, out_of_order};
use acpipe_model::event::{CallId, Elicitation};
use acpipe_model::limits::Timeout;
use acpipe_model::request_key::RequestKey;
use acpipe_policy as policy;
use acpipe_policy::Subject;
use acpipe_protocol::wire::{
    AuthenticateParams, UpdateEnvironmentParams, UpdateEnvironmentResult, Variables, WhenBusy,
};
use std::time::Duration;

impl AgentMachine {
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
        let update = specs::changes(p)?;
        let lacks_change = lacks(self.connection(), &self.specs, &update);
        let renews = lacks_change || self.renewal.is_some();
        if when_busy == WhenBusy::Reject && is_busy && renews {
            let message = "a session is in a turn; update the environment after the turn, or with whenBusy \"wait\"";
            return Err(Error::new(ErrorKind::Busy, message));
        }
        let changed = self.set_variables(&update);
        if renews {
            Renewal::begin(&mut self.renewal, lacks_change, ahead).wait(token, changed);
            return Ok(());
        }
        let result = UpdateEnvironmentResult {
            changed,
            restarted: false,
            sessions: Vec::new(),
        };
        cx.reply(token, Reply::UpdateEnvironment(result));
        Ok(())
    }

    /// Sets variables for the agent and all its later restarts; returns `true` if any value changes.
    pub(super) fn set_variables(&mut self, update: &Variables) -> bool {
        let next = self.state.connection_mut();
        let next = next.and_then(Connection::next_spec_mut);
        self.specs.set_variables(update, next)
    }

    /// Answers every waiting call once the new process is ready and none of its sessions is being opened.
    pub fn answer_renewal(&mut self, is_opening: impl Fn(&str) -> bool, cx: &mut AgentCx<'_>) {
        let is_ready = self.connection().is_some_and(|c| c.ready().is_some());
        let done = |renewal: &mut Renewal| !renewal.sessions().any(|id| is_opening(id));
        if is_ready && let Some(renewal) = self.renewal.take_if(done) {
            for (token, result) in renewal.results() {
                cx.reply(token, Reply::UpdateEnvironment(result));
            }
        }
    }

    /// Fails every call that waits for a new process, since there will be none. The environment stays changed.
    pub(super) fn renewal_failed(&mut self, error: &Error, cx: &mut AgentCx<'_>) {
        let sign_ins = self.sign_ins.take_waiting();
        cx.fail(sign_ins.into_iter().map(|(token, _)| token), error);
        if let Some(renewal) = self.renewal.take() {
            cx.fail(renewal.waiters(), error);
        }
    }

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
        let info = sign_in::ready_info(self.connection().and_then(Connection::ready))?;
        let inherited = &cx.shared.settings.inherited;
        let has = |name: &str| self.specs.variable(name, inherited).is_some();
        match sign_in::step(info, &p, has)? {
            SignInStep::SetKeys(secret) => {
                self.specs.note_secrets(secret);
                let lacks_keys = lacks(self.connection(), &self.specs, &p.env);
                self.set_variables(&p.env);
                if lacks_keys || self.renewal().is_some_and(Renewal::is_pending) {
                    Renewal::begin(&mut self.renewal, lacks_keys, ahead);
                    self.sign_ins.wait_for_process(token, p.method_id);
                } else {
                    self.send_sign_in(token, Some(p.method_id), cx);
                }
            }
            SignInStep::Call => self.send_sign_in(token, Some(p.method_id), cx),
            SignInStep::Answer(result) => cx.reply(token, Reply::Authenticate(result)),
        }
        Ok(())
    }

    /// Signs the user out.
    ///
    /// # Errors
    /// `outOfOrder` if the agent is not ready or cannot sign out.
    pub fn logout(&mut self, token: Token, cx: &mut AgentCx<'_>) -> Result<(), Error> {
        let info = sign_in::ready_info(self.connection().and_then(Connection::ready))?;
        if !info.capabilities.logout {
            let how = dialects::traits(self.spec().protocol).logout_hint;
            let message = format!("the agent does not support logout; {how}");
            return Err(out_of_order(&message));
        }
        self.send_sign_in(token, None, cx);
        Ok(())
    }

    /// Calls the agent to sign the user in, or without a method to sign the user out.
    pub(super) fn send_sign_in(
        &mut self,
        token: Token,
        method: Option<String>,
        cx: &mut AgentCx<'_>,
    ) {
        let call = cx.shared.ids.call();
        let limits = self.limits(&cx.shared.settings);
        let until = limits.until(Timeout::Authenticate, cx.now);
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
        self.sign_ins.wait_for_response(token, method, call, until);
        if !is_asked {
            self.sign_in_answered(call, &Ok(()), cx);
        }
    }

    pub fn sign_in_answered(
        &mut self,
        call: CallId,
        answer: &Result<(), Error>,
        cx: &mut AgentCx<'_>,
    ) {
        for (token, answer) in self.sign_ins.answered(call, answer) {
            cx.clients.reply(token, answer);
        }
    }

    /// Extends the deadlines of sign-ins while the user answers an elicitation.
    pub fn wait_for_user(&mut self, by: Duration) {
        self.sign_ins.postpone(by);
    }

    /// Measures the agent's processes, then answers with its status.
    pub fn request_status(&mut self, token: Token, cx: &mut AgentCx<'_>) {
        let running = self.connection().map(Connection::running);
        let running = running.unwrap_or_default();
        if running.is_empty() {
            self.answer_status([token], cx);
            return;
        }
        let unmeasured = self.status_requests.push(token, running).into_iter();
        cx.effects.extend(unmeasured.map(Effect::Measure));
    }

    pub fn measured(&mut self, id: AgentId, child: Child, measure: Measure, cx: &mut AgentCx<'_>) {
        let process = self.connection_mut().and_then(|c| c.process_mut(child));
        if let Some(process) = process {
            process.measure = Some(measure);
        }
        let settled = self.status_requests.settle(id);
        self.answer_status(settled, cx);
    }

    pub(super) fn answer_status(
        &self,
        tokens: impl IntoIterator<Item = Token>,
        cx: &mut AgentCx<'_>,
    ) {
        for token in tokens {
            let status = self.status(&cx.shared.settings.secrets, cx.now);
            cx.reply(token, Reply::Status(Box::new(status)));
        }
    }

    /// Fails a call that has waited for the agent to start until the call's own limit. The agent starts on.
    pub fn end_call(&mut self, token: Token, limit: Duration, cx: &mut AgentCx<'_>) {
        let secrets = &cx.shared.settings.secrets;
        let error = timeouts::start_timeout(self.connection(), self.spec(), limit, secrets, cx.now);
        let forget = |connection: &mut Connection| connection.forget_waiter(token);
        if let Some(error) = error
            && self.connection_mut().is_some_and(forget)
        {
            cx.fail([token], &error);
        }
    }

    /// Sends an elicitation that belongs to no session to the clients. Returns `false` if it was declined or
    /// cancelled at once. `denied_in_turn` is the rule by which the terms of a running turn decline it.
    pub fn ask_without_session(
        &mut self,
        asked: Elicitation<'_>,
        denied_in_turn: Option<String>,
        cx: &mut AgentCx<'_>,
    ) -> bool {
        let Some(connection) = self.connection_mut() else {
            return false;
        };
        if connection.is_stopping() {
            let cancelled = Decision::cancelled(DecisionSource::Cancel);
            connection.answer(&asked.key, AgentAnswer::Elicitation(&cancelled));
            return false;
        }
        let number = connection.number;
        // Questions of a sign-in are part of what the client itself requested.
        let signs_in = match &asked.call {
            Some(call) => matches!(connection.calls.get(call), Some(Call::Sign)),
            None => connection
                .calls
                .values()
                .any(|call| matches!(call, Call::Sign)),
        };
        let definition = self.specs.definition();
        let subject = Subject::of_question(&asked.elicitation.message, "");
        let own = cx.shared.settings.policy_of(definition);
        let verdict = own.judge_in(&subject, &definition.spec.options);
        let is_denied = verdict.effect == policy::Effect::Deny;
        let denied_by = is_denied.then_some(verdict.by).or(denied_in_turn);
        let judged = if signs_in {
            (None, None)
        } else {
            (Some(subject), denied_by)
        };
        let limit = self.limits(&cx.shared.settings).of(Timeout::Answer);
        let declined = self.questions.ask(asked, number, limit, judged, cx);
        let is_open = declined.is_none();
        self.answer_questions(declined);
        is_open
    }

    /// The open elicitations that name no session.
    pub fn questions(&self) -> &AgentQuestions {
        &self.questions
    }

    /// Has open elicitations decided, and answers the agent.
    pub fn decide_questions<D: IntoIterator<Item = DecidedQuestion>>(
        &mut self,
        decide: impl FnOnce(&mut AgentQuestions) -> D,
    ) {
        let decided = decide(&mut self.questions);
        self.answer_questions(decided);
    }

    /// Handles an elicitation that the agent has withdrawn, or whose id it uses for another request; returns `false` if
    /// this machine does not have it.
    pub fn withdrawn(&mut self, key: &RequestKey, cx: &mut AgentCx<'_>) -> bool {
        let connection = self.connection().map_or(0, |connection| connection.number);
        let cancelled = self.questions.withdrawn(connection, key, cx);
        let was_open = cancelled.is_some();
        self.answer_questions(cancelled);
        was_open
    }

    /// Answers elicitations of the current connection; a later one may use the same keys.
    pub(super) fn answer_questions(&mut self, decided: impl IntoIterator<Item = DecidedQuestion>) {
        let Some(connection) = self.connection_mut() else {
            return;
        };
        for question in decided {
            if question.connection == connection.number {
                let decision = AgentAnswer::Elicitation(&question.decision);
                connection.answer(&question.key, decision);
            }
        }
    }
}

fn lacks(connection: Option<&Connection>, specs: &Specs, variables: &Variables) -> bool {
    connection.is_some_and(|c| !c.is_stopping()) && !specs.has(variables)
}
