//! Command options that a rule forbids: `without = ["--output", "-o"]`.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForbiddenOption {
    name: String,
}

impl ForbiddenOption {
    /// Parses the name of an option.
    ///
    /// # Errors
    /// The text is not the name of a single option.
    pub fn new(text: &str) -> Result<Self, String> {
        let name = text.trim_start_matches('-');
        let dashes = text.len() - name.len();
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_.?@".contains(c);
        if !(1..=2).contains(&dashes) || name.is_empty() || !name.chars().all(is_letter) {
            return Err(format!(
                "{text:?} is not the name of an option; write it as `--output` or `-o`, without a value"
            ));
        }
        let name = text.to_owned();
        Ok(Self { name })
    }

    /// Returns `true` if a word is this option, including abbreviations, values, and groups of letters.
    pub fn matches(&self, word: &str) -> bool {
        let said = word.split('=').next().unwrap_or_default();
        if let Some(name) = self.name.strip_prefix("--") {
            // Programs accept any prefix of a long name. npm accepts any number of dashes; after one dash, a
            // few letters are options of their own.
            let start = said.trim_start_matches('-');
            let least = match said.len() - start.len() {
                0 => return false,
                1 => 3.min(name.len()),
                _ => 1,
            };
            return start.len() >= least && name.starts_with(start);
        }
        let name = &self.name[1..];
        let Some(said) = said.strip_prefix('-') else {
            return false;
        };
        // `-xo file` and `-ofile` have the option `-o`; `-delete` of `find` is a word.
        let is_letter = name.chars().count() == 1;
        let is_group = is_letter && !said.starts_with('-') && word[1..].contains(name);
        is_group || said == name || said.strip_prefix('-') == Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_every_spelling() {
        for (option, word, want) in [
            ("--output", "--output", true),
            ("--output", "--output=x", true),
            ("--output", "--out", true),
            ("--output", "--o=x", true),
            ("--output", "-output", true),
            ("--output", "-outp=x", true),
            ("--output", "---output", true),
            ("--output", "-ou", false),
            ("--no", "-no", true),
            ("--output", "--output-indicator-new=x", false),
            ("--output", "--", false),
            ("--output", "-o", false),
            ("--output", "output", false),
            ("-o", "-o", true),
            ("-o", "-ofile", true),
            ("-o", "-xo", true),
            ("-o", "-x=o", true),
            ("-o", "--no", false),
            ("-o", "o", false),
            ("-delete", "-delete", true),
            ("-delete", "--delete", true),
            ("-delete", "-d", false),
        ] {
            let forbidden = ForbiddenOption::new(option).unwrap();
            assert_eq!(forbidden.matches(word), want, "{option} {word}");
        }
    }

    #[test]
    fn invalid_option_name_is_refused() {
        for text in [
            "",
            "-",
            "--",
            "---x",
            "output",
            "--output=x",
            "--o *",
            "-o*",
        ] {
            assert!(ForbiddenOption::new(text).is_err(), "{text}");
        }
    }
}
