//! Options for the look of the output.

use clap::{Args, ColorChoice};
use std::ffi::OsString;

/// Name of the option of colors.
const COLOR: &str = "--color";

#[derive(Debug, Args)]
#[command(next_help_heading = "Display")]
pub struct DisplayArgs {
    /// When to use colors, styles and links: auto means at a terminal
    ///
    /// With auto, `NO_COLOR` and `TERM=dumb` turn them off, and `CLICOLOR_FORCE` turns colors on.
    #[arg(long, value_name = "WHEN", default_value_t = ColorChoice::Auto, global = true)]
    pub color: ColorChoice,
}

/// Returns the choice of `--color` in a command line that is not parsed yet: help and errors have colors, too.
pub fn color_of(words: &[OsString]) -> ColorChoice {
    let mut words = words.iter().skip(1).map_while(|word| {
        let word = word.to_str().unwrap_or_default();
        (word != "--").then_some(word)
    });
    let mut choice = None;
    while let Some(word) = words.next() {
        let value = match word.strip_prefix(COLOR) {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        choice = value.and_then(|value| value.parse().ok()).or(choice);
    }
    choice.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_is_found_before_the_command_line_is_parsed() {
        let cases: [(&[&str], ColorChoice); 6] = [
            (&["acpipe", "run", "hi"], ColorChoice::Auto),
            (&["acpipe", "--color", "never", "x"], ColorChoice::Never),
            (&["acpipe", "x", "--color=always"], ColorChoice::Always),
            (&["acpipe", "x", "--", "--color=always"], ColorChoice::Auto),
            (&["acpipe", "x", "--color"], ColorChoice::Auto),
            (&["acpipe", "--colors=never"], ColorChoice::Auto),
        ];
        for (words, want) in cases {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(color_of(&words), want, "{words:?}");
        }
    }
}
