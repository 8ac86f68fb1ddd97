//! Tests of result frames of lost sessions.

use super::*;

#[test]
fn resumed_session_without_output_is_stale() {
    let stale = json!({"num_turns": 0});
    let mut t = Test::new();
    let child = t.open(Opening::Resume("a"), &none());
    let uuid = t.prompts("a");
    let said = t.says(child, &result(&uuid, &stale));
    assert!(
        said[0].starts_with("2 failed: sessionNotFound: "),
        "{said:?}"
    );
    // After an error no turn has run either.
    let failed = json!({"num_turns": 0, "is_error": true, "api_error_status": 529, "result": "API Error: 529"});
    let uuid = t.prompts("a");
    let said = t.says(child, &result(&uuid, &failed));
    assert!(said[0].starts_with("3 ended: API Error"), "{said:?}");
    let unexplained = json!({"num_turns": 0, "is_error": true, "subtype": "error_during_execution",
        "stop_reason": null, "terminal_reason": null, "result": null});
    for (n, stale) in [(4, &stale), (5, &unexplained)] {
        let uuid = t.prompts("a");
        let said = t.says(child, &result(&uuid, stale));
        assert!(
            said[0].starts_with(&format!("{n} failed: sessionNotFound: ")),
            "{said:?}"
        );
    }
    // Once a turn has run, the CLI has the session.
    let uuid = t.prompts("a");
    let said = json!({"num_turns": 1, "result": "hello"});
    assert_eq!(
        t.says(child, &result(&uuid, &said)).last().unwrap(),
        "6 ended: end_turn"
    );
    let uuid = t.prompts("a");
    assert_eq!(t.says(child, &result(&uuid, &stale)), ["7 ended: end_turn"]);
    // Slash commands of the CLI do not use the model.
    let child = t.open(Opening::Resume("b"), &none());
    let uuid = t.prompts("b");
    let command = json!({"num_turns": 0, "local_command": "cost"});
    assert_eq!(
        t.says(child, &result(&uuid, &command)),
        ["9 ended: end_turn"]
    );
}

#[test]
fn resumed_session_with_a_reason_is_not_stale() {
    let silent = json!({"num_turns": 0});
    let failed = json!({"num_turns": 0, "is_error": true, "subtype": "error_max_budget_usd"});
    let said = json!({"num_turns": 0, "result": "Not here."});
    for (blocked, more) in [(true, silent), (false, failed), (false, said)] {
        let mut t = Test::new();
        let child = t.open(Opening::Resume("a"), &none());
        let uuid = t.prompts("a");
        if blocked {
            // As the CLI reports a prompt that a user's hook blocked.
            let why = json!({"type": "system", "subtype": "informational", "level": "warning",
                "content": "UserPromptSubmit operation blocked by hook"});
            assert_eq!(t.says(child, &why), ["Update"]);
        }
        let said = t.says(child, &result(&uuid, &more));
        let last = said.last().unwrap();
        assert!(last.starts_with("2 ended: "), "{said:?}");
        // Text that is only in the result is reported.
        assert_eq!(said.len() > 1, more["result"].is_string(), "{said:?}");
    }
}
