//! Sessions that no agent had: random updates in random order, in the form of recordings.
//!
//! A seed gives the same session for ever, on every machine. Few ids and short strings, so that calls meet:
//! updates before the call, after its result, questions about calls that ended, turns that share calls.

use acpipe::core::policy::Mode;
use acpipe::core::profile::Profile;
use acpipe::proto::wire::OfferedKind;
use serde_json::{Map, Value, json};

/// A session to replay.
pub struct Session {
    pub recording: String,
    pub policy: Mode,
    pub profile: Profile,
    /// Whether the client is asked: after how many lines it answers, and with which options.
    pub answers: Option<(usize, &'static [OfferedKind])>,
}

/// What clients choose.
pub const ALLOW: &[OfferedKind] = &[OfferedKind::AllowOnce, OfferedKind::AllowAlways];
pub const REFUSE: &[OfferedKind] = &[OfferedKind::RejectOnce, OfferedKind::RejectAlways];

/// `SplitMix64`.
pub struct Dice(pub u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }

    pub fn percent(&mut self, p: u64) -> bool {
        self.below(100) < p
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).unwrap()]
    }
}

/// What a client and an agent said, line by line.
struct Maker {
    dice: Dice,
    lines: Vec<Value>,
    last_id: u64,
    questions: u64,
}

const SESSION: &str = "the-session";
const STRINGS: &[&str] = &[
    "",
    " ",
    "a",
    "word ",
    "two\nlines",
    "\"quoted\\\"",
    "tab\t\u{1}\u{7f}",
    "ünï 語 🙂",
    "\u{2028}\u{feff}",
    "data: x\n\n",
    "null",
    "__proto__",
    "constructor",
    "</script>",
    "https://example.org/a?b#c",
];
const IDS: &[&str] = &["t1", "t2", "t3"];
const ODD_IDS: &[&str] = &["", "__proto__", "toString", "a.b c/ü"];

/// The session of a seed.
pub fn session(seed: u64) -> Session {
    let mut maker = Maker {
        dice: Dice(seed),
        lines: Vec::new(),
        last_id: 0,
        questions: 0,
    };
    let policy = *maker.dice.pick(&[Mode::Approve, Mode::Deny]);
    let profile = *maker.dice.pick(&[Profile::V7, Profile::V6, Profile::V5]);
    maker.handshake();
    let turns = if maker.dice.percent(15) { 2 } else { 1 };
    for _ in 0..turns {
        if !maker.turn() {
            break;
        }
    }
    let asked = maker.dice.percent(40);
    let after = *maker.dice.pick(&[0, 1, 2, 4]);
    let kinds = *maker.dice.pick(&[ALLOW, ALLOW, REFUSE, &[]]);
    let lines = maker.lines.iter();
    Session {
        answers: asked.then_some((after, kinds)),
        recording: lines.flat_map(|l| [l.to_string(), "\n".into()]).collect(),
        policy,
        profile,
    }
}

impl Maker {
    fn client(&mut self, frame: &Value) {
        self.lines.push(json!({ "dir": "out", "frame": frame }));
    }

    fn agent(&mut self, frame: &Value) {
        self.lines.push(json!({ "dir": "in", "frame": frame }));
    }

    fn call(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.client(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn answer(&mut self, id: u64, result: &Value) {
        self.agent(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn handshake(&mut self) {
        let id = self.call("initialize", &json!({ "protocolVersion": 1 }));
        self.answer(
            id,
            &json!({ "protocolVersion": 1, "agentInfo": { "name": "dice", "version": "6" } }),
        );
        let id = self.call("session/new", &json!({}));
        self.answer(id, &json!({ "sessionId": SESSION }));
    }

    /// One turn; false when the agent is gone.
    fn turn(&mut self) -> bool {
        let prompt = self.call("session/prompt", &json!({ "sessionId": SESSION }));
        let things = self.dice.below(11);
        let cancel = self.dice.percent(15).then(|| self.dice.below(things + 1));
        for n in 0..things {
            if cancel == Some(n) {
                self.cancel();
            }
            self.thing();
        }
        if cancel == Some(things) {
            self.cancel();
        }
        match self.dice.below(100) {
            // It crashes, and the recording ends.
            0..8 => return false,
            8..15 => self.failure(prompt),
            _ => {
                let end = self.end(cancel.is_some());
                self.answer(prompt, &end);
            }
        }
        if self.dice.percent(15) {
            self.thing();
        }
        true
    }

    fn cancel(&mut self) {
        let params = json!({ "sessionId": SESSION });
        self.client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
    }

    fn failure(&mut self, id: u64) {
        let code = *self.dice.pick(&[-32000, -32603, -32602, 500]);
        let mut error = json!({ "code": code, "message": self.string() });
        if self.dice.percent(50) {
            error["data"] = self.value(1);
        }
        self.agent(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    fn end(&mut self, cancelled: bool) -> Value {
        let reasons = [
            "end_turn",
            "max_tokens",
            "max_turn_requests",
            "refusal",
            "cancelled",
            "end_turn",
            "novel",
            "",
        ];
        let reason = if cancelled && self.dice.percent(80) {
            "cancelled"
        } else {
            *self.dice.pick(&reasons)
        };
        if self.dice.percent(3) {
            return self
                .dice
                .pick(&[
                    json!(null),
                    json!({}),
                    json!([]),
                    json!({ "stopReason": 7 }),
                ])
                .clone();
        }
        let mut end = json!({ "stopReason": reason });
        if self.dice.percent(40) {
            let counts = [
                "inputTokens",
                "outputTokens",
                "totalTokens",
                "cachedReadTokens",
                "thoughtTokens",
            ];
            end["usage"] = self.some(&counts, |m| json!(m.dice.below(1000)));
        }
        self.meta(&mut end);
        end
    }

    /// Anything an agent may say within a turn.
    fn thing(&mut self) {
        match self.dice.below(100) {
            0..10 => self.question(),
            10..12 => self.foreign(),
            _ => {
                let update = self.update();
                let session = if self.dice.percent(2) {
                    "of-a-subagent"
                } else {
                    SESSION
                };
                let params = json!({ "sessionId": session, "update": update });
                self.agent(
                    &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }),
                );
            }
        }
    }

    /// What is no update.
    fn foreign(&mut self) {
        match self.dice.below(4) {
            0 => self.lines.push(json!({ "dir": "in", "raw": "starting up … {" })),
            1 => self.agent(&json!({ "jsonrpc": "2.0", "method": "_vendor/news", "params": {} })),
            2 => self.agent(&json!({ "jsonrpc": "2.0", "id": 900, "method": "fs/read_text_file", "params": { "sessionId": SESSION, "path": "/a" } })),
            _ => self.lines.push(json!({ "dir": "in", "raw": " " })),
        }
    }

    fn update(&mut self) -> Value {
        let kind = match self.dice.below(100) {
            0..22 => "agent_message_chunk",
            22..34 => "agent_thought_chunk",
            34..37 => "user_message_chunk",
            37..52 => "tool_call",
            52..78 => "tool_call_update",
            _ => self.dice.pick(&[
                "plan",
                "plan_update",
                "plan_removed",
                "usage_update",
                "available_commands_update",
                "current_mode_update",
                "config_option_update",
                "session_info_update",
                "notice",
                "compaction_update",
                "compaction_summary_chunk",
                "from_the_future",
            ]),
        };
        let mut update = match kind {
            "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" => {
                let mut update = json!({ "content": self.block() });
                if self.dice.percent(30) {
                    update["messageId"] = json!(self.dice.pick(&["m1", "m2", ""]));
                }
                update
            }
            "tool_call" | "tool_call_update" => self.tool(),
            "plan" => {
                json!({ "entries": [{ "content": self.string(), "priority": "low", "status": "pending" }] })
            }
            "plan_update" => json!({ "plan": { "type": "items", "planId": "p", "entries": [] } }),
            "plan_removed" => json!({ "planId": "p" }),
            "usage_update" => {
                let mut update = json!({ "used": self.dice.below(9000), "size": 9000 });
                if self.dice.percent(50) {
                    update["cost"] = self
                        .dice
                        .pick(&[json!({ "amount": 0.25, "currency": "USD" }), json!(null)])
                        .clone();
                }
                update
            }
            "available_commands_update" => {
                json!({ "availableCommands": [{ "name": "c", "description": self.string() }] })
            }
            "current_mode_update" => json!({ "currentModeId": self.string() }),
            "config_option_update" => json!({ "configOptions": self.value(1) }),
            "session_info_update" => self.some(&["title", "updatedAt"], Self::value_or_null),
            "notice" => {
                json!({ "severity": "info", "title": self.string(), "description": self.string() })
            }
            "compaction_update" => {
                json!({ "compactionId": self.dice.pick(&["k", ""]), "status": "in_progress" })
            }
            "compaction_summary_chunk" => json!({ "compactionId": "k", "content": self.block() }),
            _ => json!({ "anything": self.value(2) }),
        };
        update["sessionUpdate"] = json!(kind);
        self.meta(&mut update);
        self.spoil(&mut update);
        update
    }

    /// A call or what is new of it.
    fn tool(&mut self) -> Value {
        let id = if self.dice.percent(2) {
            *self.dice.pick(ODD_IDS)
        } else {
            *self.dice.pick(IDS)
        };
        let mut tool = json!({ "toolCallId": id });
        let mut may = |name: &str, percent: u64, make: fn(&mut Self) -> Value| {
            if self.dice.percent(percent) {
                tool[name] = make(self);
            }
        };
        may("title", 50, |m| json!(m.string()));
        may("name", 20, |m| json!(m.string()));
        may("kind", 40, |m| {
            json!(
                m.dice
                    .pick(&["read", "edit", "execute", "think", "other", "new_kind"])
            )
        });
        may("status", 60, |m| {
            json!(m.dice.pick(&[
                "pending",
                "in_progress",
                "in_progress",
                "completed",
                "failed",
                "paused"
            ]))
        });
        may("rawInput", 40, |m| m.value(2));
        may("rawOutput", 25, |m| m.value(2));
        may(
            "locations",
            15,
            |m| json!([{ "path": "/a", "line": m.dice.below(9) }]),
        );
        may("content", 40, |m| {
            let count = m.dice.below(3);
            (0..count).map(|_| m.tool_content()).collect()
        });
        tool
    }

    fn tool_content(&mut self) -> Value {
        match self.dice.below(6) {
            0..3 => json!({ "type": "content", "content": self.block() }),
            3 => {
                json!({ "type": "diff", "path": "/a", "oldText": self.dice.pick(&[json!(null), json!("old")]), "newText": self.string() })
            }
            4 => json!({ "type": "terminal", "terminalId": self.dice.pick(IDS) }),
            _ => json!({ "type": "hologram", "data": self.value(1) }),
        }
    }

    fn block(&mut self) -> Value {
        let mime = *self.dice.pick(&[
            "image/png",
            "audio/wav",
            "text/plain",
            "",
            "not a type",
            "image/svg+xml; charset=\"x\"",
        ]);
        let uri = *self.dice.pick(&[
            "file:///a/b.rs",
            "https://example.org/x",
            "http://",
            "zed:///agent/thread/1",
            "a/b",
            "",
            "https://[",
            "/tmp/é ü",
        ]);
        let mut block = match self.dice.below(16) {
            0..8 => json!({ "type": "text", "text": self.string() }),
            8 => json!({ "type": "image", "mimeType": mime, "data": "aGk=" }),
            9 => json!({ "type": "image", "mimeType": mime, "data": self.string(), "uri": uri }),
            10 => json!({ "type": "audio", "mimeType": mime, "data": "" }),
            11 => {
                json!({ "type": "resource_link", "uri": uri, "name": self.string(), "title": self.string() })
            }
            12 => json!({ "type": "resource_link", "uri": uri, "mimeType": mime, "size": 5 }),
            13 => {
                json!({ "type": "resource", "resource": { "uri": uri, "text": self.string(), "mimeType": mime } })
            }
            14 => json!({ "type": "resource", "resource": { "uri": uri, "blob": "aGk=" } }),
            _ => json!({ "type": "smell", "data": self.value(1) }),
        };
        if self.dice.percent(8) {
            block["annotations"] = json!({ "audience": ["user"], "priority": 1 });
        }
        self.meta(&mut block);
        self.spoil(&mut block);
        block
    }

    fn question(&mut self) {
        self.questions += 1;
        let id = match self.dice.below(3) {
            0 => json!(self.questions + 100),
            1 => json!(format!("q{}", self.questions)),
            _ => json!(self.questions - 1),
        };
        let mut tool = self.tool();
        self.meta(&mut tool);
        let count = self.dice.below(4);
        let options: Value = (0..count)
            .map(|n| {
                let kinds = ["allow_once", "allow_always", "reject_once", "reject_always", "ask_later"];
                json!({ "optionId": format!("o{n}"), "name": self.string(), "kind": self.dice.pick(&kinds) })
            })
            .collect();
        let mut params = json!({ "sessionId": SESSION, "toolCall": tool, "options": options });
        self.meta(&mut params);
        self.agent(&json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params }));
    }

    /// Additions of the agents that are known to make some, and of others.
    fn meta(&mut self, to: &mut Value) {
        if !self.dice.percent(12) {
            return;
        }
        let tool = *self.dice.pick(IDS);
        to["_meta"] = match self.dice.below(7) {
            0 => {
                json!({ "claudeCode": { "toolName": self.string(), "toolResponse": self.value(1) } })
            }
            1 => json!({ "claudeCode": { "parentToolUseId": tool } }),
            2 => json!({ "terminal_info": { "terminal_id": tool, "cwd": "/" } }),
            3 => json!({ "terminal_output": { "terminal_id": tool, "data": self.string() } }),
            4 => {
                json!({ "terminal_exit": { "terminal_id": tool, "exit_code": 1, "signal": null } })
            }
            5 => json!(null),
            _ => json!({ "x.example/y": self.value(2) }),
        };
    }

    /// Now and then a field holds what it must not.
    fn spoil(&mut self, object: &mut Value) {
        let Some(fields) = object.as_object_mut().filter(|_| self.dice.percent(5)) else {
            return;
        };
        let names: Vec<String> = fields.keys().cloned().collect();
        let name = self.dice.pick(&names).clone();
        let odd = [
            json!(null),
            json!(7),
            json!([]),
            json!({}),
            json!(true),
            json!("odd"),
        ];
        fields.insert(name, self.dice.pick(&odd).clone());
    }

    fn string(&mut self) -> String {
        (*self.dice.pick(STRINGS)).to_owned()
    }

    fn some(&mut self, names: &[&str], make: impl Fn(&mut Self) -> Value) -> Value {
        let mut object = Map::new();
        for name in names {
            if self.dice.percent(40) {
                object.insert((*name).to_owned(), make(self));
            }
        }
        Value::Object(object)
    }

    fn value_or_null(&mut self) -> Value {
        if self.dice.percent(30) {
            Value::Null
        } else {
            json!(self.string())
        }
    }

    /// Any JSON, not deep.
    fn value(&mut self, depth: u32) -> Value {
        match self.dice.below(if depth == 0 { 6 } else { 8 }) {
            0 => json!(null),
            1 => json!(self.dice.percent(50)),
            2 => json!(self.dice.below(100)),
            3 => json!(-0.5),
            4 | 5 => json!(self.string()),
            6 => {
                let count = self.dice.below(3);
                (0..count).map(|_| self.value(depth - 1)).collect()
            }
            _ => {
                if self.dice.percent(4) {
                    // For such keys the SDK refuses a whole chunk.
                    let odd = [
                        json!({ "__proto__": null }),
                        json!({ "__proto__": { "a": 1 }, "a": 2 }),
                        json!({ "constructor": { "prototype": {} } }),
                    ];
                    return self.dice.pick(&odd).clone();
                }
                let names = [
                    "a",
                    "command",
                    "type",
                    "toolCallId",
                    "length",
                    "constructor",
                ];
                self.some(&names, |m| m.value(depth - 1))
            }
        }
    }
}
