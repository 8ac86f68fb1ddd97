//! Comparison of what was reported of a call at different times.

use super::{Group, Subject};

/// Difference between what a call was judged by and what is reported of it later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectChange {
    /// The call could not be read when it was judged, and now it can.
    Completed,
    /// The call does something else than before.
    Replaced,
    /// The call does what it did before, and more is known of it, or less. Only a rule that denies can object.
    Described,
}

impl Subject {
    /// Compares a later report of the call with this one, by which it was judged. `None` if the two are equal. For a
    /// user who was asked, a command counts without the places where it runs.
    pub fn changed_by(&self, later: &Self) -> Option<SubjectChange> {
        let is_blank = self.lines.is_empty() && self.paths.is_empty();
        let has_new_target = if later.lines.is_empty() {
            later.paths.iter().any(|path| !self.paths.contains(path))
        } else {
            let is_known = |line: &String| self.lines.iter().any(|own| own.trim() == line.trim());
            !later.lines.iter().all(is_known)
        };
        let has_new_kind = later
            .effects()
            .any(|kind| !self.effects().any(|own| own == kind));
        let has_other_name = self.name.is_some() && later.name.is_some() && self.name != later.name;
        if !(has_new_target || has_new_kind || has_other_name) {
            return (self != later).then_some(SubjectChange::Described);
        }
        let is_kind_unknown = self.kind == "other" || self.derived;
        let is_completed =
            (is_blank || self.unread) && !has_other_name && (is_kind_unknown || !has_new_kind);
        Some(if is_completed {
            SubjectChange::Completed
        } else {
            SubjectChange::Replaced
        })
    }

    /// Returns `true` if an earlier report of the call said nothing that this one does not say: agents report an
    /// input while the model writes it.
    pub fn completes(&self, earlier: &Self) -> bool {
        self.says_all_of(earlier, |part, whole| whole.starts_with(part))
    }

    /// Returns `true` if another report of the call says nothing that this one does not say exactly so.
    pub fn includes(&self, other: &Self) -> bool {
        self.says_all_of(other, |part, whole| part.trim() == whole.trim())
    }

    fn says_all_of(&self, other: &Self, is_in: fn(&str, &str) -> bool) -> bool {
        let has = |part: &str, whole: &[String]| whole.iter().any(|whole| is_in(part, whole));
        let has_path = |path: &String| has(path, &self.paths);
        let may_have_path = |path: &String| has_path(path) || has(path, &self.possible_paths);
        let has_name = other.name.is_none() || other.name == self.name;
        other.lines.iter().all(|line| has(line, &self.lines))
            && other.paths.iter().all(has_path)
            && other.possible_paths.iter().all(may_have_path)
            && has_name
            && other
                .effects()
                .all(|kind| self.effects().any(|own| own == kind))
    }

    /// Returns `true` if another call has the same kind and the same command and paths, of which it has any.
    pub fn acts_like(&self, other: &Self) -> bool {
        let has_target = !self.paths.is_empty() || self.command.is_some();
        has_target
            && self.kind == other.kind
            && self.paths == other.paths
            && self.command == other.command
    }

    /// Adds earlier reports of the call: all of them must be allowed.
    #[must_use]
    pub fn with_earlier(mut self, earlier: Vec<Self>) -> Self {
        if self.parts.is_empty() {
            self.parts.push(self.clone());
        }
        for part in earlier {
            for line in &part.lines {
                self.add_line(line);
            }
            self.paths.extend(part.paths.iter().cloned());
            let kinds: Vec<String> = part.effects().map(str::to_owned).collect();
            self.other_kinds
                .extend(kinds.into_iter().filter(|kind| *kind != self.kind));
            self.parts.push(part);
        }
        self.opaque = false;
        self.keep_each_once();
        self
    }

    /// Iterates over the kinds of the subject that do more than read.
    pub fn effects(&self) -> impl Iterator<Item = &str> {
        let kinds = std::iter::once(&self.kind).chain(&self.other_kinds);
        let kinds = kinds.map(String::as_str);
        kinds.filter(|kind| *kind != "other" && Group::of(kind) != Group::Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolProperties;
    use acpipe_json::to_raw;
    use serde_json::{Value, json};

    fn subject(tool: &Value) -> Subject {
        let input = tool.get("input").map(to_raw);
        let locations = tool.get("locations").map(to_raw);
        let facts = ToolProperties {
            name: tool["name"].as_str(),
            title: tool["title"].as_str(),
            kind: tool["kind"].as_str(),
            input: input.as_deref(),
            locations: locations.as_deref(),
            content: None,
        };
        Subject::of_tool(&facts, "/w")
    }

    #[test]
    fn only_another_command_path_kind_or_name_changes_a_subject() {
        use SubjectChange::{Completed, Described, Replaced};
        let ls = json!({"kind": "execute", "input": {"command": "ls"}});
        let edit = json!({"kind": "edit", "input": {"filepath": "/w/a", "diff": "x"}});
        let unknown = json!({"title": "Running a tool"});
        for (judged, later, want) in [
            (
                &ls,
                json!({"kind": "execute", "input": {"command": "ls", "cwd": "/w"}, "title": "List",
                "locations": [{"path": "/w"}]}),
                Some(Described),
            ),
            (
                &ls,
                json!({"kind": "execute", "input": {"command": ["/bin/bash", "-lc", "ls"]}}),
                None,
            ),
            (&ls, json!({"kind": "think", "input": {}}), Some(Described)),
            (
                &ls,
                json!({"kind": "execute", "input": {"command": "ls", "file_path": "/w/a"}}),
                Some(Described),
            ),
            (
                &ls,
                json!({"kind": "execute", "input": {"command": "ls", "script": "rm x"}}),
                Some(Described),
            ),
            (
                &json!({"kind": "read", "input": {"path": "/w/a"}}),
                json!({"kind": "fetch", "input": {"url": "https://x"}}),
                Some(Replaced),
            ),
            (
                &json!({"kind": "other", "input": {"q": 1}}),
                json!({"kind": "other", "input": {"q": 1}, "name": "mcp__mail__send"}),
                Some(Described),
            ),
            (
                &ls,
                json!({"kind": "execute", "input": {"command": "rm x"}}),
                Some(Replaced),
            ),
            (
                &ls,
                json!({"kind": "think", "input": {"command": "rm x"}}),
                Some(Replaced),
            ),
            (
                &ls,
                json!({"kind": "execute", "title": "rm x"}),
                Some(Replaced),
            ),
            (
                &ls,
                json!({"kind": "edit", "input": {"path": "/w/a"}}),
                Some(Replaced),
            ),
            (
                &edit,
                json!({"kind": "edit", "input": {"filepath": "/w/a", "diff": "x"}}),
                None,
            ),
            (
                &edit,
                json!({"kind": "edit", "input": {"filePath": "/w/a", "oldString": "x"}}),
                Some(Described),
            ),
            (
                &edit,
                json!({"kind": "edit", "input": {"filePath": "/w/b"}}),
                Some(Replaced),
            ),
            (
                &edit,
                json!({"kind": "delete", "input": {"path": "/w/a"}}),
                Some(Replaced),
            ),
            (
                &unknown,
                json!({"kind": "execute", "input": {"command": "rm x"}}),
                Some(Completed),
            ),
            (
                &json!({"kind": "execute", "name": "Bash"}),
                json!({"kind": "execute", "name": "Bash", "input": {"command": "ls"}}),
                Some(Completed),
            ),
            (
                &json!({"name": "get_item"}),
                json!({"name": "delete_all"}),
                Some(Replaced),
            ),
        ] {
            assert_eq!(
                subject(judged).changed_by(&subject(&later)),
                want,
                "{judged} {later}"
            );
        }
    }

    #[test]
    fn subject_completes_what_it_continues() {
        let whole = json!({"kind": "edit", "input": {"path": "/w/ab", "new": 1}});
        for (earlier, want) in [
            (json!({"kind": "edit", "input": {"path": "/w/a"}}), true),
            (json!({"kind": "other"}), true),
            (json!({"kind": "edit", "input": {"path": "/w/c"}}), false),
            (
                json!({"kind": "execute", "input": {"command": "rm"}}),
                false,
            ),
        ] {
            assert_eq!(
                subject(&whole).completes(&subject(&earlier)),
                want,
                "{earlier}"
            );
        }
    }
}
