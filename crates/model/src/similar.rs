//! Suggestion of the known name nearest to a misspelled one.

/// Maximum length of a name that is compared, in bytes.
const LONGEST: usize = 100;

/// Returns the known name nearest to a misspelled one. Case is ignored; at most a third of the letters may be
/// wrong.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    by_distance(word, known).into_iter().next()
}

/// Returns all known names near to a misspelled one, the nearest first. Case is ignored; at most a third of the
/// letters may be wrong.
pub fn by_distance<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if word.len() > LONGEST {
        return Vec::new();
    }
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let near = known.map(|known| {
        let letters: Vec<char> = known.to_lowercase().chars().collect();
        let lengths = letters.len().abs_diff(word.len());
        ((distance(&word, &letters), lengths), known)
    });
    let most = word.len().div_ceil(3);
    let mut near: Vec<_> = near
        .filter(|((distance, _), _)| *distance <= most)
        .collect();
    near.sort_by_key(|(far, _)| *far);
    near.into_iter().map(|(_, known)| known).collect()
}

/// Returns the edit distance of two words.
pub fn distance_of(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|word| word.chars().collect::<Vec<char>>());
    distance(&a, &b)
}

/// Counts the letters to insert, remove, replace or swap with their neighbours to convert one word to the
/// other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (n, c) in a.iter().enumerate() {
        let mut row = vec![n + 1];
        for (m, d) in b.iter().enumerate() {
            let replaced = above[m] + usize::from(c != d);
            let mut least = replaced.min(row[m] + 1).min(above[m + 1] + 1);
            if n > 0 && m > 0 && *c == b[m - 1] && a[n - 1] == *d {
                least = least.min(before[m - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_changed_and_swapped_letters() {
        for (a, b, want) in [
            ("", "", 0),
            ("", "ab", 2),
            ("ab", "", 2),
            ("kitten", "sitting", 3),
            ("é", "e", 1),
            ("modle", "model", 1),
            ("modle", "mode", 1),
            ("trunId", "turnId", 1),
        ] {
            assert_eq!(distance_of(a, b), want, "{a:?} {b:?}");
        }
    }

    #[test]
    fn nearest_word_prefers_the_same_length() {
        let near = |word| nearest(word, ["mode", "model", "maxTurns"].into_iter());
        assert_eq!(near("modle"), Some("model"));
        assert_eq!(near("mod"), Some("mode"));
        assert_eq!(near("MAXTURN"), Some("maxTurns"));
        assert_eq!(near("effort"), None);
    }

    #[test]
    fn near_words_are_sorted_by_distance() {
        let near = |word| by_distance(word, ["codex-acp", "code", "codex", "x"].into_iter());
        assert_eq!(near("codx"), ["code", "codex"]);
        assert_eq!(near(&"x".repeat(LONGEST + 1)), [""; 0]);
    }
}
