//! Differences between what a side received and what it received in the recording.

use super::drive::Exchange;
use super::recording::{Recording, Side};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One kind of difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Side that received other messages than in the recording.
    pub receiver: &'static str,
    /// Kind of message.
    pub message: String,
    pub change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The message was received in the recording only.
    Missing,
    /// The message was not received in the recording.
    Additional,
    /// The message was received at another place.
    Moved,
    /// The response to a prompt was received after messages that follow it in the recording.
    Later,
    /// The member at this path has another value.
    Member(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}: {}", self.receiver, self.message, self.change)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(out, "missing"),
            Self::Additional => write!(out, "additional"),
            Self::Moved => write!(out, "at another place"),
            Self::Later => write!(out, "later"),
            Self::Member(path) => write!(out, "{path}"),
        }
    }
}

/// Returns the differences of a conversation from its recording.
pub fn differences(recording: &Recording, exchange: &Exchange) -> BTreeSet<Difference> {
    let mut found = BTreeSet::new();
    let sides = [
        (Side::Agent, "client", &exchange.client),
        (Side::Client, "agent", &exchange.agent),
    ];
    for (writer, receiver, received) in sides {
        let reader = match writer {
            Side::Agent => Side::Client,
            Side::Client => Side::Agent,
        };
        let recorded = labelled(recording.of(writer), recording.of(reader));
        // Both sides get the responses to their requests under the ids of the recording.
        let received = labelled(received.iter(), recording.of(reader));
        compare(receiver, &recorded, &received, &mut found);
    }
    found
}

/// Message with the kind of its step, and without request ids: each conversation has its own.
#[derive(Debug, PartialEq)]
struct Labelled {
    kind: String,
    message: Value,
}

/// Labels messages. `others` are the recorded messages of the other side, with the requests that the responses
/// belong to.
fn labelled<'a>(
    messages: impl Iterator<Item = &'a Value>,
    others: impl Iterator<Item = &'a Value>,
) -> Vec<Labelled> {
    // Ids may be used again after the response.
    let mut methods: BTreeMap<String, &str> = BTreeMap::new();
    for other in others {
        if let (Some(id), Some(method)) = (other.get("id"), other["method"].as_str()) {
            methods.insert(id.to_string(), method);
        }
    }
    let mut requests: BTreeMap<String, String> = BTreeMap::new();
    let labelled = messages.map(|message| {
        let mut message = message.clone();
        let kind = if let Some(method) = message["method"].as_str().map(str::to_owned) {
            if let Some(id) = message.get("id").map(Value::to_string) {
                requests.insert(id, method.clone());
                message["id"] = Value::Null;
            }
            if method == "$/cancel_request" {
                let id = message["params"]["requestId"].to_string();
                message["params"]["requestId"] = requests.get(&id).cloned().into();
            }
            match message["params"]["update"]["sessionUpdate"].as_str() {
                Some(kind) => format!("{method} {kind}"),
                None => method,
            }
        } else {
            let method = methods.get(&message["id"].to_string());
            let method = method.copied().unwrap_or("an unknown request");
            message["id"] = Value::Null;
            let outcome = if message.get("error").is_some() {
                "error"
            } else {
                "result"
            };
            format!("{outcome} of {method}")
        };
        Labelled { kind, message }
    });
    labelled.collect()
}

fn compare(
    receiver: &'static str,
    recorded: &[Labelled],
    behind: &[Labelled],
    found: &mut BTreeSet<Difference>,
) {
    let mut add = |message: &str, change: Change| {
        found.insert(Difference {
            receiver,
            message: message.to_owned(),
            change,
        });
    };
    // Messages of the same kind are compared in their order.
    let by_kind = |side: &'_ [Labelled]| {
        let mut by_kind: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, labelled) in side.iter().enumerate() {
            by_kind.entry(labelled.kind.clone()).or_default().push(at);
        }
        by_kind
    };
    let (wanted, mut have) = (by_kind(recorded), by_kind(behind));
    let mut pairs = Vec::new();
    for (kind, wanted) in &wanted {
        let have = have.remove(kind).unwrap_or_default();
        let matched = align(recorded, behind, wanted, &have);
        if wanted.len() > matched.len() {
            add(kind, Change::Missing);
        }
        if have.len() > matched.len() {
            add(kind, Change::Additional);
        }
        for (want, have) in &matched {
            let mut paths = BTreeSet::new();
            find_paths(
                &recorded[*want].message,
                &behind[*have].message,
                "",
                &mut paths,
            );
            for path in paths {
                add(kind, Change::Member(path));
            }
        }
        // If the numbers differ, it is not known which of several equal messages is missing.
        if wanted.len() == have.len() {
            pairs.extend(matched);
        }
    }
    for kind in have.keys() {
        add(kind, Change::Additional);
    }
    pairs.sort_unstable();
    let ends_turn = |kind: &str| kind.ends_with(" of session/prompt");
    let (ends, others): (Vec<_>, Vec<_>) = pairs
        .into_iter()
        .partition(|(want, _)| ends_turn(&recorded[*want].kind));
    let mut last = None;
    for (want, have) in &others {
        if last.is_some_and(|last| have < last) {
            add(&recorded[*want].kind, Change::Moved);
        } else {
            last = Some(have);
        }
    }
    for (want, have) in ends {
        let overtook = others.iter().any(|(w, h)| *w < want && *h > have);
        let was_late = others.iter().any(|(w, h)| *w > want && *h < have);
        if overtook {
            add(&recorded[want].kind, Change::Moved);
        } else if was_late {
            add(&recorded[want].kind, Change::Later);
        }
    }
}

/// Pairs messages of one kind. If their numbers differ, equal messages are paired first to last.
fn align(
    recorded: &[Labelled],
    received: &[Labelled],
    wanted: &[usize],
    have: &[usize],
) -> Vec<(usize, usize)> {
    if wanted.len() == have.len() {
        return wanted.iter().copied().zip(have.iter().copied()).collect();
    }
    let mut pairs = Vec::new();
    let mut next = 0;
    for want in wanted {
        let rest = have[next..].iter();
        let equal = rest.copied().position(|at| recorded[*want] == received[at]);
        if let Some(skipped) = equal {
            next += skipped;
            pairs.push((*want, have[next]));
            next += 1;
        }
    }
    pairs
}

/// Collects the paths of members that differ. Positions in lists are left out.
fn find_paths(wanted: &Value, have: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match (wanted, have) {
        (Value::Object(wanted), Value::Object(have)) => {
            let names: BTreeSet<&String> = wanted.keys().chain(have.keys()).collect();
            for name in names {
                let path = format!("{path}/{name}");
                match (wanted.get(name), have.get(name)) {
                    (Some(wanted), Some(have)) => find_paths(wanted, have, &path, paths),
                    _ => drop(paths.insert(path)),
                }
            }
        }
        (Value::Array(wanted), Value::Array(have)) if wanted.len() == have.len() => {
            for (wanted, have) in wanted.iter().zip(have) {
                find_paths(wanted, have, path, paths);
            }
        }
        _ if wanted == have => {}
        _ => drop(paths.insert(path.to_owned())),
    }
}
