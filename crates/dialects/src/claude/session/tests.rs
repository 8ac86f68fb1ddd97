//! Tests of CLI sessions: a dialect with a scripted process, and its events in short form.

mod lines;
mod opening;
mod prompts;
mod results;

use crate::claude::Claude;
use acpipe_json::frame::Overlong;
use acpipe_model::dialect::{
    AgentCall, AgentLine, Child, Dialect, Opening, Outgoing, ProcessSpec, PromptPart, SessionSetup,
    Transport, TransportOrder,
};
use acpipe_model::event::{AgentEvent, CallId, Exit};
use acpipe_protocol::wire::{SessionOptions, Variables};
use serde_json::{Value, json};

/// Process that reports the version.
const VERSION: Child = Child(1);

/// A CLI with the lines sent to it and the resulting events in short form.
struct Test {
    claude: Claude,
    out: Outgoing,
    calls: u64,
    /// Transport that resolves the directory of the history.
    path: Option<Child>,
}

impl Test {
    fn new() -> Self {
        let mut claude = Claude::new(ProcessSpec::default(), Variables::default(), "seed", false);
        let mut out = Outgoing::default();
        claude.call(AgentCall::Start, &mut out).unwrap();
        out.take();
        Self {
            claude,
            out,
            calls: 0,
            path: None,
        }
    }

    /// Starts opening a session; returns its process.
    fn opens(&mut self, way: Opening<'_>, options: &SessionOptions) -> Child {
        self.calls += 1;
        let place = SessionSetup {
            acp: &serde_json::Map::new(),
            cwd: "/w",
            mcp_servers: &[],
            options,
            fork: false,
        };
        self.claude
            .open(CallId(self.calls), way, &place, &mut self.out);
        let orders = self.out.take();
        let of = |is: fn(&TransportOrder) -> bool| {
            let mut found = orders.iter().filter(|(_, order)| is(order));
            found.next().map(|(child, _)| *child)
        };
        self.path = of(|order| matches!(order, TransportOrder::Open(Transport::RealPath(_))));
        of(|order| matches!(order, TransportOrder::Open(Transport::Process(_)))).unwrap()
    }

    /// Opens a session; returns its process.
    fn open(&mut self, way: Opening<'_>, options: &SessionOptions) -> Child {
        let child = self.opens(way, options);
        let mut said = self.says(child, &success("1"));
        if let Some(path) = self.path.take() {
            // A session is resumed even if it has no history.
            said.extend(self.ends(path, 0).1);
        }
        assert!(said[0].starts_with("opened "), "{said:?}");
        child
    }

    /// Sends a prompt; returns its id.
    fn prompts(&mut self, session: &str) -> String {
        self.calls += 1;
        let parts = [PromptPart::Text("go".into())];
        let prompt = AgentCall::Prompt {
            call: CallId(self.calls),
            session,
            parts: &parts,
            degrade: false,
        };
        let sent = self.claude.call(prompt, &mut self.out);
        sent.unwrap();
        self.sent()[0]["uuid"].as_str().unwrap().to_owned()
    }

    /// Returns the frames written since the last call.
    fn sent(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        for (_, order) in self.out.take() {
            if let TransportOrder::Lines(lines) = order {
                let lines = String::from_utf8(lines).unwrap();
                frames.extend(
                    lines
                        .lines()
                        .map(|line| serde_json::from_str(line).unwrap()),
                );
            }
        }
        frames
    }

    /// Returns the processes whose stop was requested since the last call.
    fn stopped(&mut self) -> Vec<Child> {
        let orders = self.out.take().into_iter();
        let stops = orders.filter(|(_, order)| *order == TransportOrder::Stop);
        stops.map(|(child, _)| child).collect()
    }

    fn says(&mut self, child: Child, frame: &Value) -> Vec<String> {
        self.reads(child, &frame.to_string())
    }

    fn reads(&mut self, child: Child, line: &str) -> Vec<String> {
        let mut events = Vec::new();
        // A line that is not a frame has no events.
        let _ = self.claude.read(
            child,
            AgentLine::Whole(line.as_bytes()),
            &mut events,
            &mut self.out,
        );
        events.iter().map(word).collect()
    }

    fn ends(&mut self, child: Child, code: i32) -> (bool, Vec<String>) {
        let exit = Exit {
            code: Some(code),
            ..Exit::default()
        };
        let mut events = Vec::new();
        let goes_on = self
            .claude
            .ended(child, Ok(&exit), &mut events, &mut self.out);
        (goes_on, events.iter().map(word).collect())
    }
}

fn word(event: &AgentEvent<'_>) -> String {
    match event {
        AgentEvent::SessionOpened { agent_session, .. } => format!("opened {agent_session}"),
        AgentEvent::Failed { call, error } => {
            format!(
                "{} failed: {}: {}",
                call.0,
                error.kind.name(),
                error.message
            )
        }
        AgentEvent::TurnEnded { call, end } => match &end.error {
            Some(error) => format!("{} ended: {}", call.0, error.message),
            None => format!("{} ended: {}", call.0, end.reported),
        },
        AgentEvent::BackgroundTurnEnded { .. } => "unprompted ended".to_owned(),
        AgentEvent::SessionRenamed { session, to } => format!("{session} is {to}"),
        AgentEvent::SessionLost { session, .. } => format!("{session} lost"),
        AgentEvent::Set { call, .. } => format!("{} set", call.0),
        AgentEvent::NotReady(error) => format!("not ready: {}", error.message),
        AgentEvent::Ready(info) => format!("ready {}", info.version.as_deref().unwrap()),
        other => {
            let word = format!("{other:?}");
            let end = word.find([' ', '(', '{']).unwrap_or(word.len());
            word[..end].to_owned()
        }
    }
}

fn success(id: &str) -> Value {
    let response = json!({"subtype": "success", "request_id": id, "response": {}});
    json!({"type": "control_response", "response": response})
}

fn init(session: &str) -> Value {
    json!({"type": "system", "subtype": "init", "session_id": session})
}

fn result(uuid: &str, more: &Value) -> Value {
    let mut result = json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 1,
        "stop_reason": "end_turn", "user_message_uuids": [uuid],
    });
    for (name, value) in more.as_object().unwrap() {
        result[name] = value.clone();
    }
    result
}

fn none() -> SessionOptions {
    SessionOptions::default()
}
