//! Writes the page of error messages.

use super::Texts;
use std::collections::{BTreeMap, BTreeSet};

const HEAD: &str = "# Error messages\n\n\
    All texts of acpipe's errors and warnings, grouped by error kind or, where a text is a part of other messages, by\n\
    source. Names in braces stand for values. The kinds and their codes are in [errors.md](errors.md).\n\n\
    This page is generated from the sources (`UPDATE_MESSAGES=1 cargo test --test bridge tidy`). Do not edit it.\n";

/// The page: each text once, under its first heading.
pub fn page(texts: &Texts) -> String {
    let is_kind = |heading: &str| !heading.contains(' ');
    let mut groups: BTreeMap<(bool, &str), Vec<String>> = BTreeMap::new();
    for (text, headings) in texts {
        let first = headings
            .keys()
            .min_by_key(|heading| (!is_kind(heading), heading.as_str()));
        let heading = first.unwrap();
        let files: BTreeSet<&str> = headings.values().flatten().map(String::as_str).collect();
        let files = files.into_iter().collect::<Vec<_>>().join(", ");
        let quote = if text.contains('`') { "``" } else { "`" };
        let gap = if text.starts_with('`') || text.ends_with('`') {
            " "
        } else {
            ""
        };
        let line = format!("- {quote}{gap}{text}{gap}{quote} ({files})\n");
        groups
            .entry((!is_kind(heading), heading))
            .or_default()
            .push(line);
    }
    let mut page = HEAD.to_owned();
    for ((is_area, heading), lines) in groups {
        let mut letters = heading.chars();
        let first = letters.next().unwrap();
        let heading = if is_area {
            format!("{}{}", first.to_uppercase(), letters.as_str())
        } else {
            format!("`{heading}`")
        };
        page.extend(["\n## ", &heading, "\n\n", &lines.concat()]);
    }
    page
}
