//! Permission requests of the CLI (`can_use_tool`) and the responses to them.

use super::{ask_user, tools};
use acpipe_json::{Members, non_null, raw_object, text, to_raw};
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::elicitation::ElicitationDetails;
use acpipe_model::event::{OptionKind, Permission, PermissionOption, ToolUpdate, call_id};
use acpipe_model::request_key::RequestKey;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Data of a request that its response must repeat.
#[derive(Debug)]
pub struct PendingPermission {
    about: PermissionTopic,
    tool_name: String,
    tool_id: String,
    input: Option<Box<RawValue>>,
    /// Permission rules that the CLI suggests for "always".
    suggestions: Option<Box<RawValue>>,
}

/// Subject of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PermissionTopic {
    Tool,
    /// Questions to the user, which need an answer rather than a permission.
    User,
    Plan,
}

raw_object! {
    struct CanUseTool {
        subtype = "subtype",
        tool_name = "tool_name",
        input = "input",
        tool_use_id = "tool_use_id",
        suggestions = "permission_suggestions",
        ..
    }
}

/// Options for the client: the CLI itself has none. `ALWAYS` is used if the CLI suggests rules.
const ONCE: &str = r#"[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]"#;
const ALWAYS: &str = r#"[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"allow_always","name":"Always allow","kind":"allow_always"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]"#;
const ANSWER: &str = r#"[{"optionId":"answer","name":"Answer","kind":"allow_once"},{"optionId":"reject","name":"Leave it unanswered","kind":"reject_once"}]"#;

/// Parses a permission request; `None` if it does not name a tool call.
pub fn read<'a>(
    session: &str,
    key: RequestKey,
    asked: &'a RawValue,
) -> Option<(Permission<'a>, PendingPermission)> {
    let q: CanUseTool<'a> = serde_json::from_str(asked.get()).ok()?;
    let name = text(q.tool_name)?;
    let about = match name.as_ref() {
        ask_user::NAME => PermissionTopic::User,
        "ExitPlanMode" => PermissionTopic::Plan,
        _ => PermissionTopic::Tool,
    };
    let suggestions = non_null(q.suggestions).filter(|s| s.get() != "[]");
    let options = match (about, suggestions) {
        (PermissionTopic::User, _) => ANSWER,
        (_, Some(_)) => ALWAYS,
        (_, None) => ONCE,
    };
    let raw_options: &'static RawValue = serde_json::from_str(options).ok()?;
    let other = q.without(&["subtype", "tool_name", "input", "tool_use_id"]);
    // For a command only the request has the path on which it would act.
    let blocked = text(other.get("blocked_path")).filter(|_| {
        q.input
            .is_none_or(|input| tools::locations(&name, input).is_none())
    });
    let form = (about == PermissionTopic::User).then(|| {
        let form = q.input.and_then(ask_user::form);
        // The call has no valid questions.
        form.unwrap_or_else(|| ElicitationDetails::form(tools::title(&name, q.input), json!({})))
    });
    let id = call_id(Some(q.tool_use_id?));
    let asked = PendingPermission {
        about,
        tool_name: name.clone().into_owned(),
        tool_id: id.clone().into_owned(),
        input: q.input.map(ToOwned::to_owned),
        suggestions: suggestions.map(ToOwned::to_owned),
    };
    let tool = ToolUpdate {
        locations: blocked.map(|path| Cow::Owned(to_raw(&[json!({ "path": path })]))),
        ..tool(name, id, q.input)
    };
    let permission = Permission {
        options: offered(raw_options),
        raw_options: Some(raw_options),
        form,
        other,
        ..plain(session, key, tool)
    };
    Some((permission, asked))
}

pub fn tool<'a>(
    name: Cow<'a, str>,
    id: Cow<'a, str>,
    input: Option<&'a RawValue>,
) -> ToolUpdate<'a> {
    ToolUpdate {
        id,
        input: input.map(Cow::Borrowed),
        title: Some(tools::title(&name, input).into()),
        kind: Some(tools::kind(&name).into()),
        name: Some(name),
        ..ToolUpdate::default()
    }
}

/// Describes the call of a request with another input; `None` for questions to the user, whose answer is their
/// input.
pub fn rewritten(asked: &PendingPermission, input: &RawValue) -> Option<ToolUpdate<'static>> {
    if asked.about == PermissionTopic::User {
        return None;
    }
    let name = asked.tool_name.as_str();
    Some(ToolUpdate {
        id: Cow::Owned(asked.tool_id.clone()),
        name: Some(Cow::Owned(name.to_owned())),
        title: Some(tools::title(name, Some(input)).into()),
        kind: Some(tools::kind(name).into()),
        input: Some(Cow::Owned(input.to_owned())),
        locations: Some(tools::locations(name, input).map_or_else(no_locations, Cow::Owned)),
        ..ToolUpdate::default()
    })
}

/// Replaces the locations of a call whose new input names none.
fn no_locations() -> Cow<'static, RawValue> {
    Cow::Owned(to_raw(&json!([])))
}

/// Returns a permission request of which only the tool is known.
pub fn plain<'a>(session: &str, key: RequestKey, tool: ToolUpdate<'a>) -> Permission<'a> {
    let raw_options: &'static RawValue = serde_json::from_str(ONCE).unwrap_or(RawValue::NULL);
    Permission {
        acp: None,
        session: Cow::Owned(session.to_owned()),
        key,
        tool,
        options: offered(raw_options),
        raw_options: Some(raw_options),
        form: None,
        other: Members::default(),
    }
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

/// Returns the response for a decision; without a choice, the response ends the turn.
pub fn answer(asked: &PendingPermission, decision: &Decision) -> Box<RawValue> {
    let mut answer = Members::default();
    let kind = decision.choice.as_ref().map(|option| option.kind);
    let allows =
        |kind: &OptionKind| matches!(kind, OptionKind::AllowOnce | OptionKind::AllowAlways);
    // Questions to the user can be approved only with answers.
    let input = match (asked.about, asked.input.as_deref()) {
        (PermissionTopic::User, input) => input
            .zip(decision.content.as_deref())
            .and_then(|(input, content)| ask_user::answered(input, content))
            .map(Some),
        (_, input) => {
            let updated = decision.updated_input.as_deref();
            Some(updated.or(input).map(ToOwned::to_owned))
        }
    };
    if let (Some(kind), Some(input)) = (kind.filter(allows), input) {
        answer.set_owned("behavior", &"allow");
        if let Some(input) = input {
            answer.set_owned("updatedInput", &input);
        }
        if kind == OptionKind::AllowAlways
            && let Some(suggestions) = &asked.suggestions
        {
            answer.set_owned("updatedPermissions", suggestions);
        }
        return to_raw(&answer);
    }
    answer.set_owned("behavior", &"deny");
    answer.set_owned("message", &refusal(asked.about, decision));
    if kind.is_none() {
        answer.set_owned("interrupt", &true);
    }
    to_raw(&answer)
}

/// Text for the model about a request that the user left unanswered. Their message is not part of it: it is the next
/// prompt, and the model would carry it out twice.
const INSTEAD: &str =
    "The user did not answer and sent a new message instead. Stop here: the message follows.";

/// Returns the text about a refusal for the model.
fn refusal(about: PermissionTopic, decision: &Decision) -> String {
    if decision.choice.is_none() {
        return "The user cancelled the turn.".to_owned();
    }
    if decision.by == DecisionSource::Message {
        return INSTEAD.to_owned();
    }
    let said = decision.feedback.as_ref();
    let said = said.map(|feedback| feedback.words.trim());
    match (about, said.filter(|said| !said.is_empty())) {
        (PermissionTopic::Plan, Some(said)) => {
            format!("The user does not approve this plan: {said}")
        }
        (PermissionTopic::Plan, None) => "The user does not approve this plan.".to_owned(),
        (PermissionTopic::Tool, Some(said)) => format!("The user does not allow this: {said}"),
        (PermissionTopic::Tool, None) => "The user does not allow this.".to_owned(),
        (PermissionTopic::User, _) => {
            let who = match decision.by {
                DecisionSource::Client => "The user did not answer",
                _ => "No user is available to answer",
            };
            format!("{who}. Continue with your best judgment, and state what you assumed.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::decision::Feedback;
    use acpipe_model::dialect::Child;
    use serde_json::Value;

    fn key() -> RequestKey {
        RequestKey::new(Child(3), &to_raw(&"r"))
    }

    fn asked(request: &Value) -> (Vec<String>, Value, Value, Value) {
        let raw = to_raw(request);
        let (permission, asked) = read("s", key(), &raw).unwrap();
        assert_eq!(permission.key, key());
        let answer = |kind| {
            let option = permission.options.iter().find(|option| option.kind == kind);
            option.map_or(Value::Null, |option| {
                let decision = Decision::chosen(option.clone(), None);
                json!(super::answer(&asked, &decision))
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
    fn permission_request_of_a_command_has_its_blocked_path() {
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
            let (permission, _) = read("s", key(), &raw).unwrap();
            let told = permission.tool.locations;
            assert_eq!(told.as_deref().map(RawValue::get), places);
        }
    }

    #[test]
    fn tool_runs_with_the_clients_input() {
        let request = to_raw(
            &json!({"tool_name": "Bash", "tool_use_id": "t", "input": {"command": "rm -r x"}}),
        );
        let (permission, asked) = read("s", key(), &request).unwrap();
        let input = to_raw(&json!({"command": "ls"}));
        let tool = rewritten(&asked, &input).unwrap();
        assert_eq!((tool.id.as_ref(), tool.title.as_deref()), ("t", Some("ls")));
        let decision = Decision {
            updated_input: Some(input),
            ..Decision::of(true, false, &permission.options, DecisionSource::Client)
        };
        let want = json!({"behavior": "allow", "updatedInput": {"command": "ls"}});
        assert_eq!(json!(answer(&asked, &decision)), want);
    }

    #[test]
    fn always_is_offered_only_with_suggestions() {
        let request = json!({"tool_name": "Bash", "tool_use_id": "t", "input": {}});
        assert_eq!(asked(&request).0, ["allow", "reject"]);
    }

    #[test]
    fn a_question_to_the_user_cannot_be_answered_with_allowed() {
        for input in [
            json!({}),
            json!({"questions": [{"question": "Q?", "options": [{"label": "a"}]}]}),
        ] {
            let request = json!({"tool_name": ask_user::NAME, "tool_use_id": "t", "input": input});
            let (names, once, _, reject) = asked(&request);
            assert_eq!(names, ["answer", "reject"]);
            assert_eq!(once["behavior"], "deny");
            assert_eq!(once, reject);
        }
    }

    #[test]
    fn a_question_to_the_user_is_allowed_with_its_answers() {
        let questions = json!([{"question": "Q?", "options": [{"label": "a"}]}]);
        let request = to_raw(&json!({"tool_name": ask_user::NAME, "tool_use_id": "t",
            "input": {"questions": questions}}));
        let (permission, asked) = read("s", key(), &request).unwrap();
        let decision = Decision {
            content: Some(to_raw(&json!({"question_0": "a"}))),
            ..Decision::of(true, false, &permission.options, DecisionSource::Client)
        };
        assert_eq!(
            json!(answer(&asked, &decision)),
            json!({"behavior": "allow", "updatedInput": {"questions": questions, "answers": {"Q?": "a"}}})
        );
    }

    #[test]
    fn feedback_of_the_user_reaches_the_model() {
        let refused = |name: &str, said: Option<&str>, by: DecisionSource| {
            let request = to_raw(&json!({"tool_name": name, "tool_use_id": "t", "input": {}}));
            let (permission, asked) = read("s", key(), &request).unwrap();
            let decision = Decision {
                feedback: Feedback::of(said.map(str::to_owned), false),
                ..Decision::of(false, false, &permission.options, by)
            };
            let answer = json!(answer(&asked, &decision));
            assert_eq!(answer["behavior"], "deny");
            assert_eq!(answer.get("interrupt"), None);
            answer["message"].as_str().unwrap().to_owned()
        };
        let said = Some("use tabs");
        assert_eq!(
            refused("Write", said, DecisionSource::Client),
            "The user does not allow this: use tabs"
        );
        assert_eq!(
            refused("ExitPlanMode", said, DecisionSource::Client),
            "The user does not approve this plan: use tabs"
        );
        assert_eq!(
            refused("Write", Some("  "), DecisionSource::Client),
            "The user does not allow this."
        );
        let nobody = refused(ask_user::NAME, None, DecisionSource::Timeout(None));
        assert!(
            nobody.starts_with("No user is available to answer."),
            "{nobody}"
        );
    }

    #[test]
    fn a_cancelled_question_interrupts() {
        let asked = PendingPermission {
            about: PermissionTopic::Tool,
            tool_name: "Bash".to_owned(),
            tool_id: "t".to_owned(),
            input: None,
            suggestions: None,
        };
        let answer = json!(answer(&asked, &Decision::cancelled(DecisionSource::Cancel)));
        assert_eq!(answer["interrupt"], true);
    }
}
