//! Tests of tool calls that acpipe cannot read or route: they may have run without permission.

use super::fixture::Fixture;
use super::unended_calls::{MAY, no_bash, pending, reports, turn};
use crate::hub::{AgentInput, HubCx};
use crate::session::RAN_UNAPPROVED;
use acpipe_json::frame::{Batch, Overlong};
use acpipe_policy::{Mode, Policy};
use serde_json::{Value, json};

impl Fixture {
    fn hear(&mut self, batch: Batch) {
        let agent = *self.agents.last().unwrap();
        let input = AgentInput::Batch(batch);
        assert!(
            self.hub
                .agent(agent, input, &mut HubCx::new(self.now, &mut self.sinks))
                .is_none()
        );
        self.settle();
    }

    /// Receives the beginning of an update.
    fn hear_cut(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        let line =
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string();
        let cut = &line[..line.len() - 5];
        self.hear(Batch::Lines(format!("{cut}\n").into()));
    }

    fn hear_overlong(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        let line =
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string();
        self.hear(Batch::TooLong(Overlong {
            len: 1 << 30,
            head: line.clone().into(),
            tail: line.into(),
        }));
    }
}

#[test]
fn call_in_a_line_that_cannot_be_read_is_reported_in_its_turn() {
    let policies: [Policy; 3] = [no_bash(), Mode::Deny.into(), Mode::Ask.into()];
    for policy in policies {
        let (mut t, session) = turn(policy);
        t.hear_cut(&session, &pending("a"));
        assert_eq!(reports(&t), [MAY]);
        t.hear_overlong(&session, &pending("b"));
        assert_eq!(reports(&t), [MAY, MAY]);
        // The session cannot be read.
        let cut = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","#;
        t.hear(Batch::Lines(format!("{cut}\n").into()));
        assert_eq!(reports(&t), [MAY, MAY, MAY]);
    }
    let (mut t, session) = turn(Mode::Approve);
    t.hear_cut(&session, &pending("a"));
    assert_eq!(reports(&t), Vec::<Value>::new());
}

#[test]
fn unreadable_update_of_a_known_call_is_not_reported() {
    let updated = |id: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"});
    let (mut t, session) = turn(Mode::Deny);
    let mut known = pending("a");
    known["kind"] = "think".into();
    known["rawInput"] = Value::Null;
    t.update(&session, &[known]);
    t.hear_overlong(&session, &updated("a"));
    assert_eq!(reports(&t), Vec::<Value>::new());
    t.hear_overlong(&session, &updated("b"));
    assert_eq!(reports(&t), [MAY]);
    // Text of the model that names such a message.
    let text = pending("c").to_string();
    let content = json!({"type": "text", "text": text});
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    t.hear_cut(&session, &chunk);
    assert_eq!(reports(&t), [MAY]);
}

#[test]
fn call_of_an_unknown_session_is_reported_once() {
    let (mut t, _) = turn(Mode::Deny);
    t.update("unknown", &[pending("a"), pending("b")]);
    assert_eq!(reports(&t), [MAY]);
    t.update("other", &[pending("a")]);
    assert_eq!(reports(&t), [MAY, MAY]);
    let (mut t, _) = turn(Mode::Approve);
    t.update("unknown", &[pending("a")]);
    assert_eq!(reports(&t), Vec::<Value>::new());
}

#[test]
fn update_in_another_form_of_message_is_not_lost() {
    let update = |id: Option<u8>, session: Option<&str>| {
        let mut params = json!({"update": pending("a")});
        params["update"]["status"] = "completed".into();
        if let Some(session) = session {
            params["sessionId"] = session.into();
        }
        let mut line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        if let Some(id) = id {
            line["id"] = id.into();
        }
        Batch::Lines(format!("{line}\n").into())
    };
    let (mut t, session) = turn(Mode::Deny);
    t.hear(update(Some(88), Some(&session)));
    assert_eq!(reports(&t), [RAN_UNAPPROVED]);
    let (mut t, _) = turn(Mode::Deny);
    t.hear(update(None, None));
    assert_eq!(reports(&t), [MAY]);
    t.hear(update(Some(89), None));
    assert_eq!(reports(&t), [MAY, MAY]);
}
