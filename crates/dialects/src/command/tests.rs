//! Commands as agents: the dialect's orders, and the events of a prompt.

use super::CommandAgent;
use crate::backend::Exchanges;
use acpipe_model::backend_options::{BackendOptions, CommandInput, CommandOutput};
use acpipe_model::dialect::{
    AgentCall, AgentLine, Child, Dialect, Opening, Outgoing, ProcessSpec, PromptPart, SessionSetup,
    Transcript, Transport, TransportOrder,
};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, CallId, Exit, StopReason, Update};
use acpipe_protocol::wire::SessionOptions;
use serde_json::{Value, json};

/// Agent whose orders and events are collected.
struct Player {
    dialect: Exchanges<CommandAgent>,
    out: Outgoing,
}

/// Result of a prompt: the pieces of text, and the end.
type Outcome = (Vec<String>, Result<StopReason, Error>);

impl Player {
    fn new(args: &[&str], options: BackendOptions) -> Self {
        let launch = ProcessSpec {
            command: "answer".to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..ProcessSpec::default()
        };
        let mut player = Self {
            dialect: Exchanges::new(CommandAgent::new(launch, options), "seed"),
            out: Outgoing::default(),
        };
        player
            .dialect
            .call(AgentCall::Start, &mut player.out)
            .unwrap();
        assert!(matches!(player.answers()[..], [AgentEvent::Ready(_)]));
        player
    }

    /// Returns the events that the loopback delivers.
    fn answers(&mut self) -> Vec<AgentEvent<'static>> {
        let mut events = Vec::new();
        for (child, order) in self.out.take() {
            if let (Child::MAIN, TransportOrder::Lines(lines)) = (child, order) {
                for line in lines.split_inclusive(|byte| *byte == b'\n') {
                    let line: &'static [u8] = line.to_vec().leak();
                    self.dialect
                        .read(
                            Child::MAIN,
                            AgentLine::Whole(line),
                            &mut events,
                            &mut self.out,
                        )
                        .unwrap();
                }
            }
        }
        events
    }

    fn open(&mut self, way: Opening<'_>, options: &SessionOptions) -> String {
        let place = SessionSetup {
            acp: &serde_json::Map::new(),
            cwd: "/work",
            mcp_servers: &[],
            options,
            fork: false,
        };
        let call = AgentCall::Open {
            call: CallId(1),
            way,
            place: &place,
        };
        self.dialect.call(call, &mut self.out).unwrap();
        match self.answers().pop() {
            Some(AgentEvent::SessionOpened { agent_session, .. }) => agent_session,
            other => panic!("not opened: {other:?}"),
        }
    }

    fn prompt(&mut self, session: &str, parts: &[PromptPart<'_>]) -> Result<Started, Error> {
        let (dialect, out) = (&mut self.dialect, &mut self.out);
        let prompt = AgentCall::Prompt {
            call: CallId(2),
            session,
            parts,
            degrade: false,
        };
        dialect.call(prompt, out)?;
        let mut started = Started::default();
        for (child, order) in self.out.take() {
            started.child = Some(child);
            match order {
                TransportOrder::Open(Transport::Process(spec)) => started.spec = spec,
                TransportOrder::Lines(lines) => started.input = String::from_utf8(lines).unwrap(),
                TransportOrder::FinishInput => started.is_finished = true,
                other => panic!("not expected: {other:?}"),
            }
        }
        Ok(started)
    }

    /// Plays the output and the exit of the command of a prompt.
    fn plays(&mut self, child: Child, output: &str, exit: &Result<Exit, Error>) -> Outcome {
        let mut events = Vec::new();
        for line in output.split_inclusive('\n') {
            let line = line.strip_suffix('\n').unwrap_or(line);
            // A line that is not JSON has no events.
            let _ = self.dialect.read(
                child,
                AgentLine::Whole(line.as_bytes()),
                &mut events,
                &mut self.out,
            );
        }
        let mut ends = Vec::new();
        assert!(
            self.dialect
                .ended(child, exit.as_ref(), &mut ends, &mut self.out)
        );
        events.extend(ends);
        let mut texts = Vec::new();
        for event in events {
            match event {
                AgentEvent::Update {
                    update: Update::Message(piece),
                    ..
                } => {
                    texts.push(piece.content.text().unwrap().decode().into_owned());
                }
                AgentEvent::Update {
                    update: Update::Other,
                    original,
                    ..
                } => {
                    texts.push(format!("other {}", original.json()));
                }
                AgentEvent::TurnEnded { end, .. } => return (texts, Ok(end.stop_reason)),
                AgentEvent::Failed { error, .. } => return (texts, Err(error)),
                other => panic!("not expected: {other:?}"),
            }
        }
        panic!("the prompt has no end")
    }
}

#[derive(Debug, Default)]
struct Started {
    child: Option<Child>,
    spec: ProcessSpec,
    input: String,
    is_finished: bool,
}

fn text(text: &str) -> [PromptPart<'_>; 1] {
    [PromptPart::Text(text.into())]
}

fn exit(code: i32) -> Exit {
    Exit {
        code: Some(code),
        ..Exit::default()
    }
}

fn options(output: CommandOutput, answer: Option<&str>) -> BackendOptions {
    BackendOptions {
        output,
        answer: answer.map(str::to_owned),
        ..BackendOptions::default()
    }
}

#[test]
fn prompt_replaces_the_placeholder_or_is_written_to_stdin() {
    let instructions = SessionOptions {
        append_system_prompt: Some("Be brief.".to_owned()),
        ..SessionOptions::default()
    };
    for (args, want_args, want_input) in [
        (&["-q"][..], &["-q"][..], "Be brief.\n\nhi\n"),
        (
            &["--ask={prompt}", "-q"],
            &["--ask=Be brief.\n\nhi", "-q"],
            "",
        ),
    ] {
        let mut player = Player::new(args, BackendOptions::default());
        let session = player.open(Opening::New, &instructions);
        let started = player.prompt(&session, &text("hi")).unwrap();
        assert_eq!(started.spec.args, want_args);
        assert_eq!(
            (started.input.as_str(), started.is_finished),
            (want_input, true)
        );
        assert_eq!(started.spec.cwd, "/work");
    }
}

#[test]
fn json_input_has_message_history_and_session() {
    let options = BackendOptions {
        input: CommandInput::Json,
        ..BackendOptions::default()
    };
    let mut player = Player::new(&[], options);
    let session = player.open(Opening::New, &SessionOptions::default());
    let transcript = Transcript {
        earlier: vec![json!({"id": "1", "role": "user", "parts": []})],
        message: json!({"id": "2", "role": "user", "parts": [{"type": "text", "text": "hi"}]}),
        omitted: 3,
    };
    let passed = AgentCall::Transcript {
        session: &session,
        transcript: transcript.clone(),
    };
    player.dialect.call(passed, &mut player.out).unwrap();
    let started = player.prompt(&session, &text("hi")).unwrap();
    let input: Value = serde_json::from_str(&started.input).unwrap();
    assert_eq!(
        input,
        json!({
            "prompt": "hi", "message": transcript.message, "history": transcript.earlier, "omitted": 3,
            "instructions": null, "sessionId": session, "cwd": "/work",
        })
    );
    assert_eq!(started.input.matches('\n').count(), 1);
}

#[test]
fn output_becomes_the_answer() {
    use CommandOutput::{Json, JsonLines, Text};
    let object = r#"{"a":[{"b":"deep"}],"text":"top"}"#;
    for (form, path, output, want) in [
        (
            Text,
            None,
            "one\ntwo\n\nthree\n\n",
            &["one", "\ntwo", "\n\nthree"][..],
        ),
        (Text, None, "\n\n  indented", &["  indented"]),
        (Json, None, object, &["top"]),
        (
            Json,
            Some("a.0.b"),
            "{\"a\":[\n{\"b\":\"deep\"}]}\n",
            &["deep"],
        ),
        (Json, Some("a"), "\"a string\"", &["a string"]),
        (Json, None, "{\"x\":NaN,\n\"text\":\"a\tb\",}\n", &["a\tb"]),
        (
            Json,
            None,
            r#"{"n":1e999,"text":"a\ud83d"}"#,
            &["a\u{fffd}"],
        ),
        (
            JsonLines,
            None,
            "{\"text\":\"a\\ud83d\",\"n\":1e999}\n{\"text\":\"\\ude00b\"}\n",
            &["a\u{fffd}", "\u{fffd}b"],
        ),
        (
            JsonLines,
            Some("d.t"),
            "{\"d\":{\"t\":\"x\"}}\n\"y\"\n{\"other\":1}\nnot JSON\n",
            &["x", "y", "other {\"other\":1}"],
        ),
    ] {
        let mut player = Player::new(&[], options(form, path));
        let session = player.open(Opening::New, &SessionOptions::default());
        let child = player.prompt(&session, &text("hi")).unwrap().child.unwrap();
        let (texts, end) = player.plays(child, output, &Ok(exit(0)));
        assert_eq!(texts, want, "{output}");
        assert_eq!(end.unwrap(), StopReason::EndTurn);
    }
}

#[test]
fn unusable_json_output_is_malformed_with_the_output() {
    for (output, path, says) in [
        ("{\"text\":1}", None, "has no text at \"text\""),
        ("{\"a\":1}", Some("b.0"), "has no text at \"b.0\""),
        ("half {", None, "is not JSON"),
        ("", None, "is not JSON"),
    ] {
        let mut player = Player::new(&[], options(CommandOutput::Json, path));
        let session = player.open(Opening::New, &SessionOptions::default());
        let child = player.prompt(&session, &text("hi")).unwrap().child.unwrap();
        let (texts, end) = player.plays(child, output, &Ok(exit(0)));
        let error = end.unwrap_err();
        assert_eq!(
            (texts.len(), error.kind),
            (0, ErrorKind::Malformed),
            "{output}"
        );
        assert!(error.message.contains(says), "{}", error.message);
    }
}

#[test]
fn failed_command_keeps_its_partial_answer() {
    let not_found = Error::new(ErrorKind::AgentNotFound, "not found");
    for (how, kind) in [
        (Ok(exit(3)), ErrorKind::AgentExited),
        (
            Ok(Exit {
                signal: Some(9),
                ..Exit::default()
            }),
            ErrorKind::AgentExited,
        ),
        (Err(not_found), ErrorKind::AgentNotFound),
    ] {
        let mut player = Player::new(&[], BackendOptions::default());
        let session = player.open(Opening::New, &SessionOptions::default());
        let child = player.prompt(&session, &text("hi")).unwrap().child.unwrap();
        let (texts, end) = player.plays(child, "half\n", &how);
        assert_eq!(
            (texts, end.unwrap_err().kind),
            (vec!["half".to_owned()], kind)
        );
        // The agent continues: the next prompt starts another process.
        let next = player
            .prompt(&session, &text("again"))
            .unwrap()
            .child
            .unwrap();
        assert_ne!(next, child);
    }
}

#[test]
fn cancel_stops_the_process_and_ends_the_turn() {
    let mut player = Player::new(&[], BackendOptions::default());
    let session = player.open(Opening::New, &SessionOptions::default());
    let child = player.prompt(&session, &text("hi")).unwrap().child.unwrap();
    let cancel = AgentCall::Cancel(&session);
    player.dialect.call(cancel, &mut player.out).unwrap();
    let orders = player.out.take();
    let [
        (stopped, TransportOrder::Stop),
        (Child::MAIN, TransportOrder::Lines(line)),
    ] = &orders[..]
    else {
        panic!("not the stop and an answer: {orders:?}");
    };
    assert_eq!(*stopped, child);
    let mut events = Vec::new();
    player
        .dialect
        .read(
            Child::MAIN,
            AgentLine::Whole(line.trim_ascii_end()),
            &mut events,
            &mut player.out,
        )
        .unwrap();
    let [
        AgentEvent::TurnEnded {
            call: CallId(2),
            end,
        },
    ] = &events[..]
    else {
        panic!("not the end of the turn: {events:?}");
    };
    assert_eq!(end.stop_reason, StopReason::Cancelled);
    // Output of the stopped process has no reader, and a second cancel nothing to stop.
    let mut late = Vec::new();
    player
        .dialect
        .read(child, AgentLine::Whole(b"late"), &mut late, &mut player.out)
        .unwrap();
    let cancel = AgentCall::Cancel(&session);
    player.dialect.call(cancel, &mut player.out).unwrap();
    assert!(late.is_empty() && player.out.is_empty());
}

#[test]
fn file_in_a_text_prompt_is_refused_or_named() {
    let mut player = Player::new(&[], BackendOptions::default());
    let session = player.open(Opening::New, &SessionOptions::default());
    let file = |url: &'static str| {
        [PromptPart::File {
            url: url.into(),
            media_type: None,
            name: Some("a.png".to_owned()),
        }]
    };
    let error = player
        .prompt(&session, &file("data:image/png;base64,AAAA"))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert!(error.message.contains("\"a.png\""), "{}", error.message);
    let link = player.prompt(&session, &file("file:///a.png")).unwrap();
    assert_eq!(link.input, "file:///a.png\n");
}

#[test]
fn resumed_session_keeps_its_id_and_another_call_gets_a_new_one() {
    let mut player = Player::new(&[], BackendOptions::default());
    let none = SessionOptions::default();
    assert_eq!(player.open(Opening::Resume("old"), &none), "old");
    let first = player.open(Opening::New, &none);
    assert_ne!(first, player.open(Opening::New, &none));
    let close = AgentCall::Close {
        call: CallId(3),
        session: "old",
    };
    player.dialect.call(close, &mut player.out).unwrap();
    let error = player.prompt("old", &text("hi")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::SessionNotFound);
}
