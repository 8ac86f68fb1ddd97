//! What comes of a recovery, as the client is told.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Held(Receipt, Then),
    /// The kind of the error, and whether it holds the ways to sign in.
    Failed(String, bool),
}

/// The receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    pub rung: String,
    pub memory: String,
    /// Rung and kind of each attempt that failed.
    pub failed: Vec<String>,
    pub replayed: Option<u64>,
    pub adopted: u64,
    pub messages: u64,
}

/// What becomes of the next prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    Answered,
    /// It is answered in a new session.
    Moved(Receipt),
    /// The kind of its error.
    Fails(String),
}

impl Receipt {
    pub fn of(recovery: &Value) -> Self {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let attempt = |a: &Value| format!("{} {}", word(&a["rung"]), word(&a["kind"]));
        let failed = recovery["failed"].as_array().unwrap();
        Self {
            rung: word(&recovery["rung"]),
            memory: word(&recovery["memory"]),
            failed: failed.iter().map(attempt).collect(),
            replayed: recovery["replayed"].as_u64(),
            adopted: recovery["adopted"].as_u64().unwrap(),
            messages: recovery["messages"].as_u64().unwrap(),
        }
    }

    fn words(&self) -> [String; 5] {
        let replayed = self.replayed.map_or(String::new(), |n| n.to_string());
        [
            format!("{}, {}", self.rung, self.memory),
            self.failed.join(", "),
            replayed,
            self.adopted.to_string(),
            self.messages.to_string(),
        ]
    }
}

impl Outcome {
    /// The cells of its row in the table.
    pub fn words(&self) -> [String; 6] {
        let (cells, then) = match self {
            Self::Held(receipt, then) => (receipt.words(), then),
            Self::Failed(kind, auth) => {
                let ways = if *auth { ", with authMethods" } else { "" };
                let mut cells = [const { String::new() }; 5];
                cells[0] = format!("error {kind}{ways}");
                (cells, &Then::Answered)
            }
        };
        let then = match then {
            Then::Answered => String::new(),
            Then::Moved(receipt) => {
                let [held, failed, ..] = receipt.words();
                format!("{held}; failed: {failed}; messages: {}", receipt.messages)
            }
            Then::Fails(kind) => format!("error {kind}"),
        };
        let [held, failed, replayed, adopted, messages] = cells;
        [held, failed, replayed, adopted, messages, then]
    }
}
