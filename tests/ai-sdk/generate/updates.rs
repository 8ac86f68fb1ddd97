//! Updates and permission requests of the generated agent.

use super::{IDS, ODD_IDS, RecordingBuilder, SESSION};
use serde_json::{Value, json};

impl RecordingBuilder {
    pub(super) fn update(&mut self) -> Value {
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

    /// Generates a tool call or an update of one.
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

    pub(super) fn question(&mut self) {
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
}
