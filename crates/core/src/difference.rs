//! Size of what is new in a state that replaces another.

use memchr::memmem;
use serde_json::Value;

/// Length of the mark by which the rest of an earlier text is found.
const MARK: usize = 32;

/// Offsets at which such a mark is taken: at the second one if a heading in front of the rest changes, such as the number
/// of lines that were left out.
const MARKS: [usize; 2] = [0, 128];

/// Length from which a changed part is searched for what moved. A smaller one counts as new.
const SEARCHED: usize = 1 << 10;

/// Number of bytes that are compared at once.
const BLOCK: usize = 512;

/// Returns the number of bytes of a text that the text which it replaces does not have: without the common beginning, the
/// common end, and the rest of the earlier text that moved to the beginning.
///
/// The time is linear in the size of both.
pub fn added(before: &str, now: &str) -> usize {
    let (before, now) = (before.as_bytes(), now.as_bytes());
    let begin = common_beginning(before, now);
    let (before, now) = (&before[begin..], &now[begin..]);
    let end = common_end(before, now);
    let (before, now) = (&before[..before.len() - end], &now[..now.len() - end]);
    now.len() - moved(before, now)
}

/// Like [`added`] for values, of which a later object has only the members that changed.
pub fn added_value(before: &Value, now: &Value) -> usize {
    match (before, now) {
        (before, now) if before == now => 0,
        (Value::String(before), Value::String(now)) => added(before, now),
        (Value::Object(before), Value::Object(now)) => {
            let of = |(name, now)| added_value(before.get(name).unwrap_or(&Value::Null), now);
            now.iter().map(of).sum()
        }
        _ => added(&before.to_string(), &now.to_string()),
    }
}

fn common_beginning(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
    let same = blocks.take_while(|(a, b)| a == b);
    let at: usize = same.map(|(a, _)| a.len()).sum();
    let bytes = a[at..].iter().zip(&b[at..]);
    at + bytes.take_while(|(a, b)| a == b).count()
}

fn common_end(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks(BLOCK).zip(b.rchunks(BLOCK));
    let same = blocks.take_while(|(a, b)| a == b);
    let at: usize = same.map(|(a, _)| a.len()).sum();
    let bytes = a[..a.len() - at].iter().rev();
    let bytes = bytes.zip(b[..b.len() - at].iter().rev());
    at + bytes.take_while(|(a, b)| a == b).count()
}

/// Returns the length of the end of `before` that is the beginning of `now`, as in a window that moves over a text.
fn moved(before: &[u8], now: &[u8]) -> usize {
    if now.len() < SEARCHED {
        return 0;
    }
    let found = MARKS.iter().find_map(|&offset| {
        let now = now.get(offset..)?;
        let rest = &before[memmem::find(before, now.get(..MARK)?)?..];
        now.starts_with(rest).then_some(rest.len())
    });
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: std::ops::Range<u32>) -> String {
        numbers
            .map(|n| format!("line {n:06} of the output\n"))
            .collect::<Vec<_>>()
            .concat()
    }

    #[test]
    fn only_what_is_new_counts() {
        let block = |text: &str| format!(r#"[{{"type":"content","text":{text:?}}}]"#);
        let log = lines(0..500);
        let line = lines(0..1).len() + 1;
        assert_eq!(added(&log, &log), 0);
        assert_eq!(added("", &log), log.len());
        assert_eq!(added(&log, ""), 0, "removed");
        assert_eq!(
            added(&block(&log), &block(&lines(0..501))),
            line,
            "appended"
        );
        let status = |words| format!(r#"{{"text":{log:?},"status":"{words}"}}"#);
        assert!(
            added(&status("pending"), &status("in_progress")) <= 11,
            "changed"
        );
        assert_eq!(
            added(&block(&log), &block(&lines(3..503))),
            3 * line,
            "moved"
        );
        let cut = |from: u32| {
            let heading = format!("[{from} lines were left out]\n");
            block(&format!(
                "{}{heading}{}",
                lines(0..9),
                lines(from..from + 300)
            ))
        };
        assert!(
            added(&cut(99), &cut(101)) < 200,
            "moved behind a heading that changes"
        );
        assert_eq!(added("abc", "xyz"), 3);
    }

    #[test]
    fn a_value_adds_the_members_that_changed() {
        let before =
            serde_json::json!({ "a": { "output": lines(0..9), "exit": null }, "b": [1, 2, 3] });
        let adds = |now: &Value| added_value(&before, now);
        assert_eq!(adds(&before), 0);
        assert_eq!(
            adds(&serde_json::json!({ "a": { "output": lines(0..10) } })),
            lines(0..1).len()
        );
        assert_eq!(adds(&serde_json::json!({ "b": [1, 2, 3, 4] })), 2);
        assert_eq!(adds(&serde_json::json!({ "c": "text" })), 6);
    }

    #[test]
    fn no_text_has_more_that_is_new_than_it_has() {
        let texts = [
            String::new(),
            "a".repeat(BLOCK * 3),
            "a".repeat(BLOCK * 3 + 1),
            "ab".repeat(BLOCK),
            lines(0..50),
            lines(1..51),
            lines(0..50) + "ä",
        ];
        for before in &texts {
            for now in &texts {
                let new = added(before, now);
                assert!(new <= now.len());
                assert!(new + before.len() >= now.len(), "{before} {now}");
            }
        }
    }
}
