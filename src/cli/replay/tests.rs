//! Replays of tapes to clients in memory.

use super::inbox::ClientInbox;
use super::message::{AgentMessage, Language};
use super::player::Player;
use super::script::{Action, ProcessExit, Script, scripts};
use acpipe_protocol::tape::records;
use serde_json::Value;
use std::io::Cursor;
use std::path::Path;

fn script(tape: &str) -> Script {
    let mut all = scripts(records(tape).map(Result::unwrap));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Replays a tape without pauses to a client that sends these lines, then closes its end. Returns the lines that
/// the client receives, and the ending.
fn played(tape: &str, input: &str, renamed: Option<(&str, &str)>) -> (Vec<String>, ProcessExit) {
    let script = script(tape);
    let inbox = ClientInbox::start(Cursor::new(input.to_owned()), script.language).unwrap();
    let mut out = Vec::new();
    let mut player = Player::new(
        (script.language, script.steps),
        None,
        inbox,
        &mut out,
        |_| {},
    );
    if let Some((recorded, own)) = renamed {
        player.rename(recorded, own);
    }
    let ending = player.play().unwrap();
    let text = String::from_utf8(out).unwrap();
    (text.lines().map(str::to_owned).collect(), ending)
}

const TAPE: &str = r#"{"t_ms":1,"dir":"out","frame":{"id":0,"method":"initialize","params":{}}}
{"t_ms":2,"dir":"in","frame":{"id":0,"result":{"protocolVersion":1}}}
{"t_ms":3,"dir":"out","frame":{"id":1,"method":"session/new","params":{"cwd":"/a"}}}
{"t_ms":4,"dir":"in","frame":{"id":1,"result":{"sessionId":"s-of-tape"}}}
{"t_ms":5,"dir":"out","frame":{"id":2,"method":"session/prompt","params":{"sessionId":"s-of-tape"}}}
{"t_ms":6,"dir":"in","frame":{"method":"session/update","params":{"sessionId":"s-of-tape","n":1.50}}}
{"t_ms":7,"dir":"in","frame":{"id":"ask","method":"session/request_permission","params":{"sessionId":"s-of-tape"}}}
{"t_ms":8,"dir":"out","frame":{"id":"ask","result":{"outcome":{"outcome":"cancelled"}}}}
{"t_ms":9,"dir":"in","text":"a panic"}
{"t_ms":9,"event":"exited","code":3,"stderr":"it crashed"}
"#;

#[test]
fn responses_get_the_ids_of_the_actual_requests() {
    let input = r#"{"id":"a","method":"initialize","params":{"more":1}}
{"id":70,"method":"session/new","params":{"cwd":"/b"}}
{"id":71,"method":"session/prompt","params":{"sessionId":"s-of-tape"}}
{"id":"ask","result":{"outcome":{"outcome":"selected","optionId":"x"}}}
"#;
    let (lines, ending) = played(TAPE, input, None);
    assert_eq!(
        lines,
        [
            r#"{"id":"a","result":{"protocolVersion":1}}"#,
            r#"{"id":70,"result":{"sessionId":"s-of-tape"}}"#,
            r#"{"method":"session/update","params":{"sessionId":"s-of-tape","n":1.50}}"#,
            r#"{"id":"ask","method":"session/request_permission","params":{"sessionId":"s-of-tape"}}"#,
            "a panic",
        ]
    );
    let want = ProcessExit {
        code: Some(3),
        signal: None,
        stderr: "it crashed".to_owned(),
    };
    assert_eq!(ending, want);
}

#[test]
fn request_that_the_tape_does_not_have_is_answered_with_an_error() {
    let input = r#"{"id":1,"method":"initialize"}
{"id":2,"method":"session/list"}
{"id":3,"method":"session/new"}
{"id":4,"method":"session/delete"}
"#;
    let (lines, ending) = played(TAPE, input, None);
    let errors: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line.get("error").is_some())
        .collect();
    assert_eq!(errors.len(), 2, "{lines:?}");
    for (error, id, method) in [
        (&errors[0], 2, "session/list"),
        (&errors[1], 4, "session/delete"),
    ] {
        assert_eq!(error["id"], id);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(method), "{message}");
        assert!(message.contains("acpipe replay"), "{message}");
    }
    // The client left before the prompt.
    assert_eq!(ending, ProcessExit::default());
}

#[test]
fn message_that_the_client_leaves_out_is_skipped() {
    let input = r#"{"id":1,"method":"initialize"}
{"id":2,"method":"session/prompt","params":{"sessionId":"s-of-tape"}}
{"id":"ask","result":{"outcome":{"outcome":"cancelled"}}}
"#;
    let (lines, ending) = played(TAPE, input, None);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        !lines
            .iter()
            .any(|line| line.contains("result\":{\"sessionId"))
    );
    assert_eq!(ending.code, Some(3));
}

#[test]
fn restored_session_of_the_tape_can_be_a_new_one() {
    let tape = r#"{"dir":"out","frame":{"id":1,"method":"session/load","params":{"sessionId":"s-of-tape"}}}
{"dir":"in","frame":{"id":1,"result":null}}
"#;
    let (lines, _) = played(tape, "{\"id\":5,\"method\":\"session/new\"}\n", None);
    let answer: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(answer["id"], 5);
    assert_eq!(answer["result"]["sessionId"], "s-of-tape");
    let load =
        "{\"id\":5,\"method\":\"session/load\",\"params\":{\"sessionId\":\"of-the-client\"}}\n";
    let tape = TAPE.replace("\"session/prompt\",\"params\"", "\"session/prompt\",\"x\"");
    let init = "{\"id\":4,\"method\":\"initialize\"}\n";
    let prompt = "{\"id\":6,\"method\":\"session/prompt\"}\n";
    let (lines, _) = played(&tape, &format!("{init}{load}{prompt}"), None);
    assert!(
        lines[2].contains("\"sessionId\":\"of-the-client\""),
        "{lines:?}"
    );
}

#[test]
fn claude_code_gets_the_ids_of_its_client() {
    let tape = r#"{"dir":"out","frame":{"type":"control_request","request_id":"r1","request":{"subtype":"initialize"}}}
{"dir":"in","frame":{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{}}}}
{"dir":"out","frame":{"type":"user","uuid":"uuid-of-tape","message":{}}}
{"dir":"in","frame":{"type":"system","session_id":"session-of-tape","uuid":"uuid-of-tape"}}
{"dir":"in","frame":{"type":"control_request","request_id":"ask","request":{"subtype":"can_use_tool"}}}
{"dir":"out","frame":{"type":"control_response","response":{"request_id":"ask","response":{}}}}
{"dir":"in","frame":{"type":"result"}}
"#;
    let input = r#"{"type":"control_request","request_id":"x","request":{"subtype":"initialize"}}
{"type":"control_request","request_id":"y","request":{"subtype":"set_model"}}
{"type":"user","uuid":"uuid-of-client"}
{"type":"control_response","response":{"request_id":"ask","response":{}}}
"#;
    let (lines, _) = played(tape, input, Some(("session-of-tape", "session-of-client")));
    assert_eq!(
        lines[0],
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"x","response":{}}}"#
    );
    assert!(
        lines[1].contains("\"error\"") && lines[1].contains("\"request_id\":\"y\""),
        "{lines:?}"
    );
    assert_eq!(
        lines[2],
        r#"{"type":"system","session_id":"session-of-client","uuid":"uuid-of-client"}"#
    );
    assert_eq!(lines[4], r#"{"type":"result"}"#);
}

/// Replays each recording to the client that it was recorded with.
#[test]
fn recordings_are_repeated_unchanged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/recordings");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let tape = std::fs::read_to_string(&path).unwrap();
        let recording = script(&tape);
        let (mut input, mut requests, mut want) = (String::new(), Vec::new(), Vec::new());
        for step in &recording.steps {
            match &step.action {
                Action::Expect(message) => {
                    input.push_str(&message.line);
                    input.push('\n');
                    requests.push(message.kind.clone());
                }
                Action::Send(line) => {
                    let is_known = match recording.language.agent_message(line) {
                        AgentMessage::Response(id) => {
                            requests.contains(&super::message::ClientMessageKind::Request(id))
                        }
                        _ => true,
                    };
                    want.extend(is_known.then(|| line.trim().to_owned()));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_ne!(recording.language, Language::Text, "{}", path.display());
        let (lines, _) = played(&tape, &input, None);
        let have: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        let differs = have.iter().zip(&want).position(|(have, want)| have != want);
        if let Some(at) = differs {
            panic!("{}, line {at}:\n{}\n{}", path.display(), have[at], want[at]);
        }
        assert_eq!(have.len(), want.len(), "{}", path.display());
        count += 1;
    }
    assert!(count > 130, "recordings are missing");
}
