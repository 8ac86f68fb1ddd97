//! A timeline as text: one line for each row or fold.

use super::row::{Dir, FoldedRows, Row, RowKind, RowSide};
use super::timeline::Timeline;
use crate::cli::columns::{clip, one_line, visible};
use std::io::{self, Write};

/// Maximum width of the text of a fold, in columns.
const FOLD: usize = 200;

/// Writes the timeline. Lines are cut to `width` columns if there is one.
pub fn write(timeline: &Timeline, width: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
    head(timeline, out)?;
    let names_agents = timeline
        .rows
        .windows(2)
        .any(|two| two[0].agent != two[1].agent);
    // Time of the last row that has one.
    let mut before = None;
    for (at, row) in timeline.rows.iter().enumerate() {
        let fold = row.fold.map(|fold| &timeline.folds[fold]);
        if fold.is_some_and(|fold| fold.first != at) {
            continue;
        }
        let gap = row
            .t_ms
            .zip(before)
            .map(|(now, before)| now.saturating_sub(before));
        let line = format!(
            "{:>9} {:>9}  {:<14} {}{}",
            row.t_ms.map_or_else(String::new, seconds),
            gap.filter(|gap| *gap > 0)
                .map_or_else(String::new, |gap| format!("+{}", seconds(gap))),
            lane(row),
            agent(row, names_agents),
            content(row, fold),
        );
        writeln!(
            out,
            "{}",
            clip(line.trim_end(), width.unwrap_or(usize::MAX))
        )?;
        before = last_time(timeline, row, fold).or(before);
    }
    Ok(())
}

fn head(timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", visible(&timeline.name))?;
    for (name, value) in &timeline.facts {
        writeln!(out, "{name} {}", one_line(value))?;
    }
    let (frames, sessions) = (timeline.rows.len(), timeline.sessions.len());
    writeln!(out, "frames {frames}, sessions {sessions}\n")
}

/// Returns the time of the last row of a fold, or of the row.
fn last_time(timeline: &Timeline, row: &Row, fold: Option<&FoldedRows>) -> Option<u64> {
    fold.map_or(row, |fold| &timeline.rows[fold.last]).t_ms
}

fn agent(row: &Row, names_agents: bool) -> String {
    if names_agents && !row.agent.is_empty() {
        return format!("[{}] ", one_line(&row.agent));
    }
    String::new()
}

/// Formats the ends of a row: the arrow points from the sender to the receiver.
fn lane(row: &Row) -> &'static str {
    match (row.side, row.dir) {
        (RowSide::Client, Some(Dir::In)) => "client →",
        (RowSide::Client, Some(Dir::Out)) => "client ←",
        (RowSide::Client, None) => "client *",
        (RowSide::Agent, Some(Dir::In)) => "       ← agent",
        (RowSide::Agent, Some(Dir::Out)) => "       → agent",
        (RowSide::Agent, None) => "       * agent",
        (RowSide::Acpipe, _) => "       *",
    }
}

fn content(row: &Row, fold: Option<&FoldedRows>) -> String {
    if let Some(fold) = fold {
        let text = clip(&one_line(&fold.text), FOLD);
        return format!("{}, {} updates  {text}", row.title, fold.count);
    }
    let is_response = row.pair.is_some() || row.title == "response";
    let outcome = match row.kind {
        RowKind::Request if row.is_unanswered() => " (no response)".to_owned(),
        RowKind::Response if is_response => format!(" ok{}", took(row)),
        RowKind::Error if is_response => format!(" failed{}", took(row)),
        _ => String::new(),
    };
    format!("{}{outcome}  {}", row.title, row.detail)
}

fn took(row: &Row) -> String {
    match row.took_ms {
        Some(ms) if ms < 1000 => format!(" after {ms} ms"),
        Some(ms) => format!(" after {} s", seconds(ms)),
        None => String::new(),
    }
}

/// Formats milliseconds as seconds.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::super::tape;
    use super::*;
    use std::path::Path;

    fn text(tape: &str, width: Option<usize>) -> String {
        let mut timeline = Timeline::of("x.tape");
        tape::read(tape.as_bytes(), &mut timeline).unwrap();
        let mut out = Vec::new();
        write(&timeline, width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn recording_of_a_killed_agent_shows_the_failed_prompt() {
        let name = "tests/transcripts/recordings/claude-agent-acp-cli-killed.ndjson";
        let tape = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
        let text = text(&tape.unwrap(), Some(100));
        let want = include_str!("text/cli-killed.txt");
        assert_eq!(text, want, "{text}");
    }

    #[test]
    fn sides_events_folds_and_missing_responses_are_distinguished() {
        let tape = concat!(
            r#"{"t_ms":0,"event":"started","agent":"a","command":["a"]}"#,
            "\n",
            r#"{"t_ms":5,"dir":"in","side":"client","frame":{"jsonrpc":"2.0","id":1,"method":"run"}}"#,
            "\n",
            r#"{"t_ms":1500,"dir":"in","agent":"a","frame":{"choices":[{"delta":{"content":"\u001b[2Jx "}}]}}"#,
            "\n",
            r#"{"t_ms":1600,"dir":"in","agent":"a","frame":{"choices":[{"delta":{"content":"y"}}]}}"#,
            "\n",
            r#"{"t_ms":1700,"event":"exited","agent":"b","signal":9}"#,
            "\n",
        );
        let want = "x.tape\nframes 5, sessions 0\n\n    \
            0.000                   * agent [a] started  a\n    \
            0.005    +0.005  client →       run (no response)\n    \
            1.500    +1.495         ← agent [a] completion, 2 updates  [2Jx y\n    \
            1.700    +0.100         * agent [b] exited  signal 9\n";
        assert_eq!(text(tape, None), want);
    }
}
