//! Builds the rows of the table: content blocks that pass unchanged take one row.

use crate::places::SessionSetup;
use crate::plant::{OTHER_FIELD, OTHER_TYPE, OTHER_WORD};
use crate::survey::{Field, Found, When};
use std::collections::BTreeSet;

/// Findings by situation.
type Findings = Vec<(When, Found)>;

/// A row of the table.
pub struct Row<'a> {
    pub field: String,
    pub found: Findings,
    /// One field with a value of another type.
    pub other_type: Option<&'a Field>,
}

/// Returns the rows of a group.
pub fn rows(fields: &[Field]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut whole: Vec<(String, Option<Findings>)> = Vec::new();
    for field in fields {
        let root = root(&field.path, fields);
        let block = root.and_then(|root| {
            let known = whole.iter().position(|(r, _)| r == root);
            let at = known.unwrap_or_else(|| {
                whole.push((root.to_owned(), block(root, fields)));
                whole.len() - 1
            });
            let found = whole[at].1.clone()?;
            if known.is_none() {
                rows.push(Row {
                    field: format!("{root}.*"),
                    found: found.clone(),
                    other_type: None,
                });
            }
            Some((root, found))
        });
        let within = block.is_some_and(|(root, block)| says_no_more(field, root, &block));
        if !within && !is_told_elsewhere(field, fields) {
            let other = field.path.trim_end_matches("[]").to_owned() + OTHER_TYPE;
            rows.push(Row {
                field: field.path.clone(),
                found: field.found.clone(),
                other_type: fields.iter().find(|f| f.path == other),
            });
        }
    }
    rows
}

/// Returns the field of content blocks that a path leads through.
fn root<'a>(path: &'a str, fields: &[Field]) -> Option<&'a str> {
    let mut brackets = path.match_indices('[').map(|(at, _)| &path[..at]);
    brackets.find(|root| {
        let has = |kind: &str| {
            let prefix = format!("{root}[{kind}]");
            fields.iter().any(|f| f.path.starts_with(&prefix))
        };
        has("text") && has("image") && has("audio")
    })
}

/// Returns the path of keys below a root, as in JSON.
fn keys(path: &str, root: &str) -> String {
    let path = path[root.len()..]
        .trim_end_matches(OTHER_WORD)
        .trim_end_matches(OTHER_TYPE);
    let path = path.replace(OTHER_FIELD, "*");
    let mut keys = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => keys.push(c),
            _ => {}
        }
    }
    keys
}

/// Returns the places where content blocks are found unchanged; `None` unless that holds in every situation.
fn block(root: &str, fields: &[Field]) -> Option<Findings> {
    let inside = format!("{root}[");
    let plain = |f: &&Field| f.path.starts_with(&inside) && !f.path.ends_with(OTHER_TYPE);
    let mut block: Findings = Vec::new();
    for field in fields.iter().filter(plain) {
        let keys = keys(&field.path, root);
        for (when, found) in &field.found {
            let cut = |places: &BTreeSet<SessionSetup>| -> BTreeSet<SessionSetup> {
                let cut = |(kind, path): &SessionSetup| {
                    Some((kind.clone(), path.strip_suffix(&keys)?.to_owned()))
                };
                places.iter().filter_map(cut).collect()
            };
            let found = Found {
                chunks: cut(&found.chunks),
                message: cut(&found.message),
                ..*found
            };
            match block.iter_mut().find(|(w, _)| w == when) {
                None => block.push((*when, found)),
                Some((_, all)) => {
                    if (all.lost_in_chunks, all.lost_in_message)
                        != (found.lost_in_chunks, found.lost_in_message)
                    {
                        return None;
                    }
                    all.chunks.retain(|place| found.chunks.contains(place));
                    all.message.retain(|place| found.message.contains(place));
                }
            }
        }
    }
    let stands = |(_, f): &(When, Found)| f.lost_in_chunks || !f.chunks.is_empty();
    block.iter().all(stands).then_some(block)
}

/// Returns `true` if a field of a block is found inside the block, and nowhere else.
fn says_no_more(field: &Field, root: &str, block: &[(When, Found)]) -> bool {
    let keys = keys(&field.path, root);
    if field.path.ends_with(OTHER_TYPE) {
        return field.found.iter().all(|(_, f)| !f.lost_in_chunks);
    }
    // In other situations parts may be repeated as the text of an error.
    let elsewhere = |(_, path): &SessionSetup| !path.ends_with(&keys);
    if field.found[0].1.chunks.iter().any(elsewhere) {
        return false;
    }
    field.found.iter().all(|(when, found)| {
        let whole = block.iter().find(|(w, _)| w == when);
        let place = |(kind, path): &SessionSetup| (kind.clone(), format!("{path}{keys}"));
        whole.is_some_and(|(_, whole)| {
            whole
                .chunks
                .iter()
                .map(place)
                .all(|p| found.chunks.contains(&p))
        })
    })
}

/// Returns `true` for unusual values that are found where the usual ones are: they need no row.
fn is_told_elsewhere(field: &Field, fields: &[Field]) -> bool {
    let usual = |path: &str| {
        let usual = fields
            .iter()
            .find(|f| f.path.trim_end_matches("[]") == path.trim_end_matches("[]"));
        usual.map(|f| &f.found[0].1)
    };
    let found = &field.found[0].1;
    if let Some(path) = field.path.strip_suffix(OTHER_WORD) {
        let lost = field.found.iter().any(|(_, f)| f.lost_in_chunks);
        return !lost && usual(path).is_some_and(|u| u.message == found.message);
    }
    let Some(path) = field.path.strip_suffix(OTHER_TYPE) else {
        return false;
    };
    let name = path.rsplit('.').next().unwrap_or(path);
    usual(path).is_some() || found.chunks.iter().any(|(_, p)| p.ends_with(name))
}
