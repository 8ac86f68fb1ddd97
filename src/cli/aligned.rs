//! Tables: aligned columns under a head, cut to the width of a terminal.

use super::columns::{clip, clip_start, width};
use super::styles::{HEAD, Styles};
use anstyle::Style;

/// Column that can be shortened.
#[derive(Debug, Clone, Copy)]
pub struct CutColumn {
    column: usize,
    /// Minimum width in columns.
    least: usize,
    /// `true` to cut the beginning: the end of a path is more useful.
    start: bool,
}

impl CutColumn {
    pub const fn end(column: usize, least: usize) -> Self {
        Self {
            column,
            least,
            start: false,
        }
    }

    pub const fn start(column: usize, least: usize) -> Self {
        Self {
            column,
            least,
            start: true,
        }
    }
}

/// Aligns rows in columns under a head, leaving out empty columns; `numbers` is the right-aligned column. Lines are cut
/// to the width of the terminal.
pub fn aligned<const N: usize>(
    head: [&str; N],
    rows: &[[String; N]],
    numbers: Option<usize>,
    cuts: &[CutColumn],
    styles: Styles,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let filled = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let columns: Vec<usize> = (0..N).filter(filled).collect();
    let head = head.map(str::to_owned);
    let lines = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| on_line(cell)));
    let all: Vec<[String; N]> = std::iter::once(head).chain(lines).collect();
    let widest = |column: usize| all.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let mut widths: [usize; N] = std::array::from_fn(widest);
    let limit = styles.width.unwrap_or(usize::MAX);
    for cut in cuts.iter().filter(|cut| columns.contains(&cut.column)) {
        let total: usize = columns
            .iter()
            .map(|column| widths[*column] + GAP.len())
            .sum();
        let excess = (total - GAP.len()).saturating_sub(limit);
        let least = cut.least.min(widths[cut.column]);
        widths[cut.column] = widths[cut.column].saturating_sub(excess).max(least);
    }
    let mut text = String::new();
    for (n, row) in all.iter().enumerate() {
        let mut line = String::new();
        for &column in &columns {
            let from_start = cuts.iter().any(|cut| cut.column == column && cut.start);
            let cell = if from_start {
                clip_start(&row[column], widths[column])
            } else {
                clip(&row[column], widths[column])
            };
            let space = " ".repeat(widths[column].saturating_sub(width(&cell)));
            let (before, after) = if numbers == Some(column) {
                (space, String::new())
            } else {
                (String::new(), space)
            };
            line.extend([before.as_str(), &cell, &after, GAP]);
        }
        let line = clip(line.trim_end(), limit);
        let style = if n == 0 { HEAD } else { Style::new() };
        text.push_str(&styles.paint(style, &line));
        text.push('\n');
    }
    text
}

/// Replaces line breaks: only the table begins lines.
fn on_line(cell: &str) -> String {
    let breaks = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    cell.replace(breaks, " ")
}

/// Gap between columns.
const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_of_a_cell_begin_no_row() {
        let rows = [["a\nb".to_owned(), "c\r\u{2028}d".to_owned()]];
        let text = aligned(["ONE", "TWO"], &rows, None, &[], Styles::PLAIN);
        assert_eq!(text, "ONE  TWO\na b  c  d\n");
    }
}
