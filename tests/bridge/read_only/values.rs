//! Options with their named values, run in a repository whose configuration names a program for everything that git runs.

use super::{Setup, World, allows, has, options, policies};
use acpipe_policy::Policy;
use std::collections::{BTreeMap, BTreeSet};

/// Programs that the documentation names as run because of the configuration alone.
const DOCUMENTED: [&str; 6] = [
    "post-index-change",
    "clean",
    "fsmonitor",
    "smudge",
    "submodule-fsmonitor",
    "textconv",
];

/// Commands of git with the words around an option, and whether the documentation says that they run `diff.external`.
const GIT: &[(&str, &str, bool)] = &[
    ("log -p", "--all", false),
    ("log", "", false),
    ("show", "main~1 main tag", false),
    ("diff", "", true),
    ("diff --cached", "", true),
    ("diff", "main~3 main", true),
    ("status", "", false),
    ("stash list", "", false),
    ("stash list -p", "", false),
    ("stash show", "", false),
    ("stash show -p", "", false),
    ("reflog", "", false),
    ("reflog show", "main", false),
    ("rev-list", "--all", false),
    ("shortlog", "main", false),
    ("blame", "a.text", false),
    ("grep", "x", false),
    ("ls-files", "", false),
    ("ls-tree", "main", false),
    ("cat-file", "main", false),
    ("rev-parse", "main", false),
    ("describe", "main", false),
    ("merge-base", "main side", false),
    ("name-rev", "main", false),
    ("count-objects", "", false),
    ("check-ignore", "a", false),
    ("show-ref", "", false),
    ("for-each-ref", "", false),
    ("branch", "", false),
    ("tag", "", false),
    ("remote", "", false),
    ("worktree list", "", false),
    ("config --get", "user.name", false),
    ("config --list", "", false),
];

/// Other programs, with the words after an option.
const OTHERS: &[(&str, &str)] = &[
    ("ls", "src"),
    ("stat", "a"),
    ("file", "a"),
    ("du", "src"),
    ("df", ""),
    ("tree", "src"),
    ("find .", ""),
    ("grep", "x a"),
    ("rg", "x a"),
    ("cut", "a"),
    ("sort", "a"),
    ("uniq", "a"),
    ("diff", "a b"),
    ("jq", ". a"),
    ("date", ""),
    ("head", "a"),
    ("tail", "a"),
    ("wc", "a"),
    ("sha256sum", "a"),
];

/// Named values of git's options, as its completion has them. `trap` is a format of the configuration.
const VALUES: &[(&str, &str)] = &[
    (
        "diff-merges",
        "off none on m first-parent 1 separate combined c dense-combined cc remerge r",
    ),
    ("submodule", "diff log short"),
    ("color-moved", "no default plain blocks zebra dimmed-zebra"),
    ("word-diff", "color plain porcelain none"),
    ("ws-error-highlight", "none default old new context all"),
    ("diff-algorithm", "myers minimal patience histogram default"),
    ("ignore-submodules", "none untracked dirty all"),
    ("dirstat", "changes lines files cumulative 10"),
    (
        "format",
        "oneline short medium full fuller reference email mboxrd raw trap tra format: tformat:trap %h %(describe) \
         %(trailers) %(decorate) %G? %+GG %(signature) %(contents) %(raw) %(upstream:track)",
    ),
    (
        "pretty",
        "oneline short medium full fuller reference email mboxrd raw trap tr format:%s %h %G? o",
    ),
    (
        "group",
        "author committer trailer:x format:%h format:%G? %G? trap",
    ),
    (
        "sort",
        "refname -creatordate version:refname objectsize signature raw",
    ),
    ("decorate", "short full auto no"),
    ("decorate-refs", "main"),
    ("notes", "x"),
    (
        "date",
        "relative local default iso rfc human unix format:%Y",
    ),
    ("color", "always never auto"),
    ("column", "always never auto row plain dense"),
    ("untracked-files", "no normal all"),
    ("ignored", "traditional no matching"),
    ("porcelain", "v1 v2"),
    ("abbrev-ref", "strict loose"),
    ("mailmap", "x"),
    ("encoding", "UTF-8 latin1"),
    ("diff-filter", "M a"),
    ("stat", "80"),
    ("no-walk", "sorted unsorted"),
    ("path-separator", "/"),
];

/// A line is not safe.
type Fell = Vec<(String, BTreeSet<String>)>;

struct Runner {
    world: World,
    policy: Policy,
    tried: usize,
    fell: Fell,
}

impl Runner {
    fn new(name: &str) -> Self {
        let (_, policy) = policies().swap_remove(2);
        Self {
            world: World::new(name, Setup::Traps),
            policy,
            tried: 0,
            fell: Vec::new(),
        }
    }

    /// Runs the lines that the policy allows; none may write a file, or run a program that is not in `may`.
    fn run(&mut self, lines: impl IntoIterator<Item = String>, may: &BTreeSet<String>) {
        let lines: BTreeSet<String> = lines.into_iter().collect();
        let allowed = lines.into_iter().filter(|line| allows(&self.policy, line));
        let allowed: Vec<String> = allowed.collect();
        self.tried += allowed.len();
        self.world.sprung();
        let before = self.world.tree();
        self.world.run_all(&allowed);
        let is_clean =
            |world: &World, before| world.sprung().is_subset(may) && world.tree() == before;
        if is_clean(&self.world, before) {
            return;
        }
        for line in allowed {
            self.world.fill();
            self.world.sprung();
            let before = self.world.tree();
            self.world.run(&line);
            let sprung = self.world.sprung();
            if !sprung.is_subset(may) || self.world.tree() != before {
                self.fell.push((line, sprung));
            }
        }
        self.world.fill();
    }

    fn end(self, least: usize) {
        let (tried, fell) = (self.tried, self.fell);
        assert!(fell.is_empty(), "{fell:#?}");
        assert!(tried > least, "{tried}");
    }
}

/// Returns the programs that a command of git may run.
fn may(runs_external: bool) -> BTreeSet<String> {
    let external = runs_external.then_some("external");
    DOCUMENTED
        .into_iter()
        .chain(external)
        .map(str::to_owned)
        .collect()
}

/// Returns the spellings of an option with a value: in one word, in two, and as an abbreviation.
fn spellings(option: &str, value: &str) -> Vec<String> {
    let mut all = vec![format!("{option} '{value}'")];
    for end in 3..=option.len() {
        if option.is_char_boundary(end) {
            all.push(format!("{}='{value}'", &option[..end]));
        }
    }
    all
}

/// Returns a line for each spelling.
fn lines(before: &str, after: &str, spelled: impl IntoIterator<Item = String>) -> Vec<String> {
    let line = |option: String| format!("{before} {option} {after}").trim_end().to_owned();
    spelled.into_iter().map(line).collect()
}

#[test]
fn traps_are_sprung_by_options_that_are_not_allowed() {
    let world = World::new("traps", Setup::Traps);
    let (_, policy) = policies().swap_remove(2);
    for (line, trap) in [
        ("git log --diff-merges=remerge", "merge"),
        ("git log --diff-merges=r", "merge"),
        ("git log --diff-merges remerge", "merge"),
        ("git log -p -m", "merge"),
        ("git log -p --diff-merges=on", "merge"),
        ("git reflog show --diff-merges=r", "merge"),
        ("git log -p --submodule=diff", "submodule-external"),
        ("git show --submodule=diff main", "submodule-external"),
        ("git log --format=trap", "gpg"),
        ("git log --pretty=tra", "gpg"),
        ("git rev-list --pretty=trap main", "gpg"),
        ("git shortlog --format=trap main", "gpg"),
        ("git log --show-signature", "gpg"),
        ("git log --format=%G?", "gpg"),
        ("git log -p --ext-diff", "external"),
        ("git trap", "alias"),
    ] {
        world.sprung();
        world.run(line);
        assert!(world.sprung().contains(trap), "{line} does not run {trap}");
        assert!(!allows(&policy, line), "{line}");
    }
}

/// The options that git names itself, with the values of its completion.
#[test]
fn named_values_of_options_run_nothing_that_is_not_documented() {
    let mut runner = Runner::new("values");
    for (command, after, runs_external) in GIT {
        let before = format!("git {command}");
        let verb = command.split(" -").next().unwrap_or_default();
        let help = format!("git {verb} --git-completion-helper-all; git {verb} -h");
        let mut spelled = options(&runner.world, &help);
        for letter in ('a'..='z').chain('A'..='Z') {
            spelled.push(format!("-{letter}"));
        }
        for (option, values) in VALUES {
            let option = format!("--{option}");
            spelled.push(option.clone());
            for (n, value) in values.split_ascii_whitespace().enumerate() {
                // The abbreviations take turns.
                let mut all = spellings(&option, value);
                let full = all.split_off(all.len() - 1);
                let abbreviated = all.swap_remove(n % all.len());
                spelled.extend([all.swap_remove(0), abbreviated]);
                spelled.extend(full);
            }
        }
        runner.run(lines(&before, after, spelled), &may(*runs_external));
    }
    runner.end(2_000);
}

/// Returns the words in the text about each option in a manual page, which include its named values.
fn manual(place: &World, page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = place.run(&format!(
        "MANWIDTH=200 man -P cat {page} 2>/dev/null | col -b"
    ));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut current: Vec<String> = Vec::new();
    let mut was_option = false;
    for line in text.lines() {
        let is_option = line.starts_with("       -") && !line.starts_with("        ");
        if is_option {
            if !was_option {
                current.clear();
            }
            if !line.contains(['=', '<', '[']) {
                // It has no value: the short form runs it.
                continue;
            }
            let names = line
                .split([' ', ',', '=', '[', '<'])
                .filter(|word| word.starts_with('-'));
            current.extend(names.map(str::to_owned));
        }
        was_option = is_option;
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "-%():?".contains(c);
        for word in line
            .split(|c: char| !is_letter(c))
            .filter(|word| word.len() < 25)
        {
            let word = word.trim_matches([':', '-', '.']);
            for option in current.iter().filter(|_| !word.is_empty()) {
                words
                    .entry(option.clone())
                    .or_default()
                    .insert(word.to_owned());
            }
        }
    }
    words
}

/// Every option of the manual pages, with every word of its text as a value, and every placeholder of a format.
#[test]
#[ignore = "takes about 20 minutes, and needs manual pages: see docs/internals/testing.md"]
fn words_of_manual_pages_run_nothing_that_is_not_documented() {
    let mut runner = Runner::new("manual");
    drop(runner.world.watched.take());
    let mut described = 0;
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    for (command, after, runs_external) in GIT {
        let before = format!("git {command}");
        let verb = command.split(" -").next().unwrap_or_default();
        let page = format!("git-{}", verb.split(' ').next().unwrap_or_default());
        let about = manual(&runner.world, &page);
        described += about.len();
        for (option, words) in about {
            let spelled = words.iter().flat_map(|word| {
                let end = spellings(&option, word).pop().unwrap_or_default();
                [
                    end,
                    format!("{option} '{word}'"),
                    format!("{option}'{word}'"),
                ]
            });
            runner.run(
                lines(&before, after, spelled.collect::<Vec<_>>()),
                &may(*runs_external),
            );
        }
        let pairs = letters
            .iter()
            .flat_map(|a| letters.iter().map(move |b| format!("%{a}{b}")));
        let signs = letters
            .iter()
            .flat_map(|a| ["+", "-", " "].map(|sign| format!("%{sign}{a}")));
        if after.contains("--all") {
            let formats = pairs
                .chain(signs)
                .map(|format| format!("'--format={format}'"));
            runner.run(
                lines(&before, "-1", formats.collect::<Vec<_>>()),
                &may(*runs_external),
            );
        }
    }
    assert!(described > 100, "install the manual pages of git");
    for (program, after) in OTHERS {
        let name = program.split(' ').next().unwrap_or_default();
        if !has(name) {
            continue;
        }
        for (option, words) in manual(&runner.world, name) {
            let spelled = words.iter().flat_map(|word| {
                let end = spellings(&option, word).pop().unwrap_or_default();
                [
                    option.clone(),
                    end,
                    format!("{option} '{word}'"),
                    format!("{option}'{word}'"),
                ]
            });
            runner.run(
                lines(program, after, spelled.collect::<Vec<_>>()),
                &BTreeSet::new(),
            );
        }
    }
    eprintln!("{} lines allowed and run", runner.tried);
    runner.end(10_000);
}
