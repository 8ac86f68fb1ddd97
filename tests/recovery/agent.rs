//! An agent that answers and replays as its cell of the matrix requires.

use super::cell::{Cell, List, Load, Resume};
use serde_json::{Value, json};

/// Agent session id of the session to restore.
pub const KNOWN: &str = "S1";
/// A different session id, which the agent reports instead.
pub const ANOTHER: &str = "S9";

#[derive(Debug)]
pub struct Agent {
    cell: Option<Cell>,
    resumed: bool,
    /// Ids of requests that it never answered.
    pub hung: Vec<Value>,
    /// Lines that it replays after its response.
    pub late: Vec<Value>,
    /// Received prompts: agent session id and text.
    pub prompted: Vec<(String, String)>,
}

impl Agent {
    /// Returns the agent of a cell; with `None` the agent that created the session.
    pub fn new(cell: Option<Cell>) -> Self {
        Self {
            cell,
            resumed: false,
            hung: Vec::new(),
            late: Vec::new(),
            prompted: Vec::new(),
        }
    }

    /// Handles a line of the hub and returns the agent's lines.
    pub fn hear(&mut self, line: &Value) -> Vec<Value> {
        let session = line["params"]["sessionId"].as_str().unwrap_or_default();
        let id = &line["id"];
        let result = |result: Value| vec![json!({ "id": id, "result": result })];
        let error = |code: i32, message: &str| {
            vec![json!({ "id": id, "error": { "code": code, "message": message } })]
        };
        let another = json!({ "_meta": { "agent": { "sessionId": ANOTHER } } });
        match (line["method"].as_str().unwrap_or_default(), self.cell) {
            ("initialize", cell) => result(hello(cell)),
            ("session/new", None) => result(json!({ "sessionId": KNOWN })),
            ("session/new", Some(_)) => result(json!({ "sessionId": "N1" })),
            ("session/list", Some(cell)) => {
                let there = if cell.list == List::Has {
                    KNOWN
                } else {
                    "else"
                };
                result(json!({ "sessions": [{ "sessionId": there, "cwd": "/" }] }))
            }
            ("session/resume", Some(cell)) => {
                assert_eq!(session, KNOWN);
                self.resumed = true;
                match cell.resume {
                    Resume::NotOffered => panic!("asked for what it does not offer"),
                    Resume::Ok | Resume::Lies => result(json!({})),
                    Resume::Replays => {
                        [told(&["once: question", "once: answer"]), result(json!({}))].concat()
                    }
                    Resume::Refused => error(-32002, "no such session"),
                    Resume::Fails => error(-32603, "a bug"),
                    Resume::AnotherId => result(another),
                    Resume::Hangs => self.hang(id),
                    Resume::Auth => error(-32000, "sign in"),
                }
            }
            ("session/load", Some(cell)) => {
                assert_eq!(session, KNOWN);
                match cell.load {
                    Load::NotOffered => panic!("asked for what it does not offer"),
                    Load::Ok | Load::WentOn | Load::Differs | Load::Empty => {
                        [told(cell.replayed()), result(json!({}))].concat()
                    }
                    Load::Late => {
                        self.late = told(cell.replayed());
                        result(Value::Null)
                    }
                    Load::Refused => error(-32002, "no such session"),
                    Load::AnotherId => result(another),
                    Load::Hangs => self.hang(id),
                    Load::Auth => error(-32000, "sign in"),
                }
            }
            ("session/prompt", cell) => {
                let parts = line["params"]["prompt"].as_array().unwrap();
                let text = parts.iter().filter_map(|part| part["text"].as_str());
                self.prompted.push((session.to_owned(), text.collect()));
                let lies = cell.is_some_and(|cell| cell.resume == Resume::Lies) && self.resumed;
                if lies && session == KNOWN {
                    return error(-32002, "no such session");
                }
                let text = cell.map_or("once: answer", |_| "answer");
                let answer = update(session, "agent_message_chunk", text);
                [vec![answer], result(json!({ "stopReason": "end_turn" }))].concat()
            }
            _ => Vec::new(),
        }
    }

    fn hang(&mut self, id: &Value) -> Vec<Value> {
        self.hung.push(id.clone());
        Vec::new()
    }
}

fn hello(cell: Option<Cell>) -> Value {
    let flag = |on: bool| if on { json!({}) } else { Value::Null };
    let offers = |is: fn(Cell) -> bool| cell.is_some_and(is);
    json!({
        "protocolVersion": 1,
        "authMethods": [{ "id": "login", "name": "Log in" }],
        "agentCapabilities": {
            "loadSession": offers(|cell| cell.load != Load::NotOffered),
            "sessionCapabilities": {
                "resume": flag(offers(|cell| cell.resume != Resume::NotOffered)),
                "list": flag(offers(|cell| cell.list != List::NotOffered)),
            },
        },
    })
}

/// Returns a replayed history: messages of the user and of the agent alternate.
fn told(texts: &[&str]) -> Vec<Value> {
    let kinds = ["user_message_chunk", "agent_message_chunk"].iter().cycle();
    let texts = texts.iter().zip(kinds);
    texts
        .map(|(text, kind)| update(KNOWN, kind, text))
        .collect()
}

fn update(session: &str, kind: &str, text: &str) -> Value {
    json!({ "method": "session/update", "params": { "sessionId": session, "update": {
        "sessionUpdate": kind, "content": { "type": "text", "text": text } } } })
}
