//! Approvals of tool calls in a turn. An approval also covers the file or terminal request by which the call
//! is carried out, so that no client is asked twice.

use crate::core::policy::Subject;
use std::collections::VecDeque;

/// Maximum number of remembered tool calls; older ones need a new approval.
const KEPT: usize = 64;

/// Approvals of a turn: tool calls that a client approved and whose requests are still expected, and file and
/// terminal requests that were judged.
#[derive(Debug, Default)]
pub struct Granted {
    allowed: VecDeque<Grant>,
    served: VecDeque<Grant>,
}

#[derive(Debug)]
struct Grant {
    kind: String,
    paths: Vec<String>,
    command: Option<String>,
}

impl Granted {
    /// Adds an approved tool call.
    pub fn add(&mut self, kind: Option<&str>, paths: &[String], command: Option<&str>) {
        let grant = Grant {
            kind: kind.unwrap_or_default().to_owned(),
            paths: paths.to_vec(),
            command: command.map(str::to_owned),
        };
        push(&mut self.allowed, grant);
    }

    /// Adds a file or terminal request that was judged.
    pub fn note_served(&mut self, wanted: &Subject) {
        let grant = Grant {
            kind: wanted.kind.clone(),
            paths: wanted.paths.clone(),
            command: wanted.command.clone(),
        };
        push(&mut self.served, grant);
    }

    /// Returns `true` if a tool call was carried out by requests that were judged themselves.
    #[must_use]
    pub fn was_served(&self, call: &Subject) -> bool {
        if let Some(command) = &call.command {
            let commands = || {
                self.served
                    .iter()
                    .filter_map(|grant| grant.command.as_ref())
            };
            return commands().any(|served| served.contains(command.as_str()));
        }
        let is_served = |path| self.served.iter().any(|grant| grant.paths.contains(path));
        !call.paths.is_empty() && call.paths.iter().all(is_served)
    }

    /// Returns `true` if an approval covers a file or terminal request. Each approval covers one change or
    /// command, and the reads that precede it.
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
        let Some(at) = self.allowed.iter().position(same) else {
            return false;
        };
        if wanted.kind != "read" {
            self.allowed.remove(at);
        }
        true
    }
}

fn push(grants: &mut VecDeque<Grant>, grant: Grant) {
    if grants.len() == KEPT {
        grants.pop_front();
    }
    grants.push_back(grant);
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
    fn approved_edit_covers_one_write_and_its_read() {
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
    fn approved_read_covers_no_edit_or_command() {
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
    fn approved_command_covers_one_exact_run() {
        let mut granted = Granted::default();
        granted.add(Some("execute"), &[], Some("npm test"));
        assert!(!granted.cover(&wanted("execute", "", Some("npm test; rm x"))));
        assert!(!granted.cover(&wanted("execute", "", None)));
        assert!(granted.cover(&wanted("execute", "", Some("npm test"))));
        assert!(!granted.cover(&wanted("execute", "", Some("npm test"))));
    }

    #[test]
    fn missing_command_is_not_covered() {
        let mut granted = Granted::default();
        granted.add(Some("execute"), &[], None);
        assert!(!granted.cover(&wanted("execute", "", None)));
    }

    #[test]
    fn served_request_counts_as_judged() {
        let mut granted = Granted::default();
        granted.note_served(&wanted("execute", "", Some("sh -c 'npm test'")));
        granted.note_served(&wanted("edit", "/w/a", None));
        assert!(granted.was_served(&wanted("execute", "", Some("npm test"))));
        assert!(!granted.was_served(&wanted("execute", "", Some("rm x"))));
        assert!(granted.was_served(&wanted("edit", "/w/a", None)));
        assert!(!granted.was_served(&wanted("edit", "/w/b", None)));
        assert!(!granted.was_served(&wanted("other", "", None)));
    }
}
