//! Allowed differences between a session and its replay, by agent, with the reason why acpipe cannot remove
//! them.

/// A kind of difference that one agent is allowed.
pub struct Allowance {
    /// Parts of the difference's text, in this order.
    pub says: &'static [&'static str],
    pub because: &'static str,
}

impl Allowance {
    /// Returns `true` if the difference is of this kind.
    pub fn covers(&self, difference: &str) -> bool {
        let mut rest = difference;
        self.says.iter().all(|piece| match rest.split_once(piece) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    }
}

const fn allow(says: &'static [&'static str], because: &'static str) -> Allowance {
    Allowance { says, because }
}

/// Returns the allowances of an agent.
pub fn of(agent: &str) -> &'static [Allowance] {
    match agent {
        "claude-agent-acp" => CLAUDE,
        "gemini" => GEMINI,
        "zedcodex" => ZEDCODEX,
        "testy" => TESTY,
        _ => &[],
    }
}

const CLAUDE: &[Allowance] = &[
    allow(
        &[
            "tool ",
            "_meta, claudeCode, toolResponse: live {",
            "replayed nothing",
        ],
        "the structured result is told while the tool runs, a history has its text only",
    ),
    allow(
        &["tool ", "locations: live [", "replayed nothing"],
        "the places that a command touches are told with the permission question only",
    ),
];

const GEMINI: &[Allowance] = &[
    allow(
        &[
            "message 1 (user), text, text: live ",
            "replayed \"<session_context>",
        ],
        "its own first prompt is replayed as words of the user, without an id to tell them apart",
    ),
    allow(
        &["only replayed: user, \"[Function Response: "],
        "results of functions are replayed as words of the user",
    ),
    allow(
        &["text: only live: {\"state\":\"done\",\"text\":\"Final: "],
        "what follows such a result stands in a message of its own",
    ),
    allow(
        &["only replayed: assistant, \"Final: "],
        "the same, seen from the other side",
    ),
    allow(
        &["text, text: live \"I will run it. \", replayed \"I will run it.\""],
        "blanks at the end of a text are not kept",
    ),
    allow(
        &["tool ", "title: live ", "replayed \"Shell\""],
        "a replayed call has the tool's title, not its own",
    ),
    allow(
        &["tool ", "locations: live [], replayed nothing"],
        "a replayed call has no places",
    ),
];

const ZEDCODEX: &[Allowance] = &[
    allow(
        &["text, text: live \"Model metadata for ", "replayed "],
        "its own warning is no part of the history; live it has no id to tell it apart from the answer",
    ),
    allow(
        &["text: only live: {", "Model metadata for "],
        "the same warning, before a thought",
    ),
    allow(
        &["reasoning, text: live \"\\n\\n", "replayed "],
        "the empty line before a thought is not kept",
    ),
    allow(
        &["tool ", "toolName: live \"execute\", replayed \"other\""],
        "a replayed call has no kind, after which a call without a name is named",
    ),
    allow(
        &["tool ", "kind: live ", "replayed nothing"],
        "a replayed call has no kind",
    ),
    allow(
        &["tool ", "title: live ", "replayed \"exec_command\""],
        "a replayed call has the model's name of the tool for its title",
    ),
    allow(
        &["tool ", "rawInput: live {", "replayed {\"cmd\":"],
        "a replayed call has the model's arguments, a live one those of the process",
    ),
    allow(
        &["tool ", "rawOutput: live {", "replayed \"Chunk ID: "],
        "a replayed call has what the model was told, a live one what the process said",
    ),
];

const TESTY: &[Allowance] = &[allow(
    &["only live: "],
    "it keeps nothing beyond its process and replays nothing",
)];
