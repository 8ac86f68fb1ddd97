//! Invalid lines of agents.

use super::agent::{Line, LineEffect};
use super::dice::Dice;

/// Returns a line that has no meaning in any dialect; a fuzzer's line may have any meaning.
pub fn line(dice: &mut Dice) -> Line {
    if dice.is_fuzzer() && dice.percent(50) {
        let text = dice.bytes(200);
        return Line::new(text, LineEffect::Wild);
    }
    let plain: &[&str] = &[
        "",
        "   ",
        "nonsense",
        "{}",
        "[]",
        "[1,{}]",
        "null",
        "\"text\"",
        "{\"a\":",
        "}{",
        "\u{feff}{}",
        "{\"__proto__\":{\"x\":1},\"constructor\":null}",
        "{\"a\":1,\"a\":2,\"method\":[],\"type\":{}}",
        "{\"n\":1e999,\"m\":-0,\"k\":123456789012345678901234567890}",
        "{\"type\":\"novel\",\"method\":\"novel\",\"x\":\"\\ud800\"}",
        "\u{0}\u{0}",
    ];
    let text = match dice.below(20) {
        0 => b"\xff\xfe{}".to_vec(),
        1 => "[".repeat(500).into_bytes(),
        2 => format!(
            "{}{}",
            "{\"a\":".repeat(300),
            "1".to_owned() + &"}".repeat(300)
        )
        .into_bytes(),
        _ => dice.pick(plain).as_bytes().to_vec(),
    };
    Line::new(text, LineEffect::Nothing)
}

/// Returns a piece of a JSON string, without quotes and as it is escaped.
pub fn words(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "a word ",
        "and more",
        "",
        " ",
        "\\n",
        "\\u0000",
        "\\ud800 alone",
        "\\ud83d\\ude00",
        "ünïcödé",
        "{}",
        "<b>&amp;",
        "\\\"quoted\\\"",
    ])
}
