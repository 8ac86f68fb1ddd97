//! Approvals of tool calls in a turn. An approval also covers the file or terminal request by which the call
//! is carried out, so that no client is asked twice.

use crate::core::policy::Subject;
use std::collections::VecDeque;

/// Maximum number of remembered tool calls; older ones need a new approval.
const MAX_APPROVALS: usize = 64;

/// Approvals of a turn: tool calls that a client approved and whose requests are still expected, file and terminal
/// requests that were judged, and tool calls that were refused.
#[derive(Debug, Default)]
pub struct Approvals {
    allowed: VecDeque<Approval>,
    served: VecDeque<Approval>,
    refused: VecDeque<Approval>,
}

#[derive(Debug)]
struct Approval {
    kind: String,
    paths: Vec<String>,
    command: Option<String>,
}

impl Approvals {
    /// Adds an approved tool call.
    pub fn add(&mut self, kind: Option<&str>, paths: &[String], command: Option<&str>) {
        let grant = Approval {
            kind: kind.unwrap_or_default().to_owned(),
            paths: paths.to_vec(),
            command: command.map(str::to_owned),
        };
        push(&mut self.allowed, grant);
    }

    /// Adds a refused tool call.
    pub fn note_refused(&mut self, kind: Option<&str>, paths: &[String], command: Option<&str>) {
        let refusal = Approval {
            kind: kind.unwrap_or_default().to_owned(),
            paths: paths.to_vec(),
            command: command.map(str::to_owned),
        };
        push(&mut self.refused, refusal);
    }

    /// Returns `true` if the same tool call was refused under another id. Each refusal stands for one call.
    pub fn take_refusal(&mut self, call: &Subject) -> bool {
        let is_known = !call.paths.is_empty() || call.command.is_some();
        let is_same = |refusal: &Approval| {
            refusal.kind == call.kind
                && refusal.paths == call.paths
                && refusal.command == call.command
        };
        let found = self.refused.iter().position(is_same);
        let found = found.filter(|_| is_known);
        found.is_some_and(|at| self.refused.remove(at).is_some())
    }

    /// Adds a file or terminal request that was judged.
    pub fn note_served(&mut self, wanted: &Subject) {
        let grant = Approval {
            kind: wanted.kind.clone(),
            paths: wanted.paths.clone(),
            command: wanted.command.clone(),
        };
        push(&mut self.served, grant);
    }

    /// Returns `true` if a file or terminal request was judged.
    #[must_use]
    pub fn has_served(&self) -> bool {
        !self.served.is_empty()
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
        let same = |grant: &Approval| match wanted.kind.as_str() {
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

fn push(grants: &mut VecDeque<Approval>, grant: Approval) {
    if grants.len() == MAX_APPROVALS {
        grants.pop_front();
    }
    grants.push_back(grant);
}

impl Approval {
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
        let mut approvals = Approvals::default();
        approvals.add(Some("edit"), &["/w/a".to_owned()], None);
        assert!(!approvals.cover(&wanted("edit", "/w/b", None)));
        assert!(!approvals.cover(&wanted("edit", "", None)));
        assert!(approvals.cover(&wanted("read", "/w/a", None)));
        assert!(approvals.cover(&wanted("read", "/w/a", None)));
        assert!(approvals.cover(&wanted("edit", "/w/a", None)));
        assert!(!approvals.cover(&wanted("edit", "/w/a", None)));
    }

    #[test]
    fn approved_read_covers_no_edit_or_command() {
        let mut approvals = Approvals::default();
        approvals.add(Some("read"), &["/w/a".to_owned()], Some("ls"));
        approvals.add(None, &["/w/a".to_owned()], Some("ls"));
        for subject in [
            wanted("edit", "/w/a", None),
            wanted("execute", "", Some("ls")),
            wanted("read", "/w/a", None),
        ] {
            assert!(!approvals.cover(&subject), "{subject:?}");
        }
    }

    #[test]
    fn approved_command_covers_one_exact_run() {
        let mut approvals = Approvals::default();
        approvals.add(Some("execute"), &[], Some("npm test"));
        assert!(!approvals.cover(&wanted("execute", "", Some("npm test; rm x"))));
        assert!(!approvals.cover(&wanted("execute", "", None)));
        assert!(approvals.cover(&wanted("execute", "", Some("npm test"))));
        assert!(!approvals.cover(&wanted("execute", "", Some("npm test"))));
    }

    #[test]
    fn missing_command_is_not_covered() {
        let mut approvals = Approvals::default();
        approvals.add(Some("execute"), &[], None);
        assert!(!approvals.cover(&wanted("execute", "", None)));
    }

    #[test]
    fn served_request_counts_as_judged() {
        let mut approvals = Approvals::default();
        approvals.note_served(&wanted("execute", "", Some("sh -c 'npm test'")));
        approvals.note_served(&wanted("edit", "/w/a", None));
        assert!(approvals.was_served(&wanted("execute", "", Some("npm test"))));
        assert!(!approvals.was_served(&wanted("execute", "", Some("rm x"))));
        assert!(approvals.was_served(&wanted("edit", "/w/a", None)));
        assert!(!approvals.was_served(&wanted("edit", "/w/b", None)));
        assert!(!approvals.was_served(&wanted("other", "", None)));
    }

    #[test]
    fn refusal_stands_for_one_call_with_the_same_kind_and_target() {
        let mut approvals = Approvals::default();
        approvals.note_refused(Some("edit"), &["/w/a".to_owned()], None);
        approvals.note_refused(Some("other"), &[], None);
        assert!(!approvals.take_refusal(&wanted("edit", "/w/b", None)));
        assert!(!approvals.take_refusal(&wanted("delete", "/w/a", None)));
        assert!(!approvals.take_refusal(&wanted("edit", "/w/a", Some("rm"))));
        assert!(!approvals.take_refusal(&wanted("other", "", None)));
        assert!(approvals.take_refusal(&wanted("edit", "/w/a", None)));
        assert!(!approvals.take_refusal(&wanted("edit", "/w/a", None)));
    }
}
