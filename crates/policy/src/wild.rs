//! Matching of patterns with `*`, which stands for any text.

/// Returns `true` if the pattern matches the whole text.
pub fn wild(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Offset of the last star, and end of the text that it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((at, taken)) = star {
            (p, t) = (at + 1, taken + 1);
            star = Some((at, taken + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_text() {
        for (pattern, text, want) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "a\nb", true),
            ("a*", "a", true),
            ("a*c", "abcc", true),
            ("a*c", "abcd", false),
            ("*ab*ab*", "xababx", true),
            ("*ab*ab*", "xabx", false),
            ("*é", "aé", true),
            ("a**b", "ab", true),
        ] {
            assert_eq!(wild(pattern, text), want, "{pattern:?} {text:?}");
        }
    }
}
