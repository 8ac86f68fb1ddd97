//! File names of a program on Windows, where the extension makes a file executable.
//!
//! The standard library runs `.cmd` and `.bat` files with `cmd.exe` and quotes their arguments for it.

use std::ffi::OsStr;

/// Default of `PATHEXT`.
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// Returns the file names that a command can mean, in order. A name without an extension is never one of
/// them: npm installs an `npx` for other shells next to `npx.cmd`.
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
    fn windows_command_is_tried_with_each_extension() {
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
