//! Tests of how questions are shown and how typed lines are parsed.

use super::*;
use acpipe_protocol::wire::{
    AskedTool, OfferedKind, OfferedOption, PermissionParams, QuestionParams,
};
use serde_json::json;

fn option(id: &str, kind: OfferedKind) -> OfferedOption {
    OfferedOption {
        option_id: id.to_owned(),
        name: format!("Do {id}"),
        kind,
    }
}

fn permission(tool: AskedTool) -> Dialog {
    let params = PermissionParams {
        session_id: "s".to_owned(),
        turn_id: None,
        question_id: "q".to_owned(),
        tool_call: tool,
        options: vec![
            option("yes", OfferedKind::AllowOnce),
            option("no", OfferedKind::RejectOnce),
        ],
        command: None,
        paths: Vec::new(),
        stands_for: Vec::new(),
        rule: "permissions \"ask\"".to_owned(),
        deadline_ms: Some(300_000),
    };
    Dialog::new(&ClientRequest::Permission(Box::new(params))).unwrap()
}

fn question(kind: QuestionKind, message: &str) -> QuestionParams {
    QuestionParams {
        session_id: None,
        turn_id: None,
        question_id: "q".to_owned(),
        kind,
        message: message.to_owned(),
        schema: None,
        url: None,
        options: Vec::new(),
        tool_call: None,
        deadline_ms: None,
    }
}

fn dialog(params: QuestionParams) -> Dialog {
    Dialog::new(&ClientRequest::Question(Box::new(params))).unwrap()
}

fn form(properties: &Value, required: &Value) -> Dialog {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    dialog(QuestionParams {
        schema: Some(schema),
        ..question(QuestionKind::Form, "Say.")
    })
}

/// Returns the shown text without styles.
fn shown(dialog: &Dialog) -> String {
    let mut view = PromptView::new(100);
    dialog.show(&mut view);
    let mut text = view.text();
    for style in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
        text = text.replace(style, "");
    }
    assert!(!text.contains('\x1b'), "{text:?}");
    text
}

fn answer(dialog: &mut Dialog, lines: &[&str]) -> Value {
    for (n, line) in lines.iter().enumerate() {
        match dialog.read(Some(line)) {
            NextStep::Answer(answer) => {
                assert_eq!(n + 1, lines.len(), "{line:?} ends it");
                return answer;
            }
            NextStep::Again(_) | NextStep::More => {}
        }
    }
    panic!("{lines:?} do not end it");
}

#[test]
fn a_command_is_shown_with_all_that_belongs_to_it() {
    let dialog = permission(AskedTool {
        tool_name: "Bash".to_owned(),
        title: Some("`touch a`".to_owned()),
        input: Some(
            json!({"command": "touch a", "description": "Make\na \u{1b}[2J", "timeout": 5}),
        ),
        content: Some(
            json!([{"type": "content", "content": {"type": "text", "text": "Make\na \u{1b}[2J"}}]),
        ),
        locations: Some(json!([{"path": "/p/a"}])),
        ..AskedTool::default()
    });
    let want = "acpipe: may the agent use Bash?\n  │ `touch a`\n  │ description: Make\n  │ a ␛[2J\n  │ timeout: 5\n  \
                    │ /p/a\n  Asked because of permissions \"ask\"; in 300 s the policy decides\n  y  Do yes (allows \
                    once)\n  n  Do no (refuses once)\n";
    assert_eq!(shown(&dialog), want);
    assert_eq!(dialog.prompt(), "y/n (Enter refuses): ");
}

#[test]
fn edit_is_shown_as_a_diff() {
    let dialog = permission(AskedTool {
        tool_name: "Edit".to_owned(),
        title: Some("Edit a".to_owned()),
        input: Some(json!({"file_path": "/p/a", "old_string": "x\ny\n", "new_string": "x\nz\n"})),
        content: Some(
            json!([{"type": "diff", "path": "/p/a", "oldText": "x\ny\n", "newText": "x\nz\n"}]),
        ),
        locations: Some(json!([{"path": "/p/a", "line": 1}])),
        ..AskedTool::default()
    });
    let want = "  │ Edit a\n  │ /p/a\n  │   x\n  │ - y\n  │ + z\n  Asked";
    let shown = shown(&dialog);
    assert!(shown.contains(want), "{shown}");
    let long = "line\n".repeat(100);
    let dialog = permission(AskedTool {
        content: Some(json!([{"type": "diff", "path": "/p/a", "oldText": null, "newText": long}])),
        ..AskedTool::default()
    });
    let shown = self::shown(&dialog);
    assert!(
        shown.contains("  │ + line\n  … 60 more lines\n  │ + line\n"),
        "{shown}"
    );
}

#[test]
fn permission_answer_can_carry_feedback() {
    let outcome = |line| match permission(AskedTool::default()).read(line) {
        NextStep::Answer(answer) => answer["outcome"].clone(),
        other => panic!("{other:?}"),
    };
    let selected = |id, message: Option<&str>| json!({"outcome": "selected", "optionId": id, "message": message});
    assert_eq!(outcome(Some("y\n")), selected("yes", None));
    assert_eq!(outcome(Some("\n")), selected("no", None));
    assert_eq!(
        outcome(Some("n other file\n")),
        selected("no", Some("other file"))
    );
    assert_eq!(outcome(None), json!({"outcome": "cancelled"}));
    let again = permission(AskedTool::default()).read(Some("perhaps\n"));
    assert_eq!(
        again,
        NextStep::Again("\"perhaps\" is not one of y/n".to_owned())
    );
}

#[test]
fn a_form_is_filled_in_field_by_field() {
    let mut dialog = form(
        &json!({
            "colour": {"type": "string", "title": "Colour", "oneOf": [
                {"const": "red", "title": "Red", "description": "warm"}, {"const": "blue"}]},
            "other": {"type": "string", "title": "Other", "description": "Type your own"},
            "count": {"type": "integer", "minimum": 1, "default": 3},
        }),
        &json!(["colour"]),
    );
    let want = "acpipe: the agent asks you\n  │ Say.\n  Ctrl-D declines\n  │ Colour\n  1  Red: warm\n  2  blue\n";
    assert_eq!(shown(&dialog), want);
    assert_eq!(dialog.prompt(), "1 of 3: one of 1-2: ");
    assert!(matches!(dialog.read(Some("\n")), NextStep::Again(_)));
    assert!(matches!(dialog.read(Some("3\n")), NextStep::Again(_)));
    assert_eq!(dialog.read(Some("2\n")), NextStep::More);
    assert_eq!(dialog.prompt(), "2 of 3: text (Enter skips it): ");
    assert_eq!(dialog.read(Some("\n")), NextStep::More);
    assert_eq!(dialog.prompt(), "3 of 3: a whole number (Enter takes 3): ");
    assert_eq!(
        dialog.read(Some("0\n")),
        NextStep::Again("enter at least 1".to_owned())
    );
    let want = json!({"action": "accept", "content": {"colour": "blue", "count": 3}});
    assert_eq!(dialog.read(Some("\n")), NextStep::Answer(want));
}

#[test]
fn form_fields_accept_only_values_of_their_schema() {
    let many =
        json!({"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2});
    let cases = [
        (json!({"type": "string"}), "héllo", Some(json!("héllo"))),
        (json!({"type": "string", "minLength": 3}), "hé", None),
        (json!({"type": "string", "maxLength": 3}), "héll", None),
        (json!({"type": "integer"}), "-5", Some(json!(-5))),
        (json!({"type": "integer"}), "1.5", None),
        (json!({"type": "integer", "maximum": 4}), "5", None),
        (json!({"type": "number"}), "1.5", Some(json!(1.5))),
        (json!({"type": "number"}), "inf", None),
        (json!({"type": "number"}), "x", None),
        (json!({"type": "boolean"}), "Yes", Some(json!(true))),
        (json!({"type": "boolean"}), "false", Some(json!(false))),
        (json!({"type": "boolean"}), "perhaps", None),
        (
            json!({"enum": ["a", "b"], "enumNames": ["First", "Second"]}),
            "second",
            Some(json!("b")),
        ),
        (json!({"enum": ["a", "b"]}), "2", Some(json!("b"))),
        (json!({"enum": ["20", "1"]}), "1", Some(json!("1"))),
        (json!({"enum": ["a", "b"]}), "0", None),
        (
            json!({"anyOf": [{"const": "a", "title": "Ah"}]}),
            "AH",
            Some(json!("a")),
        ),
        (many.clone(), "1, c,1", Some(json!(["a", "c"]))),
        (many.clone(), "1,2,3", None),
        (many.clone(), ",", None),
        (many, "1 2", None),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            "x, y z",
            Some(json!(["x", "y z"])),
        ),
        (json!({}), "anything", Some(json!("anything"))),
    ];
    for (schema, line, want) in cases {
        let mut dialog = form(&json!({"f": schema}), &json!(["f"]));
        let got = match dialog.read(Some(line)) {
            NextStep::Answer(answer) => Some(answer["content"]["f"].clone()),
            NextStep::Again(_) => None,
            NextStep::More => panic!("there is one field"),
        };
        assert_eq!(got, want, "{schema} {line:?}");
    }
}

#[test]
fn form_can_be_declined_or_confirmed() {
    let declined = NextStep::Answer(json!({"action": "decline"}));
    let mut one = form(&json!({"f": {"type": "string"}}), &json!([]));
    assert_eq!(one.read(None), declined);
    let mut none = dialog(question(QuestionKind::Form, "Agree?"));
    assert_eq!(none.prompt(), "y/n (Enter declines): ");
    assert_eq!(none.read(Some("\n")), declined);
    let agreed = answer(&mut none, &["what?\n", "y\n"]);
    assert_eq!(agreed, json!({"action": "accept", "content": {}}));
}

#[test]
fn addresses_are_shown_with_their_host() {
    let mut dialog = dialog(QuestionParams {
        url: Some("https://good.com@evil.com/x".to_owned()),
        ..question(QuestionKind::Url, "Sign in")
    });
    let shown = shown(&dialog);
    assert!(shown.contains("  Host: evil.com\n"), "{shown}");
    assert!(shown.contains("before @"), "{shown}");
    assert_eq!(
        dialog.read(None),
        NextStep::Answer(json!({"action": "cancel"}))
    );
    assert_eq!(
        answer(&mut dialog, &["x", "Y\n"]),
        json!({"action": "accept"})
    );
    assert_eq!(answer(&mut dialog, &["\n"]), json!({"action": "decline"}));
}

#[test]
fn plan_is_shown_in_full_and_answered_with_feedback() {
    let plan = format!("{}last", "step\n".repeat(200));
    let mut dialog = dialog(QuestionParams {
        options: vec![
            option("ask", OfferedKind::AllowOnce),
            option("auto", OfferedKind::AllowAlways),
            option("bypass", OfferedKind::AllowAlways),
            option("keep", OfferedKind::RejectOnce),
        ],
        ..question(QuestionKind::Plan, &plan)
    });
    assert!(shown(&dialog).contains("  │ last\n"));
    assert_eq!(dialog.prompt(), "y/2/3/n (Enter refuses): ");
    let accepted = answer(&mut dialog, &["2\n"]);
    assert_eq!(
        accepted,
        json!({"action": "accept", "content": {"optionId": "auto"}})
    );
    let declined = answer(&mut dialog, &["n first the tests\n"]);
    let content = json!({"optionId": "keep", "feedback": "first the tests"});
    assert_eq!(declined, json!({"action": "decline", "content": content}));
}
