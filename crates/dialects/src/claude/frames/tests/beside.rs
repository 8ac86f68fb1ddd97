//! Tests of frames other than the model's output: tool results, and reports of the CLI about itself.

use super::*;

#[test]
fn tool_results_are_reported() {
    let answer = |block: Value, result: Value| {
        json!({
            "type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": null,
            "session_id": "s", "tool_use_result": result, "tool_result_meta": [{"id": "t", "k": 1}],
        })
        .to_string()
    };
    let result =
        |content: Value| json!({"type": "tool_result", "tool_use_id": "t", "content": content});
    let text = r#"{"type":"content","content":{"type":"text","text":"x"}}"#;
    let other = r#" other {"tool_result_meta":{"id":"t","k":1}}"#;
    let mut failed = result(json!("x"));
    failed["is_error"] = true.into();
    for (block, known, want) in [
        (
            result(json!("x")),
            json!({"stdout": "x"}),
            format!(r#"completed output {{"stdout":"x"}} content [{text}]"#),
        ),
        (failed, json!("Error: x"), format!(r#"failed output "Error: x" content [{text}]"#)),
        (
            result(json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iV"}}])),
            Value::Null,
            r#"completed content [{"type":"content","content":{"type":"image","mimeType":"image/png","data":"iV"}}]"#.to_owned(),
        ),
        (
            result(json!("x")),
            json!({"filePath": "/a", "oldString": "1", "newString": "2", "structuredPatch": [
                {"oldStart": 3, "newStart": 4, "lines": ["-1", "+2", " c", "\\ No newline at end of file"]},
            ]}),
            format!(
                r#"completed output {{"filePath":"/a","oldString":"1","newString":"2","structuredPatch":[{{"oldStart":3,"newStart":4,"lines":["-1","+2"," c","\\ No newline at end of file"]}}]}} content [{{"type":"diff","path":"/a","oldText":"1\nc","newText":"2\nc"}},{text}] at [{{"path":"/a","line":4}}]"#
            ),
        ),
    ] {
        let line = answer(block, known);
        assert_eq!(all(&[line]), [format!("tool t begins {want}{other}")]);
    }
    // The model's provider sends the results of its own tools within the message.
    let lines = [whole(
        "m",
        json!([
            {"type": "server_tool_use", "id": "t", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "t", "content": {"type": "web_search_tool_result_error"}},
        ]),
    )];
    let said = all(&lines);
    assert!(
        said[1].starts_with("tool t begins web_search fetch web_search q pending"),
        "{said:?}"
    );
    assert!(said[2].starts_with("tool t failed output"), "{said:?}");
}

#[test]
fn user_frames_are_classified() {
    let user = |content: Value, more: Value| {
        let mut line = json!({"type": "user", "message": {"content": content}, "session_id": "s"});
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        line.to_string()
    };
    let text = json!([{"type": "text", "text": "go"}]);
    for (line, want) in [
        (user(text.clone(), json!({"isReplay": true})), vec![]),
        (
            user(json!("<local-command-stdout>x"), json!({"isReplay": true})),
            vec![],
        ),
        (
            user(text.clone(), json!({"isSynthetic": true})),
            vec!["passing"],
        ),
        (
            user(
                json!([{"type": "text", "text": "[Request interrupted by user]"}]),
                json!({}),
            ),
            vec!["passing"],
        ),
        (
            user(text.clone(), json!({"parent_tool_use_id": "p"})),
            vec!["[p] user - go"],
        ),
        (user(text, json!({})), vec!["other"]),
    ] {
        assert_eq!(all(std::slice::from_ref(&line)), want, "{line}");
    }
}

#[test]
fn system_frames_are_reported() {
    let system = |subtype: &str, more: Value| {
        let mut line =
            json!({"type": "system", "subtype": subtype, "session_id": "s", "uuid": subtype});
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        line.to_string()
    };
    let lines = [
        system("init", json!({"permissionMode": "plan", "model": "m"})),
        system("status", json!({"status": "requesting"})),
        system(
            "status",
            json!({"status": null, "permissionMode": "default"}),
        ),
        system("status", json!({"status": "compacting"})),
        system("compact_boundary", json!({"compact_metadata": {}})),
        system(
            "status",
            json!({"status": null, "compact_result": "success"}),
        ),
        system("informational", json!({"content": "x", "level": "notice"})),
        system(
            "permission_denied",
            json!({"tool_name": "Bash", "tool_use_id": "t", "message": "no"}),
        ),
        system(
            "task_started",
            json!({"task_id": "1", "tool_use_id": "t", "task_type": "local_agent"}),
        ),
        system(
            "task_updated",
            json!({"task_id": "1", "patch": {"status": "completed"}}),
        ),
        system(
            "task_started",
            json!({"task_id": "2", "tool_use_id": "t", "task_type": "local_bash"}),
        ),
        system("task_progress", json!({"task_id": "2", "tool_use_id": "t"})),
        system("api_retry", json!({"attempt": 1})),
    ];
    let want = [
        r#"session {"currentModeId":"plan","claude":{"model":"m"}}"#,
        "passing",
        r#"session {"currentModeId":"default"}"#,
        "compaction status",
        "compaction status",
        "compaction status",
        "notice",
        "refused t no",
        "passing",
        "subagent t",
        "subagent t",
        "other",
        "passing",
        "passing",
    ];
    assert_eq!(all(&lines), want);
}

#[test]
fn api_error_is_a_failure_and_command_output_is_an_answer() {
    let said = |more: Value| {
        let mut line = json!({
            "type": "assistant", "session_id": "s", "parent_tool_use_id": null, "message":
            {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 529"}]},
        });
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        line.to_string()
    };
    let mut frames = Frames::default();
    let error = said(json!({"is_api_error_message": true, "error": "server_error"}));
    assert!(told(&mut frames, &[error]).is_empty());
    let failure = frames.failure().unwrap();
    assert_eq!(
        (failure.code.as_deref(), failure.text.as_str()),
        (Some("server_error"), "API Error: 529")
    );
    frames.turn_over();
    assert!(frames.failure().is_none());
    let command = said(json!({"local_command_source": "<local-command-stdout>…"}));
    assert_eq!(all(&[command]), ["step", "text x API Error: 529", "end"]);
    assert_eq!(all(&[said(json!({}))]), ["other"]);
}
