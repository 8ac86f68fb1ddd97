//! Fields that may be absent, with reasons.

use crate::survey::Group;
use std::fmt::Write as _;

/// A field that is absent in some situations; in `field` and `when` `*` stands for anything.
#[derive(Debug)]
pub struct Absent {
    pub field: &'static str,
    pub when: &'static str,
    pub from: MissingFrom,
    pub why: &'static str,
}

/// Output in which a field is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFrom {
    /// Absent from the message; the chunks have it.
    Message,
    /// Absent from the chunks as well.
    Everything,
}

pub const fn absent(
    field: &'static str,
    when: &'static str,
    from: MissingFrom,
    why: &'static str,
) -> Absent {
    Absent {
        field,
        when,
        from,
        why,
    }
}

use MissingFrom::{Everything, Message};

const STATE: &str = "session state: `data-session` is transient, not part of the message";
const ROUTED: &str = "the agent's id of the session; clients use their own";
const PASSING: &str = "`data-notice` is transient, not part of the message";
const ENDED: &str =
    "a call that has ended does not begin again: the value is in `toolMetadata.acp.other.status`";
const REFUSED: &str = "the request is refused with an error: it names no call";

/// Fields that are left out on purpose.
pub const OMISSIONS: &[Absent] = &[
    absent("params(*).sessionId*", "*", Everything, ROUTED),
    absent("request_permission.sessionId*", "*", Everything, ROUTED),
    absent(
        "request_permission.toolCall (of another type)",
        "*",
        Everything,
        REFUSED,
    ),
    absent(
        "request_permission.toolCall.toolCallId (of another type)",
        "*",
        Everything,
        REFUSED,
    ),
    absent("available_commands_update.*", "*", Message, STATE),
    absent("params(available_commands_update).*", "*", Message, STATE),
    absent("current_mode_update.*", "*", Message, STATE),
    absent("params(current_mode_update).*", "*", Message, STATE),
    absent("config_option_update.*", "*", Message, STATE),
    absent("params(config_option_update).*", "*", Message, STATE),
    absent("session_info_update.*", "*", Message, STATE),
    absent("params(session_info_update).*", "*", Message, STATE),
    absent("notice.*", "*", Message, PASSING),
    absent("params(notice).*", "*", Message, PASSING),
    absent(
        "tool_call_update.status",
        "after the output",
        Everything,
        ENDED,
    ),
    absent(
        "tool_call_update.status",
        "after a failure",
        Everything,
        ENDED,
    ),
];

impl Absent {
    fn covers(&self, field: &str, when: &str, from: MissingFrom) -> bool {
        let enough = from == Message || self.from == Everything;
        enough && matches(self.field, field) && matches(self.when, when)
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.any(|at| matches(rest, &text[at..]))
}

/// Returns the entry that allows a field to be absent.
pub fn reason<'a>(
    lists: &[&'a [Absent]],
    field: &str,
    when: &str,
    from: MissingFrom,
) -> Option<&'a Absent> {
    let mut all = lists.iter().copied().flatten();
    all.find(|absent| absent.covers(field, when, from))
}

/// Describes fields that are absent without an entry, and entries whose field is never absent.
pub fn faults(groups: &[Group], lists: &[&[Absent]]) -> String {
    let mut faults = String::new();
    let mut used: Vec<&Absent> = Vec::new();
    for field in groups.iter().flat_map(|g| &g.fields) {
        for ((when, status), found) in &field.found {
            let from = match (found.lost_in_chunks, found.lost_in_message) {
                (true, _) => Everything,
                (false, true) => Message,
                (false, false) => continue,
            };
            let when = format!("{when}, {status}");
            let when = when.trim_end_matches(", ");
            match reason(lists, &field.path, when, from) {
                Some(absent) => used.push(absent),
                None => {
                    let _ = writeln!(faults, "{} ({when}): not found: {from:?}", field.path);
                }
            }
        }
    }
    for absent in lists.iter().copied().flatten() {
        if !used.iter().any(|u| std::ptr::eq(*u, absent)) {
            let _ = writeln!(
                faults,
                "{} ({}): never absent: strike it from the list",
                absent.field, absent.when
            );
        }
    }
    faults
}
