//! Calls and texts: where a constructor is called, and which literals are prose.

use super::source::Source;

/// The `(` of a call of `name` at a token.
pub fn call(source: &Source, at: usize, name: &str) -> Option<usize> {
    let last = name.rsplit("::").next()?;
    let open = at + 1 + usize::from(source.is(at + 1, '!'));
    if source.word(at) != Some(last) || !source.is(open, '(') {
        return None;
    }
    let before = |at: usize| at.checked_sub(1).and_then(|at| source.word(at));
    if before(at) == Some("fn") {
        return None;
    }
    let mut path = vec![last];
    let mut begin = at;
    while begin >= 3 && source.is(begin - 1, ':') && source.is(begin - 2, ':') {
        begin -= 3;
        path.insert(0, source.word(begin).unwrap_or_default());
    }
    let is_io = path.iter().rev().nth(2) == Some(&"io");
    let wanted: Vec<&str> = name.split("::").collect();
    let tail = &path[path.len().saturating_sub(wanted.len())..];
    (tail == wanted && (wanted.len() != 2 || !is_io)).then_some(open)
}

/// Whether a word is a macro, a path, or a value of which only a field is used.
pub fn is_followed(source: &Source, at: usize) -> bool {
    let has_field = source.is(at + 1, '.') && !source.is(at + 3, '(');
    has_field || source.is(at + 1, '!') || source.is(at + 1, ':')
}

/// The name of a kind on the wire.
pub fn camel(variant: &str) -> String {
    let (first, rest) = variant.split_at(1);
    first.to_lowercase() + rest
}

pub fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let inside = text
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}'));
    inside.map(|(name, _)| name)
}

/// Whether a text has words of its own, beside its placeholders.
pub fn is_prose(text: &str) -> bool {
    let mut words = String::new();
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            c if depth <= 0 => words.push(c),
            _ => {}
        }
    }
    let has_word = words
        .split(|c: char| !c.is_alphabetic())
        .any(|word| word.len() > 1);
    has_word && text.trim().contains(' ')
}
