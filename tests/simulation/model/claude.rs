//! A random process of the Claude Code CLI, with one session.

use super::agent::{Ledger, Line, LineEffect};
use super::clients::Clients;
use super::dice::Dice;
use super::hostile::{self, words};
use serde_json::Value;

/// A control request of the hub without a response.
#[derive(Debug)]
struct Request {
    id: String,
    subtype: String,
    uuid: String,
}

/// One process of the CLI.
#[derive(Debug, Default)]
pub struct Claude {
    pub ledger: Ledger,
    session: String,
    /// Whether it ever reported another session id.
    renamed: bool,
    requests: Vec<Request>,
    /// The prompt without a result, and whether its turn has begun.
    prompt: Option<(String, bool)>,
    /// Whether a turn without a prompt runs.
    unasked: bool,
    last: u64,
}

/// The only session in the ledger.
const HERE: &str = "the session";

impl Claude {
    pub fn new(args: &[String]) -> Self {
        let flag = |flag: &str| args.iter().find_map(|arg| arg.strip_prefix(flag));
        let id = flag("--session-id=").or_else(|| flag("--resume="));
        Self {
            session: id.expect("a session has an id").to_owned(),
            ..Self::default()
        }
    }

    /// Receives a line of the hub.
    pub fn hear(&mut self, frame: &Value, clients: &Clients) {
        match frame["type"].as_str().unwrap_or_default() {
            "control_request" => {
                let request = &frame["request"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                if request["subtype"] == "interrupt" {
                    let is_in_turn = self.renamed || clients.is_in_turn(&self.session);
                    self.ledger.cancel(HERE, is_in_turn);
                }
                self.requests.push(Request {
                    id: text(&frame["request_id"]),
                    subtype: text(&request["subtype"]),
                    uuid: text(&request["message_uuid"]),
                });
            }
            "control_response" => {
                let id = frame["response"]["request_id"].as_str().unwrap_or_default();
                if id.starts_with('q') {
                    self.ledger.answer(id);
                }
            }
            "user" => {
                let uuid = frame["uuid"].as_str().expect("a prompt has an id");
                self.ledger.prompt(HERE, uuid);
                self.prompt = Some((uuid.to_owned(), false));
            }
            other => panic!("the CLI knows no {other:?}"),
        }
    }

    /// Takes a random action, or none.
    pub fn act(&mut self, dice: &mut Dice) -> Vec<Line> {
        match dice.below(20) {
            0..=5 => {
                if self.requests.is_empty() {
                    return Vec::new();
                }
                let request = self.requests.remove(dice.below(self.requests.len()));
                self.answer(&request, dice)
            }
            6 | 7 => self.begin(dice),
            8..=14 => {
                let many = 1 + dice.below(4);
                (0..many).map(|_| Self::say(dice)).collect()
            }
            15 => vec![self.ask(dice)],
            16 | 17 => self.end(dice),
            18 => vec![Self::misbehave(dice)],
            _ => Vec::new(),
        }
    }

    /// Returns `true` if a prompt has no result yet.
    pub fn is_prompted(&self) -> bool {
        self.prompt.is_some()
    }

    /// Answers all open requests and turns with valid messages.
    pub fn answer_all(&mut self) -> Vec<Line> {
        let requests = std::mem::take(&mut self.requests);
        let mut lines: Vec<Line> = requests.iter().flat_map(|r| self.valid_answer(r)).collect();
        if std::mem::take(&mut self.unasked) {
            let origin = r#","origin":{"kind":"task-notification"}"#;
            lines.push(Line::new(self.result(origin), LineEffect::Nothing));
        }
        if let Some((uuid, _)) = self.prompt.take() {
            let names = format!(r#","user_message_uuids":["{uuid}"]"#);
            lines.push(Line::new(self.result(&names), LineEffect::Answered(uuid)));
        }
        lines
    }

    fn answer(&mut self, request: &Request, dice: &mut Dice) -> Vec<Line> {
        let id = &request.id;
        let odd = match dice.below(30) {
            0 => r#"{"subtype":"error","request_id":"ID","error":"no"}"#,
            1 => r#"{"subtype":"success","request_id":"ID","response":[7]}"#,
            _ => return self.valid_answer(request),
        };
        let response = odd.replace("ID", id);
        let text = format!(r#"{{"type":"control_response","response":{response}}}"#);
        vec![Line::new(text, LineEffect::Nothing)]
    }

    fn valid_answer(&mut self, request: &Request) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut said = "{}".to_owned();
        match (request.subtype.as_str(), &self.prompt) {
            ("interrupt", Some((uuid, false))) => {
                said = format!(r#"{{"still_queued":["{uuid}"]}}"#);
            }
            ("cancel_async_message", Some((uuid, false))) if *uuid == request.uuid => {
                let text = format!(
                    r#"{{"type":"command_lifecycle","command_uuid":"{uuid}","state":"cancelled"}}"#
                );
                lines.push(Line::new(text, LineEffect::Answered(uuid.clone())));
                self.prompt = None;
            }
            _ => {}
        }
        let text = format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{}","response":{said}}}}}"#,
            request.id
        );
        lines.push(Line::new(text, LineEffect::Nothing));
        lines
    }

    /// Begins the prompt's turn, or a turn without a prompt.
    fn begin(&mut self, dice: &mut Dice) -> Vec<Line> {
        let mut lines = Vec::new();
        match &mut self.prompt {
            Some((uuid, begun @ false)) if !self.unasked => {
                *begun = true;
                if dice.percent(80) {
                    let text = format!(
                        r#"{{"type":"command_lifecycle","command_uuid":"{uuid}","state":"started"}}"#
                    );
                    lines.push(Line::new(text, LineEffect::Nothing));
                }
            }
            Some(_) => return Vec::new(),
            None => self.unasked = true,
        }
        let renames = dice.percent(2);
        self.renamed |= renames;
        let session = if renames { "renamed" } else { &self.session };
        let text = format!(r#"{{"type":"system","subtype":"init","session_id":"{session}"}}"#);
        lines.push(Line::new(text, LineEffect::Nothing));
        lines
    }

    fn result(&self, more: &str) -> String {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"{}","result":"","stop_reason":"end_turn","total_cost_usd":0.25,"usage":{{"input_tokens":3,"output_tokens":4}}{more}}}"#,
            self.session
        )
    }

    fn end(&mut self, dice: &mut Dice) -> Vec<Line> {
        let odd = match dice.below(8) {
            0 => r#","is_error":true,"subtype":"error_during_execution""#,
            1 => r#","local_command":"clear""#,
            2 => r#","result":"the last word""#,
            3 => r#","is_error":true,"result":"API Error: 529 overloaded_error""#,
            _ => "",
        };
        if self.unasked {
            self.unasked = false;
            let more = format!(r#","origin":{{"kind":"task-notification"}}{odd}"#);
            return vec![Line::new(self.result(&more), LineEffect::Nothing)];
        }
        let Some((uuid, _)) = self.prompt.take() else {
            return Vec::new();
        };
        let names = match dice.below(5) {
            0 => String::new(),
            1 => format!(r#","user_message_uuid":"{uuid}""#),
            _ => format!(r#","user_message_uuids":["{uuid}"]"#),
        };
        let text = self.result(&format!("{names}{odd}"));
        vec![Line::new(text, LineEffect::Answered(uuid))]
    }

    fn say(dice: &mut Dice) -> Line {
        let said = words(dice);
        let (id, tool) = (dice.below(3), dice.below(4));
        let parent = match dice.below(10) {
            0 => format!("\"t{tool}\""),
            _ => "null".to_owned(),
        };
        let event = |event: &str| {
            format!(r#"{{"type":"stream_event","parent_tool_use_id":{parent},"event":{event}}}"#)
        };
        let message = |role: &str, block: &str| {
            format!(
                r#"{{"type":"{role}","parent_tool_use_id":{parent},"message":{{"id":"m{id}","role":"{role}","content":[{block}]}}}}"#
            )
        };
        let block = dice.below(3);
        let text = match dice.below(16) {
            0 => event(&format!(
                r#"{{"type":"message_start","message":{{"id":"m{id}","role":"assistant","content":[]}}}}"#
            )),
            1 => event(&format!(
                r#"{{"type":"content_block_start","index":{block},"content_block":{}}}"#,
                dice.pick(&[
                    r#"{"type":"text","text":""}"#,
                    r#"{"type":"thinking","thinking":""}"#,
                    r#"{"type":"tool_use","id":"t1","name":"Bash","input":{}}"#,
                    r#"{"type":"novel"}"#,
                ])
            )),
            2..=5 => event(&format!(
                r#"{{"type":"content_block_delta","index":{block},"delta":{}}}"#,
                [
                    format!(r#"{{"type":"text_delta","text":"{said}"}}"#),
                    format!(r#"{{"type":"thinking_delta","thinking":"{said}"}}"#),
                    format!(r#"{{"type":"input_json_delta","partial_json":"{said}"}}"#),
                    r#"{"type":"signature_delta","signature":"x"}"#.to_owned(),
                ][dice.below(4)]
            )),
            6 => event(&format!(r#"{{"type":"content_block_stop","index":{block}}}"#)),
            7 => event(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#),
            8 => event(r#"{"type":"message_stop"}"#),
            9 => message("assistant", &format!(r#"{{"type":"text","text":"{said}"}}"#)),
            10 | 11 => message(
                "assistant",
                &format!(
                    r#"{{"type":"tool_use","id":"t{tool}","name":"{}","input":{{"command":"{said}"}}}}"#,
                    dice.pick(&["Bash", "Task", "TodoWrite", "Edit", "AskUserQuestion"])
                ),
            ),
            12 | 13 => message(
                "user",
                &format!(
                    r#"{{"type":"tool_result","tool_use_id":"t{tool}","content":"{said}","is_error":{}}}"#,
                    dice.percent(20)
                ),
            ),
            14 => dice.pick(&[
                r#"{"type":"keep_alive"}"#,
                r#"{"type":"system","subtype":"status","status":"compacting"}"#,
                r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto"}}"#,
                r#"{"type":"system","subtype":"informational","content":"x"}"#,
                r#"{"type":"system","subtype":"task_started","task_id":"k","tool_use_id":"t1"}"#,
                r#"{"type":"system","subtype":"task_notification","task_id":"k","tool_use_id":"t1","status":"completed"}"#,
                r#"{"type":"tool_progress","tool_use_id":"t1","tool_name":"Bash","elapsed_time_seconds":1}"#,
                r#"{"type":"rate_limit_event","rate_limit_info":{}}"#,
            ]).to_owned(),
            _ => dice.pick(&[
                r#"{"type":"assistant"}"#,
                r#"{"type":"assistant","message":{"content":"text"}}"#,
                r#"{"type":"assistant","message":{"id":7,"content":[7,null,{"type":"tool_use"}]}}"#,
                r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#,
                r#"{"type":"stream_event","event":[]}"#,
                r#"{"type":"stream_event","event":{"type":"content_block_start"}}"#,
                r#"{"type":"system"}"#,
                r#"{"type":7}"#,
            ]).to_owned(),
        };
        Line::new(text, LineEffect::Nothing)
    }

    fn ask(&mut self, dice: &mut Dice) -> Line {
        self.last += 1;
        let id = format!("q{}", self.last);
        let request = match dice.below(6) {
            0 => r#"{"subtype":"hook_callback"}"#.to_owned(),
            1 => r#"{"subtype":"can_use_tool"}"#.to_owned(),
            _ => format!(
                r#"{{"subtype":"can_use_tool","tool_name":"{}","tool_use_id":"t{}","input":{{}}}}"#,
                dice.pick(&["Bash", "Edit", "AskUserQuestion"]),
                dice.below(4)
            ),
        };
        let text =
            format!(r#"{{"type":"control_request","request_id":"{id}","request":{request}}}"#);
        Line::new(text, LineEffect::Requested(id))
    }

    fn misbehave(dice: &mut Dice) -> Line {
        let text = match dice.below(6) {
            0 => {
                r#"{"type":"control_response","response":{"subtype":"success","request_id":"999","response":{}}}"#
            }
            1 => r#"{"type":"control_response"}"#,
            2 => r#"{"type":"command_lifecycle","command_uuid":"nobody","state":"cancelled"}"#,
            3 => r#"{"type":"control_cancel_request","request_id":"nobody"}"#,
            _ => return hostile::line(dice),
        };
        Line::new(text, LineEffect::Nothing)
    }
}
