//! Paths that a shell may derive from a word: after a variable, in a user's home directory, or by braces.
//!
//! Only the shell knows the actual expansion of a word, so these paths are only used by rules that deny or
//! ask.

/// Maximum number of brace alternatives that are read.
const CHOICES: usize = 256;

/// Maximum length in bytes of a word whose alternatives are read together with the text around the braces.
const LONGEST: usize = 4096;

/// Maximum number of trailing components of a path that are considered as paths of their own.
const NAMES: usize = 16;

/// Returns the paths that a word of a line may expand to, without the word itself.
pub fn of_word(word: &str) -> Vec<String> {
    let choices = choices(word);
    let tails = choices
        .iter()
        .chain([word].map(str::to_owned).iter())
        .flat_map(|word| of_variables(word))
        .collect::<Vec<_>>();
    choices.into_iter().chain(tails).collect()
}

/// Returns the paths that a path of an input may expand to, without the path itself: some tools pass it to a
/// shell.
pub fn of_path(path: &str) -> Vec<String> {
    if path.starts_with(['~', '$']) {
        of_variables(path)
    } else {
        Vec::new()
    }
}

/// Returns the words that braces expand to in zsh: `a/{b,c}` is `a/b` and `a/c`.
fn choices(word: &str) -> Vec<String> {
    let (Some(open), Some(close)) = (word.find('{'), word.rfind('}')) else {
        return Vec::new();
    };
    if open > close || !word[open..close].contains(',') {
        return Vec::new();
    }
    let (before, after) = (&word[..open], &word[close + 1..]);
    let (before, after) = if word.len() > LONGEST {
        ("", "")
    } else {
        (before, after)
    };
    let pieces = word[open..close].split(['{', ',', '}']).take(CHOICES);
    let pieces = pieces.filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| format!("{before}{piece}{after}"))
        .collect()
}

/// Returns the paths that a word with a variable, a pattern or a user name may expand to.
fn of_variables(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for own in ["~+", "$PWD", "${PWD}"] {
        found.extend(
            word.strip_prefix(own)
                .and_then(|rest| rest.strip_prefix('/'))
                .map(str::to_owned),
        );
    }
    for home in ["$HOME", "${HOME}"] {
        found.extend(
            word.strip_prefix(home)
                .filter(|rest| rest.starts_with('/'))
                .map(|rest| format!("~{rest}")),
        );
    }
    let user = word
        .strip_prefix('~')
        .filter(|rest| !rest.is_empty() && !rest.starts_with('/'));
    if let Some(rest) = user {
        // Only the system knows users' home directories: these are the usual ones.
        let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let homes = [
            format!("/{name}"),
            format!("/home/{name}"),
            format!("/Users/{name}"),
            "~".to_owned(),
        ];
        found.extend(homes.into_iter().map(|home| format!("{home}/{rest}")));
    }
    let tail = &word[behind_variables(word)..];
    if tail.len() < word.len() {
        found.extend(last_names(tail));
    }
    found
}

/// Returns the end of the last variable or pattern in a word; 0 if it has none.
fn behind_variables(word: &str) -> usize {
    let mut end = 0;
    for (at, c) in word.char_indices() {
        let rest = &word[at + c.len_utf8()..];
        let length = match c {
            '$' if rest.starts_with('{') => rest.find('}').map_or(0, |end| end + 1),
            '$' => {
                rest.len()
                    - rest
                        .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_')
                        .len()
            }
            '~' if at == 0 && !rest.starts_with('/') => rest.find('/').unwrap_or(rest.len()),
            '*' | '?' | ']' => 0,
            _ => continue,
        };
        end = end.max(at + c.len_utf8() + length);
    }
    end
}

/// Returns the text as it is, its last component, its last two components, and so on.
fn last_names(tail: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if tail.len() <= LONGEST && tail.starts_with('/') {
        found.push(tail.to_owned());
    }
    let mut starts: Vec<usize> = tail
        .rmatch_indices('/')
        .map(|(at, _)| at + 1)
        .take(NAMES)
        .collect();
    if starts.len() < NAMES {
        starts.push(0);
    }
    let names = starts.into_iter().map(|at| &tail[at..]);
    let names =
        names.filter(|name| !name.is_empty() && !name.starts_with('/') && name.len() <= LONGEST);
    found.extend(names.map(str::to_owned));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansions_list_the_paths_of_a_word() {
        for (word, path) in [
            ("~+/.env", ".env"),
            ("$PWD/.env", ".env"),
            ("${PWD}/a/.env", "a/.env"),
            ("$x/etc/passwd", "/etc/passwd"),
            ("${x:-/w}/.env", ".env"),
            ("$x.env", ".env"),
            ("$/.env", ".env"),
            ("a/*/b/.env", "b/.env"),
            ("$HOME/.ssh/x", "~/.ssh/x"),
            ("~root/.ssh/x", "/root/.ssh/x"),
            ("~me/.ssh/x", "/home/me/.ssh/x"),
            ("~me/.ssh/x", "~/.ssh/x"),
            ("{a,.env}", ".env"),
            ("x/{a,b}/.env", "x/b/.env"),
            ("$x/{a,.env}", ".env"),
        ] {
            let found = of_word(word);
            assert!(found.contains(&path.to_owned()), "{word}: {found:?}");
        }
        for word in ["", "a", "/a/b", "~/a", "{a}", "a,b", "}a,{"] {
            assert_eq!(of_word(word), [""; 0], "{word}");
        }
        assert_eq!(of_path("app/[id]/page.tsx"), [""; 0]);
    }

    #[test]
    fn readings_of_a_word_are_bounded() {
        for piece in ["{a,", "$x/", "a/", "{a,b}/", "*", "~", "${"] {
            let word = format!("{{{}}}", piece.repeat(20_000));
            let bytes = of_word(&word).iter().map(String::len).sum::<usize>();
            assert!(bytes <= 16 * word.len(), "{piece}: {bytes}");
        }
    }
}
