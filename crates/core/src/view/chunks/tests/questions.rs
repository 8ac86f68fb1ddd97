//! Tests with permission requests that are open while the agent continues.

use super::*;
use acpipe_policy::Subject;
use std::borrow::Cow;

fn titled(title: &'static str) -> Update<'static> {
    tool(ToolUpdate {
        id: "t".into(),
        title: Some(title.into()),
        ..ToolUpdate::default()
    })
}

/// Types of the chunks from `from` on, except `data-permission`.
fn kinds(seen: &Seen, from: usize) -> Vec<String> {
    let kinds = seen.0[from..].iter().map(|c| c["type"].as_str().unwrap());
    let kinds = kinds.filter(|kind| *kind != "data-permission");
    kinds.map(str::to_owned).collect()
}

fn asked(seen: &mut Seen) -> (Turn, crate::turn::Question, usize) {
    let mut turn = start(seen);
    turn.update(&call("t"), original("{}"), seen);
    turn.update(&input("t", r#"{"command":"ls"}"#), original("{}"), seen);
    let question = turn.ask(None, &question("t"), &Subject::default(), false, seen);
    let from = seen.0.len();
    (turn, question, from)
}

fn allowed() -> Decision {
    Decision::of(true, false, &question("t").options, DecisionSource::Client)
}

#[test]
fn a_policy_sees_all_that_is_known_of_the_call() {
    let mut seen = Seen::default();
    let (turn, _, _) = asked(&mut seen);
    let subject = turn.subject(None, &question("t"), "/w");
    assert_eq!(subject.name.as_deref(), Some("Bash"));
    assert_eq!(subject.cwd, "/w");
}

#[test]
fn changes_during_a_question_are_shown_with_its_answer() {
    let mut seen = Seen::default();
    let (mut turn, question, from) = asked(&mut seen);
    turn.update(&titled("List"), original("{}"), &mut seen);
    assert_eq!(kinds(&seen, from), [""; 0]);
    turn.decide(&question, &allowed(), &mut seen);
    assert_eq!(
        kinds(&seen, from),
        ["tool-approval-response", "tool-output-available"]
    );
    let shown = seen
        .0
        .iter()
        .rfind(|c| c["type"] == "tool-output-available");
    let shown = shown.unwrap();
    assert_eq!(shown["preliminary"], true);
    assert_eq!(shown["toolMetadata"]["claude"]["title"], "List");
}

#[test]
fn a_result_that_comes_before_the_answer_closes_the_question() {
    for (status, approved, last) in [
        ("completed", true, "tool-output-available"),
        ("failed", false, "data-tool-call"),
    ] {
        let mut seen = Seen::default();
        let (mut turn, question, from) = asked(&mut seen);
        turn.update(&ends("t", status, r#""out""#), original("{}"), &mut seen);
        let shown = kinds(&seen, from);
        assert_eq!(shown[0], "tool-approval-response", "{status}");
        assert_eq!(seen.0[from]["approved"], approved, "{status}");
        assert_eq!(shown.last().unwrap(), last, "{status}");
        // A later decision is shown next to the call.
        let from = seen.0.len();
        turn.decide(&question, &allowed(), &mut seen);
        assert_eq!(kinds(&seen, from), [""; 0], "{status}");
        assert_eq!(seen.0[from]["data"]["by"], "client");
    }
}

#[test]
fn end_of_a_turn_closes_unanswered_questions() {
    let mut seen = Seen::default();
    let (mut turn, _, from) = asked(&mut seen);
    turn.finish(&ended(), false, &mut seen);
    let shown = kinds(&seen, from);
    assert_eq!(
        shown[..2],
        ["tool-approval-response", "tool-output-denied"],
        "{shown:?}"
    );
}

#[test]
fn question_text_is_not_a_tool_result() {
    let content = r#"[{"type":"content","content":{"type":"text","text":"to write a file"}}]"#;
    let completed = |output: Option<&'static str>, content: Option<&'static str>| {
        tool(ToolUpdate {
            id: "t".into(),
            status: Some("completed".into()),
            output: output.map(raw),
            content: content.map(|content| Cow::Borrowed(raw(content))),
            ..ToolUpdate::default()
        })
    };
    for (end, result) in [
        (completed(Some(r#""42""#), None), "42"),
        (completed(None, None), ""),
        (completed(Some(r#""42""#), Some(content)), "to write a file"),
    ] {
        let mut seen = Seen::default();
        let mut turn = start(&mut seen);
        turn.update(&call("t"), original("{}"), &mut seen);
        let mut asks = question("t");
        asks.tool.content = Some(Cow::Borrowed(raw(content)));
        let question = turn.ask(None, &asks, &Subject::default(), false, &mut seen);
        turn.decide(&question, &allowed(), &mut seen);
        turn.update(&end, original("{}"), &mut seen);
        let (results, _) = turn.tool_results();
        assert_eq!(results[0].result, result);
    }
}
