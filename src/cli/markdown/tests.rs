//! Tests of the renderer, over tables and generated texts.

use super::*;
use crate::cli::columns::width;
use crate::cli::styles::plain;
use std::fmt::Write as _;

const SCREEN: Styles = Styles {
    is_terminal: true,
    has_color: true,
    has_links: false,
    width: Some(40),
};

/// Renders a text that arrives in pieces of this many characters.
fn in_pieces(text: &str, size: usize, styles: Styles) -> String {
    let mut markdown = Markdown::new(styles);
    let chars: Vec<char> = text.chars().collect();
    let pieces = chars
        .chunks(size)
        .map(|piece| piece.iter().collect::<String>());
    let mut out: String = pieces.map(|piece| markdown.push(&piece)).collect();
    out += &markdown.end();
    out
}

fn visible(text: &str) -> String {
    plain(&render(text, SCREEN))
}

#[test]
fn blocks_are_laid_out() {
    let cases = [
        ("plain", "plain\n"),
        ("# Title\ntext", "Title\ntext\n"),
        ("a\n\n\nb\n", "a\n\nb\n"),
        ("- a\n- b\n  - c\n- d", "• a\n• b\n  • c\n• d\n"),
        ("1. a\n   more\n10. b", "1. a\n   more\n10. b\n"),
        ("- a\n\n  more\n\nafter", "• a\n\n  more\n\nafter\n"),
        ("> a\n> b\n\nc", "│ a\n│ b\n\nc\n"),
        ("> - a\n> - b", "│ • a\n│ • b\n"),
        ("- > a", "• │ a\n"),
        (
            "```rust\nfn a() {\n    b\n}\n```\nafter",
            "rust\nfn a() {\n    b\n}\nafter\n",
        ),
        (
            "- a\n  ```\n  code\n    in\n  ```\n- b",
            "• a\n  code\n    in\n• b\n",
        ),
        ("    code **a**", "    code **a**\n"),
        (
            "a\n---\nb",
            "a\n────────────────────────────────────────\nb\n",
        ),
        ("- [ ] todo\n- [x] done", "• [ ] todo\n• [x] done\n"),
        ("not | a table\n", "not | a table\n"),
        ("| a\n| b", "| a\n| b\n"),
        ("2026 was\n#1 of -5", "2026 was\n#1 of -5\n"),
        ("<div>\na\n</div>", "<div>\na\n</div>\n"),
        ("[a]: http://x\n", "[a]: http://x\n"),
    ];
    for (text, want) in cases {
        assert_eq!(visible(text), want, "{text:?}");
    }
}

#[test]
fn spans_have_styles() {
    let cases = [
        ("a **b** c", "a \x1b[1mb\x1b[0m c\n"),
        ("*b*", "\x1b[3mb\x1b[0m\n"),
        ("~~b~~", "\x1b[9mb\x1b[0m\n"),
        ("`b`", "\x1b[36mb\x1b[0m\n"),
        ("**b `c`**", "\x1b[1mb \x1b[0m\x1b[1m\x1b[36mc\x1b[0m\n"),
        ("a **b\nc** d", "a \x1b[1mb\x1b[0m\n\x1b[1mc\x1b[0m d\n"),
        ("2 * 3 * 4", "2 * 3 * 4\n"),
        ("snake_case_name", "snake_case_name\n"),
        ("a **b", "a **b\n"),
        ("\\*a\\* &amp; b", "*a* & b\n"),
        (
            "[a](http://x)",
            "\x1b[4ma\x1b[0m\x1b[2m (http://x)\x1b[0m\n",
        ),
        ("<http://x>", "\x1b[4mhttp://x\x1b[0m\n"),
        (
            "![a](b.png \"t\")",
            "\x1b[4ma\x1b[0m\x1b[2m (b.png t)\x1b[0m\n",
        ),
        (
            "# a *b*",
            "\x1b[1m\x1b[4ma\x1b[0m \x1b[1m\x1b[3m\x1b[4mb\x1b[0m\n",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(render(text, SCREEN), want, "{text:?}");
    }
}

#[test]
fn links_open_their_address_if_the_terminal_can() {
    let styles = Styles {
        has_links: true,
        ..SCREEN
    };
    assert_eq!(
        render("[a](http://x/\u{e9})", styles),
        "\x1b[4m\x1b]8;;http://x/%C3%A9\x1b\\a\x1b]8;;\x1b\\\x1b[0m\n"
    );
    let shown = |text| plain(&render(text, styles));
    assert_eq!(shown("[a](http://x)"), "a\n");
    // The text must not hide another address, nor a scheme that starts a program.
    assert_eq!(shown("[http://y](http://x)"), "http://y (http://x)\n");
    assert_eq!(shown("[a](vscode://x)"), "a (vscode://x)\n");
}

#[test]
fn text_appears_as_it_arrives() {
    let mut markdown = Markdown::new(SCREEN);
    let steps = [
        ("Hel", "Hel"),
        ("lo wo", "lo wo"),
        ("rld, **bo", "rld,"),
        ("ld** and", " bold and"),
        (" more words than fit into ", " more words than\nfit into"),
        ("it\n", " it\n"),
        ("- it", "• it"),
        ("em\n```sh\n", "em\nsh\n"),
        ("ls -", "ls -"),
        ("l\n``", "l\n"),
        ("`\n| a | b |\n|--|--|\n| 1 |", ""),
        (" 2 |\nend", "a │ b\n──┼──\n1 │ 2\nend"),
    ];
    for (text, want) in steps {
        assert_eq!(plain(&markdown.push(text)), want, "{text:?}");
    }
    assert_eq!(plain(&markdown.push(" **open")), "");
    assert_eq!(plain(&markdown.flush()), " **open");
    assert_eq!(plain(&markdown.push(" on")), " on");
    assert_eq!(plain(&markdown.break_line()), "\n");
    assert_eq!(plain(&markdown.end()), "");
}

#[test]
fn long_lines_are_wrapped_behind_their_margin() {
    let words = "words ".repeat(16);
    let text = visible(&format!("> - {words}"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("│ • words"), "{text}");
    assert!(lines[1].starts_with("│   words"), "{text}");
    assert!(lines.iter().all(|line| width(line) <= 40), "{text}");
    let wide = visible(&"語".repeat(30));
    assert!(wide.lines().all(|line| width(line) <= 40), "{wide}");
    let code = format!("```\n{words}\n```");
    assert_eq!(visible(&code).lines().count(), 1, "code is not wrapped");
}

#[test]
fn tables_fit_into_the_terminal() {
    let table = format!(
        "| Name | What |\n|:--|--:|\n| `a` | {} |\n| b\\|c | x |",
        "many words ".repeat(6)
    );
    let text = visible(&table);
    assert!(text.lines().all(|line| width(line) <= 40), "{text}");
    assert!(text.starts_with("Name │ What\n─────┼──"), "{text}");
    assert!(text.contains("\na    │ many words"), "{text}");
    assert!(text.contains("\nb|c  │ x\n"), "{text}");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let text = "a\x1b[2Jb &#27;[31m &#x9b;2J `\x1b]0;t\x07` [l](http://x\x1b\\y) ```\x1b[1m\n\u{202e}x\r\n| \x1b[5m |";
    let styles = Styles {
        has_links: true,
        ..SCREEN
    };
    for size in 1..8 {
        let shown = plain(&in_pieces(text, size, styles));
        let is_bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!shown.contains(is_bad), "{size}: {shown:?}");
    }
}

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// Pieces of which texts are made.
const PIECES: [&str; 46] = [
    "*",
    "**",
    "***",
    "_",
    "__",
    "~~",
    "`",
    "``",
    "\n```\n",
    "\n```rust\n",
    "~~~\n",
    "[",
    "](",
    ")",
    "]",
    "![",
    "<",
    ">",
    "> ",
    "\n> ",
    "\\",
    "&",
    "!",
    "|",
    "\n| ",
    "\n|-|-|\n",
    "# ",
    "\n## ",
    "\n- ",
    "\n  - ",
    "\n1. ",
    "\n12) ",
    "\n---\n",
    "\n===\n",
    "\n\n",
    "\n",
    "  ",
    "\n    ",
    "\t",
    "http://x.y/z",
    "語",
    "é",
    "(",
    "<b>",
    ":",
    "\n* * ",
];

/// Every letter and digit of a text is shown, in order and once, whatever the marks between them mean.
#[test]
fn no_text_is_lost() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    // Cells of a narrow table are beside each other in pieces.
    let wide = Styles {
        width: Some(5000),
        ..SCREEN
    };
    let letters = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
    for round in 0..3000 {
        let mut text = String::new();
        for _ in 0..=numbers.below(40) {
            if numbers.below(2) == 0 {
                let _ = write!(text, "w{} ", numbers.below(1000));
            } else {
                text += PIECES[numbers.below(PIECES.len())];
            }
        }
        let whole = plain(&render(&text, wide));
        assert_eq!(
            letters(&whole),
            letters(&text),
            "{round}: {text:?}\n{whole}"
        );
        let size = 1 + numbers.below(7);
        let pieces = plain(&in_pieces(&text, size, wide));
        assert_eq!(
            letters(&pieces),
            letters(&text),
            "{round}: {text:?}\n{pieces}"
        );
    }
}

/// Texts that are deep, or that make a renderer search the rest of them again and again.
fn hostile_texts() -> Vec<String> {
    let table = format!(
        "{}\n{}\n{}",
        "|a".repeat(2000),
        "|-".repeat(2000),
        "|a\n".repeat(2000)
    );
    let list: String = (0..300)
        .map(|n| format!("{}- item\n", "  ".repeat(n)))
        .collect::<Vec<_>>()
        .concat();
    let lazy = format!("{}a\n{}", "> ".repeat(2000), "b\n".repeat(500));
    let link = format!("[{}](https://{})", "*a* ".repeat(2000), "x".repeat(8000));
    [
        ">", "> ", "- ", "1. ", "> - ", "*", "*a _b ", "a* b_ ", "[", "[a](", "![", "`a``b", "<",
        "<a ", "~~a ", "\\", "&", "word", "|", "-", "#",
    ]
    .iter()
    .map(|piece| piece.repeat(16_000 / piece.len()))
    .chain([table, list, lazy, link])
    .collect()
}

#[test]
fn output_of_a_hostile_text_is_in_proportion_to_it() {
    let linked = Styles {
        has_links: true,
        ..SCREEN
    };
    for text in hostile_texts() {
        let begin: String = text.chars().take(40).collect();
        let whole = render(&text, linked);
        // Each character may be styled; the margin of each line has up to `MAX_CONTAINERS` marks.
        assert!(whole.len() < 80 * text.len(), "{begin}: {}", whole.len());
        let shown = plain(&whole);
        let margin = shown.lines().map(|line| line.matches('│').count()).max();
        let is_table = begin.starts_with("|a");
        assert!(
            is_table || margin.unwrap_or(0) <= MAX_CONTAINERS,
            "{begin}: {margin:?}"
        );
    }
}

#[test]
fn a_word_without_an_end_is_written_while_it_arrives() {
    let mut markdown = Markdown::new(SCREEN);
    markdown.push("a word that begins near the right margin: ");
    let out: String = (0..1000).map(|_| markdown.push("abcdefgh")).collect();
    assert!(out.len() > 7000, "{}", out.len());
    let line = "- ".repeat(MAX_BEGUN);
    let mut markdown = Markdown::new(SCREEN);
    let mut out = markdown.push(&line[..MAX_BEGUN]);
    assert_eq!(out, "", "it may be a rule");
    out += &markdown.push(&line[MAX_BEGUN..]);
    assert!(!out.is_empty());
}
