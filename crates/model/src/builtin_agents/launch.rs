//! Command lines of built-in and imported agents, and the packages and archives that contain their programs.

use crate::shell_words;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Command line with variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchTemplate {
    /// Name of the program, which is searched for in `PATH`.
    pub command: String,
    /// Arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the program.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl LaunchTemplate {
    /// Returns the command line without the variables, quoted for shells.
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.args);
        shell_words::join(words.map(String::as_str))
    }
}

/// Packages and archives of an agent, as in the ACP registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Distribution {
    pub npx: Option<Package>,
    pub uvx: Option<Package>,
    /// Archives by platform, such as `linux-x86_64`.
    #[serde(default)]
    pub binary: BTreeMap<String, Archive>,
}

/// Package that a package runner starts, as in the ACP registry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Package {
    /// Name of the package, which may have a version.
    pub package: String,
    /// Program in the package. Default: the program with the package's name.
    pub cmd: Option<String>,
    /// Arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the program.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Archive that contains an agent's program, as in the ACP registry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Archive {
    /// URL of the archive.
    pub archive: String,
    /// Path of the program in the archive.
    pub cmd: String,
    /// Arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the program.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl Archive {
    /// Returns the name of the program without its directory in the archive.
    pub fn program(&self) -> &str {
        let name = self.cmd.rsplit(['/', '\\']).next();
        name.unwrap_or(&self.cmd)
    }
}

impl Distribution {
    /// Returns the command line of the npm package, else of the Python package.
    pub fn launch(&self) -> Option<LaunchTemplate> {
        let npx = self.npx.as_ref().map(|package| match &package.cmd {
            None => package.with("npx", &["-y", &package.package]),
            Some(cmd) => package.with("npx", &["-y", "--package", &package.package, cmd]),
        });
        npx.or_else(|| {
            let package = self.uvx.as_ref()?;
            Some(match &package.cmd {
                None => package.with("uvx", &[&package.package]),
                Some(cmd) => package.with("uvx", &["--from", &package.package, cmd]),
            })
        })
    }

    pub fn packages(&self) -> impl Iterator<Item = &Package> {
        self.npx.iter().chain(&self.uvx)
    }
}

impl Package {
    /// Returns the command line of a package runner, followed by the package's own arguments.
    fn with(&self, runner: &str, words: &[&str]) -> LaunchTemplate {
        let words = words.iter().copied().map(str::to_owned);
        LaunchTemplate {
            command: runner.to_owned(),
            args: words.chain(self.args.iter().cloned()).collect(),
            env: self.env.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_runner_starts_package_or_program_in_it() {
        let cases = [
            (r#"{"npx":{"package":"a"}}"#, Some("npx -y a")),
            (
                r#"{"npx":{"package":"@s/a@1.2","args":["--acp"]}}"#,
                Some("npx -y @s/a@1.2 --acp"),
            ),
            (
                r#"{"npx":{"package":"a","cmd":"b","args":["c"]}}"#,
                Some("npx -y --package a b c"),
            ),
            (
                r#"{"uvx":{"package":"a==1","args":["-x"]}}"#,
                Some("uvx 'a==1' -x"),
            ),
            (
                r#"{"uvx":{"package":"a[acp]","cmd":"b","args":["c d"]}}"#,
                Some("uvx --from 'a[acp]' b 'c d'"),
            ),
            (
                r#"{"uvx":{"package":"a"},"npx":{"package":"b"}}"#,
                Some("npx -y b"),
            ),
            ("{}", None),
        ];
        for (json, want) in cases {
            let distribution: Distribution = serde_json::from_str(json).unwrap();
            let line = distribution.launch().map(|launch| launch.line());
            assert_eq!(line.as_deref(), want, "{json}");
        }
    }
}
