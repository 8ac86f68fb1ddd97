//! The results as a Markdown table of medians.

use crate::Batching;
use crate::publish::{Headers, Run};
use async_nats::jetstream::stream::StorageType;
use std::collections::BTreeMap;
use std::fmt;

/// Row of the table, in the order in which it was first added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    batching: &'static str,
    destination: String,
    is_paced: bool,
}

impl Row {
    pub fn file(batching: &Batching, name: &str) -> Self {
        Self {
            batching: batching.name,
            destination: name.to_owned(),
            is_paced: batching.pace.is_some(),
        }
    }

    pub fn stream(
        batching: &Batching,
        storage: StorageType,
        headers: Headers,
        replicas: usize,
    ) -> Self {
        let storage = match storage {
            StorageType::File => "stream on disk",
            StorageType::Memory => "stream in memory",
        };
        let headers = match headers {
            Headers::None => "",
            Headers::Id => ", id",
            Headers::Fence => ", id, fence",
        };
        let replicas = match replicas {
            1 => String::new(),
            _ => format!(", {replicas} replicas"),
        };
        Self::file(batching, &format!("{storage}{headers}{replicas}"))
    }

    pub fn synced(batching: &Batching) -> Self {
        Self::file(batching, "stream on disk, id, synced")
    }
}

/// Figures of a row, one for each round.
#[derive(Debug, Default)]
struct Figures {
    rate: Vec<f64>,
    /// Time of a line relative to the file of the same round; the pace decides it if there is one.
    ratio: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    client_cpu: Vec<f64>,
    server_cpu: Vec<f64>,
}

/// All rows.
#[derive(Debug, Default)]
pub struct Table {
    order: Vec<Row>,
    rows: BTreeMap<Row, Figures>,
}

impl Table {
    /// Adds the run of a round, and that of the file with the same batches.
    pub fn add(&mut self, row: Row, run: &Run, file: &Run) {
        if !self.rows.contains_key(&row) {
            self.order.push(row.clone());
        }
        let figures = self.rows.entry(row).or_default();
        figures.rate.push(run.lines_per_second);
        figures
            .ratio
            .push(file.lines_per_second / run.lines_per_second);
        figures.p50.push(part(&run.latencies, 0.5));
        figures.p99.push(part(&run.latencies, 0.99));
        figures.client_cpu.push(run.client_cpu);
        figures.server_cpu.push(run.server_cpu);
    }
}

/// Returns the value below which a part of the sorted values is.
fn part(sorted: &[f64], part: f64) -> f64 {
    let at = (sorted.len() - 1) as f64 * part;
    sorted[at.round() as usize]
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    part(&sorted, 0.5)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| batches | to | lines/s | × file (range) | p50 µs | p99 µs | client CPU µs/line | server CPU µs/line |"
        )?;
        writeln!(f, "|-|-|-:|-:|-:|-:|-:|-:|")?;
        let mut before = "";
        for row in &self.order {
            let figures = &self.rows[row];
            let name = if row.batching == before {
                ""
            } else {
                row.batching
            };
            before = row.batching;
            let ratio = match row.is_paced {
                true => String::new(),
                false => format!(
                    "{:.1} ({:.1}–{:.1})",
                    median(&figures.ratio),
                    figures.ratio.iter().copied().fold(f64::MAX, f64::min),
                    figures.ratio.iter().copied().fold(0.0, f64::max)
                ),
            };
            writeln!(
                f,
                "| {name} | {} | {:.0} | {ratio} | {:.1} | {:.1} | {:.2} | {:.2} |",
                row.destination,
                median(&figures.rate),
                median(&figures.p50),
                median(&figures.p99),
                median(&figures.client_cpu),
                median(&figures.server_cpu),
            )?;
        }
        Ok(())
    }
}
