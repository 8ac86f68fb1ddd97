//! Differences in how shells read the same text.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a difference between shells, independent of the others"
)]
pub struct ShellDialect {
    /// `&>` is a redirection, rather than `&` and `>` (dash).
    pub ampersand: bool,
    /// `$'…'` has escapes, and the `$` of `$"…"` is not part of the word.
    pub dollar_quotes: bool,
    /// `#` starts a comment, as in all shells except an interactive zsh.
    pub comments: bool,
    /// `<<` starts a here-document, which it does not in an arithmetic expression.
    pub documents: bool,
    /// The `)` of a `case` pattern does not end a substitution around it; it does in bash before 5.2.
    pub cases: bool,
    pub braces: Braces,
}

/// Reading of quotes within `${…}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Braces {
    /// Like quotes outside.
    Flat,
    /// Separately from quotes outside.
    Quoting,
    /// Within double quotes, a single quote is a literal character.
    Literal,
}

/// Dialect of bash, which is read first.
pub const BASH: ShellDialect = ShellDialect {
    ampersand: true,
    dollar_quotes: true,
    comments: true,
    documents: true,
    cases: true,
    braces: Braces::Quoting,
};

/// Condition under which shells differ in a text, and the change of dialect to read it the other way.
type DialectSwitch = (bool, fn(ShellDialect) -> ShellDialect);

/// Returns `true` if a text may have a here-document; `\` and a line end may split the operator.
pub fn may_have_documents(text: &str) -> bool {
    text.contains("<<") || text.contains("<\\\n")
}

/// Returns the dialects that may read this text differently, starting with bash.
pub fn dialects(text: &str) -> Vec<ShellDialect> {
    let has = |part: &str| text.contains(part);
    let turns: [DialectSwitch; 5] = [
        (has("&>"), |d| ShellDialect {
            ampersand: false,
            ..d
        }),
        (has("$'") || has("$\""), |d| ShellDialect {
            dollar_quotes: false,
            ..d
        }),
        (has("#"), |d| ShellDialect {
            comments: false,
            ..d
        }),
        (may_have_documents(text), |d| ShellDialect {
            documents: false,
            ..d
        }),
        (has("case") && has(")"), |d| ShellDialect {
            cases: false,
            ..d
        }),
    ];
    let mut all = vec![BASH];
    for (_, turn) in turns.iter().filter(|(is_in, _)| *is_in) {
        let others: Vec<_> = all.iter().map(|dialect| turn(*dialect)).collect();
        all.extend(others);
    }
    if has("${") {
        let others = [Braces::Flat, Braces::Literal].map(|braces| {
            let of = |dialect: &ShellDialect| ShellDialect { braces, ..*dialect };
            all.iter().map(of).collect::<Vec<_>>()
        });
        all.extend(others.concat());
    }
    all
}
