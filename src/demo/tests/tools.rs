//! Tests of the demo agent's tools and their permissions.

use super::{MESSAGE, Scratch, TestClient, of_kind, selected, text};
use crate::demo::words;
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn tool_asks_for_permission_and_lists_the_directory() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.join("b.txt"), "").unwrap();
    std::fs::create_dir(scratch.0.join("a")).unwrap();
    let mut client = TestClient::start();
    let session = client.session(&scratch).await;
    let prompt = client.prompt(&session, "make a plan to list files").await;
    let asked = client.decide(selected("allow_always")).await;
    let options = asked["params"]["options"].as_array().unwrap();
    let offered: Vec<_> = options.iter().map(|option| &option["kind"]).collect();
    assert_eq!(offered, ["allow_once", "allow_always", "reject_once"]);
    let (reason, updates) = client.end(&prompt).await;
    assert_eq!(reason, "end_turn");
    assert!(text(&updates, MESSAGE).ends_with(":\n\n- a/\n- b.txt"));
    let call = of_kind(&updates, "tool_call")[0];
    assert_eq!(
        call["toolCallId"],
        asked["params"]["toolCall"]["toolCallId"]
    );
    assert_eq!(call["rawInput"]["path"], json!(scratch.0));
    let ends = of_kind(&updates, "tool_call_update");
    assert_eq!(
        (&ends[0]["status"], &ends[1]["status"]),
        (&json!("in_progress"), &json!("completed"))
    );
    assert_eq!(
        ends[1]["rawOutput"],
        json!({ "names": ["a/", "b.txt"], "total": 2 })
    );
    let plans = of_kind(&updates, "plan");
    let statuses = |plan: &Value| {
        plan["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["status"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        statuses(plans[0]),
        ["completed", "in_progress", "pending", "pending"]
    );
    assert_eq!(statuses(plans[1]), ["completed"; 4]);

    // The tool is allowed for the session. A directory that cannot be listed fails the call, not the turn.
    drop(scratch);
    let prompt = client.prompt(&session, "list").await;
    let (reason, updates) = client.end(&prompt).await;
    let failed = of_kind(&updates, "tool_call_update")[1];
    assert_eq!(
        (reason, &failed["status"]),
        (json!("end_turn"), &json!("failed"))
    );
    assert!(failed["rawOutput"]["error"].is_string());
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn edit_asks_for_its_own_permission_and_writes_nothing() {
    let scratch = Scratch::new();
    let mut client = TestClient::start();
    let session = client.session(&scratch).await;
    let prompt = client
        .prompt(&session, "list the files, then edit one")
        .await;
    let list = client.decide(selected("allow_always")).await;
    let edit = client.decide(selected("allow_once")).await;
    let of = |asked: &Value| asked["params"]["toolCall"].clone();
    let (list, edit) = (of(&list), of(&edit));
    assert_eq!(
        (&list["kind"], &edit["kind"]),
        (&json!("read"), &json!("edit"))
    );
    assert_ne!(list["toolCallId"], edit["toolCallId"]);
    assert_eq!(edit["content"][0]["type"], "diff");
    let (reason, updates) = client.end(&prompt).await;
    let ends = of_kind(&updates, "tool_call_update");
    let ends: Vec<_> = ends
        .iter()
        .map(|end| (&end["toolCallId"], end["status"].as_str()))
        .collect();
    let (list, edit) = (&list["toolCallId"], &edit["toolCallId"]);
    let (runs, done) = (Some("in_progress"), Some("completed"));
    assert_eq!(
        ends,
        [(list, runs), (list, done), (edit, runs), (edit, done)]
    );
    assert_eq!(reason, "end_turn");
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0);

    // Only the listing is allowed for the session.
    let prompt = client.prompt(&session, "edit a file").await;
    let asked = client.decide(selected("reject_once")).await;
    assert_eq!(asked["params"]["toolCall"]["kind"], "edit");
    assert!(text(&client.end(&prompt).await.1, MESSAGE).ends_with(words::REFUSED));
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn refused_or_cancelled_tool_call_fails() {
    let scratch = Scratch::new();
    let mut client = TestClient::start();
    let session = client.session(&scratch).await;
    let outcomes = [
        (selected("reject_once"), "end_turn"),
        (selected("unknown"), "end_turn"),
        (json!(null), "end_turn"),
        (json!({ "outcome": "cancelled" }), "cancelled"),
    ];
    for (outcome, want) in outcomes {
        let prompt = client.prompt(&session, "use a tool").await;
        client.decide(outcome).await;
        let (reason, updates) = client.end(&prompt).await;
        assert_eq!(reason, want);
        let ends = of_kind(&updates, "tool_call_update");
        assert_eq!((ends.len(), &ends[0]["status"]), (1, &json!("failed")));
        assert_eq!(
            text(&updates, MESSAGE).ends_with(words::REFUSED),
            want == "end_turn"
        );
    }
    // Cancelling the turn withdraws the permission request.
    let prompt = client.prompt(&session, "list").await;
    let asked = client
        .until(|message| message["method"] == "session/request_permission")
        .await;
    client.cancel(&session).await;
    let (reason, updates) = client.end(&prompt).await;
    assert_eq!(
        (reason, &of_kind(&updates, "tool_call_update")[0]["status"]),
        (json!("cancelled"), &json!("failed"))
    );
    client
        .send(json!({ "id": asked["id"], "result": { "outcome": selected("allow_once") } }))
        .await;
    assert!(client.close().await.is_empty());
}
