//! Shells, and the directory in which they run lines.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Supported shells: name, program and arguments.
const SHELLS: &[(&str, &[&str])] = &[
    ("sh", &["sh"]),
    ("dash", &["dash"]),
    ("bash", &["bash", "--norc"]),
    ("bash --posix", &["bash", "--norc", "--posix"]),
    ("zsh", &["zsh", "-f"]),
    ("busybox ash", &["busybox", "ash"]),
    ("mksh", &["mksh"]),
    ("ksh93", &["ksh93"]),
    ("yash", &["yash"]),
];

/// Commands that hostile lines may run.
const STUBS: &[&str] = &[
    "evil", "x", "a", "b", "b1", "touch", "rm", "ls", "cat", "git", "made", "k", "c", "d", "0",
    "1", "2", "10",
];

/// User that runs the lines if the tests run as root: it can write only the sandbox.
const NOBODY: u32 = 65_534;

/// Separators of the log: the start of a record, and the end of a field.
const RECORD: char = '\u{1e}';
const FIELD: char = '\u{1f}';

/// Replaces line ends in a record.
const LINE_END: char = '\u{1d}';

/// A directory with stubs, removed at the end.
pub struct Sandbox {
    root: PathBuf,
}

pub struct Shell {
    pub name: &'static str,
    program: PathBuf,
    args: &'static [&'static str],
    root: PathBuf,
}

/// Result of several lines.
pub struct ShellRun {
    pub lines: Vec<LineRun>,
    /// Files that appeared.
    pub files: Vec<String>,
    /// Whether the last line was reached.
    pub is_whole: bool,
}

/// Result of one line.
#[derive(Default, Clone)]
pub struct LineRun {
    /// The arguments of each call of `ok`, sorted.
    pub calls: Vec<Vec<String>>,
    foreign: Vec<String>,
    pub errors: String,
}

impl LineRun {
    pub fn foreign(&self) -> impl Iterator<Item = &String> {
        self.foreign.iter()
    }

    /// Returns `true` if zsh did not run a command because a pattern matched no file.
    pub fn is_without_match(&self) -> bool {
        self.errors.contains("no matches found")
    }
}

/// Returns the path of a program, if it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let dirs = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];
    let paths = dirs.iter().map(|dir| Path::new(dir).join(name));
    paths.into_iter().find(|path| path.exists())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl Sandbox {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("acpipe-shells-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let stubs = root.join("stubs");
        fs::create_dir_all(&stubs).unwrap();
        let stub = stubs.join("evil");
        let script = format!(
            "#!/bin/sh\nprintf '%s' \"{RECORD}$N{FIELD}foreign{FIELD}${{0##*/}}{FIELD}\" >>\"$L\"\n"
        );
        fs::write(&stub, script).unwrap();
        fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
        for name in STUBS.iter().filter(|name| **name != "evil") {
            fs::hard_link(&stub, stubs.join(name)).unwrap();
        }
        Self { root }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Shell {
    /// Returns the installed shells, and reports the missing ones.
    pub fn installed(sandbox: &Sandbox) -> Vec<Self> {
        let mut shells = Vec::new();
        for (name, words) in SHELLS {
            match installed(words[0]) {
                Some(program) => shells.push(Self {
                    name,
                    program,
                    args: &words[1..],
                    root: sandbox.root.clone(),
                }),
                None => eprintln!(
                    "shells: {name} IS NOT INSTALLED and was not tried (tests/shells/install.sh)"
                ),
            }
        }
        shells
    }

    /// Runs each line in a subshell of one process.
    #[expect(clippy::disallowed_methods, reason = "the shells are what is tested")]
    pub fn run(&self, lines: &[String]) -> ShellRun {
        let own = self.root.join(self.name.replace(' ', "-"));
        let (cwd, log) = (own.join("cwd"), own.join("log"));
        fs::create_dir_all(&cwd).unwrap();
        fs::write(&log, "").unwrap();
        let write = if self.name == "mksh" {
            "print -rn --"
        } else {
            "printf %s"
        };
        // Line ends may split a write: they are recorded as another character.
        let mut script = format!(
            "ulimit -t 20\nn='\n'\n\
             w() {{ {write} \"$1\" >>\"$L\"; }}\n\
             p() {{ while :; do case $r in *\"$n\"*) r=${{r%%\"$n\"*}}{LINE_END}${{r#*\"$n\"}};; *) break;; esac; done; }}\n\
             ok() {{ r=; for a; do r=\"$r$a{FIELD}\"; done; p; w \"{RECORD}$N{FIELD}ok{FIELD}$r\"; return $(($# % 2)); }}\n"
        );
        for (at, line) in lines.iter().enumerate() {
            let line = quoted(line);
            writeln!(script, "N={at}; export N; echo '{RECORD}'{at}'{FIELD}' >&2").unwrap();
            writeln!(script, "( eval {line}; wait )").unwrap();
        }
        let file = own.join("script");
        fs::write(&file, script).unwrap();
        let is_open = |dir: &Path| fs::metadata(dir).is_ok_and(|m| m.permissions().mode() & 1 == 1);
        let uses_nobody =
            rustix::process::geteuid().is_root() && self.root.ancestors().all(is_open);
        if uses_nobody {
            chown(&cwd, Some(NOBODY), Some(NOBODY)).unwrap();
            chown(&log, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // A hostile line may wait for ever.
        let mut command = match installed("timeout") {
            Some(timeout) => {
                let mut command = Command::new(timeout);
                command.args(["-k", "1", "300"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        if uses_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command
            .args(self.args)
            .arg(&file)
            .current_dir(&cwd)
            .env_clear()
            .env("PATH", self.root.join("stubs"))
            .env("HOME", &self.root)
            .env("LC_ALL", "C.UTF-8")
            .env("L", &log)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut ran = vec![LineRun::default(); lines.len()];
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        for part in errors.split(RECORD).skip(1) {
            let (at, errors) = part.split_once(FIELD).unwrap_or((part, ""));
            if let Some(one) = at.parse().ok().and_then(|at: usize| ran.get_mut(at)) {
                one.errors.push_str(errors);
            }
        }
        let last = lines.len() - 1;
        let is_whole = errors.contains(&format!("{RECORD}{last}{FIELD}"));
        let records = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
        for record in records.split(RECORD).skip(1) {
            let fields: Vec<&str> = record.split_terminator(FIELD).collect();
            let one = fields[0].parse().ok().and_then(|at: usize| ran.get_mut(at));
            // A hostile line can change the number.
            let Some(one) = one.filter(|_| fields.len() > 1) else {
                continue;
            };
            let words = fields[2..].iter().map(|word| word.replace(LINE_END, "\n"));
            match fields[1] {
                "ok" => one.calls.push(words.collect()),
                _ => one.foreign.extend(words),
            }
        }
        for one in &mut ran {
            one.calls.sort();
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(&cwd).unwrap() {
            let entry = entry.unwrap();
            files.push(entry.file_name().to_string_lossy().into_owned());
            fs::remove_file(entry.path()).unwrap();
        }
        ShellRun {
            lines: ran,
            files,
            is_whole,
        }
    }
}
