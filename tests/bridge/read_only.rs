//! Commands that rules allow as read-only, run by a real shell with the real git and other programs: they
//! write nothing and run no other program.

mod values;

use crate::harness::watchdog::Watched;
use acpipe::cli::policy_of;
use acpipe_policy::{Effect, Policy, Subject, ToolProperties};
use serde_json::value::to_raw_value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PAGE: &str = include_str!("../../docs/guides/permissions.md");
/// Makes the repository of [`Setup::Traps`].
const TRAPS: &str = include_str!("read_only/traps.sh");
/// Corpus of commands that write. It is really run, so it must not contain commands that change the machine
/// itself.
const WRITES: &str = include_str!("../../crates/policy/src/read_only/writes.txt");

/// File with the names of the traps that were sprung.
const CANARY: &str = "CANARY";

/// User id for the commands if root runs the tests: a user that can write only in the directory of the test.
const NOBODY: u32 = 65_534;

/// Returns `true` if that user can be used: root runs the tests, and the user can reach their directory.
fn uses_nobody() -> bool {
    let is_open = |dir: &Path| fs::metadata(dir).is_ok_and(|m| m.permissions().mode() & 1 == 1);
    rustix::process::geteuid().is_root() && std::env::temp_dir().ancestors().all(is_open)
}

/// Directory with a repository, a program that leaves a mark when it runs, and everything that a command
/// could change.
struct World {
    dir: PathBuf,
    setup: Setup,
    /// Limit of the time; `None` for a long run by hand.
    watched: Option<Watched>,
}

/// Repository of a [`World`].
#[derive(Debug, Clone, Copy, PartialEq)]
enum Setup {
    /// Two commits, a stash and a change.
    Plain,
    /// A configuration that names a program for everything that git runs; each of them leaves its name.
    Traps,
}

impl World {
    fn new(name: &str, setup: Setup) -> Self {
        let name = format!("acpipe-read-only-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().canonicalize().unwrap().join(name);
        let _ = fs::remove_dir_all(&dir);
        let world = Self {
            dir,
            setup,
            watched: Some(Watched::new()),
        };
        world.fill();
        world
    }

    fn fill(&self) {
        let _ = fs::remove_dir_all(&self.dir);
        if self.setup == Setup::Traps {
            fs::create_dir_all(self.dir.join("repo")).unwrap();
            fs::write(self.dir.join("traps.sh"), TRAPS).unwrap();
            self.give_to_nobody();
            let done = self.run("sh ../traps.sh \"${PWD%/repo}\"");
            assert!(done.status.success(), "{done:?}");
            return;
        }
        for dir in ["repo/src", "home", "bin", "tmp"] {
            fs::create_dir_all(self.dir.join(dir)).unwrap();
        }
        let touch = format!(
            "#!/bin/sh\necho ran >> {}\n",
            self.dir.join("MARK").display()
        );
        fs::write(self.dir.join("bin/touch-mark"), touch).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.dir.join("bin/touch-mark"), mode).unwrap();
        fs::write(self.dir.join("repo/a"), "b\nx\na\n").unwrap();
        fs::write(self.dir.join("repo/b"), "x\n").unwrap();
        fs::write(self.dir.join("repo/src/c.rs"), "fn main() {} // x\n").unwrap();
        self.give_to_nobody();
        let setup = "git init -q -b main . && git config user.name n && git config user.email e \
                     && git add . && git commit -q -m one && echo more >> a && git commit -q -am two \
                     && echo stashed >> a && git stash -q && echo changed >> b";
        let done = self.run(setup);
        assert!(done.status.success(), "{done:?}");
    }

    fn give_to_nobody(&self) {
        if uses_nobody() {
            let all = self.tree().into_keys().chain([self.dir.clone()]);
            for path in all {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
    }

    /// Returns the names that the traps have left since the last call.
    fn sprung(&self) -> BTreeSet<String> {
        let names = fs::read_to_string(self.dir.join(CANARY)).unwrap_or_default();
        let _ = fs::remove_file(self.dir.join(CANARY));
        names.lines().map(str::to_owned).collect()
    }

    /// Runs a line as an agent's shell would, without the configuration of this machine.
    fn run(&self, line: &str) -> Output {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", line])
            .current_dir(self.dir.join("repo"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.join("home"))
            .env("TMPDIR", self.dir.join("tmp"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TOOL", self.dir.join("bin/touch-mark"))
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        if uses_nobody() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    }

    /// Runs lines one after the other and discards their output.
    fn run_all(&self, lines: &[String]) {
        let script = self.dir.with_extension("sh");
        let lines = lines
            .iter()
            .flat_map(|line| [line.as_str(), " </dev/null >/dev/null 2>&1\n"]);
        fs::write(&script, lines.collect::<String>()).unwrap();
        self.run(&format!(". {}", script.display()));
        fs::remove_file(&script).unwrap();
    }

    /// Returns all files with their content, except the names that the traps leave, and the index, which git refreshes by
    /// itself.
    fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn is_index(path: &Path) -> bool {
            path.ends_with(".git/index") || path.ends_with(".git/modules/sub/index")
        }
        fn walk(dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let about = fs::symlink_metadata(&path).unwrap();
                if about.is_dir() {
                    found.insert(path.clone(), Vec::new());
                    walk(&path, found);
                } else if !is_index(&path) && !path.ends_with(CANARY) {
                    let content = fs::read(&path).unwrap_or_default();
                    found.insert(path, content);
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(&self.dir, &mut found);
        found
    }

    /// Returns a line of the corpus with the paths of this world.
    fn line(&self, line: &str) -> String {
        let place = |name: &str| self.dir.join(name).display().to_string();
        line.replace("MARKDIR", "src")
            .replace("MARKNAME", "marked")
            .replace("MARK", &place("MARK"))
            .replace("TOUCH", &place("bin/touch-mark"))
            .replace("BIN", &place("bin"))
            .replace("OUT", &place("tmp"))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn allows(policy: &Policy, line: &str) -> bool {
    let input = to_raw_value(&serde_json::json!({ "command": line })).unwrap();
    let tool = ToolProperties {
        kind: Some("execute"),
        input: Some(&input),
        ..ToolProperties::default()
    };
    policy.judge(&Subject::of_tool(&tool, "/w")).effect == Effect::Allow
}

/// Policies of the page's examples that only allow reading, and policies of a single rule or list.
fn policies() -> Vec<(&'static str, Policy)> {
    let example = |title: &str| {
        let (_, section) = PAGE.split_once(&format!("\n## {title}\n")).unwrap();
        let (_, block) = section.split_once("```toml\n").unwrap();
        let (block, _) = block.split_once("```").unwrap();
        policy_of(block, Some("/home/me".into())).unwrap()
    };
    let plain = "[permissions]\ndefault = \"deny\"\n[[permissions.rules]]\neffect = \"allow\"\ncommand = \"<read-only>\"\n";
    vec![
        ("reviewing", example("Read-only review")),
        ("unattended", example("Unattended runs")),
        ("plain", policy_of(plain, None).unwrap()),
        (
            "list",
            policy_of(
                "[permissions]\ndefault = \"deny\"\nallowed_tools = [\"Bash(<read-only>)\"]\n",
                None,
            )
            .unwrap(),
        ),
    ]
}

fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let is_there = found.is_ok();
    if !is_there {
        // Written directly, since the test runner captures output of its macros.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {program} is not installed: its options are judged, but not run"
        );
    }
    is_there
}

#[test]
fn commands_that_write_are_allowed_by_no_example() {
    let world = World::new("corpus", Setup::Plain);
    let policies = policies();
    has("rg");
    let (mut tried, mut wrote) = (0, Vec::new());
    for corpus in WRITES.lines() {
        let line = world.line(corpus);
        for (name, policy) in &policies {
            assert!(!allows(policy, &line), "{name} allows {line}");
        }
        tried += 1;
        // Proves that the corpus really writes: most of its lines need only what every machine has.
        let before = world.tree();
        world.run(&line);
        if world.tree() != before {
            wrote.push(corpus);
            world.fill();
        }
    }
    eprintln!(
        "{tried} lines, {} of which wrote or ran something here",
        wrote.len()
    );
    assert!(tried > 100 && wrote.len() > 40, "{wrote:#?}");
    for known in [
        "git log --output=MARK",
        "git diff --no-index --output=MARK a b",
        "git grep -OTOUCH x",
        "git grep --open-files-in-pager=TOUCH x",
        "find . -delete",
        "find . -fprint MARK",
        "sort -o MARK a",
        "uniq a MARK",
        "sed -n 'w MARK' a",
    ] {
        assert!(wrote.contains(&known), "{known} wrote nothing");
    }
}

/// Returns the options that a program names in its help.
fn options(world: &World, help: &str) -> Vec<String> {
    let said = world.run(help);
    let text =
        String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = text.split(|c: char| !is_letter(c));
    let mut options: Vec<String> = words
        .filter(|word| word.starts_with('-') && word.len() > 1 && *word != "--")
        .map(str::to_owned)
        .collect();
    options.sort();
    options.dedup();
    options
}

/// Combines every option of git and the other programs with values that would write or run something. The
/// lines that the policy allows are run, and change nothing.
#[test]
fn allowed_commands_change_nothing_with_any_option() {
    let world = World::new("options", Setup::Plain);
    let (_, policy) = policies().swap_remove(2);
    let git = "log, show, diff, status, stash list, stash show, reflog, reflog show, rev-list, shortlog, \
        blame, grep, ls-files, ls-tree, cat-file, rev-parse, describe, merge-base, name-rev, \
        count-objects, check-ignore, show-ref, for-each-ref, branch, tag, remote, remote get-url, \
        worktree list, config --get, config --list";
    let others = "ls, cat, head, tail, wc, nl, tac, stat, file, du, df, tree, basename, realpath, readlink, \
        sha256sum, find, grep, rg, cut, tr, sort, uniq, comm, cmp, diff, jq, pwd, which, id, uname, \
        nproc, date";
    let own = git.split(", ").map(|command| {
        let help = format!("git {command} --git-completion-helper-all; git {command} -h");
        (format!("git {command}"), help)
    });
    let others = others
        .split(", ")
        .map(|program| (program.to_owned(), format!("{program} --help")));
    // A line that writes to the program has changed something, too.
    let values = ["", "=TOUCH", " TOUCH"];
    let ends = ["", " a"];
    let letters = ('a'..='z')
        .chain('A'..='Z')
        .map(|letter| format!("-{letter}"));
    let letters: Vec<String> = letters.collect();
    let before = world.tree();
    let (mut tried, mut batch, mut fell) = (0, Vec::new(), Vec::new());
    let mut judged = 0;
    for (command, help) in own.chain(others) {
        for option in options(&world, &help).iter().chain(&letters) {
            for (value, end) in values
                .iter()
                .flat_map(|value| ends.iter().map(move |end| (value, end)))
            {
                judged += 1;
                let line = world.line(&format!("{command} {option}{value}{end}"));
                if allows(&policy, &line) {
                    batch.push(line);
                }
            }
        }
        // All lines of a program run together; only if something changed, each runs alone.
        world.run_all(&batch);
        tried += batch.len();
        if world.tree() != before {
            for line in &batch {
                world.fill();
                let clean = world.tree();
                world.run(line);
                if world.tree() != clean {
                    fell.push(line.clone());
                }
            }
            world.fill();
            assert!(
                !fell.is_empty(),
                "{command}: something changed, and no line alone did it"
            );
        }
        batch.clear();
        assert!(fell.is_empty(), "{fell:#?}");
    }
    eprintln!("{judged} lines judged, {tried} allowed and run, none of which changed anything");
    assert!(tried > 3_000, "{tried}");
}
