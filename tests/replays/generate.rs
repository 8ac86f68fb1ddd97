//! Generates histories: the content of each turn, and its lines. `tell.rs` generates the lines of the turns
//! and of their replay.
//!
//! A seed always gives the same history, on every machine.

use crate::history_lines;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

pub struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() % n as u64).unwrap()
    }

    pub fn percent(&mut self, p: usize) -> bool {
        self.below(100) < p
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

pub struct History {
    pub turns: Vec<Turn>,
    pub dice: Dice,
}

/// The user's message and the agent's reaction.
pub struct Turn {
    pub user: Vec<Value>,
    /// Content blocks that the agent received; set when the turn runs.
    pub blocks: Vec<Value>,
    /// The agent's lines, live.
    pub lines: Vec<String>,
    /// The agent's response.
    pub end: Value,
    pub user_id: Option<String>,
    pub items: Vec<Item>,
}

/// An item of the agent's output in a turn.
pub enum Item {
    Text {
        kind: &'static str,
        id: Option<String>,
        text: String,
    },
    /// An update that comes once.
    Whole(Value),
    /// The versions of a plan.
    Plan(Vec<Value>),
    Tool(Tool),
}

pub struct Tool {
    pub id: String,
    /// Its final fields, except its status.
    pub facts: Map<String, Value>,
    pub status: Option<&'static str>,
    pub question: Option<Question>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Question {
    Allowed,
    Refused,
}

const STRINGS: &[&str] = &[
    " ",
    "a",
    "word and word ",
    "two\nlines",
    "\"quoted\\\"",
    "tab\t\u{1}\u{7f}",
    "ünï 語 🙂👩‍🚀",
    "\u{2028}\u{feff}",
    "</script>",
];
const ANSWER: &str = "agent_message_chunk";
const THOUGHT: &str = "agent_thought_chunk";

/// Returns the history of a seed.
pub fn history(seed: u64) -> History {
    let mut maker = HistoryBuilder {
        dice: Dice(seed),
        with_ids: false,
        last_id: 0,
    };
    maker.with_ids = maker.dice.percent(50);
    let turns = (0..=maker.dice.below(2)).map(|_| maker.turn()).collect();
    let dice = maker.dice;
    History { turns, dice }
}

struct HistoryBuilder {
    dice: Dice,
    /// Whether the agent sends message ids.
    with_ids: bool,
    last_id: u64,
}

impl HistoryBuilder {
    fn id(&mut self, kind: &str) -> String {
        self.last_id += 1;
        format!("{kind}{}", self.last_id)
    }

    fn message_id(&mut self) -> Option<String> {
        self.with_ids.then(|| self.id("m"))
    }

    fn string(&mut self) -> String {
        let words = 1 + self.dice.below(3);
        (0..words).map(|_| *self.dice.pick(STRINGS)).collect()
    }

    fn turn(&mut self) -> Turn {
        let user = (0..=self.dice.below(2)).map(|_| self.user_part()).collect();
        let user_id = self.message_id();
        // Without ids only an answer separates two messages of the user.
        let least = usize::from(!self.with_ids);
        let mut items: Vec<Item> = Vec::new();
        for _ in 0..least + self.dice.below(5) {
            let item = self.item(&items);
            items.push(item);
        }
        let lines = history_lines::live(&mut self.dice, &items);
        let ends = [
            json!({ "result": { "stopReason": "end_turn" } }),
            json!({ "result": { "stopReason": "end_turn", "usage": { "inputTokens": 1 } } }),
            json!({ "result": { "stopReason": "max_tokens" } }),
            json!({ "result": { "stopReason": "refusal" } }),
            json!({ "result": { "stopReason": "cancelled" } }),
            json!({ "error": { "code": -32603, "message": "it broke" } }),
        ];
        Turn {
            user,
            blocks: Vec::new(),
            lines,
            end: self.dice.pick(&ends).clone(),
            user_id,
            items,
        }
    }

    fn item(&mut self, before: &[Item]) -> Item {
        match self.dice.below(100) {
            0..45 => self.text(before),
            45..60 => Item::Whole(self.whole()),
            // One plan at most: the versions of two plans in a turn would count as those of one.
            60..70 if !before.iter().any(|item| matches!(item, Item::Plan(_))) => {
                let count = 1 + self.dice.below(3);
                Item::Plan((0..count).map(|_| self.plan()).collect())
            }
            _ => Item::Tool(self.tool()),
        }
    }

    /// Generates a text that differs from the previous one in kind or message id: otherwise both would become
    /// one.
    fn text(&mut self, before: &[Item]) -> Item {
        let mut kind = *self.dice.pick(&[ANSWER, ANSWER, THOUGHT]);
        let mut id = self.message_id();
        let last = before.iter().rev().find_map(|item| match item {
            Item::Text { kind, id, .. } => Some((*kind, id)),
            _ => None,
        });
        if let Some((last_kind, last_id)) = last {
            if !self.with_ids {
                kind = if last_kind == ANSWER { THOUGHT } else { ANSWER };
            } else if kind != last_kind && self.dice.percent(50) {
                id.clone_from(last_id);
            }
        }
        let text = self.string();
        Item::Text { kind, id, text }
    }

    fn plan(&mut self) -> Value {
        let entry = json!({ "content": self.string(), "priority": "low", "status": "pending" });
        json!({ "sessionUpdate": "plan", "entries": [entry] })
    }

    fn whole(&mut self) -> Value {
        let uri = *self
            .dice
            .pick(&["https://example.org/x", "file:///a/b.rs", "zed:///thread/1"]);
        let content = match self.dice.below(7) {
            0 => json!({ "type": "image", "mimeType": "image/png", "data": "aGk=" }),
            1 => {
                json!({ "type": "audio", "mimeType": "audio/wav", "data": "", "annotations": { "priority": 1 } })
            }
            2 => json!({ "type": "resource_link", "uri": uri, "name": self.string(), "size": 5 }),
            3 => json!({ "type": "resource", "resource": { "uri": uri, "text": self.string() } }),
            4 => json!({ "type": "resource", "resource": { "uri": uri, "blob": "/w==" } }),
            5 => json!({ "type": "smell", "data": self.value(1) }),
            _ => return json!({ "sessionUpdate": "from_the_future", "anything": self.value(2) }),
        };
        let mut update = message(self.message_id().as_deref());
        update.insert(
            "sessionUpdate".into(),
            (*self.dice.pick(&[ANSWER, THOUGHT])).into(),
        );
        update.insert("content".into(), content);
        update.into()
    }

    fn tool(&mut self) -> Tool {
        let mut facts = Map::new();
        let mut may = |name: &str, percent: usize, make: fn(&mut Self) -> Value| {
            if self.dice.percent(percent) {
                facts.insert(name.to_owned(), make(self));
            }
        };
        may("name", 30, |m| m.string().into());
        may("kind", 70, |m| {
            (*m.dice.pick(&["read", "edit", "execute", "new_kind"])).into()
        });
        may("title", 70, |m| m.string().into());
        may("rawInput", 80, |m| m.value(2));
        may("rawOutput", 40, |m| m.value(2));
        may(
            "locations",
            30,
            |m| json!([{ "path": "/a", "line": m.dice.below(9) }]),
        );
        may(
            "_meta",
            30,
            |m| json!({ "vendor": { "a": m.value(1) }, "more": m.string() }),
        );
        may("content", 50, |m| {
            // Large calls are not shown at every change.
            let weight = if m.dice.percent(1) { 17_000 } else { 0 };
            let text = m.string();
            let text = text.repeat(1 + weight / text.len());
            json!([{ "type": "content", "content": { "type": "text", "text": text } }])
        });
        facts.retain(|_, value| !value.is_null());
        let endings = ["pending", "in_progress", "completed", "completed", "failed"];
        let mut status = (!self.dice.percent(10)).then(|| *self.dice.pick(&endings));
        let question = match self.dice.below(10) {
            0..2 => Some(Question::Allowed),
            2 => Some(Question::Refused),
            _ => None,
        };
        if question == Some(Question::Refused) {
            status = Some(*self.dice.pick(&["failed", "failed", "pending"]));
        }
        let id = self.id("t");
        Tool {
            id,
            facts,
            status,
            question,
        }
    }

    /// Generates any shallow JSON value.
    fn value(&mut self, depth: u32) -> Value {
        match self.dice.below(if depth == 0 { 4 } else { 7 }) {
            0 => json!(null),
            1 => json!(self.dice.below(100)),
            2 => json!(-0.5),
            3 => json!(self.string()),
            4 => (0..self.dice.below(3))
                .map(|_| self.value(depth - 1))
                .collect(),
            _ => json!({ "command": self.value(depth - 1), "type": self.value(depth - 1) }),
        }
    }

    fn user_part(&mut self) -> Value {
        let text = self.string();
        let base64 = STANDARD.encode(&text);
        let mut part = match self.dice.below(10) {
            0..4 => return json!({ "type": "text", "text": text }),
            4 => return json!({ "type": "text", "text": "" }),
            5 => {
                json!({ "mediaType": "image/png", "url": format!("data:image/png;base64,{base64}") })
            }
            6 => json!({ "mediaType": "audio/wav", "url": "data:audio/wav;base64,/w==" }),
            7 => {
                json!({ "mediaType": "text/x-rust", "url": format!("data:text/plain;base64,{base64}") })
            }
            8 => json!({ "mediaType": "application/x", "url": "data:,a%20b%FF%2F" }),
            _ => json!({ "mediaType": "text/html", "url": "https://example.org/a?b=1,2" }),
        };
        part["type"] = "file".into();
        if self.dice.percent(60) {
            part["filename"] = (*self.dice.pick(&["a.rs", "b/ü %.txt", ""])).into();
        }
        part
    }
}

/// Returns the fields that identify a message.
pub fn message(id: Option<&str>) -> Map<String, Value> {
    id.map(|id| ("messageId".to_owned(), id.into()))
        .into_iter()
        .collect()
}
