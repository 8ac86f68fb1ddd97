//! The names of a program on Windows, where its ending makes a file one.
//!
//! That `.cmd` and `.bat` files are run by `cmd.exe`, and how their arguments are quoted for it, is known to the
//! standard library.

use std::ffi::OsStr;

/// What `PATHEXT` is where it is not set.
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// The files that a command can mean, in their order. One without an ending is none: beside npm's `npx.cmd` lies an
/// `npx` for other shells.
pub fn names(command: &str, pathext: Option<&OsStr>) -> Vec<String> {
    let endings = pathext.map_or(ENDINGS.into(), OsStr::to_string_lossy);
    let endings = endings.split(';').filter(|ending| ending.starts_with('.'));
    let endings: Vec<String> = endings.map(str::to_lowercase).collect();
    let lower = command.to_lowercase();
    if endings
        .iter()
        .any(|ending| lower.ends_with(ending.as_str()))
    {
        return vec![command.to_owned()];
    }
    endings
        .iter()
        .map(|ending| format!("{command}{ending}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_make_a_program() {
        let cases: [(&str, Option<&str>, &[&str]); 5] = [
            ("npx", None, &["npx.com", "npx.exe", "npx.bat", "npx.cmd"]),
            ("npx", Some(".EXE;;.CMD"), &["npx.exe", "npx.cmd"]),
            ("NPX.Cmd", None, &["NPX.Cmd"]),
            ("agent-1.2", Some(".EXE"), &["agent-1.2.exe"]),
            ("agent.py", Some(".EXE;.PY"), &["agent.py"]),
        ];
        for (command, pathext, want) in cases {
            assert_eq!(names(command, pathext.map(OsStr::new)), want, "{command}");
        }
    }
}
