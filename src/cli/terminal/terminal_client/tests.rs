//! The client that follows a session, between its two calls of `session/attach`.

use super::*;
use crate::cli::args::shared::Format;
use crate::cli::attach::client;
use crate::cli::run::view::RunView;
use crate::cli::terminal::target::AttachTarget;
use acpipe_host::ClientConnection as _;
use acpipe_protocol::wire::{AttachResult, Role, RunningTurn, UserMessageParams};
use clap::Parser as _;
use serde_json::json;
use std::path::PathBuf;

/// Command line of the client.
#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: crate::cli::attach::args::FollowArgs,
}

const SESSION: &str = "s";

const TURN: &str = "t";

/// Client of `acpipe attach` that has found the session, in which no turn runs.
fn looking() -> TerminalClient {
    let args = Line::try_parse_from(["attach"]).unwrap().args;
    let questions = TerminalQuestions::new(None);
    let target = AttachTarget::Session(SESSION.to_owned());
    let mut client = client(&args, target.clone(), PathBuf::new(), questions);
    client.output.view = RunView::new(Format::Text, false, true);
    client.find(&target);
    client.looked(attached(None));
    client
}

/// Answer of `session/attach`, with the turn that runs.
fn attached(turn: Option<&str>) -> AttachResult {
    AttachResult {
        session_id: SESSION.to_owned(),
        client_id: "own".to_owned(),
        role: Role::Controller,
        last_seq: 0,
        running: turn.map(|turn| RunningTurn {
            turn_id: turn.to_owned(),
            message_id: "m".to_owned(),
            after_seq: 0,
            client_id: None,
        }),
        clients: Vec::new(),
    }
}

fn prompt(turn: &str, text: &str) -> Notice {
    Notice::UserMessage(Arc::new(UserMessageParams {
        session_id: SESSION.to_owned(),
        turn_id: turn.to_owned(),
        client_id: "other".to_owned(),
        message: json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]}),
    }))
}

/// Sends the next chunk of the turn [`TURN`].
fn chunk(client: &mut TerminalClient, chunk: &serde_json::Value) {
    let address = ChunkAddress {
        session: SESSION,
        turn: Some(TURN),
        seq: 1,
    };
    client.json_chunk(address, chunk.to_string().as_bytes());
}

/// Client that follows the turn [`TURN`] from its beginning, and got the prompt of a turn before.
fn following(prompted: &str) -> TerminalClient {
    let mut client = looking();
    client.notify(&prompt(prompted, "hello"));
    let answer = Reply::Attached(Box::new(attached(Some(TURN))));
    client.reply(Token::first(0), Ok(answer));
    chunk(&mut client, &json!({"type": "start", "messageId": "m"}));
    client
}

fn stdout(client: &mut TerminalClient) -> String {
    let mut output = Vec::new();
    client.take_output(&mut output);
    String::from_utf8(output).unwrap()
}

#[test]
fn prompt_between_both_attach_calls_is_shown_before_its_answer() {
    let mut client = following(TURN);
    for next in [
        json!({"type": "text-start", "id": "m.1"}),
        json!({"type": "text-delta", "id": "m.1", "delta": "an answer"}),
    ] {
        chunk(&mut client, &next);
    }
    let shown = stdout(&mut client);
    let at = |text: &str| {
        let found = shown.find(text);
        found.unwrap_or_else(|| panic!("{text}: {shown}"))
    };
    assert!(at("hello") < at("an answer"), "{shown}");
    // Without a terminal, the client stays until the end of the turn.
    assert_ne!(client.step, TerminalStep::Over);
    chunk(&mut client, &json!({"type": "finish"}));
    assert_eq!(client.step, TerminalStep::Over);
}

#[test]
fn prompt_whose_turn_is_stored_is_not_shown_again() {
    let shown = stdout(&mut following("stored"));
    assert!(!shown.contains("hello"), "{shown}");
}

#[test]
fn files_of_the_answer_are_lines() {
    let mut client = following("before");
    for next in [
        json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGVsbG8="}),
        json!({"type": "source-document", "sourceId": "file:///p/a.pdf", "title": "A \"b\"", "mediaType": "a/b"}),
    ] {
        chunk(&mut client, &next);
    }
    let shown = stdout(&mut client);
    assert!(
        shown.ends_with("[image/png, 5 B]\n[A \"b\", a/b] file:///p/a.pdf\n"),
        "{shown:?}"
    );
}
