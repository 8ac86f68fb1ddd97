//! JSON in the text of an answer.

use serde_json::Value;

/// Maximum number of places in a text at which a JSON value up to its end is looked for.
const MAX_STARTS: usize = 32;

const FENCE: &str = "```";

/// Returns the JSON value in the text of an answer: the whole text, else the last code block that is JSON, else
/// the object or array with which the text ends.
pub fn json_in(text: &str) -> Option<Value> {
    parse(text)
        .or_else(|| outer_block(text))
        .or_else(|| last_block(text))
        .or_else(|| at_end(text))
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim()).ok()
}

/// Reads from the first block marked `json` to the last fence, as strings in the JSON may contain fences.
fn outer_block(text: &str) -> Option<Value> {
    let (_, rest) = text.split_once("```json")?;
    let (block, _) = rest.rsplit_once(FENCE)?;
    parse(block)
}

fn last_block(text: &str) -> Option<Value> {
    let blocks: Vec<&str> = text.split(FENCE).skip(1).step_by(2).collect();
    let content = |block: &&str| match block.split_once('\n') {
        // The first line names the language.
        Some((language, content)) if !language.contains(['{', '[']) => parse(content),
        _ => parse(block),
    };
    blocks.iter().rev().find_map(content)
}

fn at_end(text: &str) -> Option<Value> {
    let starts = text.match_indices(['{', '[']).take(MAX_STARTS);
    starts.map(|(at, _)| &text[at..]).find_map(parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_in_the_texts_that_models_write() {
        let a = || Some(json!({"a": 1}));
        let cases = [
            ("{\"a\": 1}", a()),
            (" \n{\"a\": 1}\n", a()),
            ("42", Some(json!(42))),
            ("Here:\n```json\n{\"a\": 1}\n```\nDone.", a()),
            // Blocks of text are joined without a separator.
            ("I look it up.```json\n{\"a\": 1}\n```", a()),
            ("```\n{\"a\": 1}\n```", a()),
            ("```{\"a\": 1}```", a()),
            ("```sh\nls\n```\n```json\n{\"a\": 1}\n```", a()),
            (
                "```json\n{\"b\": 2}\n```\nNo:\n```json\n{\"a\": 1}\n```",
                a(),
            ),
            (
                "```json\n{\"a\": \"```sh\\nls\\n```\"}\n```",
                Some(json!({"a": "```sh\nls\n```"})),
            ),
            ("The answer {is}: {\"a\": 1}", a()),
            ("Let me see.[1, 2]", Some(json!([1, 2]))),
            ("{\"a\": 1} is the answer", None),
            ("```json\n{\"a\": \n```", None),
            ("no JSON here", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(json_in(text), want, "{text}");
        }
    }

    #[test]
    fn search_in_a_long_text_is_bounded() {
        let text = "[".repeat(1 << 20);
        assert_eq!(json_in(&text), None);
    }
}
