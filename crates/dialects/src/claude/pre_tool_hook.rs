//! Hook before every tool call. The CLI sends no permission request for calls that its own rules allow, such
//! as reading in its directory; if acpipe has rules, the CLI reports each call by a hook.

use super::permission_requests;
use acpipe_json::{raw_object, text, to_raw};
use acpipe_model::decision::Effect;
use acpipe_model::event::{Permission, call_id};
use acpipe_model::request_key::RequestKey;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Callback id of the hook.
const CALLBACK: &str = "acpipe";

pub fn hooks(watch: bool) -> Value {
    if !watch {
        return Value::Null;
    }
    json!({ "PreToolUse": [{ "hookCallbackIds": [CALLBACK] }] })
}

raw_object! {
    /// Request `hook_callback`.
    struct Callback { id = "callback_id", input = "input" }
}

raw_object! {
    struct PreToolUse { name = "tool_name", input = "tool_input", call = "tool_use_id" }
}

/// Parses a hook callback; `None` if it is not for acpipe's hook.
pub fn read<'a>(session: &str, key: RequestKey, told: &'a RawValue) -> Option<Permission<'a>> {
    let callback: Callback<'a> = serde_json::from_str(told.get()).ok()?;
    text(callback.id).filter(|id| id == CALLBACK)?;
    let told: PreToolUse<'a> = serde_json::from_str(callback.input?.get()).ok()?;
    let tool = permission_requests::tool(text(told.name)?, call_id(told.call), told.input);
    Some(permission_requests::plain(session, key, tool))
}

/// Returns the response: deny, ask, or no decision.
pub fn answer(effect: Effect) -> Box<RawValue> {
    let (decision, reason) = match effect {
        Effect::Allow => return to_raw(&json!({})),
        Effect::Ask => ("ask", "The policy requires asking the user."),
        Effect::Deny => ("deny", "The user does not allow this."),
    };
    to_raw(&json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::dialect::Child;

    fn key() -> RequestKey {
        RequestKey::new(Child(3), &to_raw(&"r"))
    }

    #[test]
    fn hook_callback_names_the_tool() {
        let told = to_raw(
            &json!({"subtype": "hook_callback", "callback_id": CALLBACK, "tool_use_id": "t",
            "input": {"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_use_id": "t",
            "tool_input": {"file_path": "/w/.env"}}}),
        );
        let watched = read("s", key(), &told).unwrap();
        assert_eq!(
            (watched.tool.id.as_ref(), watched.tool.kind.as_deref()),
            ("t", Some("read"))
        );
        assert_eq!(
            watched.tool.input.unwrap().get(),
            r#"{"file_path":"/w/.env"}"#
        );
        for other in [
            json!({"callback_id": "hook_0", "input": {"tool_name": "Read", "tool_use_id": "t"}}),
            json!({"callback_id": CALLBACK, "input": {"tool_use_id": "t"}}),
            json!({"callback_id": CALLBACK}),
        ] {
            assert!(read("s", key(), &to_raw(&other)).is_none(), "{other}");
        }
    }

    #[test]
    fn unmatched_tool_is_left_to_claude() {
        assert_eq!(answer(Effect::Allow).get(), "{}");
        let decision = |effect| {
            let answer = json!(answer(effect));
            answer["hookSpecificOutput"]["permissionDecision"].clone()
        };
        assert_eq!(
            (decision(Effect::Ask), decision(Effect::Deny)),
            (json!("ask"), json!("deny"))
        );
    }
}
