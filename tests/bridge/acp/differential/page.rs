//! The differences that an agent behind acpipe has, with reasons, and their page.

use super::compare::{Change, Difference};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "docs/internals/pass-through.md";

const HEAD: &str = "# Pass-through

Differences between an agent alone and the same agent behind `acpipe acp`. This page is generated
(`UPDATE_PASS_THROUGH=1 cargo test --test bridge acp::differential`). Do not edit it.

";

/// Differences of one kind that are intended.
struct Intended {
    /// Names of recordings; empty for all.
    recordings: &'static [&'static str],
    /// `client`, `agent`, or `*` for both.
    receiver: &'static str,
    /// Kind of message; a final `*` stands for any end.
    message: &'static str,
    /// `missing`, `additional`, `moved`, `later`, or the path of a member; a final `*` stands for any end.
    change: &'static str,
    reason: &'static str,
}

const fn row(
    receiver: &'static str,
    message: &'static str,
    change: &'static str,
    reason: &'static str,
) -> Intended {
    Intended {
        recordings: &[],
        receiver,
        message,
        change,
        reason,
    }
}

const fn whole(recordings: &'static [&'static str], reason: &'static str) -> Intended {
    Intended {
        recordings,
        receiver: "*",
        message: "*",
        change: "*",
        reason,
    }
}

const LATER: &str = "the response follows when the end of the turn is stored; updates that arrive meanwhile come first";
const AT_END: &str = "at the end of its input acpipe cancels running turns";
const SESSION_CANCEL: &str = "a prompt that the client cancels with `$/cancel_request` is cancelled with `session/cancel`, which all agents know; at the end of its input acpipe cancels running turns";
const RECEIPT: &str = "acpipe adds how the session was restored";
const NO_MEMBER: &str =
    "ACP has no such member, and acpipe makes the result from what it knows of the session";
const LISTS: &str = "acpipe lists sessions also for an agent that cannot";
const COMMANDS: &str = "the agent lists its commands right after its response; the response of acpipe follows when all of the replay has arrived";
const REFUSAL: &str = "an option that was not offered is a refusal";
const CALL_ID: &str =
    "a tool call under the id of an earlier call is another call, which gets an id of its own";
const MODE: &str = "a mode is set with the agent's option for modes, if it has one";

/// The first row that covers a difference gives its reason.
const INTENDED: &[Intended] = &[
    whole(
        &["gemini-noinit", "opencode-noinit", "zedcodex-noinit"],
        "the recorded client sends requests before `initialize`, which acpipe refuses",
    ),
    whole(
        &[
            "gemini-malformed",
            "opencode-malformed",
            "testy-malformed",
            "zedcodex-malformed",
        ],
        "acpipe checks parameters, and answers a second `initialize`, itself",
    ),
    whole(
        &["testy-unknown"],
        "the agent accepts any session id and any directory, acpipe does not",
    ),
    whole(
        &["claude-agent-acp-modes-and-config"],
        "acpipe refuses values that the agent does not offer itself, also through the removed method `session/set_model`",
    ),
    whole(
        &[
            "claude-agent-acp-prompt-while-running",
            "gemini-concurrent",
            "opencode-concurrent",
            "zedcodex-concurrent",
        ],
        "a prompt during a turn waits for the end of the turn, where the recorded agent waits for the prompt",
    ),
    whole(
        &[
            "opencode-lifecycle-3resume",
            "testy-lifecycle-3resume",
            "zedcodex-lifecycle-3resume",
        ],
        "an open session is loaded from acpipe's log, which has only what acpipe saw; closed and deleted sessions are acpipe's own",
    ),
    whole(
        &["claude-agent-acp-load-3-list-fork-close-delete"],
        "a forked session is unknown to acpipe, which does not offer `fork`",
    ),
    row(
        "client",
        "result of initialize",
        "/result/_meta*",
        "acpipe adds its version",
    ),
    row(
        "client",
        "result of initialize",
        "/result/agentCapabilities/sessionCapabilities*",
        "acpipe adds `list`, `resume`, `close` and `delete`, and removes `fork`",
    ),
    row("client", "result of session/prompt", "later", LATER),
    row("client", "error of session/prompt", "later", LATER),
    row("client", "result of session/prompt", "additional", AT_END),
    row("agent", "session/cancel", "additional", SESSION_CANCEL),
    row("agent", "$/cancel_request", "missing", SESSION_CANCEL),
    row(
        "agent",
        "session/cancel",
        "missing",
        "a session without a turn is not cancelled",
    ),
    row(
        "client",
        "session/update tool_call*",
        "/params/update/toolCallId",
        CALL_ID,
    ),
    row(
        "client",
        "result of session/load",
        "/result/_meta*",
        RECEIPT,
    ),
    row(
        "client",
        "result of session/resume",
        "/result/_meta*",
        RECEIPT,
    ),
    row(
        "client",
        "result of session/load",
        "/result/sessionId",
        NO_MEMBER,
    ),
    row(
        "client",
        "result of session/resume",
        "/result/sessionId",
        NO_MEMBER,
    ),
    row(
        "client",
        "result of session/list",
        "/result/sessions*",
        "acpipe lists its own sessions, with their agents, and those of the agent",
    ),
    row("client", "result of session/list", "additional", LISTS),
    row("client", "error of session/list", "missing", LISTS),
    row("agent", "session/list", "missing", LISTS),
    row(
        "agent",
        "session/list",
        "additional",
        "acpipe looks up a session whose load repeats nothing",
    ),
    row(
        "client",
        "session/update agent_thought_chunk",
        "additional",
        "acpipe notes that a load repeated nothing",
    ),
    row(
        "client",
        "session/update available_commands_update",
        "moved",
        COMMANDS,
    ),
    Intended {
        recordings: &["gemini-lifecycle-2load"],
        receiver: "client",
        message: "session/update*",
        change: "moved",
        reason: "the agent repeats the history after its response, acpipe before",
    },
    row(
        "client",
        "$/cancel_request",
        "additional",
        "acpipe withdraws the open requests of a turn that is cancelled",
    ),
    row(
        "agent",
        "result of session/request_permission",
        "/result/outcome",
        REFUSAL,
    ),
    row(
        "agent",
        "result of session/request_permission",
        "/result/outcome/optionId",
        REFUSAL,
    ),
    row(
        "agent",
        "error of elicitation/create",
        "/error*",
        "the text of the error may quote what the user typed, and would stand in tapes",
    ),
    row("agent", "session/set_mode", "missing", MODE),
    row("agent", "session/set_config_option", "additional", MODE),
];

impl Intended {
    fn covers(&self, recording: &str, difference: &Difference) -> bool {
        let change = match &difference.change {
            Change::Missing => "missing",
            Change::Additional => "additional",
            Change::Moved => "moved",
            Change::Later => "later",
            Change::Member(path) => path,
        };
        (self.recordings.is_empty() || self.recordings.contains(&recording))
            && matches(self.receiver, difference.receiver)
            && matches(self.message, &difference.message)
            && matches(self.change, change)
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => text.starts_with(prefix),
        None => text == pattern,
    }
}

/// Compares the differences of all recordings with those that are intended, and with the page.
pub fn compare(found: &BTreeMap<String, BTreeSet<Difference>>) {
    let mut recordings: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); INTENDED.len()];
    let mut others: BTreeMap<&Difference, BTreeSet<&str>> = BTreeMap::new();
    for (recording, differences) in found {
        for difference in differences {
            let intended = INTENDED
                .iter()
                .position(|intended| intended.covers(recording, difference));
            let place = match intended {
                Some(at) => &mut recordings[at],
                None => others.entry(difference).or_default(),
            };
            place.insert(recording);
        }
    }
    let mut wrong = String::new();
    for (difference, recordings) in others {
        let few: Vec<&str> = recordings.iter().copied().take(5).collect();
        let _ = writeln!(
            wrong,
            "{difference}: {} recordings: {}",
            recordings.len(),
            few.join(", ")
        );
    }
    for (intended, _) in INTENDED
        .iter()
        .zip(&recordings)
        // Whether a response is late depends on the speed of the disk.
        .filter(|(intended, found)| found.is_empty() && intended.change != "later")
    {
        let (receiver, message, change) = (intended.receiver, intended.message, intended.change);
        let _ = writeln!(wrong, "not found any more: {receiver}: {message}: {change}");
    }
    assert!(wrong.is_empty(), "{wrong}");
    compare_page(&page(found.len()));
}

fn compare_page(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("UPDATE_PASS_THROUGH").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "{PAGE} differs: run `UPDATE_PASS_THROUGH=1 cargo test --test bridge acp::differential`"
    );
}

fn page(recordings: usize) -> String {
    let mut page = HEAD.to_owned();
    let _ = writeln!(
        page,
        "{recordings} recorded conversations are played by an agent, directly and behind acpipe. What the client and the agent receive is\n\
         compared, up to the ids of sessions and requests. These are all differences:\n"
    );
    page.push_str("| receiver | message | difference | recordings | reason |\n|-|-|-|-|-|\n");
    for intended in INTENDED {
        let change = match intended.change {
            path if path.starts_with('/') => format!("`{path}`"),
            "moved" => "at another place".to_owned(),
            "*" => "any".to_owned(),
            change => change.to_owned(),
        };
        let receiver = intended.receiver.replace('*', "both");
        let message = match intended.message {
            "*" => "any".to_owned(),
            message => format!("`{message}`"),
        };
        let recordings = match intended.recordings {
            [] => "any".to_owned(),
            names => names.join(", "),
        };
        let _ = writeln!(
            page,
            "| {receiver} | {message} | {change} | {recordings} | {} |",
            intended.reason
        );
    }
    page
}
