//! Requests of an agent: permissions, questions to its user, files and terminals.

use super::elicitation::elicitation;
use super::user_question::UserQuestion;
use super::{Acp, hosting, results, updates};
use acpipe_json as json;
use acpipe_json::rpc::{ErrorObject, Message};
use acpipe_json::{SMALL, rpc};
use acpipe_model::dialect::{Child, Outgoing, TextMeaning};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, ForwardReceived, NO_CALL_ID, Permission};
use acpipe_model::request_key::RequestKey;
use acpipe_protocol::acp::RequestPermissionParams;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tracing::debug;

/// Maximum length of a request id in bytes of JSON. acpipe keeps the id until the response; ordinary ids are
/// numbers or UUIDs.
const LONGEST_ID: usize = 4096;

impl Acp {
    /// Converts a request of the agent to an event, or rejects it if acpipe does not support the method.
    pub(super) fn request<'a>(
        &mut self,
        id: &'a RawValue,
        method: &str,
        params: Option<&'a RawValue>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) {
        if id.get().len() > LONGEST_ID {
            let why = "the id is longer than 4096 bytes";
            refuse(id, rpc::code::INVALID_REQUEST, why, out);
            return;
        }
        // A permission request is exempt: its members are checked one by one, since the policy must answer
        // it.
        let is_permission = method == "session/request_permission";
        if !is_permission && params.is_some_and(|params| json::is_dense(params.get())) {
            let why = "the parameters have too many values for their size";
            refuse(id, rpc::code::INVALID_PARAMS, why, out);
            return;
        }
        if let Some(wanted) = hosting::wanted(self.offer.host, id, method, params) {
            match wanted {
                Ok(wanted) => events.push(AgentEvent::Wanted(Box::new(wanted))),
                Err(why) => refuse(id, rpc::code::INVALID_PARAMS, &why, out),
            }
            return;
        }
        let event = match method {
            "session/request_permission" => self
                .permission(id, params)
                .map(|question| AgentEvent::Permission(Box::new(question)))
                .ok_or("session/request_permission must have sessionId and toolCall.toolCallId"),
            "elicitation/create" if self.offer.questions => elicitation(id, params, &self.sent)
                .map(|asked| AgentEvent::Elicitation(Box::new(asked))),
            // No agent sends `initialize` to its client, so this program echoes its input.
            "initialize" if self.sent.are_starting() => {
                let message = format!(
                    "`{}` echoes its input: it is not an ACP agent; give a command that starts one, such as `opencode \
                         acp`",
                    self.launch.command
                );
                events.push(AgentEvent::NotReady(Error::new(
                    ErrorKind::Initialize,
                    message,
                )));
                return;
            }
            _ if self.offer.acp.is_some() && !is_client_method(method) => {
                events.push(forwarded(Some(id), Cow::Owned(method.to_owned()), params));
                return;
            }
            _ => {
                debug!(method, "unsupported request of the agent");
                let message = format!("acpipe does not support {method}");
                refuse(id, rpc::code::METHOD_NOT_FOUND, &message, out);
                return;
            }
        };
        match event {
            Ok(event) => events.push(event),
            Err(why) => refuse(id, rpc::code::INVALID_PARAMS, why, out),
        }
    }

    /// Parses a permission request, including a question to the user that it may contain.
    fn permission<'a>(
        &mut self,
        id: &'a RawValue,
        params: Option<&'a RawValue>,
    ) -> Option<Permission<'a>> {
        let mut permission = permission(id, params)?;
        if let Some((asked, form)) = UserQuestion::of(&permission.tool, &permission.options) {
            self.user_questions.push((permission.key.id.clone(), asked));
            permission.form = Some(form);
        }
        Some(permission)
    }
}

/// Returns the meaning of a message that stands beside other text.
pub(super) fn meaning(message: &str) -> TextMeaning {
    match rpc::parse(message) {
        Ok(Message::Response { .. }) => TextMeaning::Response,
        Ok(Message::Request { method, .. } | Message::Notification { method, .. }) => {
            let of_agent = ["session/update", "session/request_permission"];
            let is_session = method.starts_with("session/") && !of_agent.contains(&&*method);
            if is_session || matches!(&*method, "initialize" | "authenticate" | "logout") {
                TextMeaning::OwnMessage
            } else {
                TextMeaning::Unknown
            }
        }
        Err(_) => TextMeaning::Unknown,
    }
}

/// Returns `true` for methods that clients offer by a capability, which was not offered to the agent.
fn is_client_method(method: &str) -> bool {
    let is_of = |family: &&str| method.starts_with(family);
    ["fs/", "terminal/", "elicitation/"].iter().any(is_of)
}

/// Returns the event of a message that acpipe does not interpret.
pub(super) fn forwarded<'a>(
    id: Option<&RawValue>,
    method: Cow<'a, str>,
    params: Option<&'a RawValue>,
) -> AgentEvent<'a> {
    acpipe_json::raw_object! {
        struct Params { session_id = "sessionId" }
    }
    let named: Params<'a> = params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default();
    AgentEvent::Forward(Box::new(ForwardReceived {
        session: json::text(named.session_id),
        key: id.map(|id| RequestKey::new(Child::MAIN, id)),
        method,
        params,
    }))
}

pub(super) fn refuse(id: &RawValue, code: i32, message: &str, out: &mut Outgoing) {
    let error = ErrorObject {
        code,
        message,
        data: None,
    };
    let lines = out.lines(Child::MAIN);
    rpc::write_error(lines, id, &error);
    lines.push(b'\n');
}

fn permission<'a>(id: &'a RawValue, params: Option<&'a RawValue>) -> Option<Permission<'a>> {
    let p: RequestPermissionParams<'a> = serde_json::from_str(params?.get()).ok()?;
    let tool = updates::tool(&serde_json::from_str(p.tool_call?.get()).ok()?);
    if tool.is_id_made && tool.id == NO_CALL_ID {
        return None;
    }
    let raw_options = p.options.filter(|options| options.get().len() <= SMALL);
    let options: Vec<&RawValue> = raw_options
        .and_then(|o| serde_json::from_str(o.get()).ok())
        .unwrap_or_default();
    Some(Permission {
        session: json::text(p.session_id)?,
        key: RequestKey::new(Child::MAIN, id),
        tool,
        options: options.into_iter().filter_map(results::option).collect(),
        raw_options,
        form: None,
        acp: params,
        other: p.rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::decision::{Decision, DecisionSource};
    use acpipe_model::dialect::{AgentAnswer, AgentLine, Dialect, TransportOrder};

    /// Response to a permission request with this id.
    fn answer(id: &str) -> String {
        let (mut acp, mut events, mut out) = (Acp::default(), Vec::new(), Outgoing::default());
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"t"}},"options":[]}}}}"#
        );
        acp.read(
            Child::MAIN,
            AgentLine::Whole(line.as_bytes()),
            &mut events,
            &mut out,
        )
        .unwrap();
        let Some(AgentEvent::Permission(permission)) = events.pop() else {
            panic!("not a permission request: {line}");
        };
        acp.answer(
            &permission.key,
            AgentAnswer::Permission(&Decision::cancelled(DecisionSource::Cancel)),
            &mut out,
        );
        match out.take().pop() {
            Some((_, TransportOrder::Lines(lines))) => String::from_utf8(lines).unwrap(),
            other => panic!("not lines: {other:?}"),
        }
    }

    #[test]
    fn answer_repeats_the_id_byte_for_byte() {
        for id in ["7", "7.0", "\"7\"", "\"\\u0037\""] {
            let answer = answer(id);
            assert!(answer.contains(&format!(r#""id":{id},"#)), "{answer}");
        }
    }
}
