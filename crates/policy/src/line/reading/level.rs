//! State of a reading at one nesting level.

/// Nesting level: the line itself, a substitution or a subshell.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a state of the reader, independent of the others"
)]
pub(super) struct NestingLevel {
    pub words: Vec<String>,
    /// The words including redirections; empty while there are none.
    pub words_and_redirections: Vec<String>,
    pub word: Option<String>,
    /// Inside double quotes.
    pub quoted: bool,
    /// Inside the text of a here-document, in which a double quote is a literal character.
    pub document: bool,
    /// The next word is the file of a redirection.
    pub before_file: bool,
    /// The next word belongs to a redirection rather than to the command.
    pub in_redirection: bool,
    /// The next word is the delimiter of a here-document.
    pub before_delimiter: bool,
    /// The next word may be the end of a file name, after which the command may begin.
    pub may_end_file: bool,
    /// Number of `case` without `esac`.
    pub cases: usize,
    pub close: Option<char>,
    /// Single quotes are literal characters, and double quotes may be opened again: `"${x:-…}"`.
    pub literal: bool,
}
