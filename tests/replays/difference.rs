//! Describes the differences between two histories.

use crate::normal::{Message, Part};
use serde_json::Value;

/// Returns one line for each difference.
pub fn differences(live: &[Message], replayed: &[Message]) -> Vec<String> {
    let mut found = Vec::new();
    let pairs = align(live, replayed, message_cost, |m| 1 + m.parts.len());
    let mut last = 0;
    for (live_at, replayed_at) in pairs {
        last = live_at.unwrap_or(last);
        match (
            live_at.map(|at| &live[at]),
            replayed_at.map(|at| &replayed[at]),
        ) {
            (Some(a), Some(b)) => {
                let place = format!("message {} ({})", last + 1, a.role);
                message_differences(&place, a, b, &mut found);
            }
            (Some(a), None) => {
                found.push(format!(
                    "message {} ({}): only live: {}",
                    last + 1,
                    a.role,
                    a.gist()
                ));
            }
            (None, Some(b)) => {
                found.push(format!(
                    "after message {}: only replayed: {}, {}",
                    last + 1,
                    b.role,
                    b.gist()
                ));
            }
            (None, None) => {}
        }
    }
    found
}

fn message_differences(place: &str, a: &Message, b: &Message, found: &mut Vec<String>) {
    for (live, replayed) in align(&a.parts, &b.parts, part_cost, |_| 2) {
        match (live.map(|at| &a.parts[at]), replayed.map(|at| &b.parts[at])) {
            (Some(a), Some(b)) => {
                let place = format!("{place}, {}", a.key);
                value_differences(&place, Some(&a.facts), Some(&b.facts), found);
            }
            (Some(a), None) => found.push(format!("{place}, {}: only live: {}", a.key, a.facts)),
            (None, Some(b)) => {
                found.push(format!("{place}, {}: only replayed: {}", b.key, b.facts));
            }
            (None, None) => {}
        }
    }
}

fn value_differences(place: &str, a: Option<&Value>, b: Option<&Value>, found: &mut Vec<String>) {
    match (a, b) {
        (a, b) if a == b => {}
        // Objects without common keys are printed as a whole.
        (Some(Value::Object(a)), Some(Value::Object(b)))
            if a.keys().any(|key| b.contains_key(key)) =>
        {
            let more = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(more) {
                let place = format!("{place}, {key}");
                value_differences(&place, a.get(key), b.get(key), found);
            }
        }
        (a, b) => {
            let told = |v: Option<&Value>| v.map_or("nothing".to_owned(), Value::to_string);
            found.push(format!("{place}: live {}, replayed {}", told(a), told(b)));
        }
    }
}

fn message_cost(a: &Message, b: &Message) -> Option<usize> {
    let cost = |(a_at, b_at): &(Option<usize>, Option<usize>)| match (a_at, b_at) {
        (Some(a_at), Some(b_at)) => part_cost(&a.parts[*a_at], &b.parts[*b_at]).unwrap_or(2),
        _ => 2,
    };
    let pairs = align(&a.parts, &b.parts, part_cost, |_| 2);
    (a.role == b.role).then(|| pairs.iter().map(cost).sum())
}

fn part_cost(a: &Part, b: &Part) -> Option<usize> {
    (a.key == b.key).then(|| usize::from(a.facts != b.facts))
}

/// Pairs items at the least cost; `pair` returns `None` for items that cannot be paired.
fn align<T>(
    a: &[T],
    b: &[T],
    pair: impl Fn(&T, &T) -> Option<usize>,
    gap: impl Fn(&T) -> usize,
) -> Vec<(Option<usize>, Option<usize>)> {
    // best[i][j]: the cost of the items from i and j on, and the first step.
    let mut best = vec![vec![(0, (0, 0)); b.len() + 1]; a.len() + 1];
    for i in (0..=a.len()).rev() {
        for j in (0..=b.len()).rev() {
            let mut ways = Vec::new();
            if i < a.len()
                && j < b.len()
                && let Some(cost) = pair(&a[i], &b[j])
            {
                ways.push((cost + best[i + 1][j + 1].0, (1, 1)));
            }
            if i < a.len() {
                ways.push((gap(&a[i]) + best[i + 1][j].0, (1, 0)));
            }
            if j < b.len() {
                ways.push((gap(&b[j]) + best[i][j + 1].0, (0, 1)));
            }
            if let Some(way) = ways.into_iter().min_by_key(|way| way.0) {
                best[i][j] = way;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < a.len() || j < b.len() {
        let (_, (di, dj)) = best[i][j];
        pairs.push(((di == 1).then_some(i), (dj == 1).then_some(j)));
        i += di;
        j += dj;
    }
    pairs
}
