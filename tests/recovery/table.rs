//! Table of all outcomes; rows that differ only in irrelevant columns are merged.

use super::cell::{Cell, List, Load, RequestedStrategy, Resume, Stored};
use super::outcome::Outcome;
use std::fmt::Write as _;

const HEAD: &str = "\
# The recovery matrix

Written by `UPDATE_MATRIX=1 cargo test --test recovery`, and compared by it: the receipt of a client when a session
comes back, for everything that an agent can do. *any* is a column that makes no difference.
";

const COLUMNS: &str = "
| resume | load | session/list | rung, memory | failed | replayed | adopted | messages | then |
|-|-|-|-|-|-|-|-|-|
";

/// The text of the table so far.
pub struct Table(String);

impl Default for Table {
    fn default() -> Self {
        Self(HEAD.to_owned())
    }
}

/// The agent's behaviour on resume, load and list, and the outcome.
type Row = ([&'static str; 3], Outcome);

impl Table {
    pub fn section(&mut self, stored: Stored, wish: RequestedStrategy, all: &[(Cell, Outcome)]) {
        let row = |(cell, outcome): &(Cell, Outcome)| {
            let agent = [cell.resume.words(), cell.load.words(), cell.list.words()];
            (agent, outcome.clone())
        };
        let rows: Vec<Row> = all.iter().map(row).collect();
        // The strategy that is tried first comes first.
        let order = if stored == Stored::History && wish == RequestedStrategy::Auto {
            [0, 1, 2]
        } else {
            [1, 0, 2]
        };
        let (stored, wish) = (stored.words(), wish.words());
        let _ = write!(self.0, "\n## Stored: {stored}. Strategy: {wish}\n{COLUMNS}");
        for (agent, outcome) in fold(rows, &order) {
            let cells = agent.join(" | ");
            let _ = writeln!(self.0, "| {cells} | {} |", outcome.words().join(" | "));
        }
    }

    /// Compares the table with the committed file, or writes it.
    pub fn compare(&self) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recovery/matrix.md");
        if std::env::var_os("UPDATE_MATRIX").is_some() {
            std::fs::write(path, &self.0).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        let differs = committed.lines().zip(self.0.lines()).find(|(a, b)| a != b);
        assert!(
            committed == self.0,
            "matrix.md differs, first in {differs:?}: UPDATE_MATRIX=1 writes it anew"
        );
    }
}

/// Groups rows by the first column; if all groups are equal, one remains, with *any* in that column.
fn fold(rows: Vec<Row>, order: &[usize]) -> Vec<Row> {
    let Some((&column, rest)) = order.split_first() else {
        return rows;
    };
    let values: &[&str] = &match column {
        0 => Resume::ALL.iter().map(|v| v.words()).collect::<Vec<_>>(),
        1 => Load::ALL.iter().map(|v| v.words()).collect(),
        _ => List::ALL.iter().map(|v| v.words()).collect(),
    };
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for value in values {
        let of_value = rows.iter().filter(|(agent, _)| agent[column] == *value);
        let mut group = fold(of_value.cloned().collect(), rest);
        for (agent, _) in &mut group {
            agent[column] = "*any*";
        }
        groups.push(group);
    }
    if groups.iter().all(|group| *group == groups[0]) {
        return groups.swap_remove(0);
    }
    for (value, group) in values.iter().zip(&mut groups) {
        for (agent, _) in group {
            agent[column] = value;
        }
    }
    groups.concat()
}
