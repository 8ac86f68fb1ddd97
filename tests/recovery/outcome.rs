//! Outcome of a restore as the client receives it.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Held(Receipt, NextPrompt),
    /// Kind of the error, and whether it contains the sign-in methods.
    Failed(String, bool),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    pub rung: String,
    pub memory: String,
    /// Strategy and error kind of each failed attempt.
    pub failed: Vec<String>,
    pub replayed: Option<u64>,
    pub adopted: u64,
    pub messages: u64,
}

/// Result of the next prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum NextPrompt {
    Answered,
    /// Answered in a new session, with this receipt.
    Moved(Receipt),
    /// Failed with an error of this kind.
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
    /// Returns the cells of its row in the table.
    pub fn words(&self) -> [String; 6] {
        let (cells, then) = match self {
            Self::Held(receipt, then) => (receipt.words(), then),
            Self::Failed(kind, auth) => {
                let ways = if *auth { ", with authMethods" } else { "" };
                let mut cells = [const { String::new() }; 5];
                cells[0] = format!("error {kind}{ways}");
                (cells, &NextPrompt::Answered)
            }
        };
        let then = match then {
            NextPrompt::Answered => String::new(),
            NextPrompt::Moved(receipt) => {
                let [held, failed, ..] = receipt.words();
                format!("{held}; failed: {failed}; messages: {}", receipt.messages)
            }
            NextPrompt::Fails(kind) => format!("error {kind}"),
        };
        let [held, failed, replayed, adopted, messages] = cells;
        [held, failed, replayed, adopted, messages, then]
    }
}
