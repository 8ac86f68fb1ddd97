//! What a tool call's input tells: the paths in it, and the command line.
//!
//! Agents name the same thing in many ways. The input is walked through, and nothing else of it is kept.

use crate::proto::json::without_halves;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub paths: Vec<String>,
    /// Where it says that it works: paths, too, and what others may be relative to.
    pub directories: Vec<String>,
    /// The command, as one line or as a program and its arguments.
    pub commands: Vec<Words>,
    /// Whether all of it was understood.
    pub whole: bool,
    /// Whether it was not even read to its end: there may be anything.
    pub unread: bool,
}

/// A command, as it is written.
#[derive(Debug, PartialEq, Eq)]
pub enum Words {
    Line(String),
    Arguments(Vec<String>),
}

/// How a line of a patch begins that names a file.
const HEADS: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// What stands under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Path,
    Directory,
    Command,
    /// One word of a command.
    Argument,
    /// Changes of files by their paths, as Codex has them.
    Changes,
    Else,
}

impl About {
    fn of(key: &str, deep: usize) -> Self {
        let plain = key.replace(['_', '-'], "").to_ascii_lowercase();
        match plain.as_str() {
            "abspath" | "absolutepath" | "destination" | "directory" | "dir" | "dirpath"
            | "file" | "filename" | "filepath" | "filepaths" | "files" | "folder" | "glob"
            | "include" | "movepath" | "newpath" | "notebookpath" | "oldpath" | "path"
            | "paths" | "relativepath" | "source" | "targetfile" => Self::Path,
            "cwd" | "workdir" | "workingdirectory" => Self::Directory,
            "command" | "cmd" if deep == 1 => Self::Command,
            "changes" if deep == 1 => Self::Changes,
            _ => Self::Else,
        }
    }
}

impl Found {
    /// Walks through what is known of a call.
    #[must_use]
    pub fn of<'a>(raw: impl IntoIterator<Item = &'a RawValue>) -> Self {
        let mut found = Self {
            whole: true,
            ..Self::default()
        };
        for raw in raw {
            // No reader agrees with another on what half a character is.
            let said = without_halves(raw.get());
            found.whole &= said == raw.get();
            let mut json = serde_json::Deserializer::from_str(&said);
            let walk = Walk {
                found: &mut found,
                about: About::Else,
                deep: 0,
            };
            let walked = walk.deserialize(&mut json);
            found.unread |= walked.is_err();
            found.whole &= walked.is_ok();
        }
        found
    }

    fn text(&mut self, about: About, text: &str) {
        // As the input of its own tool, or in a here-document of a command.
        self.patch(text);
        match about {
            About::Path if !text.is_empty() => self.paths.push(text.to_owned()),
            About::Directory if !text.is_empty() => self.directories.push(text.to_owned()),
            About::Command => self.commands.push(Words::Line(text.to_owned())),
            About::Argument => {
                if let Some(Words::Arguments(words)) = self.commands.last_mut() {
                    words.push(text.to_owned());
                }
            }
            About::Path | About::Directory | About::Changes | About::Else => {}
        }
    }

    /// The files that a patch in Codex's form names.
    fn patch(&mut self, text: &str) {
        if !text.contains("*** Begin Patch") {
            return;
        }
        for line in text.lines() {
            let named = |head: &&str| line.trim_start().strip_prefix(*head);
            let path = HEADS.iter().find_map(named);
            self.paths
                .extend(path.map(|path| path.trim_end().to_owned()));
        }
    }
}

struct Walk<'f> {
    found: &'f mut Found,
    about: About,
    deep: usize,
}

impl Walk<'_> {
    /// What is no text is no word of a command.
    fn no_text(self) {
        self.found.whole &= self.about != About::Argument;
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.found.text(self.about, text);
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.no_text();
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.no_text();
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.no_text();
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.no_text();
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.no_text();
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let about = if self.about == About::Command {
            self.found.commands.push(Words::Arguments(Vec::new()));
            About::Argument
        } else {
            self.about
        };
        loop {
            let walk = Walk {
                found: &mut *self.found,
                about,
                deep: self.deep + 1,
            };
            if list.next_element_seed(walk)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let about = if self.about == About::Changes {
                self.found.text(About::Path, &key);
                About::Else
            } else {
                About::of(&key, self.deep + 1)
            };
            map.next_value_seed(Walk {
                found: &mut *self.found,
                about,
                deep: self.deep + 1,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str) -> Found {
        Found::of([serde_json::from_str::<&RawValue>(json).unwrap()])
    }

    #[test]
    fn paths_are_found_by_their_usual_names() {
        for (json, paths) in [
            ("null", vec![]),
            ("7", vec![]),
            (r#"{"file_path":"a","content":"b"}"#, vec!["a"]),
            (r#"{"filePath":"a","oldString":"b"}"#, vec!["a"]),
            (r#"{"filepath":"a","diff":"--- b"}"#, vec!["a"]),
            (r#"{"abs_path":"a","notebook_path":"b"}"#, vec!["a", "b"]),
            (r#"{"paths":["a","b"],"path":""}"#, vec!["a", "b"]),
            (r#"{"source":"a","destination":"b"}"#, vec!["a", "b"]),
            (
                r#"{"files":[{"path":"a","line":1},{"path":"b"}]}"#,
                vec!["a", "b"],
            ),
            (
                r#"{"changes":{"a":{"type":"update","move_path":"b"},"c":{}}}"#,
                vec!["a", "b", "c"],
            ),
            (
                r#"[{"type":"diff","path":"a"},{"type":"content","content":{"text":"b"}}]"#,
                vec!["a"],
            ),
            (r#"{"file_path":"a","file_path":"b"}"#, vec!["a", "b"]),
            (
                r#"{"patchText":"*** Begin Patch\n*** Update File: a b\n*** Move to: c\n+x\n*** End Patch"}"#,
                vec!["a b", "c"],
            ),
        ] {
            let found = found(json);
            assert_eq!(found.paths, paths, "{json}");
            assert!(found.whole && found.commands.is_empty(), "{json}");
        }
        assert_eq!(found(r#"{"cwd":"a","path":"b"}"#).directories, ["a"]);
    }

    #[test]
    fn commands_are_lines_or_lists() {
        let line = |text: &str| Words::Line(text.into());
        let list = |words: &[&str]| Words::Arguments(words.iter().map(|w| (*w).into()).collect());
        for (json, commands) in [
            (r#"{"command":"ls -l"}"#, vec![line("ls -l")]),
            (r#"{"cmd":"ls"}"#, vec![line("ls")]),
            (
                r#"{"command":["bash","-lc","ls"]}"#,
                vec![list(&["bash", "-lc", "ls"])],
            ),
            (
                r#"{"command":"ls","cmd":["rm","x"]}"#,
                vec![line("ls"), list(&["rm", "x"])],
            ),
            (r#"{"parsed":[{"cmd":"ls"}]}"#, vec![]),
        ] {
            assert_eq!(found(json).commands, commands, "{json}");
        }
    }

    #[test]
    fn what_is_not_understood_is_told() {
        assert!(!found(r#"{"command":["kill",9]}"#).whole);
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(!found(&deep).whole);
        let half = found(r#"{"path":"\ud800","x":"\ud800","command":"rm x"}"#);
        assert!(!half.whole && !half.unread && half.commands.len() == 1);
    }
}
