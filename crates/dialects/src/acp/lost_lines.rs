//! Lines of an agent that are given up: the request or response in them is answered or fails, as far as it can be
//! recognised.

use super::Acp;
use super::decode::our_id;
use super::requests::refuse;
use acpipe_json::frame::sniff;
use acpipe_json::rpc::code;
use acpipe_model::dialect::Outgoing;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, LostCall, Update};
use acpipe_model::line_repair::{LostLine, LostReason};
use serde_json::value::RawValue;

impl Acp {
    pub(super) fn lose(
        &mut self,
        line: &LostLine<'_>,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Outgoing,
    ) {
        line.count(&mut self.faults);
        let sniffed = sniff(line.head, line.tail);
        self.stray.report_lost(line, &sniffed, &self.faults);
        let member = |key: &str| {
            let mut texts = line.values_of(key).filter_map(|value| {
                let value: Option<String> = serde_json::from_str(value).ok();
                value
            });
            texts.next()
        };
        let update = member("sessionUpdate");
        if let Some("tool_call" | "tool_call_update") = update.as_deref() {
            let begins = update.as_deref() == Some("tool_call");
            events.push(AgentEvent::CallLost(Box::new(LostCall {
                session: member("sessionId"),
                updates: member("toolCallId").filter(|_| !begins),
                fault: line.fault(),
            })));
        }
        let Some(id) = sniffed.id.and_then(|id| RawValue::from_string(id).ok()) else {
            return;
        };
        let has = |key: &str| line.contains(key);
        let has_outcome = has("\"result\"") || has("\"error\"");
        let is_awaited = our_id(&id).is_some_and(|id| self.sent.get(id).is_some());
        // A line that is cut before its method is that of a request, unless its id is awaited.
        let is_request =
            sniffed.method.is_some() || !is_awaited && !has_outcome && has("\"jsonrpc\"");
        let fault = line.fault();
        if is_request {
            let code = match line.reason {
                LostReason::NotUtf8 | LostReason::NotJson(_) => code::PARSE_ERROR,
                LostReason::TooLong | LostReason::NotAMessage => code::INVALID_REQUEST,
            };
            let message = format!("cannot read the request: the line {fault}");
            refuse(&id, code, &message, out);
        } else if has_outcome || has("\"jsonrpc\"") {
            // Any other text may have members of these names.
            self.fail_answered(&id, line.head, &fault, events);
        }
    }

    /// Fails the pending request that a response belongs to.
    fn fail_answered(
        &mut self,
        id: &RawValue,
        raw: &[u8],
        fault: &str,
        events: &mut Vec<AgentEvent<'_>>,
    ) {
        let Some(pending) = our_id(id).and_then(|id| self.sent.take(id)) else {
            return;
        };
        let method = pending.method();
        let message = format!("cannot read the agent's response to {method}: the line {fault}");
        let raw = String::from_utf8_lossy(raw).into_owned();
        let error = Error::new(ErrorKind::Malformed, message).with("raw", raw);
        events.extend(pending.failed(error));
    }
}

/// Returns `true` for an event that only a turn has. The state of a session may change at any time.
pub(super) fn is_output(event: &AgentEvent<'_>) -> bool {
    !matches!(
        event,
        AgentEvent::Update {
            update: Update::Session(_) | Update::Context { .. },
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::dialect::{AgentAnswer, AgentCall, AgentLine, Child, Dialect as _};
    use acpipe_model::event::CallId;
    use acpipe_model::host::HostAnswer;
    use acpipe_model::request_key::RequestKey;

    const ERROR: &str = r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#;

    /// Returns the calls that the error fails after `act`.
    fn failed(act: impl FnOnce(&mut Acp, &mut Outgoing)) -> Vec<u64> {
        let (mut acp, mut out, mut events) = (Acp::default(), Outgoing::default(), Vec::new());
        act(&mut acp, &mut out);
        acp.read(
            Child::MAIN,
            AgentLine::Whole(ERROR.as_bytes()),
            &mut events,
            &mut out,
        )
        .unwrap();
        let failed = events.into_iter().map(|event| match event {
            AgentEvent::Failed { call, .. } => call.0,
            other => panic!("{other:?}"),
        });
        failed.collect()
    }

    fn prompt(acp: &mut Acp, call: u64, out: &mut Outgoing) {
        let prompt = AgentCall::Prompt {
            call: CallId(call),
            session: "s",
            parts: &[],
            degrade: false,
        };
        acp.call(prompt, out).unwrap();
    }

    #[test]
    fn error_without_an_id_fails_a_request_only_if_it_means_no_other_message() {
        assert_eq!(failed(|acp, out| prompt(acp, 1, out)), [1]);
        assert!(failed(|_, _| ()).is_empty());
        let two = |acp: &mut Acp, out: &mut Outgoing| {
            prompt(acp, 1, out);
            prompt(acp, 2, out);
        };
        assert!(failed(two).is_empty());
        let cancelled = |acp: &mut Acp, out: &mut Outgoing| {
            prompt(acp, 1, out);
            acp.call(AgentCall::Cancel("s"), out).unwrap();
        };
        assert!(failed(cancelled).is_empty());
        let answered = |acp: &mut Acp, out: &mut Outgoing| {
            prompt(acp, 1, out);
            let id = RawValue::from_string("7".to_owned()).unwrap();
            acp.answer(
                &RequestKey::new(Child::MAIN, &id),
                AgentAnswer::Host(Ok(&HostAnswer::Done)),
                out,
            );
        };
        assert!(failed(answered).is_empty());
        let update = |update: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
            )
        };
        for (sent, fails) in [
            (
                update(r#"{"sessionUpdate":"available_commands_update","availableCommands":[]}"#),
                true,
            ),
            (
                update(
                    r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}"#,
                ),
                false,
            ),
            (
                update(r#"{"sessionUpdate":"tool_call","toolCallId":"a"}"#),
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"novel"}"#.to_owned(),
                false,
            ),
        ] {
            let heard = |acp: &mut Acp, out: &mut Outgoing| {
                prompt(acp, 1, out);
                acp.read(
                    Child::MAIN,
                    AgentLine::Whole(sent.as_bytes()),
                    &mut Vec::new(),
                    out,
                )
                .unwrap();
            };
            assert_eq!(!failed(heard).is_empty(), fails, "{sent}");
        }
    }
}
