//! Questions of the CLI: whether a tool may run (`can_use_tool`), and the answers.

use super::tools;
use crate::core::dialect::Child;
use crate::core::event::{OptionKind, Permission, PermissionOption, ToolUpdate};
use crate::proto::json::{Members, non_null, raw_object, text, to_raw};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The key of a question: the process that asks, and its own id of the request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Question {
    pub child: u64,
    pub request: String,
}

/// What an answer has to repeat.
#[derive(Debug)]
pub struct Asked {
    /// Whether the user himself is asked something.
    is_for_user: bool,
    input: Option<Box<RawValue>>,
    /// What follows from "always".
    suggestions: Option<Box<RawValue>>,
}

raw_object! {
    /// `can_use_tool`.
    struct CanUseTool {
        subtype = "subtype",
        tool_name = "tool_name",
        input = "input",
        tool_use_id = "tool_use_id",
        suggestions = "permission_suggestions",
        ..
    }
}

/// The options as a client sees them: the CLI has none of its own. `ALWAYS` where it suggests rules.
const ONCE: &str = r#"[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]"#;
const ALWAYS: &str = r#"[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"allow_always","name":"Always allow","kind":"allow_always"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]"#;
const REJECT: &str = r#"[{"optionId":"reject","name":"Leave it unanswered","kind":"reject_once"}]"#;

/// The tool that asks the user something: "allowed" is no answer to it.
const ASK_USER: &str = "AskUserQuestion";

/// Reads a question; `None` where it names no tool call.
pub fn read<'a>(
    session: &str,
    child: Child,
    request: &str,
    asked: &'a RawValue,
) -> Option<(Permission<'a>, Asked)> {
    let q: CanUseTool<'a> = serde_json::from_str(asked.get()).ok()?;
    let name = text(q.tool_name)?;
    let is_for_user = name == ASK_USER;
    let suggestions = non_null(q.suggestions).filter(|s| s.get() != "[]");
    let options = match (name.as_ref(), suggestions) {
        (ASK_USER, _) => REJECT,
        (_, Some(_)) => ALWAYS,
        (_, None) => ONCE,
    };
    let raw_options: &'static RawValue = serde_json::from_str(options).ok()?;
    let other = q.without(&["subtype", "tool_name", "input", "tool_use_id"]);
    // Of a command the question alone tells where it is about to do something.
    let blocked = text(other.get("blocked_path")).filter(|_| {
        q.input
            .is_none_or(|input| tools::locations(&name, input).is_none())
    });
    let tool = ToolUpdate {
        id: text(q.tool_use_id)?,
        input: q.input.map(Cow::Borrowed),
        title: Some(tools::title(&name, q.input).into()),
        kind: Some(tools::kind(&name).into()),
        locations: blocked.map(|path| Cow::Owned(to_raw(&[json!({ "path": path })]))),
        name: Some(name),
        ..ToolUpdate::default()
    };
    let question = Question {
        child: child.0,
        request: request.to_owned(),
    };
    let permission = Permission {
        session: Cow::Owned(session.to_owned()),
        question: to_raw(&question),
        tool,
        options: offered(raw_options),
        raw_options: Some(raw_options),
        other,
    };
    let asked = Asked {
        is_for_user,
        input: q.input.map(ToOwned::to_owned),
        suggestions: suggestions.map(ToOwned::to_owned),
    };
    Some((permission, asked))
}

fn offered(options: &RawValue) -> Vec<PermissionOption> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Offered {
        option_id: String,
        name: String,
        kind: String,
    }
    let options: Vec<Offered> = serde_json::from_str(options.get()).unwrap_or_default();
    let option = |o: Offered| PermissionOption {
        id: o.option_id,
        name: o.name,
        kind: match o.kind.as_str() {
            "allow_once" => OptionKind::AllowOnce,
            "allow_always" => OptionKind::AllowAlways,
            _ => OptionKind::RejectOnce,
        },
    };
    options.into_iter().map(option).collect()
}

/// The answer to a question, by the option that was chosen; `None` where the turn was cancelled.
pub fn answer(asked: &Asked, choice: Option<&PermissionOption>) -> Box<RawValue> {
    let mut answer = Members::default();
    match choice.map(|option| option.kind) {
        Some(kind @ (OptionKind::AllowOnce | OptionKind::AllowAlways)) => {
            answer.set_owned("behavior", &"allow");
            answer.set_some("updatedInput", asked.input.as_deref());
            if kind == OptionKind::AllowAlways {
                answer.set_some("updatedPermissions", asked.suggestions.as_deref());
            }
        }
        Some(_) => {
            let message = if asked.is_for_user {
                "Nobody is there to answer. Go on as seems best to you, and say what you took for granted."
            } else {
                "The user does not allow this."
            };
            answer.set_owned("behavior", &"deny");
            answer.set_owned("message", &message);
        }
        None => {
            answer.set_owned("behavior", &"deny");
            answer.set_owned("message", &"The user cancelled the turn.");
            answer.set_owned("interrupt", &true);
        }
    }
    to_raw(&answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn asked(request: &Value) -> (Vec<String>, Value, Value, Value) {
        let raw = to_raw(request);
        let (permission, asked) = read("s", Child(3), "r", &raw).unwrap();
        assert_eq!(permission.question.get(), r#"{"child":3,"request":"r"}"#);
        let answer = |kind| {
            let option = permission.options.iter().find(|option| option.kind == kind);
            option.map_or(Value::Null, |option| {
                json!(super::answer(&asked, Some(option)))
            })
        };
        let answers = [
            OptionKind::AllowOnce,
            OptionKind::AllowAlways,
            OptionKind::RejectOnce,
        ]
        .map(answer);
        let [once, always, reject] = answers;
        let names = permission
            .options
            .iter()
            .map(|option| option.id.clone())
            .collect();
        (names, once, always, reject)
    }

    #[test]
    fn each_option_has_its_answer() {
        let rules = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        let request = json!({
            "subtype": "can_use_tool", "tool_name": "Write", "tool_use_id": "t",
            "input": {"file_path": "/a"}, "permission_suggestions": rules,
        });
        let (names, once, always, reject) = asked(&request);
        assert_eq!(names, ["allow", "allow_always", "reject"]);
        assert_eq!(
            once,
            json!({"behavior": "allow", "updatedInput": {"file_path": "/a"}})
        );
        assert_eq!(always["updatedPermissions"], rules);
        assert_eq!(reject["behavior"], "deny");
        assert_eq!(reject.get("interrupt"), None);
    }

    #[test]
    fn a_question_tells_where_a_command_works() {
        for (name, input, places) in [
            (
                "Bash",
                json!({"command": "touch x"}),
                Some(r#"[{"path":"/w/x"}]"#),
            ),
            ("Write", json!({"file_path": "/w/y"}), None),
        ] {
            let request = json!({"tool_name": name, "tool_use_id": "t", "input": input, "blocked_path": "/w/x"});
            let raw = to_raw(&request);
            let (permission, _) = read("s", Child(3), "r", &raw).unwrap();
            let told = permission.tool.locations;
            assert_eq!(told.as_deref().map(RawValue::get), places);
        }
    }

    #[test]
    fn always_is_offered_only_with_something_that_follows_from_it() {
        let request = json!({"tool_name": "Bash", "tool_use_id": "t", "input": {}});
        assert_eq!(asked(&request).0, ["allow", "reject"]);
    }

    #[test]
    fn a_question_to_the_user_cannot_be_answered_with_allowed() {
        let request = json!({"tool_name": ASK_USER, "tool_use_id": "t", "input": {}});
        assert_eq!(asked(&request).0, ["reject"]);
    }

    #[test]
    fn a_cancelled_question_interrupts() {
        let asked = Asked {
            is_for_user: false,
            input: None,
            suggestions: None,
        };
        assert_eq!(json!(answer(&asked, None))["interrupt"], true);
    }
}
