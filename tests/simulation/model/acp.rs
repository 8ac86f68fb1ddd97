//! A random ACP agent: it answers, fails, asks, stays silent, and sends invalid messages.

use super::agent::{Ledger, Line, LineEffect};
use super::clients::Clients;
use super::dice::Dice;
use super::hostile::{self, words};
use serde_json::Value;
use std::collections::BTreeSet;

/// A request of the hub without a response.
#[derive(Debug)]
struct Call {
    id: u64,
    method: String,
    session: String,
}

/// One agent process.
#[derive(Debug, Default)]
pub struct Acp {
    pub ledger: Ledger,
    calls: Vec<Call>,
    sessions: BTreeSet<String>,
    /// Distinguishes the sessions of several processes.
    prefix: u64,
    last: u64,
    /// Ids of answered requests, for duplicate responses.
    answered: Vec<u64>,
    /// Offered capabilities, as bits.
    offers: usize,
    closed: BTreeSet<String>,
}

impl Acp {
    pub fn new(prefix: u64, dice: &mut Dice) -> Self {
        Self {
            prefix,
            offers: dice.below(16),
            ..Self::default()
        }
    }

    /// Receives a line of the hub.
    pub fn hear(&mut self, message: &Value, clients: &Clients) {
        let session = message["params"]["sessionId"].as_str().unwrap_or_default();
        let Some(method) = message["method"].as_str() else {
            let id = message["id"].as_str().unwrap_or_default();
            if id.starts_with('q') {
                self.ledger.answer(id);
            }
            return;
        };
        if method == "session/cancel" {
            self.ledger.cancel(session, clients.is_in_turn(session));
            return;
        }
        let id = message["id"].as_u64().expect("calls have numbers");
        match method {
            "session/prompt" => {
                let known = self.sessions.contains(session) || self.ledger.is_wild();
                assert!(known, "a prompt for {session}, which there is not");
                self.ledger.prompt(session, &id.to_string());
            }
            "session/close" => _ = self.closed.insert(session.to_owned()),
            _ => {}
        }
        self.calls.push(Call {
            id,
            method: method.to_owned(),
            session: session.to_owned(),
        });
    }

    /// Takes a random action, or none.
    pub fn act(&mut self, dice: &mut Dice) -> Vec<Line> {
        match dice.below(20) {
            0..=5 => self.answer_one(dice),
            6..=15 => self.speak(dice),
            16 => vec![self.ask(dice)],
            17 => self.withdraw(dice),
            18 => vec![self.misbehave(dice)],
            _ => Vec::new(),
        }
    }

    /// Returns `true` if a prompt has no response yet.
    pub fn is_prompted(&self) -> bool {
        self.calls
            .iter()
            .any(|call| call.method == "session/prompt")
    }

    /// Answers all open requests with valid responses.
    pub fn answer_all(&mut self, dice: &mut Dice) -> Vec<Line> {
        let calls = std::mem::take(&mut self.calls);
        calls
            .iter()
            .flat_map(|c| self.valid_answer(c, dice))
            .collect()
    }

    fn answer_one(&mut self, dice: &mut Dice) -> Vec<Line> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        let call = self.calls.remove(dice.below(self.calls.len()));
        self.answered.push(call.id);
        if call.method == "session/prompt" && dice.percent(50) {
            // Updates and response arrive together.
            let mut lines = self.speak(dice);
            lines.extend(self.answer(&call, dice));
            lines.extend(dice.percent(30).then(|| Self::say_in(&call.session, dice)));
            return lines;
        }
        self.answer(&call, dice)
    }

    fn answer(&mut self, call: &Call, dice: &mut Dice) -> Vec<Line> {
        let id = call.id;
        let mark = LineEffect::Answered(id.to_string());
        let text = match dice.below(40) {
            0 | 1 => {
                let error = dice.pick(&[
                    r#"{"code":-32603,"message":"Internal error"}"#,
                    r#"{"code":-32000,"message":"Authentication required"}"#,
                    r#"{"code":-32603,"message":"Internal error","data":{"details":"overloaded_error"}}"#,
                    r#"{"code":-32602,"message":"Session not found: s1"}"#,
                    r#"{"code":-32002,"message":"Resource not found"}"#,
                    r#"{"code":"odd","message":[]}"#,
                    r#""just text""#,
                ]);
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
            }
            2 => {
                let result = dice.pick(&["null", "{}", "[]", "7", r#""s""#, r#"{"sessionId":7}"#]);
                self.sessions.insert(call.session.clone());
                format!(r#"{{"id":{id},"result":{result}}}"#)
            }
            // A response that is recognizable but not readable.
            3 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"sessionId":"#),
            _ => return self.valid_answer(call, dice),
        };
        if call.method == "initialize" && dice.percent(80) {
            return self.valid_answer(call, dice);
        }
        vec![Line::new(text, mark)]
    }

    fn valid_answer(&mut self, call: &Call, dice: &mut Dice) -> Vec<Line> {
        let mut lines = Vec::new();
        let result = match call.method.as_str() {
            "initialize" => {
                let on = |bit: usize| self.offers >> bit & 1 == 1;
                let mut session: Vec<&str> = Vec::new();
                session.extend(on(0).then_some(r#""resume":{}"#));
                session.extend(on(1).then_some(r#""list":{}"#));
                session.extend(on(2).then_some(r#""close":{}"#));
                format!(
                    r#"{{"protocolVersion":1,"agentCapabilities":{{"loadSession":{},"sessionCapabilities":{{{}}}}}}}"#,
                    on(3),
                    session.join(",")
                )
            }
            "session/new" => {
                let before = self.sessions.first().filter(|_| dice.percent(5)).cloned();
                let id = before.unwrap_or_else(|| {
                    self.last += 1;
                    format!("s{}-{}", self.prefix, self.last)
                });
                self.sessions.insert(id.clone());
                let more = dice.pick(&[
                    "",
                    r#","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}"#,
                    r#","models":{"currentModelId":"m1","availableModels":[{"modelId":"m1","name":"M"}]}"#,
                    r#","configOptions":[{"id":"o","name":"O","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]"#,
                ]);
                format!(r#"{{"sessionId":"{id}"{more}}}"#)
            }
            "session/load" | "session/resume" => {
                if dice.percent(20) {
                    let error = r#"{"code":-32002,"message":"Resource not found"}"#;
                    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, call.id);
                    return vec![Line::new(text, LineEffect::Nothing)];
                }
                self.sessions.insert(call.session.clone());
                if call.method == "session/load" {
                    for _ in 0..dice.below(4) {
                        lines.push(Self::say_in(&call.session, dice));
                    }
                }
                "{}".to_owned()
            }
            "session/list" => {
                let ids = self.sessions.iter().take(3);
                let all: Vec<String> = ids
                    .map(|id| format!(r#"{{"sessionId":"{id}","cwd":"/"}}"#))
                    .collect();
                let next = if dice.percent(10) {
                    r#","nextCursor":"n""#
                } else {
                    ""
                };
                format!(r#"{{"sessions":[{}]{next}}}"#, all.join(","))
            }
            "session/prompt" => {
                let reason = dice.pick(&["end_turn", "cancelled", "refusal", "max_tokens", "odd"]);
                format!(r#"{{"stopReason":"{reason}"}}"#)
            }
            _ => "{}".to_owned(),
        };
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, call.id);
        lines.push(Line::new(text, LineEffect::Answered(call.id.to_string())));
        lines
    }

    fn any_session(&self, dice: &mut Dice) -> String {
        let all: Vec<&String> = self.sessions.iter().collect();
        if all.is_empty() || dice.percent(3) {
            return "nobody".to_owned();
        }
        dice.pick(&all).clone()
    }

    /// Sends a few updates.
    fn speak(&self, dice: &mut Dice) -> Vec<Line> {
        let session = self.any_session(dice);
        let many = 1 + dice.below(4);
        (0..many).map(|_| Self::say_in(&session, dice)).collect()
    }

    fn say_in(session: &str, dice: &mut Dice) -> Line {
        let update = update(dice);
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{update}}}}}"#
        );
        Line::new(text, LineEffect::Nothing)
    }

    /// Cancels a request of its own, whether it is open or not.
    fn withdraw(&mut self, dice: &mut Dice) -> Vec<Line> {
        let id = self.last.saturating_sub(dice.below(3) as u64);
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":"q{id}"}}}}"#
        );
        vec![Line::new(text, LineEffect::Nothing)]
    }

    fn ask(&mut self, dice: &mut Dice) -> Line {
        self.last += 1;
        let (session, id) = (self.any_session(dice), format!("q{}", self.last));
        let params = match dice.below(8) {
            0 => "{}".to_owned(),
            1 => format!(
                r#"{{"sessionId":"{session}","toolCall":{{"toolCallId":"t1"}},"options":[]}}"#
            ),
            _ => format!(
                r#"{{"sessionId":"{session}","toolCall":{{"toolCallId":"t{}","title":"T"}},"options":[{{"optionId":"y","name":"Y","kind":"allow_once"}},{{"optionId":"n","name":"N","kind":"reject_once"}}]}}"#,
                dice.below(5)
            ),
        };
        let (method, params) = match dice.below(10) {
            0..=4 => ("session/request_permission", params),
            5 => ("novel", params),
            6 => (
                "elicitation/create",
                format!(r#"{{"sessionId":"{session}",{}}}"#, elicitation(dice)),
            ),
            _ => wanted(&session, dice),
        };
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#);
        Line::new(text, LineEffect::Requested(id))
    }

    /// Sends repeated ids, responses without a request, and invalid lines.
    fn misbehave(&self, dice: &mut Dice) -> Line {
        let text = match dice.below(8) {
            0 => match self.answered.last() {
                Some(id) => {
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"end_turn"}}}}"#)
                }
                None => r#"{"id":0,"result":{}}"#.to_owned(),
            },
            1 => format!(r#"{{"id":{},"result":{{}}}}"#, 100_000 + dice.below(9)),
            // An error without an id would fail the only open request.
            2 => r#"{"id":null,"result":{}}"#.to_owned(),
            3 => r#"{"id":"text","result":{}}"#.to_owned(),
            4 => format!(
                r#"{{"method":"session/update","params":{{"sessionId":"{}","update":7}}}}"#,
                self.any_session(dice)
            ),
            5 => r#"{"method":"session/update"}"#.to_owned(),
            _ => return hostile::line(dice),
        };
        Line::new(text, LineEffect::Nothing)
    }
}

fn update(dice: &mut Dice) -> String {
    let said = words(dice);
    let tool = dice.below(5);
    match dice.below(26) {
        0..=5 => format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{said}"}}}}"#
        ),
        6 => format!(
            r#"{{"sessionUpdate":"agent_message_chunk","messageId":"m{tool}","content":{{"type":"text","text":"{said}"}}}}"#
        ),
        7 | 8 => format!(
            r#"{{"sessionUpdate":"agent_thought_chunk","content":{{"type":"text","text":"{said}"}}}}"#
        ),
        9 => r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"AA=="}}"#.to_owned(),
        10..=12 => format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"t{tool}","title":"Look","kind":"read","status":"{}","rawInput":{{"at":"{said}"}}}}"#,
            dice.pick(&["pending", "in_progress", "completed", "failed", "odd"])
        ),
        13..=16 => format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t{tool}","status":"{}","rawOutput":"{said}","content":[{{"type":"content","content":{{"type":"text","text":"{said}"}}}}]}}"#,
            dice.pick(&["in_progress", "completed", "failed", "pending"])
        ),
        17 => format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t{tool}"}}"#),
        18 => format!(
            r#"{{"sessionUpdate":"plan","entries":[{{"content":"{said}","priority":"high","status":"pending"}}]}}"#
        ),
        19 => r#"{"sessionUpdate":"usage_update","used":5,"size":10,"cost":{"amount":0.5,"currency":"USD"}}"#.to_owned(),
        20 => r#"{"sessionUpdate":"available_commands_update","availableCommands":[]}"#.to_owned(),
        21 => r#"{"sessionUpdate":"current_mode_update","currentModeId":"code"}"#.to_owned(),
        22 => format!(
            r#"{{"sessionUpdate":"user_message_chunk","content":{{"type":"text","text":"{said}"}}}}"#
        ),
        23 => format!(r#"{{"sessionUpdate":"session_info_update","title":"{said}"}}"#),
        24 => dice.pick(&[
            r#"{"sessionUpdate":"novel","x":1}"#,
            r#"{"sessionUpdate":"notice","title":"N"}"#,
            r#"{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}"#,
            r#"{"sessionUpdate":"subagent_update","sessionId":"sub","title":"S"}"#,
            r#"{"sessionUpdate":"session_message","messageId":"l","content":{"type":"text","text":"x"}}"#,
            r#"{"sessionUpdate":"plan_removed","planId":"p"}"#,
        ]).to_owned(),
        _ => dice.pick(&[
            r#"{"sessionUpdate":"agent_message_chunk"}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":[]}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":7}}"#,
            r#"{"sessionUpdate":"tool_call"}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":7}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"t4","title":null,"rawInput":null}"#,
            r#"{"sessionUpdate":null}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t1","_meta":{"terminal_info":{"terminal_id":"x"},"terminal_output":{"terminal_id":"x","data":"o"},"terminal_exit":{"terminal_id":"x","exit_code":0}}}"#,
        ]).to_owned(),
    }
}

/// Returns the parameters of an elicitation.
fn elicitation(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        r#""mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}"#,
        r#""mode":"url","message":"Go","url":"https://example.com","elicitationId":"e""#,
        r#""mode":"novel","message":"?""#,
    ])
}

/// Returns the method and parameters of a request for a file or a terminal.
fn wanted(session: &str, dice: &mut Dice) -> (&'static str, String) {
    let terminal = 1 + dice.below(3);
    let (method, more) = match dice.below(8) {
        0 => ("fs/read_text_file", r#""path":"/a""#.to_owned()),
        1 => (
            "fs/write_text_file",
            r#""path":"/a","content":"x""#.to_owned(),
        ),
        2 | 3 => ("terminal/create", r#""command":"ls""#.to_owned()),
        4 => ("terminal/wait_for_exit", String::new()),
        5 => ("terminal/output", String::new()),
        6 => ("terminal/kill", String::new()),
        _ => ("terminal/release", String::new()),
    };
    let more = if more.is_empty() {
        format!(r#""terminalId":"terminal-{terminal}""#)
    } else {
        more
    };
    (method, format!(r#"{{"sessionId":"{session}",{more}}}"#))
}
