//! Conversion of agent output to text that is safe in a terminal or an error message: without escape
//! sequences and control characters.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// Removes escape sequences, and replaces other control characters by visible ones.
///
/// Newlines and tabs are kept. A carriage return becomes a space, since it would let a line overwrite itself.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' if skip_sequence(&mut rest) => {}
            '\u{9b}' if skip_control_sequence(&mut rest) => {}
            // Part of a line break, or of a progress bar.
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => shown.push(' '),
            // Control pictures: ␀ to ␟, and ␡.
            '\0'..='\x1f' if is_unsafe(c) => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            '\x7f' => shown.push('\u{2421}'),
            BLACK_FLAG => {
                shown.push(c);
                for _ in 0..region_tags(&rest) {
                    shown.extend(rest.next());
                }
            }
            c if is_unsafe(c) => {
                // Writing to memory cannot fail.
                let _ = write!(shown, "<U+{:04X}>", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Escapes the characters of a JSON text that control a terminal. The JSON value stays the same; newlines
/// between tokens are kept.
pub fn json_escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(is_unsafe) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to memory cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Returns `true` if the character controls a terminal, changes the direction of text, or is not visible.
///
/// Not among them are the joiners U+200C and U+200D and the variation selectors, which emoji and some scripts need.
fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Emoji that begins the flag of a region such as Scotland. Tags with the region's code follow it.
const BLACK_FLAG: char = '\u{1f3f4}';

/// Returns the number of tags that follow a black flag and name a region. It is 0 if they name none: text could hide in such tags.
fn region_tags(rest: &Peekable<Chars<'_>>) -> usize {
    let is_code = |c: &char| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let code = rest.clone().take_while(is_code).count();
    let is_ended = rest.clone().nth(code) == Some('\u{e007f}');
    if is_ended && (4..=6).contains(&code) {
        code + 1
    } else {
        0
    }
}

/// Skips the characters after an ESC; returns `false` if they are not a complete escape sequence.
fn skip_sequence(rest: &mut Peekable<Chars<'_>>) -> bool {
    match rest.peek() {
        Some('[') => {
            let mut after = rest.clone();
            after.next();
            let is_sequence = skip_control_sequence(&mut after);
            if is_sequence {
                *rest = after;
            }
            is_sequence
        }
        // Strings by which terminals set titles, links or options.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let mut after = rest.clone();
            while let Some(c) = after.next() {
                let ends = match c {
                    '\x07' | '\u{9c}' => true,
                    '\x1b' => after.next_if_eq(&'\\').is_some(),
                    _ => false,
                };
                if ends {
                    *rest = after;
                    return true;
                }
            }
            false
        }
        Some(' '..='~') => {
            while rest.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            rest.next_if(|c| matches!(c, '0'..='~'));
            true
        }
        _ => false,
    }
}

/// Skips the parameters and final byte of a control sequence; returns `false` if it is incomplete.
fn skip_control_sequence(rest: &mut Peekable<Chars<'_>>) -> bool {
    while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    rest.next_if(|c| matches!(c, '@'..='~')).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed_and_text_stays() {
        let cases = [
            (
                "plain\ttext\nof two lines, é😀",
                "plain\ttext\nof two lines, é😀",
            ),
            (
                "\x1b[31mred\x1b[0m and \x1b[1;38;5;9mbold\x1b[m",
                "red and bold",
            ),
            (
                "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
                "alink",
            ),
            ("\x1bPdevice\x1b\\x \x1b(Bx \x1bcx", "x x x"),
            ("\u{9b}2Jx", "x"),
            // An unterminated sequence hides nothing.
            (
                "\x1b]0;title and all the rest",
                "␛]0;title and all the rest",
            ),
            ("ends \x1b", "ends ␛"),
            ("ends \x1b[12", "ends ␛[12"),
            ("10%\r20%\r\ndone", "10% 20%\ndone"),
            ("a\0b\x08c\x7fd\x07", "a␀b␈c␡d␇"),
            ("\u{85}\u{202e}txt.exe", "<U+0085><U+202E>txt.exe"),
            (
                "l\u{200b}s\u{2060}\u{feff} \u{e0068}\u{e0069}",
                "l<U+200B>s<U+2060><U+FEFF> <U+E0068><U+E0069>",
            ),
            (
                "\u{1f3f4}\u{e0068}\u{e0069}\u{e007f}",
                "\u{1f3f4}<U+E0068><U+E0069><U+E007F>",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(printable(text), want, "{text:?}");
            assert!(matches!(printable(want), Cow::Borrowed(_)), "{want:?}");
        }
    }
    #[test]
    fn emoji_and_joined_letters_stay() {
        for text in [
            "\u{1f469}\u{200d}\u{1f4bb} \u{2764}\u{fe0f}",
            "\u{645}\u{6cc}\u{200c}\u{62e}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "\u{1f3f4}\u{200d}\u{2620}\u{fe0f}",
        ] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let json = "\"a\u{200b}\u{e0068}\u{202e}\"";
        let escaped = json_escaped(json);
        assert_eq!(escaped, r#""a\u200b\udb40\udc68\u202e""#);
        let values = [json, &escaped].map(|text| serde_json::from_str::<String>(text).unwrap());
        assert_eq!(values[0], values[1]);
    }
}
