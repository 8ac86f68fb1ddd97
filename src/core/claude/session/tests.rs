//! What a session of the CLI does with what comes.

use crate::core::claude::Claude;
use crate::core::dialect::{Child, Dialect, Launch, Opening, Order, Outgoing, Place, PromptPart};
use crate::core::event::{AgentEvent, CallId, Exit};
use crate::proto::frame::Overlong;
use crate::proto::wire::{SessionOptions, Variables};
use serde_json::{Value, json};

/// The process that says the version.
const VERSION: Child = Child(1);

/// A CLI, what it is told, and what comes of that, in words.
struct Test {
    claude: Claude,
    out: Outgoing,
    calls: u64,
    /// Tells the place of the history of the session that is opened.
    path: Option<Child>,
}

impl Test {
    fn new() -> Self {
        let mut claude = Claude::new(Launch::default(), Variables::default(), "seed", false);
        let mut out = Outgoing::default();
        claude.start(&mut out);
        out.take();
        Self {
            claude,
            out,
            calls: 0,
            path: None,
        }
    }

    /// Begins to open a session: its process.
    fn opens(&mut self, way: Opening<'_>, options: &SessionOptions) -> Child {
        self.calls += 1;
        let place = Place {
            cwd: "/w",
            mcp_servers: &[],
            options,
            fork: false,
        };
        self.claude
            .open(CallId(self.calls), way, &place, &mut self.out);
        let orders = self.out.take();
        let of = |is: fn(&Order) -> bool| {
            let mut found = orders.iter().filter(|(_, order)| is(order));
            found.next().map(|(child, _)| *child)
        };
        self.path = of(|order| matches!(order, Order::ResolvePath(_)));
        of(|order| matches!(order, Order::Start(_))).unwrap()
    }

    /// A session that is open.
    fn open(&mut self, way: Opening<'_>, options: &SessionOptions) -> Child {
        let child = self.opens(way, options);
        let mut said = self.says(child, &success("1"));
        if let Some(path) = self.path.take() {
            // There is no history: a session is resumed all the same.
            said.extend(self.ends(path, 0).1);
        }
        assert!(said[0].starts_with("opened "), "{said:?}");
        child
    }

    /// Sends a prompt: its id.
    fn prompts(&mut self, session: &str) -> String {
        self.calls += 1;
        let parts = [PromptPart::Text("go".into())];
        let sent = self
            .claude
            .prompt(CallId(self.calls), session, &parts, false, &mut self.out);
        sent.unwrap();
        self.sent()[0]["uuid"].as_str().unwrap().to_owned()
    }

    /// The frames written since.
    fn sent(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        for (_, order) in self.out.take() {
            if let Order::Lines(lines) = order {
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

    /// The processes that were to be ended since.
    fn stopped(&mut self) -> Vec<Child> {
        let orders = self.out.take().into_iter();
        let stops = orders.filter(|(_, order)| *order == Order::Stop);
        stops.map(|(child, _)| child).collect()
    }

    fn says(&mut self, child: Child, frame: &Value) -> Vec<String> {
        self.reads(child, &frame.to_string())
    }

    fn reads(&mut self, child: Child, line: &str) -> Vec<String> {
        let mut events = Vec::new();
        self.claude
            .read(child, line.as_bytes(), &mut events, &mut self.out);
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
        AgentEvent::UnpromptedEnded { .. } => "unprompted ended".to_owned(),
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

#[test]
fn only_a_version_makes_it_ready() {
    let mut t = Test::new();
    assert_eq!(t.reads(VERSION, "Welcome to my shim"), Vec::<String>::new());
    assert_eq!(t.reads(VERSION, "2.1.330 (Claude Code)"), ["ready 2.1.330"]);
    // What becomes of the process that said it does not matter.
    assert_eq!(t.ends(VERSION, 1), (true, Vec::new()));
    let mut t = Test::new();
    let (_, said) = t.ends(VERSION, 0);
    assert!(said[0].starts_with("not ready: "), "{said:?}");
    assert!(!Test::new().ends(VERSION, 1).0, "nobody would wait for it");
}

#[test]
fn an_opening_that_nobody_waits_for_ends_its_process() {
    let mut t = Test::new();
    let child = t.opens(Opening::New, &none());
    t.claude.forget(CallId(7), &mut t.out);
    assert_eq!(t.stopped(), []);
    t.claude.forget(CallId(1), &mut t.out);
    assert_eq!(t.stopped(), [child]);
    assert_eq!(t.says(child, &success("1")), Vec::<String>::new());
    // It may be open, and not have become what was wanted.
    let child = t.open(Opening::New, &none());
    t.claude.forget(CallId(2), &mut t.out);
    assert_eq!(t.stopped(), [child]);
}

#[test]
fn a_process_that_refuses_the_handshake_is_ended() {
    let refusal = json!({"type": "control_response", "response": {
        "subtype": "error", "request_id": "1", "error": "no",
    }});
    let mut t = Test::new();
    let child = t.opens(Opening::New, &none());
    assert_eq!(
        t.says(child, &refusal),
        ["1 failed: session: the agent refused the handshake: no"]
    );
    assert_eq!(t.stopped(), [child]);

    // The same where its answer is too long.
    let child = t.opens(Opening::New, &none());
    let line = Overlong {
        len: 99,
        head: br#"{"type":"control_response","response":{"subtype":"success","request_id":"1","#
            .as_slice()
            .into(),
        tail: b"}".as_slice().into(),
    };
    let mut events = Vec::new();
    t.claude
        .read_overlong(child, &line, &mut events, &mut t.out);
    assert!(word(&events[0]).contains("over the line cap (99 bytes)"));
    assert_eq!(t.stopped(), [child]);
}

#[test]
fn a_process_that_ends_while_its_history_is_read_fails_the_opening_alone() {
    let mut t = Test::new();
    let child = t.opens(Opening::Load("a"), &none());
    let (goes_on, said) = t.ends(child, 1);
    assert!(goes_on);
    assert!(said[0].starts_with("1 failed: session: "), "{said:?}");
    // The reader of its path comes to an end, and nothing follows.
    assert_eq!(t.ends(Child(child.0 + 1), 0), (true, Vec::new()));
}

#[test]
fn a_session_that_is_called_otherwise_goes_on() {
    let mut t = Test::new();
    let child = t.open(Opening::Resume("title"), &none());
    let uuid = t.prompts("title");
    assert_eq!(t.says(child, &init("b"))[0], "title is b");
    let said = t.says(child, &result(&uuid, &json!({})));
    assert_eq!(said, ["2 ended: end_turn"]);
    t.prompts("b");
}

#[test]
fn a_session_that_turns_out_to_be_that_of_another_process_is_given_up() {
    let mut t = Test::new();
    let first = t.open(Opening::Resume("b"), &none());
    let second = t.open(Opening::Resume("title"), &none());
    t.prompts("title");
    let said = t.says(second, &init("b"));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("3 failed: sessionExists: "), "{said:?}");
    assert_eq!(said[1], "title lost");
    assert_eq!(t.stopped(), [second]);
    // The other one has not noticed.
    let uuid = t.prompts("b");
    let said = t.says(first, &result(&uuid, &json!({})));
    assert_eq!(said, ["4 ended: end_turn"]);
}

#[test]
fn a_resumed_session_that_says_nothing_is_stale() {
    let stale = json!({"num_turns": 0});
    let mut t = Test::new();
    let child = t.open(Opening::Resume("a"), &none());
    let uuid = t.prompts("a");
    let said = t.says(child, &result(&uuid, &stale));
    assert!(
        said[0].starts_with("2 failed: sessionNotFound: "),
        "{said:?}"
    );
    // Once: a second time it is an answer.
    let uuid = t.prompts("a");
    assert_eq!(t.says(child, &result(&uuid, &stale)), ["3 ended: end_turn"]);
    // The CLI's own commands ask no model.
    let child = t.open(Opening::Resume("b"), &none());
    let uuid = t.prompts("b");
    let command = json!({"num_turns": 0, "local_command": "cost"});
    assert_eq!(
        t.says(child, &result(&uuid, &command)),
        ["5 ended: end_turn"]
    );
}

#[test]
fn a_resumed_session_that_says_why_it_does_nothing_is_not_stale() {
    let silent = json!({"num_turns": 0});
    let failed = json!({"num_turns": 0, "is_error": true, "subtype": "error_max_budget_usd"});
    let said = json!({"num_turns": 0, "result": "Not here."});
    for (blocked, more) in [(true, silent), (false, failed), (false, said)] {
        let mut t = Test::new();
        let child = t.open(Opening::Resume("a"), &none());
        let uuid = t.prompts("a");
        if blocked {
            // As the CLI says it of a prompt that a hook of the user's refuses.
            let why = json!({"type": "system", "subtype": "informational", "level": "warning",
                "content": "UserPromptSubmit operation blocked by hook"});
            assert_eq!(t.says(child, &why), ["Update"]);
        }
        let said = t.says(child, &result(&uuid, &more));
        let last = said.last().unwrap();
        assert!(last.starts_with("2 ended: "), "{said:?}");
        // What stands in the result alone is told.
        assert_eq!(said.len() > 1, more["result"].is_string(), "{said:?}");
    }
}

#[test]
fn an_answer_without_the_structure_it_was_to_have_is_a_failure() {
    let options = SessionOptions {
        output_schema: Some(json!({"type": "object"})),
        ..none()
    };
    let mut t = Test::new();
    let child = t.open(Opening::Resume("a"), &options);
    let uuid = t.prompts("a");
    let said = t.says(child, &result(&uuid, &json!({})));
    assert!(
        said[0].starts_with("2 ended: Structured output schema validation failed: "),
        "{said:?}"
    );
    let uuid = t.prompts("a");
    let matches = json!({"structured_output": {"a": 1}});
    assert_eq!(
        t.says(child, &result(&uuid, &matches)),
        ["3 ended: end_turn"]
    );
    let uuid = t.prompts("a");
    let other = json!({"structured_output": ["wrong"]});
    let said = t.says(child, &result(&uuid, &other));
    assert!(said[0].contains("the answer: type \"object\""), "{said:?}");
    // What ended otherwise, or was no answer, is not judged by it.
    for (n, (more, ends)) in [
        (json!({"local_command": "cost"}), "end_turn"),
        (
            json!({"subtype": "error_max_turns", "is_error": true}),
            "max_turn_requests",
        ),
        (json!({"stop_reason": "max_tokens"}), "max_tokens"),
    ]
    .into_iter()
    .enumerate()
    {
        let uuid = t.prompts("a");
        let want = format!("{} ended: {ends}", n + 5);
        assert_eq!(t.says(child, &result(&uuid, &more)), [want]);
    }
}

#[test]
fn what_is_not_served_is_refused() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    t.out.take();
    for request in [
        json!({"subtype": "novel"}),
        json!({}),
        json!({"subtype": "can_use_tool"}),
    ] {
        let asked = json!({"type": "control_request", "request_id": "r", "request": request});
        assert_eq!(t.says(child, &asked), Vec::<String>::new());
        let answer = &t.sent()[0]["response"];
        assert_eq!(
            (&answer["subtype"], &answer["request_id"]),
            (&json!("error"), &json!("r")),
            "{request}"
        );
    }
}

#[test]
fn lines_that_are_no_frames_are_counted() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    for line in ["", "no JSON", "[]", "{\"half\":"] {
        assert_eq!(t.reads(child, line), Vec::<String>::new(), "{line}");
    }
    let faults = t.claude.faults();
    assert_eq!((faults.blank, faults.malformed), (1, 3));
}

#[test]
fn faults_of_a_file_that_is_read_twice_are_counted_once() {
    let mut env = Variables::default();
    env.0.insert("HOME".to_owned(), Some("/home".to_owned()));
    let mut t = Test::new();
    t.claude = Claude::new(Launch::default(), env, "seed", false);
    let child = t.opens(Opening::Load("a"), &none());
    let line = Overlong {
        len: 99,
        head: b"{".as_slice().into(),
        tail: b"}".as_slice().into(),
    };
    // Its place, the first pass, the second.
    for reader in 1..=3 {
        let reader = Child(child.0 + reader);
        let mut events = Vec::new();
        if reader.0 > child.0 + 1 {
            t.claude
                .read_overlong(reader, &line, &mut events, &mut t.out);
            t.claude.read(reader, b"\xff", &mut events, &mut t.out);
        }
        t.ends(reader, 0);
    }
    let faults = t.claude.faults();
    assert_eq!((faults.too_long, faults.invalid_utf8), (1, 1));
}

#[test]
fn a_process_that_ends_fails_what_waits() {
    let mut t = Test::new();
    let child = t.open(Opening::Resume("a"), &none());
    t.prompts("a");
    let (goes_on, said) = t.ends(child, 1);
    assert!(goes_on, "other sessions have their own");
    assert!(said[0].starts_with("2 failed: agentExited: "), "{said:?}");
    assert_eq!(said[1], "a lost");
    assert_eq!(t.reads(child, "{}"), Vec::<String>::new());
}

#[test]
fn a_prompt_that_still_waits_is_taken_back_once() {
    let mut t = Test::new();
    let child = t.open(Opening::Resume("a"), &none());
    let uuid = t.prompts("a");
    t.claude.cancel("a", &mut t.out);
    assert_eq!(t.sent()[0]["request"]["subtype"], "interrupt");
    let mut queued = success("2");
    queued["response"]["response"] = json!({"still_queued": [uuid]});
    t.says(child, &queued);
    assert_eq!(t.sent()[0]["request"]["message_uuid"], uuid.as_str());
    // Whatever its answer holds, it is not asked for again.
    queued["response"]["request_id"] = json!("3");
    t.says(child, &queued);
    assert_eq!(t.sent(), Vec::<Value>::new());
    let cancelled =
        json!({"type": "command_lifecycle", "command_uuid": uuid, "state": "cancelled"});
    assert_eq!(t.says(child, &cancelled), ["2 ended: cancelled"]);
}

#[test]
fn words_that_the_cli_does_not_know_are_errors_that_list_those_it_does() {
    let check = |options: Value| {
        let options: SessionOptions = serde_json::from_value(options).unwrap();
        crate::core::claude::check(&options, &[]).map_err(|error| error.message)
    };
    for known in [
        json!({"mode": "plan", "effort": "low"}),
        json!({"mode": "bypassPermissions"}),
        json!({"allowedTools": ["mcp__of_the_project__x"]}),
    ] {
        assert_eq!(check(known), Ok(()));
    }
    for (odd, want) in [
        (
            json!({"mode": "plna"}),
            "options.mode: \"plna\" is not offered; take one of these: default, ",
        ),
        (
            json!({"effort": "hgih"}),
            "options.effort: \"hgih\" is not offered; take one of these: low, ",
        ),
        (
            json!({"allowedTools": ["mcp__x"], "settingSources": []}),
            "there is no tool \"mcp__x\"",
        ),
    ] {
        let error = check(odd).unwrap_err();
        assert!(error.starts_with(want), "{error}");
    }
}

/// A turn that nobody asked for runs.
fn unasked(t: &mut Test) -> Child {
    let child = t.open(Opening::New, &none());
    let id = t.claude.sessions.keys().next().unwrap().clone();
    assert_eq!(t.says(child, &init(&id))[0], "UnpromptedBegun");
    child
}

#[test]
fn a_prompt_that_waits_begins_though_the_cli_does_not_say_with_which() {
    let mut t = Test::new();
    let child = unasked(&mut t);
    let id = t.claude.sessions.keys().next().unwrap().clone();
    let uuid = t.prompts(&id);
    // Of the turn that runs.
    assert_eq!(t.says(child, &init(&id)), ["Update"]);
    let other = json!({"origin": {"kind": "task-notification"}, "user_message_uuids": []});
    assert_eq!(t.says(child, &result("", &other)), ["unprompted ended"]);
    assert_eq!(t.says(child, &init(&id))[0], "PromptBegun");
    assert_eq!(t.says(child, &init(&id)), ["Update"], "once");
    let said = t.says(child, &result(&uuid, &json!({})));
    assert_eq!(said, ["2 ended: end_turn"]);
}

#[test]
fn a_prompt_that_crosses_a_turn_that_nobody_asked_for_waits() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    let id = t.claude.sessions.keys().next().unwrap().clone();
    let state = |uuid: &str, state: &str| json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state});
    let uuid = t.prompts(&id);
    t.says(child, &state(&uuid, "started"));
    assert_eq!(t.says(child, &init(&id)), ["Update"]);
    t.says(child, &result(&uuid, &json!({})));
    let uuid = t.prompts(&id);
    assert_eq!(t.says(child, &init(&id))[0], "UnpromptedBegun");
    t.says(child, &state(&uuid, "queued"));
    let other = json!({"origin": {"kind": "task-notification"}, "user_message_uuids": []});
    assert_eq!(t.says(child, &result("", &other)), ["unprompted ended"]);
    assert_eq!(t.says(child, &state(&uuid, "started")), ["PromptBegun"]);
    assert_eq!(t.says(child, &init(&id)), ["Update"]);
}

#[test]
fn a_prompt_that_was_not_sent_has_no_end() {
    let mut test = Test::new();
    let child = test.open(Opening::New, &SessionOptions::default());
    let session = test.claude.sessions.keys().next().unwrap().clone();
    test.prompts(&session);
    test.claude.unsend(CallId(test.calls), &session);
    let (goes_on, said) = test.ends(child, 1);
    assert_eq!((goes_on, said), (true, vec![format!("{session} lost")]));
}
