//! Where shells read the same text in different ways.

/// One way to read a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a difference between shells, independent of the others"
)]
pub struct Dialect {
    /// `&>` is a redirection, not `&` and `>` (dash).
    pub ampersand: bool,
    /// `$'…'` has escapes, and the `$` of `$"…"` is not a part of the word.
    pub dollar_quotes: bool,
    /// `#` begins a comment, as in all shells but an interactive zsh.
    pub comments: bool,
    /// `<<` begins a here-document; not so in an arithmetic expression.
    pub documents: bool,
    /// The `)` of a pattern of `case` does not end a substitution around it, as it does in bash before 5.2.
    pub cases: bool,
    pub braces: Braces,
}

/// How quotes within `${…}` are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Braces {
    /// Like quotes outside of it.
    Flat,
    /// For themselves.
    Quoting,
    /// Within double quotes, a single quote is a letter.
    Literal,
}

/// The dialect of bash, which is read first.
pub const BASH: Dialect = Dialect {
    ampersand: true,
    dollar_quotes: true,
    comments: true,
    documents: true,
    cases: true,
    braces: Braces::Quoting,
};

/// A text in which shells differ, and the other way to read it.
type Turn = (bool, fn(Dialect) -> Dialect);

/// Whether a text may have a here-document; a line end behind `\` may part the sign.
pub fn may_have_documents(text: &str) -> bool {
    text.contains("<<") || text.contains("<\\\n")
}

/// The dialects that may read this text in different ways, that of bash first.
#[must_use]
pub fn dialects(text: &str) -> Vec<Dialect> {
    let has = |part: &str| text.contains(part);
    let turns: [Turn; 5] = [
        (has("&>"), |d| Dialect {
            ampersand: false,
            ..d
        }),
        (has("$'") || has("$\""), |d| Dialect {
            dollar_quotes: false,
            ..d
        }),
        (has("#"), |d| Dialect {
            comments: false,
            ..d
        }),
        (may_have_documents(text), |d| Dialect {
            documents: false,
            ..d
        }),
        (has("case") && has(")"), |d| Dialect { cases: false, ..d }),
    ];
    let mut all = vec![BASH];
    for (_, turn) in turns.iter().filter(|(is_in, _)| *is_in) {
        let others: Vec<_> = all.iter().map(|dialect| turn(*dialect)).collect();
        all.extend(others);
    }
    if has("${") {
        let others = [Braces::Flat, Braces::Literal].map(|braces| {
            let of = |dialect: &Dialect| Dialect { braces, ..*dialect };
            all.iter().map(of).collect::<Vec<_>>()
        });
        all.extend(others.concat());
    }
    all
}
