//! Sessions: what is kept, listed, loaded, resumed and closed.

use std::path::Path;

use serde_json::{Value, json};

use super::harness::{Client, Scratch, kinds, selected, text, turn};

const MESSAGE: &str = "agent_message_chunk";

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Loads a session and returns the updates it replayed before its answer.
async fn load(client: &mut Client, session: &str, cwd: &Path) -> Vec<Value> {
    let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
    let answer = client.call("session/load", params).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    client.updates()
}

#[tokio::test(start_paused = true)]
async fn another_process_loads_the_whole_history_and_goes_on() {
    let scratch = Scratch::new();
    let state = scratch.path().join("state");
    let mut client = Client::start(Some(&state));
    let session = client.session(scratch.path()).await;
    assert!(
        names(&state).is_empty(),
        "a session without a prompt leaves nothing behind"
    );
    let hello = turn(&mut client, &session, "hello", None).await.0;
    let listed = turn(
        &mut client,
        &session,
        "plan, then list files",
        Some(selected("allow_once")),
    )
    .await
    .0;
    assert_eq!(names(&state), [format!("{session}.ndjson")]);
    assert!(client.close().await.is_empty());

    let mut client = Client::start(Some(&state));
    let replay = load(&mut client, &session, scratch.path()).await;
    let user = text(&replay, "user_message_chunk");
    assert_eq!(user, "helloplan, then list files");
    let replayed: Vec<&Value> = replay
        .iter()
        .filter(|update| update["sessionUpdate"] != "user_message_chunk")
        .collect();
    let live = |update: &&Value| {
        !["usage_update", "session_info_update"]
            .contains(&update["sessionUpdate"].as_str().unwrap())
    };
    let live: Vec<&Value> = hello.iter().chain(&listed).filter(live).collect();
    assert_eq!(replayed, live);
    assert_eq!(
        kinds(&replay)[..4],
        [
            "user_message_chunk",
            "agent_thought_chunk",
            MESSAGE,
            "user_message_chunk"
        ]
    );
    assert!(
        replay
            .iter()
            .filter(|update| update["sessionUpdate"] == "user_message_chunk")
            .all(|update| update["messageId"].is_string())
    );

    // Usage goes on from where it was, and the title is not given twice.
    let more = turn(&mut client, &session, "hello", None).await.0;
    assert_eq!(
        kinds(&more),
        ["agent_thought_chunk", MESSAGE, "usage_update"]
    );
    let tokens = |updates: &[Value]| {
        updates
            .iter()
            .find_map(|update| update["used"].as_u64())
            .unwrap()
    };
    assert!(tokens(&more) > tokens(&listed));
    let longer = load(&mut client, &session, scratch.path()).await;
    assert!(longer.len() > replay.len());
    assert_eq!(longer[..replay.len()], replay);
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn resume_is_silent_and_goes_on() {
    let scratch = Scratch::new();
    let mut client = Client::start(Some(scratch.path()));
    let session = client.session(scratch.path()).await;
    turn(&mut client, &session, "hello", None).await;
    client.close().await;

    let mut client = Client::start(Some(scratch.path()));
    let id = client.prompt(&session, "hello").await;
    assert_eq!(
        client.answer_to(id).await["error"]["code"],
        -32002,
        "not open yet"
    );
    let answer = client
        .call(
            "session/resume",
            json!({ "sessionId": session, "cwd": scratch.path() }),
        )
        .await;
    assert_eq!(answer["result"], json!({}));
    assert!(client.updates().is_empty());
    turn(&mut client, &session, "hello", None).await;
    assert_eq!(
        text(
            &load(&mut client, &session, scratch.path()).await,
            "user_message_chunk"
        ),
        "hellohello"
    );
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn an_unknown_session_is_minus_32002_and_no_path() {
    let scratch = Scratch::new();
    let state = scratch.path().join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(
        scratch.path().join("secret.ndjson"),
        r#"{"sessionId":"../secret","cwd":"/","title":""}"#,
    )
    .unwrap();
    let mut client = Client::start(Some(&state));
    for id in ["demo-0", "../secret", "", "/etc/passwd", "demo-\u{1b}[2J"] {
        for method in [
            "session/load",
            "session/resume",
            "session/close",
            "session/prompt",
        ] {
            let params =
                json!({ "sessionId": id, "cwd": scratch.path(), "mcpServers": [], "prompt": [] });
            let answer = client.call(method, params).await;
            assert_eq!(answer["error"]["code"], -32002, "{method} {id}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(
                message.contains("unknown session") && !message.contains('\u{1b}'),
                "{message}"
            );
        }
    }
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn close_ends_the_turn_and_keeps_the_file() {
    let scratch = Scratch::new();
    let mut client = Client::start(Some(scratch.path()));
    let session = client.session(scratch.path()).await;
    let prompt = client.prompt(&session, "slow").await;
    client
        .until(|message| message["params"]["update"]["content"]["text"] == "3 ")
        .await;
    let close = client
        .request("session/close", json!({ "sessionId": session }))
        .await;
    assert_eq!(
        client.answer_to(prompt).await["result"]["stopReason"],
        "cancelled"
    );
    assert_eq!(client.answer_to(close).await["result"], json!({}));
    client.updates();
    let again = client
        .call("session/close", json!({ "sessionId": session }))
        .await;
    assert_eq!(again["error"]["code"], -32002);
    let replay = load(&mut client, &session, scratch.path()).await;
    assert!(text(&replay, MESSAGE).ends_with("1 2 3 "));
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_directory_sessions_work_until_the_process_ends() {
    let scratch = Scratch::new();
    let file = scratch.path().join("in-the-way");
    std::fs::write(&file, "").unwrap();
    for dir in [None, Some(file.as_path())] {
        let mut client = Client::start(dir);
        let session = client.session(scratch.path()).await;
        assert!(load(&mut client, &session, scratch.path()).await.is_empty());
        let live = turn(&mut client, &session, "hello", None).await.0;
        let replay = load(&mut client, &session, scratch.path()).await;
        assert_eq!(text(&replay, MESSAGE), text(&live, MESSAGE));
        assert_eq!(
            client.call("session/list", json!({})).await["result"]["sessions"],
            json!([])
        );
        assert!(client.close().await.is_empty());
    }
}
