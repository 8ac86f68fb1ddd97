//! Tables: columns as wide as their cells, narrowed until they fit into the terminal.

use super::inline;
use super::lines::{Look, WrappedLines};
use crate::cli::columns::width;
use crate::cli::styles::{DIM, HEAD, plain};
use anstyle::Style;

/// Columns narrower than this are not narrowed further.
const LEAST: usize = 6;

/// Maximum number of cells, with those that rows lack.
const MAX_CELLS: usize = 20_000;

/// Returns the cells of each row, the head first, without the row that divides them; `None` if these lines are not a
/// table, or are one with too many cells.
pub fn parse(rows: &[String]) -> Option<Vec<Vec<String>>> {
    let divider = rows.get(1)?;
    let is_divider =
        |cell: &String| cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':' | ' '));
    if !cells(divider).iter().all(is_divider) {
        return None;
    }
    let rows = rows.iter().enumerate().filter(|(n, _)| *n != 1);
    let rows: Vec<_> = rows.map(|(_, row)| cells(row)).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    (columns * rows.len() <= MAX_CELLS).then_some(rows)
}

/// Splits a row at its bars.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut chars = row.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next_if_eq(&'|').is_some() => push(&mut cells, '|'),
            '|' if chars.peek().is_some() => cells.push(String::new()),
            '|' => {}
            c => push(&mut cells, c),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn push(cells: &mut [String], c: char) {
    if let Some(cell) = cells.last_mut() {
        cell.push(c);
    }
}

/// Writes a table.
pub fn write(rows: &[Vec<String>], has_links: bool, lines: &mut WrappedLines) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let style = |row: usize| if row == 0 { HEAD } else { Style::new() };
    let rendered = |row: usize, column: usize, width: usize| {
        let cell = rows[row].get(column).map_or("", String::as_str);
        let mut lines = WrappedLines::within(width, has_links);
        inline::write(cell, None, style(row), has_links, &mut lines);
        lines.end_word();
        lines.take()
    };
    let mut widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = (0..rows.len()).map(|row| rendered(row, column, usize::MAX));
            cells.map(|cell| width(&plain(&cell))).max().unwrap_or(0)
        })
        .collect();
    let gaps = 3 * count.saturating_sub(1);
    narrow(&mut widths, lines.room().saturating_sub(gaps));
    let dim = Look {
        style: DIM,
        url: None,
    };
    for row in 0..rows.len() {
        let cells = widths.iter().enumerate();
        let cells = cells.map(|(column, width)| rendered(row, column, *width));
        let cells: Vec<String> = cells.collect();
        let cells: Vec<Vec<&str>> = cells.iter().map(|cell| cell.lines().collect()).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        for line in 0..height {
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    lines.verbatim(" │ ", &dim);
                }
                let cell = cells[column].get(line).copied().unwrap_or_default();
                lines.styled(cell, *width);
            }
            lines.newline();
        }
        if row == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.verbatim(&rules.join("─┼─"), &dim);
            lines.newline();
        }
    }
}

/// Narrows the widest columns until all fit into `room`, if that is possible.
fn narrow(widths: &mut [usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > LEAST => *widest -= 1,
            _ => return,
        }
    }
}
