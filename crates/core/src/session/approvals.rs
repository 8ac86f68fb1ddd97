//! Approvals of tool calls. An approval also covers the file or terminal request by which the call is carried out, so
//! that no client is asked twice, and such a request covers the call.

use crate::turn::UnapprovedRun;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::event::OptionKind;
use acpipe_policy::{Effect, Subject, Verdict, runs_script};
use acpipe_protocol::wire::LedgerEntry;
use std::collections::VecDeque;

/// Maximum number of remembered tool calls; older ones need a new approval.
const MAX_APPROVALS: usize = 64;

/// Approvals of a session: tool calls that a client approved and whose requests are still expected, file and terminal
/// requests that were carried out, both of a turn, and tool calls that a client approved for always.
#[derive(Debug, Default)]
pub struct Approvals {
    /// Decisions of one turn; `None` before the first.
    turn: Option<Box<TurnDecisions>>,
    always: VecDeque<Approval>,
}

#[derive(Debug, Default)]
struct TurnDecisions {
    allowed: VecDeque<Approval>,
    served: VecDeque<Approval>,
    /// Ids of the terminals that were created.
    terminals: VecDeque<String>,
    /// Tool calls that were refused, with their ids.
    refused: VecDeque<(String, Approval)>,
}

#[derive(Debug)]
struct Approval {
    tool: String,
    kind: String,
    paths: Vec<String>,
    command: Option<String>,
}

impl Approvals {
    /// Forgets what holds for one turn.
    pub fn begin_turn(&mut self) {
        self.turn = None;
    }

    fn turn(&mut self) -> &mut TurnDecisions {
        self.turn.get_or_insert_default()
    }

    /// Records a decision of the ledger that takes effect.
    pub fn note_decision(&mut self, entry: &LedgerEntry, decision: &Decision) {
        let approval = || Approval {
            tool: entry.tool_name.clone().unwrap_or_default(),
            kind: entry.kind.clone().unwrap_or_default(),
            paths: entry.paths.clone(),
            command: entry.command.clone(),
        };
        match entry.what.as_str() {
            "permission" if !decision.approved() => {
                let id = entry.tool_call_id.clone();
                push(
                    &mut self.turn().refused,
                    (id.unwrap_or_default(), approval()),
                );
            }
            _ if !decision.approved() => {}
            "permission" if decision.by == DecisionSource::Client => {
                push(&mut self.turn().allowed, approval());
                let choice = decision.choice.as_ref().map(|option| option.kind);
                if choice == Some(OptionKind::AllowAlways) {
                    push(&mut self.always, approval());
                }
            }
            "readFile" | "writeFile" | "terminal" => push(&mut self.turn().served, approval()),
            _ => {}
        }
    }

    pub fn note_terminal(&mut self, id: &str) {
        push(&mut self.turn().terminals, id.to_owned());
    }

    /// Returns `true` if another decision covers a run that the policy is against: on the requests by which it was
    /// carried out, on the same call for always, or on the call that the agent repeats.
    pub fn cover_run(&mut self, run: &UnapprovedRun, subject: &Subject, verdict: &Verdict) -> bool {
        // The command of a served terminal cannot be read in the call.
        let is_hosted = !verdict.is_certain && self.take_terminals(&run.terminals);
        let is_asked = verdict.effect == Effect::Ask && !verdict.is_explicit;
        is_hosted
            || self.take_served(subject)
            || !run.is_certain && !run.has_started && self.take_repeated(run, subject)
            || is_asked && self.allow_always(&run.tool.tool_name, subject)
    }

    /// Returns `true` if the terminals that a call shows were created by requests that were judged themselves. Each
    /// terminal stands for one call.
    fn take_terminals(&mut self, shown: &[String]) -> bool {
        let are_known = shown.iter().all(|id| self.turn().terminals.contains(id));
        if are_known {
            self.turn().terminals.retain(|id| !shown.contains(id));
        }
        are_known && !shown.is_empty()
    }

    /// Returns `true` if a tool call was carried out by file or terminal requests, which were judged themselves. Each
    /// request stands for one call of its kind.
    fn take_served(&mut self, call: &Subject) -> bool {
        let carries_out = |request: &Approval, target: &str| {
            if call.kind != "execute" {
                return request.paths.iter().any(|path| path == target);
            }
            let mut places = call.paths.iter();
            let command = request.command.as_deref();
            command.is_some_and(|line| line == target || runs_script(line, target))
                && places.all(|path| *path == call.cwd || request.paths.contains(path))
        };
        let targets = match call.kind.as_str() {
            "execute" => &call.lines,
            _ => &call.paths,
        };
        let mut used = Vec::new();
        for target in targets {
            let mut served = self.turn().served.iter().enumerate();
            let found = served.find(|(at, request)| {
                !used.contains(at) && request.kind == call.kind && carries_out(request, target)
            });
            let Some((at, _)) = found else { return false };
            used.push(at);
        }
        if used.is_empty() || !call.other_kinds.is_empty() {
            return false;
        }
        let mut at = 0..;
        self.turn()
            .served
            .retain(|_| at.next().is_none_or(|at| !used.contains(&at)));
        true
    }

    /// Returns `true` if a call that never started only repeats a refused one under the agent's same id. Some agents report
    /// the refusal in this way.
    fn take_repeated(&mut self, run: &UnapprovedRun, call: &Subject) -> bool {
        let is_repeated = |(id, refused): &(String, Approval)| {
            let rest = run.tool.tool_call_id.strip_prefix(id.as_str());
            rest.is_some_and(|rest| rest.starts_with('#'))
                && refused.is_of(&run.tool.tool_name, call)
        };
        let found = self.turn().refused.iter().position(is_repeated);
        found
            .and_then(|at| self.turn().refused.remove(at))
            .is_some()
    }

    /// Returns `true` if a client approved the same call of a tool for always. Agents do not ask about it again.
    fn allow_always(&self, tool: &str, call: &Subject) -> bool {
        let is_known = call.command.is_some() || !call.paths.is_empty() || call.name.is_some();
        is_known
            && call.other_kinds.is_empty()
            && self
                .always
                .iter()
                .any(|approval| approval.is_of(tool, call))
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
        let Some(at) = self.turn().allowed.iter().position(same) else {
            return false;
        };
        if wanted.kind != "read" {
            self.turn().allowed.remove(at);
        }
        true
    }
}

fn push<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == MAX_APPROVALS {
        all.pop_front();
    }
    all.push_back(one);
}

impl Approval {
    /// Returns `true` if the decision was about a call of this tool with the same target.
    fn is_of(&self, tool: &str, call: &Subject) -> bool {
        self.tool == tool
            && self.kind == call.kind
            && self.paths == call.paths
            && self.command == call.command
    }

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
    use acpipe_model::event::PermissionOption;

    fn wanted(kind: &str, path: &str, command: Option<&str>) -> Subject {
        let paths = [path].into_iter().filter(|path| !path.is_empty());
        Subject {
            kind: kind.to_owned(),
            paths: paths.map(str::to_owned).collect(),
            command: command.map(str::to_owned),
            lines: command.map(str::to_owned).into_iter().collect(),
            cwd: "/w".to_owned(),
            ..Subject::default()
        }
    }

    fn note(approvals: &mut Approvals, what: &str, of: &Subject, option: OptionKind) {
        let options = [PermissionOption {
            id: "o".to_owned(),
            name: "O".to_owned(),
            kind: option,
        }];
        let allow = !option.refuses();
        let decision = Decision::of(allow, true, &options, DecisionSource::Client);
        let entry = LedgerEntry {
            what: what.to_owned(),
            tool_name: Some("Tool".to_owned()),
            kind: Some(of.kind.clone()),
            paths: of.paths.clone(),
            command: of.command.clone(),
            ..LedgerEntry::default()
        };
        approvals.note_decision(&entry, &decision);
    }

    fn approved(subjects: &[Subject]) -> Approvals {
        let mut approvals = Approvals::default();
        for subject in subjects {
            note(&mut approvals, "permission", subject, OptionKind::AllowOnce);
        }
        approvals
    }

    fn served(what: &str, subject: &Subject) -> Approvals {
        let mut approvals = Approvals::default();
        note(&mut approvals, what, subject, OptionKind::AllowOnce);
        approvals
    }

    #[test]
    fn approved_edit_covers_one_write_and_its_read() {
        let mut approvals = approved(&[wanted("edit", "/w/a", None)]);
        assert!(!approvals.cover(&wanted("edit", "/w/b", None)));
        assert!(!approvals.cover(&wanted("edit", "", None)));
        assert!(approvals.cover(&wanted("read", "/w/a", None)));
        assert!(approvals.cover(&wanted("read", "/w/a", None)));
        assert!(approvals.cover(&wanted("edit", "/w/a", None)));
        assert!(!approvals.cover(&wanted("edit", "/w/a", None)));
    }

    #[test]
    fn approved_read_covers_no_edit_or_command() {
        let mut approvals = approved(&[
            wanted("read", "/w/a", Some("ls")),
            wanted("", "/w/a", Some("ls")),
        ]);
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
        let mut approvals = approved(&[wanted("execute", "", Some("npm test"))]);
        assert!(!approvals.cover(&wanted("execute", "", Some("npm test; rm x"))));
        assert!(!approvals.cover(&wanted("execute", "", None)));
        assert!(approvals.cover(&wanted("execute", "", Some("npm test"))));
        assert!(!approvals.cover(&wanted("execute", "", Some("npm test"))));
    }

    #[test]
    fn missing_command_is_not_covered() {
        let mut approvals = approved(&[wanted("execute", "", None)]);
        assert!(!approvals.cover(&wanted("execute", "", None)));
    }

    #[test]
    fn request_that_was_carried_out_covers_one_call_of_its_kind_with_its_target() {
        let npm = wanted("execute", "", Some("npm test"));
        for line in ["npm test", "sh -c 'npm test'", "/bin/bash -lc 'npm test'"] {
            let mut approvals = served("terminal", &wanted("execute", "", Some(line)));
            assert!(!approvals.take_served(&wanted("execute", "", Some("npm"))));
            assert!(!approvals.take_served(&wanted("execute", "/etc/x", Some("npm test"))));
            assert!(!approvals.take_served(&wanted("other", "", None)));
            assert!(approvals.take_served(&npm), "{line}");
            assert!(!approvals.take_served(&npm), "{line}");
        }
        for line in ["echo 'npm test'", "npm test; rm x", "sh -c 'npm test' x"] {
            let mut approvals = served("terminal", &wanted("execute", "", Some(line)));
            assert!(!approvals.take_served(&npm), "{line}");
        }
        let edit = wanted("edit", "/w/a", None);
        let mut approvals = served("readFile", &wanted("read", "/w/a", None));
        assert!(!approvals.take_served(&edit));
        assert!(!approvals.take_served(&wanted("delete", "/w/a", None)));
        assert!(approvals.take_served(&wanted("read", "/w/a", None)));
        let mut approvals = served("writeFile", &edit);
        assert!(!approvals.take_served(&wanted("edit", "/w/b", None)));
        assert!(approvals.take_served(&edit));
        assert!(!approvals.take_served(&edit));
    }

    #[test]
    fn refused_request_covers_no_call() {
        let edit = wanted("edit", "/w/a", None);
        let mut approvals = Approvals::default();
        note(&mut approvals, "writeFile", &edit, OptionKind::RejectOnce);
        assert!(!approvals.take_served(&edit));
    }

    #[test]
    fn terminal_covers_one_call_that_shows_it() {
        let mut approvals = Approvals::default();
        approvals.note_terminal("term-1");
        let [own, other] = ["term-1", "x"].map(|id| vec![id.to_owned()]);
        assert!(!approvals.take_terminals(&other));
        assert!(!approvals.take_terminals(&[]));
        assert!(approvals.take_terminals(&own));
        assert!(!approvals.take_terminals(&own));
    }

    #[test]
    fn approval_for_always_covers_the_same_calls_in_later_turns() {
        let make = wanted("execute", "", Some("make"));
        for (option, want) in [
            (OptionKind::AllowAlways, true),
            (OptionKind::AllowOnce, false),
        ] {
            let mut approvals = Approvals::default();
            note(&mut approvals, "permission", &make, option);
            approvals.begin_turn();
            assert_eq!(approvals.allow_always("Tool", &make), want);
            assert!(!approvals.allow_always("Other", &make));
            assert!(!approvals.allow_always("Tool", &wanted("execute", "", Some("rm"))));
        }
    }
}
