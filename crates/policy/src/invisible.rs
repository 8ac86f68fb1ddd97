//! Detection of invisible characters in patterns, which are copied from web pages and documents.

/// Returns the text without invisible characters; `None` if it has none.
pub fn visible(text: &str) -> Option<String> {
    let form = || text.chars().filter(|c| !is_invisible(*c)).collect();
    text.contains(is_invisible).then(form)
}

/// Returns `true` for an invisible character, except for joiners, which belong to letters in some scripts.
fn is_invisible(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
    );
    is_format || c.is_control() && !matches!(c, '\t' | '\n')
}
