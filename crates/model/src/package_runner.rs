//! Package runners: commands that download the program they start, so that a first start takes as long as the
//! download.

use std::fmt;

/// Package runner of a command line, and the package that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackageRunner<'a> {
    /// Name of the package runner, as users write it.
    name: &'static str,
    /// Package or image, if the command line names it.
    package: Option<&'a str>,
}

impl<'a> PackageRunner<'a> {
    #[must_use]
    pub fn package(self) -> Option<&'a str> {
        self.package
    }

    #[must_use]
    pub fn is_npm(self) -> bool {
        matches!(
            self.name,
            "npx" | "npm exec" | "pnpx" | "pnpm dlx" | "yarn dlx" | "bunx"
        )
    }
}

/// Note for a silent start: which package may be downloading.
impl fmt::Display for PackageRunner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let package = self.package.unwrap_or("the agent");
        write!(f, "{} may be downloading {package}", self.name)?;
        f.write_str("; a first start can take minutes")
    }
}

struct RunnerSyntax {
    /// Program, then subcommands.
    words: &'static [&'static str],
    name: &'static str,
    options: Options,
    /// Options that name the package. The first argument that is not an option is then the program in that
    /// package.
    packages: &'static [&'static str],
}

/// Options of a package runner that take the next argument as their value.
enum Options {
    Taking(&'static [&'static str]),
    /// All options except these. Short options without a value can be joined.
    AllBut(&'static [&'static str]),
}

const NPM: Options = Options::Taking(&["--registry", "--cache", "--prefix", "-w", "--workspace"]);
const PNPM: Options = Options::Taking(&["--registry", "-C", "--dir", "--allow-build"]);
const BUN: Options = Options::Taking(&["--registry", "--cwd"]);
const UV: Options = Options::Taking(&[
    "-p",
    "--python",
    "--with",
    "--with-editable",
    "--with-requirements",
    "--index",
    "--default-index",
    "--index-url",
    "--extra-index-url",
    "--env-file",
    "--directory",
    "--project",
]);
const PIPX: Options = Options::Taking(&["--python", "--index-url", "-i", "--pip-args", "--with"]);
const CONTAINERS: Options = Options::AllBut(&[
    "-d",
    "-i",
    "-P",
    "-q",
    "-t",
    "--detach",
    "--init",
    "--interactive",
    "--no-healthcheck",
    "--oom-kill-disable",
    "--privileged",
    "--publish-all",
    "--quiet",
    "--read-only",
    "--replace",
    "--rm",
    "--tty",
]);

/// If one entry is a prefix of another, the longer one comes first.
const RUNNERS: &[RunnerSyntax] = &[
    runner(&["npx"], "npx", NPM, &["-p", "--package"]),
    runner(&["npm", "exec"], "npm exec", NPM, &["-p", "--package"]),
    runner(&["npm", "x"], "npm exec", NPM, &["-p", "--package"]),
    runner(&["pnpx"], "pnpx", PNPM, &["--package"]),
    runner(&["pnpm", "dlx"], "pnpm dlx", PNPM, &["--package"]),
    runner(&["yarn", "dlx"], "yarn dlx", PNPM, &["-p", "--package"]),
    runner(&["bunx"], "bunx", BUN, &["-p", "--package"]),
    runner(&["bun", "x"], "bunx", BUN, &["-p", "--package"]),
    runner(&["uvx"], "uvx", UV, &["--from"]),
    runner(&["uv", "tool", "run"], "uvx", UV, &["--from"]),
    runner(&["pipx", "run"], "pipx", PIPX, &["--spec"]),
    runner(&["docker", "run"], "docker", CONTAINERS, &[]),
    runner(&["podman", "run"], "podman", CONTAINERS, &[]),
];

const fn runner(
    words: &'static [&'static str],
    name: &'static str,
    options: Options,
    packages: &'static [&'static str],
) -> RunnerSyntax {
    RunnerSyntax {
        words,
        name,
        options,
        packages,
    }
}

pub fn package_runner<'a>(command: &'a str, args: &'a [String]) -> Option<PackageRunner<'a>> {
    let words: Vec<&str> = std::iter::once(command)
        .chain(args.iter().map(String::as_str))
        .collect();
    let (first, words) = without_wrapper(&words).split_first()?;
    let first = [program(first)];
    let starts = |runner: &&RunnerSyntax| {
        let (program, verbs) = runner.words.split_at(1);
        program == first && words.starts_with(verbs)
    };
    let runner = RUNNERS.iter().find(starts)?;
    let package = runner.package(&words[runner.words.len() - 1..]);
    Some(PackageRunner {
        name: runner.name,
        package: package.filter(|package| !package.is_empty()),
    })
}

/// Returns the arguments after `env -i A=1` or `cmd /c`, which do not change the program that is started. The text that
/// `env -S` splits into arguments, and that of `cmd /c`, may be one word.
pub fn without_wrapper<'a, 'b>(words: &'b [&'a str]) -> &'b [&'a str] {
    match words {
        [first, rest @ ..] if program(first) == "env" => {
            without_wrapper(&rest[env_arguments(rest)..])
        }
        [first, flag, rest @ ..] if program(first) == "cmd" && flag.eq_ignore_ascii_case("/c") => {
            rest
        }
        _ => words,
    }
}

/// Returns `true` for `-S` and `-iS`, with or without the text.
fn splits_text(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    letters.trim_start_matches(['i', '0', 'v']).starts_with('S')
}

/// Returns the number of options and variables of `env` before the program that it starts.
fn env_arguments(words: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += match *word {
            "--" | "--split-string" => return at + 1,
            "-u" | "--unset" | "-C" | "--chdir" => 2,
            // The text is the rest of the argument, or the next one.
            option if option.starts_with("--split-string=") => return at,
            option if splits_text(option) => {
                return at + usize::from(option.ends_with('S'));
            }
            option if option.starts_with('-') => 1,
            variable if variable.contains('=') => 1,
            _ => return at,
        };
    }
    words.len()
}

/// Returns the name of a program without its directory and without the extension of Windows.
pub fn program(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let mut endings = [".cmd", ".exe", ".ps1", ".bat"].iter();
    let bare = endings.find_map(|end| name.strip_suffix(end));
    bare.unwrap_or(name)
}

impl RunnerSyntax {
    /// Returns the package among the arguments after the subcommand.
    fn package<'a>(&self, words: &[&'a str]) -> Option<&'a str> {
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == "--" {
                return words.next();
            }
            if !word.starts_with('-') {
                return Some(word);
            }
            if self.packages.contains(&word) {
                return words.next();
            }
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (word, None),
            };
            if self.packages.contains(&option) {
                return value;
            }
            if value.is_none() && self.options.takes_next(option) {
                words.next();
            }
        }
        None
    }
}

impl Options {
    fn takes_next(&self, option: &str) -> bool {
        let none = match self {
            Self::Taking(some) => return some.contains(&option),
            Self::AllBut(none) => none,
        };
        if option.starts_with("--") {
            return !none.contains(&option);
        }
        // The first letter that takes a value takes the rest of its argument, or the next argument if nothing
        // is left.
        let alone = |letter: char| none.contains(&format!("-{letter}").as_str());
        let rest = option[1..].trim_start_matches(alone);
        rest.chars().count() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<(&'static str, Option<String>)> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let found = package_runner(&words[0], &words[1..])?;
        Some((found.name, found.package.map(str::to_owned)))
    }

    #[test]
    fn package_runners_are_recognised() {
        let cases = [
            ("npx -y @scope/agent@1.2 --acp", "npx", "@scope/agent@1.2"),
            ("/usr/bin/npx agent", "npx", "agent"),
            (r"C:\node\npx.cmd -y agent", "npx", "agent"),
            ("npx -p pkg the-bin -p other", "npx", "pkg"),
            ("npx --yes --package=pkg the-bin", "npx", "pkg"),
            ("npx --registry https://r agent", "npx", "agent"),
            ("npx -y -- agent", "npx", "agent"),
            ("npm exec --yes -- agent --acp", "npm exec", "agent"),
            ("npm x agent", "npm exec", "agent"),
            ("pnpm dlx agent", "pnpm dlx", "agent"),
            ("pnpx --package=a b", "pnpx", "a"),
            ("yarn dlx -p a b", "yarn dlx", "a"),
            ("bunx --bun agent", "bunx", "agent"),
            ("bun x agent", "bunx", "agent"),
            ("uvx agent@latest acp", "uvx", "agent@latest"),
            (
                "uvx --python 3.12 --from git+https://x agent",
                "uvx",
                "git+https://x",
            ),
            ("uv tool run --with a agent", "uvx", "agent"),
            ("pipx run --spec a==1 agent", "pipx", "a==1"),
            (
                "docker run -it --rm -v /a:/b -eX=1 --init --name n img acp",
                "docker",
                "img",
            ),
            ("docker run -iv /a:/b --network=host img", "docker", "img"),
            ("podman run -i img", "podman", "img"),
            ("env A=1 B= npx agent", "npx", "agent"),
            ("/usr/bin/env npx agent", "npx", "agent"),
            ("cmd.exe /C npx -y agent", "npx", "agent"),
        ];
        for (line, name, package) in cases {
            let want = Some((name, Some(package.to_owned())));
            assert_eq!(found(line), want, "{line}");
        }
        // The command line does not name the package.
        for line in ["npx", "npx -y", "npx -p", "docker run -v", "uvx --from="] {
            assert_eq!(found(line).unwrap().1, None, "{line}");
        }
    }

    #[test]
    fn local_programs_are_not_package_runners() {
        let lines = [
            "opencode acp",
            "/opt/npx-agent --acp",
            "node npx",
            "npm run agent",
            "pnpm exec agent",
            "pnpm",
            "docker exec c agent",
            "uv",
            "env",
            "env A=1",
            "cmd /c",
            "",
        ];
        for line in lines {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn download_note_names_the_package() {
        let args = ["-y".to_owned(), "@scope/agent".to_owned()];
        let cases = [
            (&args[..], "npx may be downloading @scope/agent"),
            (&args[..1], "npx may be downloading the agent"),
        ];
        for (args, want) in cases {
            let note = package_runner("npx", args).unwrap().to_string();
            assert!(note.starts_with(want), "{note}");
        }
    }
}
