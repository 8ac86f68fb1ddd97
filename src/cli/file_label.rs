//! Files of an answer as one line of text: what came, and where a link leads.

use super::columns::{clip, one_line};
use super::styles::Styles;
use acpipe_protocol::wire::AnswerFile;

/// Maximum length in columns of a name or media type.
const LONGEST: usize = 200;

/// Returns name, media type and size of a file, without control characters of the agent.
pub fn file_facts(file: &AnswerFile) -> String {
    let short = |text: &String| clip(&one_line(text), LONGEST);
    let facts = [&file.name, &file.media_type].map(|fact| fact.as_ref().map(short));
    let size = file.size.map(size);
    let facts = facts.into_iter().chain([size]).flatten();
    let facts: Vec<String> = facts.filter(|fact| !fact.is_empty()).collect();
    if facts.is_empty() {
        return "file".to_owned();
    }
    facts.join(", ")
}

/// Returns the target of a link on one line; `None` for data.
pub fn file_target(file: &AnswerFile) -> Option<String> {
    let uri = file.uri.as_ref().filter(|_| file.is_link)?;
    Some(one_line(uri)).filter(|uri| !uri.is_empty())
}

/// Returns the line of a file, without a newline. It is escaped for a terminal.
pub fn file_line(file: &AnswerFile, styles: Styles) -> String {
    let facts = format!("[{}]", file_facts(file));
    let facts = styles.shown(&facts);
    match file_target(file) {
        Some(uri) => format!("{facts} {}", styles.link(&uri, &uri)),
        None => facts.into_owned(),
    }
}

/// Returns a number of bytes for people, rounded up.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => {
            let tenths = bytes.div_ceil(100_000);
            format!("{}.{} MB", tenths / 10, tenths % 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Styles = Styles {
        is_terminal: true,
        has_color: true,
        has_links: true,
        width: None,
    };

    fn file(name: Option<&str>, media_type: Option<&str>, size: Option<u64>) -> AnswerFile {
        AnswerFile {
            media_type: media_type.map(str::to_owned),
            name: name.map(str::to_owned),
            uri: None,
            is_link: false,
            size,
            path: None,
        }
    }

    #[test]
    fn line_has_what_is_known() {
        for (file, want) in [
            (
                file(None, Some("image/png"), Some(11_001)),
                "[image/png, 12 KB]",
            ),
            (
                file(Some("a.png"), Some("image/png"), Some(999)),
                "[a.png, image/png, 999 B]",
            ),
            (file(None, Some(" "), Some(1_250_000)), "[1.3 MB]"),
            (file(None, None, None), "[file]"),
        ] {
            assert_eq!(file_line(&file, Styles::PLAIN), want);
        }
    }

    /// A name of the agent neither adds lines nor controls the terminal, and a link opens only harmless addresses.
    #[test]
    fn line_is_safe() {
        let mut link = file(Some("a\n\x1b[2J\u{202e}b"), None, None);
        link.is_link = true;
        link.uri = Some("file:///a\x1b]0;t\x07\nb".to_owned());
        let shown = file_line(&link, SCREEN);
        let target = "file:///a ]0;t b";
        let address = "file:///a%20]0;t%20b";
        assert_eq!(
            shown,
            format!("[a [2J<U+202E>b] \x1b]8;;{address}\x1b\\{target}\x1b]8;;\x1b\\")
        );
        link.uri = Some("javascript:x".to_owned());
        assert!(file_line(&link, SCREEN).ends_with(" javascript:x"));
        assert!(!file_line(&link, Styles::PLAIN).contains('\n'));
    }
}
