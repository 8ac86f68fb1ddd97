//! Blocks around the lines of other blocks: quotes and items of lists.

use crate::cli::styles::DIM;

/// Block around the lines of other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    Quote,
    /// Item of a list: column of its mark in the source, and columns that the mark takes on the terminal.
    Item {
        mark: usize,
        columns: usize,
    },
}

impl Container {
    pub fn is_item(&self) -> bool {
        matches!(self, Self::Item { .. })
    }
}

/// Removes the marks of the containers that a line continues. Returns the rest of the line, and their number; `None` if
/// more of the line is needed.
pub fn within<'a>(
    containers: &[Container],
    line: &'a str,
    is_whole: bool,
) -> Option<(&'a str, usize)> {
    let (mut rest, mut matched) = (line, 0);
    for container in containers {
        let inner = rest.trim_start();
        match container {
            Container::Quote => match inner.strip_prefix('>') {
                Some(quoted) if is_whole || !quoted.is_empty() => {
                    rest = quoted.strip_prefix(' ').unwrap_or(quoted);
                }
                _ if inner.is_empty() && !is_whole => return None,
                Some(_) => return None,
                None => break,
            },
            Container::Item { mark, .. } => {
                if !inner.is_empty() && indentation(rest) < *mark + 2 {
                    break;
                }
            }
        }
        matched += 1;
    }
    Some((rest, matched))
}

/// Returns the margin of a line in containers.
pub fn margin(containers: &[Container]) -> String {
    let margins = containers.iter().map(|container| match container {
        Container::Quote => format!("{DIM}│{DIM:#} "),
        Container::Item { columns, .. } => " ".repeat(*columns),
    });
    margins.collect()
}

/// Returns the columns of spaces and tabs before a text.
pub fn indentation(line: &str) -> usize {
    let spaces = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
    spaces.fold(0, |column, c| {
        if c == '\t' {
            column + 4 - column % 4
        } else {
            column + 1
        }
    })
}
