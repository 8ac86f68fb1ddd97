//! Text measured in columns of a terminal, and made fit for one line.

/// Returns the number of terminal columns that a text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Returns the width of a character: two columns for East Asian letters and emoji, zero for combining marks.
pub fn columns(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Cuts the end of a text to at most `limit` columns.
pub fn clip(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let kept = within(text.chars(), limit);
    format!("{}…", kept.trim_end())
}

/// Cuts the beginning of a text to at most `limit` columns.
pub fn clip_start(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let kept = within(text.chars().rev(), limit);
    format!("…{}", kept.chars().rev().collect::<String>())
}

/// Takes as many characters as fit into `limit` columns, less one for the ellipsis.
fn within(chars: impl Iterator<Item = char>, limit: usize) -> String {
    let mut left = limit.saturating_sub(1);
    let fits = |c: &char| {
        let fits = columns(*c) <= left;
        left = left.saturating_sub(columns(*c));
        fits
    };
    chars.take_while(fits).collect()
}

/// Joins a text to one line and removes control characters.
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Replaces the control characters of a name.
pub fn visible(name: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    name.chars().map(shown).collect()
}
