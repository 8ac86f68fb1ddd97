//! Locations of the Claude CLI: the file that the user names, else `PATH`, else the places where installers
//! put it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Variable with the path of the CLI.
const VARIABLE: &str = "CLAUDE_CLI_PATH";

/// Returns the file that the variable names; then it is the only candidate.
pub fn named(lookup: &dyn Fn(&str) -> Option<OsString>) -> Option<OsString> {
    lookup(VARIABLE)
}

/// Remedy if the file of the variable cannot be run.
pub const ADVICE: &str = " (set by CLAUDE_CLI_PATH; correct the variable or unset it)";

/// Returns the CLI's file names.
pub fn names(windows: bool) -> Vec<String> {
    let names: &[&str] = if windows {
        &["claude.cmd", "claude.exe", "claude"]
    } else {
        &["claude"]
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns the error message if the CLI is not found; `login` is the result of asking the login shell.
pub fn missing(dirs: usize, login: &str, known: usize) -> String {
    format!(
        "cannot start agent `claude`: not found in the {dirs} directories of PATH{login}, nor in {known} other usual \
             places; install it (npm install -g @anthropic-ai/claude-code, or https://claude.com/claude-code), or \
             set {VARIABLE} to its path"
    )
}

/// Returns the paths outside of `PATH` where installers put the CLI.
pub fn known_places(lookup: &dyn Fn(&str) -> Option<OsString>, windows: bool) -> Vec<PathBuf> {
    let below = |name: &str, paths: &[&str]| -> Vec<PathBuf> {
        let root = lookup(name).map(PathBuf::from);
        root.map_or_else(Vec::new, |root| {
            paths.iter().map(|p| root.join(p)).collect()
        })
    };
    let home = if lookup("HOME").is_some() {
        "HOME"
    } else {
        "USERPROFILE"
    };
    if windows {
        let own = &[
            ".local/bin/claude.exe",
            ".npm-global/claude.cmd",
            "node_modules/.bin/claude.cmd",
            ".claude/local/claude.cmd",
            ".claude/local/claude.exe",
        ];
        let mut places = below(home, own);
        if home == "HOME" {
            // Shells such as Git Bash set both, sometimes to different directories.
            places.extend(below("USERPROFILE", own));
        }
        places.extend(below("APPDATA", &["npm/claude.cmd"]));
        return places;
    }
    let mut places = below(home, &[".local/bin/claude"]);
    let everybodys = ["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"];
    places.extend(everybodys.map(|dir| Path::new(dir).join("claude")));
    places.extend(below(
        home,
        &[
            ".npm-global/bin/claude",
            "node_modules/.bin/claude",
            ".claude/local/claude",
        ],
    ));
    places
}

#[cfg(test)]
mod tests {
    use super::super::{CommandSearch, MAX_LISTED_PLACES};
    use super::*;
    use acpipe_dialects::claude::CLAUDE;
    use acpipe_model::error::{Error, ErrorKind};
    use acpipe_model::transport::ProcessSpec;
    use acpipe_protocol::wire::{Protocol, Variables};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Temporary directory, removed on drop.
    struct ScratchDir(PathBuf);

    impl ScratchDir {
        fn new(name: &str) -> Self {
            let name = format!("acpipe-discover-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }

        fn file(&self, name: &str, mode: u32) -> PathBuf {
            let file = self.0.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        }

        /// Runs a search with these variables; `@` in them stands for the directory.
        fn find(&self, windows: bool, set: &[(&str, &str)]) -> Result<PathBuf, Error> {
            let here = self.0.to_str().unwrap();
            let lookup = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value.replace('@', here)))
            };
            let lookup = |name: &str| lookup(name).filter(|value| !value.is_empty());
            let spec = ProcessSpec {
                command: CLAUDE.to_owned(),
                args: Vec::new(),
                cwd: here.to_owned(),
                env: Variables::default(),
                protocol: Protocol::Claude,
                fallback: None,
            };
            let search = CommandSearch::on(windows, &spec, &lookup, &[]);
            let found = search.first_runnable().map(|found| found.file);
            found.map_err(|missing| search.explain(&missing, ""))
        }
    }

    impl Drop for ScratchDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn claude_path_variable_is_used_as_given() {
        let place = ScratchDir::new("variable");
        let given = place.file("my/cli", 0o755);
        place.file("bin/claude", 0o755);
        place.file("plain", 0o644);
        let find = |path| place.find(false, &[(VARIABLE, path), ("PATH", "@/bin")]);
        assert_eq!(find("@/my/cli").unwrap(), given);
        assert_eq!(find("my/cli").unwrap(), given, "from the working directory");
        assert_eq!(find("").unwrap(), place.0.join("bin/claude"), "unset");
        let cases = [
            ("@/nowhere", ErrorKind::AgentNotFound, "not found"),
            ("@/plain", ErrorKind::AgentStart, "not executable"),
            ("@/my", ErrorKind::AgentStart, "not a file"),
        ];
        for (path, kind, why) in cases {
            let error = find(path).unwrap_err();
            assert_eq!(error.kind, kind, "{path}");
            assert!(error.message.contains(why), "{}", error.message);
            assert!(error.message.contains(VARIABLE), "{}", error.message);
        }
    }

    #[test]
    fn path_comes_before_the_known_places_and_counts_programs_only() {
        let place = ScratchDir::new("path");
        let known = [
            place.file("home/.local/bin/claude", 0o755),
            place.file("home/.npm-global/bin/claude", 0o755),
            place.file("home/node_modules/.bin/claude", 0o755),
            place.file("home/.claude/local/claude", 0o755),
        ];
        place.file("a/claude", 0o644);
        fs::create_dir_all(place.0.join("b/claude")).unwrap();
        let third = place.file("c/claude", 0o755);
        let all: &[_] = &[("PATH", "@/a:@/b:c:@/d"), ("HOME", "@/home")];
        assert_eq!(place.find(false, all).unwrap(), third);
        let here = place.file("claude", 0o755);
        let no_path = place.find(false, &[("PATH", ""), ("HOME", "@/home")]);
        assert_eq!(no_path.unwrap(), known[0], "not what lies about here");
        fs::remove_file(here).unwrap();
        let homes: [&[_]; 2] = [&[("HOME", "@/home")], &[("USERPROFILE", "@/home")]];
        for place_of_it in known {
            for home in homes {
                // A CLI installed for all users is found before all places but the first.
                let found = place.find(false, home).unwrap();
                let system = ["/usr", "/opt"].iter().any(|dir| found.starts_with(dir));
                assert!(found == place_of_it || system, "{}", found.display());
            }
            fs::remove_file(place_of_it).unwrap();
        }
    }

    #[test]
    fn windows_names_and_directories_are_searched() {
        let place = ScratchDir::new("windows");
        let native = place.file("home/.local/bin/claude.exe", 0o755);
        let npm = place.file("data/npm/claude.cmd", 0o755);
        let set: &[_] = &[
            ("PATH", "@/bin"),
            ("USERPROFILE", "@/home"),
            ("APPDATA", "@/data"),
        ];
        assert_eq!(place.find(true, set).unwrap(), native);
        fs::remove_file(native).unwrap();
        assert_eq!(place.find(true, set).unwrap(), npm);
        for name in ["claude", "claude.exe", "claude.cmd"] {
            let file = place.file(&format!("bin/{name}"), 0o755);
            assert_eq!(place.find(true, set).unwrap(), file);
        }
    }

    #[test]
    fn missing_claude_error_suggests_a_fix() {
        let place = ScratchDir::new("none");
        let path = vec!["@/x"; 100].join(":");
        let set: &[_] = &[("PATH", path.as_str()), ("USERPROFILE", "@/home")];
        let error = place.find(true, set).unwrap_err();
        assert_eq!(error.kind, ErrorKind::AgentNotFound);
        for word in ["100 directories", "npm install -g", VARIABLE] {
            assert!(error.message.contains(word), "{}", error.message);
        }
        assert_eq!(
            error.data["tried"].as_array().unwrap().len(),
            MAX_LISTED_PLACES
        );
    }
}
