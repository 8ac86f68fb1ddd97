//! JSON values of all kinds, and invalid fields.

use super::{IDS, RecordingBuilder, STRINGS};
use serde_json::{Map, Value, json};

impl RecordingBuilder {
    /// Adds `_meta` of agents with known extensions, and of others.
    pub(super) fn meta(&mut self, to: &mut Value) {
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

    /// Replaces a random field with a value of the wrong type, in 5 % of the calls.
    pub(super) fn spoil(&mut self, object: &mut Value) {
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

    pub(super) fn string(&mut self) -> String {
        (*self.dice.pick(STRINGS)).to_owned()
    }

    pub(super) fn some(&mut self, names: &[&str], make: impl Fn(&mut Self) -> Value) -> Value {
        let mut object = Map::new();
        for name in names {
            if self.dice.percent(40) {
                object.insert((*name).to_owned(), make(self));
            }
        }
        Value::Object(object)
    }

    pub(super) fn value_or_null(&mut self) -> Value {
        if self.dice.percent(30) {
            Value::Null
        } else {
            json!(self.string())
        }
    }

    /// Generates any shallow JSON value.
    pub(super) fn value(&mut self, depth: u32) -> Value {
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
                    // The SDK refuses a whole chunk because of these keys.
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
