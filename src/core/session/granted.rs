//! What was allowed as a tool call in a turn covers the file or the command that it is done with: nobody is asked
//! twice for the same.

use crate::core::policy::Subject;
use std::collections::VecDeque;

/// How many tool calls are remembered; what is older is asked about again.
const KEPT: usize = 64;

/// The tool calls that were allowed in a turn, when somebody was asked, and that nothing came of yet.
#[derive(Debug, Default)]
pub struct Granted(VecDeque<Grant>);

#[derive(Debug)]
struct Grant {
    kind: String,
    paths: Vec<String>,
    command: Option<String>,
}

impl Granted {
    /// A tool call was allowed.
    pub fn add(&mut self, kind: Option<&str>, paths: &[String], command: Option<&str>) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Grant {
            kind: kind.unwrap_or_default().to_owned(),
            paths: paths.to_vec(),
            command: command.map(str::to_owned),
        });
    }

    /// Whether one of them covers a file or a command that the agent wants; each covers one change or command, and
    /// what is read on the way to it.
    pub fn cover(&mut self, wanted: &Subject) -> bool {
        let same = |grant: &Grant| match wanted.kind.as_str() {
            "execute" => {
                grant.kind == "execute"
                    && wanted.command.is_some()
                    && grant.command == wanted.command
            }
            "read" | "edit" => is_change(&grant.kind) && grant.has(&wanted.paths),
            _ => false,
        };
        let Some(at) = self.0.iter().position(same) else {
            return false;
        };
        if wanted.kind != "read" {
            self.0.remove(at);
        }
        true
    }
}

impl Grant {
    fn has(&self, paths: &[String]) -> bool {
        !paths.is_empty() && paths.iter().all(|path| self.paths.contains(path))
    }
}

fn is_change(kind: &str) -> bool {
    matches!(kind, "edit" | "delete" | "move")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(kind: &str, path: &str, command: Option<&str>) -> Subject {
        Subject {
            kind: kind.to_owned(),
            paths: [path]
                .iter()
                .filter(|p| !p.is_empty())
                .map(|p| (*p).to_owned())
                .collect(),
            command: command.map(str::to_owned),
            ..Subject::default()
        }
    }

    #[test]
    fn one_change_is_covered_and_what_is_read_for_it() {
        let mut granted = Granted::default();
        granted.add(Some("edit"), &["/w/a".to_owned()], None);
        assert!(!granted.cover(&wanted("edit", "/w/b", None)));
        assert!(!granted.cover(&wanted("edit", "", None)));
        assert!(granted.cover(&wanted("read", "/w/a", None)));
        assert!(granted.cover(&wanted("read", "/w/a", None)));
        assert!(granted.cover(&wanted("edit", "/w/a", None)));
        assert!(!granted.cover(&wanted("edit", "/w/a", None)));
    }

    #[test]
    fn what_reads_covers_no_change_and_no_command() {
        let mut granted = Granted::default();
        granted.add(Some("read"), &["/w/a".to_owned()], Some("ls"));
        granted.add(None, &["/w/a".to_owned()], Some("ls"));
        for subject in [
            wanted("edit", "/w/a", None),
            wanted("execute", "", Some("ls")),
            wanted("read", "/w/a", None),
        ] {
            assert!(!granted.cover(&subject), "{subject:?}");
        }
    }

    #[test]
    fn a_command_is_covered_word_by_word_and_once() {
        let mut granted = Granted::default();
        granted.add(Some("execute"), &[], Some("npm test"));
        assert!(!granted.cover(&wanted("execute", "", Some("npm test; rm x"))));
        assert!(!granted.cover(&wanted("execute", "", None)));
        assert!(granted.cover(&wanted("execute", "", Some("npm test"))));
        assert!(!granted.cover(&wanted("execute", "", Some("npm test"))));
    }

    #[test]
    fn no_command_is_no_command_that_was_allowed() {
        let mut granted = Granted::default();
        granted.add(Some("execute"), &[], None);
        assert!(!granted.cover(&wanted("execute", "", None)));
    }
}
