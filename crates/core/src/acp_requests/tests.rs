//! Tests of requests in both directions.

use super::*;
use acpipe_protocol::wire::{QuestionKind, QuestionParams};
use agent_client_protocol_schema::v1 as schema;

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap()
}

fn option(id: &str, kind: OfferedKind) -> OfferedOption {
    OfferedOption {
        option_id: id.to_owned(),
        name: id.to_uppercase(),
        kind,
    }
}

fn form(schema: Value) -> QuestionParams {
    QuestionParams {
        session_id: Some("client".to_owned()),
        turn_id: None,
        question_id: "q".to_owned(),
        kind: QuestionKind::Form,
        message: "Which?".to_owned(),
        schema: Some(schema),
        url: None,
        options: Vec::new(),
        tool_call: None,
        deadline_ms: None,
    }
}

const ALL: ElicitationSupport = ElicitationSupport {
    form: true,
    url: true,
};
const NONE: ElicitationSupport = ElicitationSupport {
    form: false,
    url: false,
};

#[test]
fn permission_request_has_the_form_of_acp() {
    let params = PermissionParams {
        session_id: "client".to_owned(),
        turn_id: None,
        question_id: "q".to_owned(),
        tool_call: AskedTool {
            tool_call_id: "t".to_owned(),
            tool_name: "Bash".to_owned(),
            kind: Some("execute".to_owned()),
            input: Some(json!({ "command": "ls" })),
            ..AskedTool::default()
        },
        options: vec![
            option("yes", OfferedKind::AllowOnce),
            option("odd", OfferedKind::Unknown),
            option("no", OfferedKind::RejectOnce),
        ],
        command: Some("ls".to_owned()),
        paths: Vec::new(),
        stands_for: Vec::new(),
        rule: "r".to_owned(),
        deadline_ms: None,
    };
    let request = permission("s", &params);
    let typed: schema::RequestPermissionRequest = serde_json::from_value(request.clone()).unwrap();
    assert_eq!(typed.options.len(), 2, "ACP has no unknown kind");
    assert_eq!(typed.tool_call.fields.title.as_deref(), Some("Bash"));
    assert_eq!(request["sessionId"], "s");
    assert_eq!(request["_meta"]["acpipe"]["rule"], "r");
}

#[test]
fn permission_results_become_answers() {
    for (result, want) in [
        (
            r#"{"outcome":{"outcome":"selected","optionId":"a","extra":1}}"#,
            Some(json!({ "outcome": "selected", "optionId": "a" })),
        ),
        (
            r#"{"outcome":{"outcome":"cancelled"},"_meta":{"acpipe":{"message":"why"}}}"#,
            Some(json!({ "outcome": "cancelled", "message": "why" })),
        ),
        (r#"{"outcome":{"outcome":"selected"}}"#, None),
        (r#"{"outcome":{"outcome":"odd"}}"#, None),
        (r#"{"outcome":7}"#, None),
        ("null", None),
    ] {
        let answer = permission_answer(raw(result)).ok();
        let answer = answer.map(|answer| serde_json::from_str::<Value>(answer.get()).unwrap());
        let want = want.map(|outcome| json!({ "outcome": outcome }));
        assert_eq!(answer, want, "{result}");
    }
}

#[test]
fn questions_become_elicitations_that_the_client_supports() {
    let params = form(json!({ "type": "object", "properties": { "a": { "type": "number" } } }));
    let Some(request @ QuestionRequest::Elicitation(_)) = question("s", &params, ALL) else {
        panic!("not an elicitation");
    };
    let QuestionRequest::Elicitation(value) = &request else {
        unreachable!();
    };
    let typed: schema::CreateElicitationRequest = serde_json::from_value(value.clone()).unwrap();
    assert!(matches!(typed.mode, schema::ElicitationMode::Form(_)));
    for (result, want) in [
        (
            r#"{"action":"accept","content":{"a":1}}"#,
            Some(r#"{"action":"accept","content":{"a":1}}"#),
        ),
        (
            r#"{"action":"decline","content":null}"#,
            Some(r#"{"action":"decline"}"#),
        ),
        (r#"{"action":"cancel"}"#, Some(r#"{"action":"cancel"}"#)),
        (r#"{"action":"odd"}"#, None),
        ("7", None),
    ] {
        let answer = question_answer(&params, &request, raw(result)).ok();
        assert_eq!(answer.as_deref().map(RawValue::get), want, "{result}");
    }
    let url = QuestionParams {
        kind: QuestionKind::Url,
        schema: None,
        url: Some("https://x".to_owned()),
        ..form(Value::Null)
    };
    let Some(QuestionRequest::Elicitation(value)) = question("s", &url, ALL) else {
        panic!("not an elicitation");
    };
    let typed: schema::CreateElicitationRequest = serde_json::from_value(value).unwrap();
    assert!(matches!(typed.mode, schema::ElicitationMode::Url(_)));
    assert_eq!(question("s", &url, NONE), None);
}

#[test]
fn single_choice_is_asked_by_a_permission_request() {
    let choice =
        json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] });
    let note = json!({ "type": "string", "title": "Other" });
    let params = form(json!({ "type": "object", "properties": { "c": choice, "c_custom": note } }));
    let Some(request @ QuestionRequest::Permission(_)) = question("s", &params, NONE) else {
        panic!("not a permission request");
    };
    let QuestionRequest::Permission(value) = &request else {
        unreachable!();
    };
    let typed: schema::RequestPermissionRequest = serde_json::from_value(value.clone()).unwrap();
    let names: Vec<&str> = typed.options.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["A", "b", "Do not answer"]);
    assert_eq!(typed.tool_call.fields.title.as_deref(), Some("Which?"));
    let selected =
        |id: &str| format!(r#"{{"outcome":{{"outcome":"selected","optionId":"{id}"}}}}"#);
    for (result, want) in [
        (
            selected("1"),
            Some(r#"{"action":"accept","content":{"c":"b"}}"#),
        ),
        (selected("decline"), Some(r#"{"action":"decline"}"#)),
        (
            r#"{"outcome":{"outcome":"cancelled"}}"#.to_owned(),
            Some(r#"{"action":"cancel"}"#),
        ),
        (selected("2"), None),
    ] {
        let answer = question_answer(&params, &request, raw(&result)).ok();
        assert_eq!(answer.as_deref().map(RawValue::get), want, "{result}");
    }
    // The options of a permission request cannot answer these forms.
    let text = json!({ "type": "string" });
    for (properties, required) in [
        (json!({ "c": choice, "d": choice }), json!([])),
        (json!({ "c": choice, "d": text }), json!(["d"])),
        (
            json!({ "c": choice, "d": { "type": "boolean" } }),
            json!([]),
        ),
        (
            json!({ "c": { "type": "array", "items": { "anyOf": [] } } }),
            json!([]),
        ),
        (json!({ "d": text }), json!([])),
    ] {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        assert_eq!(question("s", &form(schema.clone()), NONE), None, "{schema}");
    }
}

#[test]
fn plan_is_approved_by_a_permission_request() {
    let params = QuestionParams {
        kind: QuestionKind::Plan,
        options: vec![option("go", OfferedKind::AllowOnce)],
        ..form(Value::Null)
    };
    let request = question("s", &params, ALL).unwrap();
    assert!(matches!(request, QuestionRequest::Permission(_)));
    let result = r#"{"outcome":{"outcome":"selected","optionId":"go"}}"#;
    let answer = question_answer(&params, &request, raw(result)).unwrap();
    assert_eq!(
        answer.get(),
        r#"{"action":"accept","content":{"optionId":"go"}}"#
    );
}
