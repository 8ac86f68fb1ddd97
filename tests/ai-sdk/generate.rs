//! Generates sessions in the form of recordings: random updates in random order.
//!
//! A seed always gives the same session, on every machine. Ids are few and strings are short, so that calls
//! collide: updates before the call, after its result, permission requests for calls that ended, turns that
//! share calls.

mod updates;
mod values;

use acpipe_core::profile::Profile;
use acpipe_policy::Mode;
use acpipe_protocol::wire::OfferedKind;
use serde_json::{Value, json};

pub struct Session {
    pub recording: String,
    pub policy: Mode,
    pub profile: Profile,
    /// Client's answers, if it is asked: the number of lines after which it answers, and the options that it
    /// chooses.
    pub answers: Option<(usize, &'static [OfferedKind])>,
}

/// Options that clients choose.
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

/// Builds the messages of a client and an agent, line by line.
struct RecordingBuilder {
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

/// Returns the session of a seed.
pub fn session(seed: u64) -> Session {
    let mut maker = RecordingBuilder {
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

impl RecordingBuilder {
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

    /// Generates one turn; `false` if the agent process exited.
    fn turn(&mut self) -> bool {
        let prompt = self.call("session/prompt", &json!({ "sessionId": SESSION }));
        let things = self.dice.below(11);
        let cancel = self.dice.percent(15).then(|| self.dice.below(things + 1));
        for n in 0..things {
            if cancel == Some(n) {
                self.cancel();
            }
            self.random_message();
        }
        if cancel == Some(things) {
            self.cancel();
        }
        match self.dice.below(100) {
            // The agent crashes, and the recording ends here.
            0..8 => return false,
            8..15 => self.failure(prompt),
            _ => {
                let end = self.end(cancel.is_some());
                self.answer(prompt, &end);
            }
        }
        if self.dice.percent(15) {
            self.random_message();
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

    /// Generates anything an agent may send within a turn.
    fn random_message(&mut self) {
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

    /// Generates lines that are not updates.
    fn foreign(&mut self) {
        match self.dice.below(4) {
            0 => self.lines.push(json!({ "dir": "in", "raw": "starting up … {" })),
            1 => self.agent(&json!({ "jsonrpc": "2.0", "method": "_vendor/news", "params": {} })),
            2 => self.agent(&json!({ "jsonrpc": "2.0", "id": 900, "method": "fs/read_text_file", "params": { "sessionId": SESSION, "path": "/a" } })),
            _ => self.lines.push(json!({ "dir": "in", "raw": " " })),
        }
    }
}
