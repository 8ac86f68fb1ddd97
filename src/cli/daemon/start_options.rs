//! Options and variables of a daemon in the background, and how its process gets them.

use crate::cli::UsageError;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::Read;

/// Command line of a daemon in the background. The options follow on its stdin: all users of the machine can read a
/// command line, and `-e NAME=VALUE` may have a secret.
pub const DETACHED: [&str; 3] = ["daemon", "run", "--detached"];

/// Returns a command line with the options that follow on stdin.
///
/// # Errors
/// They cannot be read.
pub fn with_options_of_stdin(words: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    with_options(words, std::io::stdin().lock())
}

fn with_options(mut words: Vec<OsString>, input: impl Read) -> anyhow::Result<Vec<OsString>> {
    if words.iter().skip(1).eq(DETACHED.iter()) {
        let options: Vec<String> = serde_json::from_reader(input).map_err(|error| {
            UsageError(format!(
                "cannot read the options of the daemon from stdin: {error}; start it with `acpipe daemon start`"
            ))
        })?;
        words.extend(options.into_iter().map(OsString::from));
    }
    Ok(words)
}

/// Variables that set the agent, the configuration and the store of the daemon itself; those of its clients are in their
/// own environments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartVariables {
    /// `ACPIPE_AGENT`.
    pub agent: Option<String>,
    /// `ACPIPE_CONFIG`, as an absolute path.
    pub config: Option<String>,
    /// `PERSIST_MESSAGES`.
    pub persist: Option<String>,
}

impl StartVariables {
    /// Returns those of this process. An empty one counts as unset.
    pub fn own() -> Self {
        let variable = |name| {
            std::env::var(name)
                .ok()
                .filter(|text| !text.trim().is_empty())
        };
        let absolute = |file: String| match std::path::absolute(&file) {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(_) => file,
        };
        Self {
            agent: variable("ACPIPE_AGENT"),
            config: variable("ACPIPE_CONFIG").map(absolute),
            persist: variable("PERSIST_MESSAGES"),
        }
    }

    /// Returns these variables, and the earlier ones in the places of those that are not set.
    #[must_use]
    pub fn or(self, earlier: Self) -> Self {
        Self {
            agent: self.agent.or(earlier.agent),
            config: self.config.or(earlier.config),
            persist: self.persist.or(earlier.persist),
        }
    }

    /// Returns the names of the variables with their values; `None` for one that is not set.
    pub fn all(&self) -> Vec<(&'static str, Option<&OsStr>)> {
        vec![
            ("ACPIPE_AGENT", self.agent.as_deref().map(OsStr::new)),
            ("ACPIPE_CONFIG", self.config.as_deref().map(OsStr::new)),
            ("PERSIST_MESSAGES", self.persist.as_deref().map(OsStr::new)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_follow_only_the_command_line_of_the_background() {
        let table = [
            (
                "acpipe daemon run --detached",
                "acpipe daemon run --detached -e A=b c",
            ),
            (
                "acpipe daemon run --detached -v",
                "acpipe daemon run --detached -v",
            ),
            ("acpipe daemon run", "acpipe daemon run"),
        ];
        for (line, expected) in table {
            let words = line.split(' ').map(OsString::from).collect();
            let all = with_options(words, &br#"["-e","A=b c"]"#[..]).unwrap();
            assert_eq!(all.join(OsStr::new(" ")), expected, "{line}");
        }
        let words = ["acpipe", "daemon", "run", "--detached"].map(OsString::from);
        assert!(with_options(words.to_vec(), &b""[..]).is_err());
    }

    #[test]
    fn variable_that_is_set_replaces_an_earlier_one() {
        let of = |agent: Option<&str>, config: Option<&str>| StartVariables {
            agent: agent.map(str::to_owned),
            config: config.map(str::to_owned),
            persist: None,
        };
        let both = of(None, Some("new")).or(of(Some("a"), Some("old")));
        assert_eq!(both, of(Some("a"), Some("new")));
    }
}
