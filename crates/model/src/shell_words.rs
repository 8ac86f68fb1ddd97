//! Quoting of command lines for shells.

/// Joins arguments to a line that every shell splits into the same arguments.
pub fn join<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        push_quoted(&mut line, word);
    }
    line
}

/// Appends an argument, quoted if necessary.
pub fn push_quoted(line: &mut String, word: &str) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-+@%,:".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        line.push_str(word);
        return;
    }
    line.push('\'');
    for (at, part) in word.split('\'').enumerate() {
        if at > 0 {
            line.push_str("'\\''");
        }
        line.push_str(part);
    }
    line.push('\'');
}

pub fn is_variable(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| is_letter(c) && !c.is_ascii_digit()) && name.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_unquoted() {
        for (words, line) in [
            (&["git", "log", "-n1"][..], "git log -n1"),
            (&["a b", "", "it's"], r"'a b' '' 'it'\''s'"),
            (&["A=1", "é", "x~", "\n"], "'A=1' 'é' 'x~' '\n'"),
        ] {
            assert_eq!(join(words.iter().copied()), line);
        }
    }

    #[test]
    fn variable_names_follow_posix() {
        for (name, want) in [
            ("A", true),
            ("_a1", true),
            ("", false),
            ("1A", false),
            ("A=", false),
            ("A B", false),
            ("Ä", false),
            ("A\0", false),
            ("git log --grep", false),
            ("A[0]", false),
        ] {
            assert_eq!(is_variable(name), want, "{name:?}");
        }
    }
}
