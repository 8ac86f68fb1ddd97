//! Shape of a line: its bytes around a text.
//!
//! In a stream, the bytes before and after the text are usually the same from line to line. If they are, and a JSON
//! string is between them, the line has the same meaning as the earlier one, since parsing is a function of these
//! parts. So only the string needs to be checked.

use acpipe_json::frame::lines;
use acpipe_json::{has_escapes, is_whole_string};
use serde_json::value::RawValue;
use std::ops::Range;

/// A line without its text, and without an id that is another one in each line.
#[derive(Debug)]
pub struct LineShape {
    before: Vec<u8>,
    after: Vec<u8>,
    /// Position of the id in `after`.
    id: Option<Range<usize>>,
}

impl LineShape {
    /// Returns the shape of a line; `None` if the parts are not parts of the line. The id may stand anywhere, but only
    /// one after the text may differ in other lines.
    #[must_use]
    pub fn of(line: &str, text: &str, id: Option<&str>) -> Option<Self> {
        let text = place(line, text)?;
        let id = id.and_then(|id| place(line, id));
        let id = id.filter(|id| id.start >= text.end && is_id(&line.as_bytes()[id.clone()]));
        Some(Self {
            before: line.as_bytes()[..text.start].to_vec(),
            after: line.as_bytes()[text.end..].to_vec(),
            id: id.map(|id| id.start - text.end..id.end - text.end),
        })
    }

    /// Returns `true` if the line has no white space around its object.
    pub fn is_trimmed(&self) -> bool {
        self.before.starts_with(b"{") && self.after.ends_with(b"}")
    }

    /// Returns the position of the text in a line, if the rest of the line is as in this shape. It may be other JSON
    /// than a string.
    #[inline]
    pub fn place_of_text(&self, line: &[u8]) -> Option<Range<usize>> {
        let end = line.len().checked_sub(self.after.len())?;
        let is_same = line.starts_with(&self.before) && self.has_same_end(&line[end..]);
        (is_same && end >= self.before.len() + 2).then_some(self.before.len()..end)
    }

    fn has_same_end(&self, end: &[u8]) -> bool {
        let Some(id) = &self.id else {
            return end == self.after;
        };
        let (before, after) = (..id.start, id.end..);
        end[before] == self.after[before]
            && end[after.clone()] == self.after[after]
            && is_id(&end[id.clone()])
    }

    /// Returns the positions of the texts in the lines of this shape with which `all` begins, up to the first line that
    /// has to be read alone or the end of the last whole line. Lines to be read alone are those with an empty text or
    /// with half of a surrogate pair.
    pub fn texts(&self, all: &[u8]) -> Vec<Range<usize>> {
        let mut texts = Vec::new();
        if !all.starts_with(&self.before) {
            return texts;
        }
        let mut begin = 0;
        for line in lines(all) {
            let has_newline = begin + line.text.len() < line.end;
            let text = self.place_of_text(line.text).filter(|_| has_newline);
            let text = text.filter(|text| is_joinable(&line.text[text.clone()]));
            let Some(text) = text else { break };
            texts.push(begin + text.start..begin + text.end);
            begin = line.end;
        }
        texts
    }

    /// Returns the length of a line after its text.
    pub fn end_len(&self) -> usize {
        self.after.len()
    }
}

/// Joins texts to one JSON string.
pub fn joined(all: &[u8], texts: &[Range<usize>]) -> Option<Box<RawValue>> {
    let len: usize = texts.iter().map(ExactSizeIterator::len).sum();
    let mut joined = Vec::with_capacity(len + 2);
    joined.push(b'"');
    for text in texts {
        joined.extend_from_slice(&all[text.start + 1..text.end - 1]);
    }
    joined.push(b'"');
    RawValue::from_string(String::from_utf8(joined).ok()?).ok()
}

/// Returns the position of `part`, a slice of `line`, within `line`.
pub fn place(line: &str, part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let end = start + part.len();
    (end <= line.len()).then_some(start..end)
}

/// Returns `true` if `json` is a JSON string that can be joined with others: it is not empty, and has no half of a
/// surrogate pair.
#[inline]
fn is_joinable(json: &[u8]) -> bool {
    let [b'"', inside @ .., b'"'] = json else {
        return false;
    };
    if inside.is_empty() {
        return false;
    }
    let is_plain = !has_escapes(inside) && std::str::from_utf8(inside).is_ok();
    is_plain || is_whole_string(json)
}

/// Returns `true` if the text consists of the characters of a UUID, none of which JSON escapes.
fn is_id(text: &[u8]) -> bool {
    text.iter()
        .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"a":"text","b":{"id":"12-ab"}}"#;

    fn shape() -> LineShape {
        LineShape::of(LINE, &LINE[5..11], Some(&LINE[23..28])).unwrap()
    }

    #[test]
    fn lines_that_differ_only_in_text_and_id_have_the_same_shape() {
        let cases = [
            (LINE, Some(5..11)),
            (r#"{"a":"","b":{"id":"ffff0"}}"#, Some(5..7)),
            (r#"{"a":[1,2],"b":{"id":"ffff0"}}"#, Some(5..10)),
            (r#"{"a":"","b":{"id":"fff\""}}"#, None),
            (r#"{"a":"","b":{"id":"fffff0"}}"#, None),
            (r#"{"a":"","b":{"id":"ffff0"},"c":1}"#, None),
            (r#"{"c":"","b":{"id":"ffff0"}}"#, None),
            (r#"{"a":,"b":{"id":"ffff0"}}"#, None),
            ("", None),
        ];
        for (line, place) in cases {
            assert_eq!(shape().place_of_text(line.as_bytes()), place, "{line}");
        }
    }

    #[test]
    fn run_ends_before_the_first_line_that_has_to_be_read_alone() {
        let line = |text: &str| format!(r#"{{"a":{text},"b":{{"id":"ffff0"}}}}"#);
        let two = line(r#""é""#) + "\n" + &line(r#""\n\u00e9""#) + "\n";
        for last in [
            line("\"c\""),
            line("\"\"") + "\n",
            line("7") + "\n",
            line(r#""\ud83d""#) + "\n",
            line(r#""c\""#) + "\n",
            line(r#""c","a":"d""#) + "\n",
            line("\"\u{1}\"") + "\n",
            "\n".to_owned(),
        ] {
            let all = two.clone() + &last;
            let texts = shape().texts(all.as_bytes());
            assert_eq!(texts.len(), 2, "{last}");
            let all = joined(all.as_bytes(), &texts).unwrap();
            assert_eq!(all.get(), r#""é\n\u00e9""#);
            assert!(shape().texts(last.as_bytes()).is_empty(), "{last}");
        }
        let invalid = [
            two.as_bytes(),
            b"{\"a\":\"\xff\",\"b\":{\"id\":\"ffff0\"}}\n",
        ]
        .concat();
        assert_eq!(shape().texts(&invalid).len(), 2);
    }
}
