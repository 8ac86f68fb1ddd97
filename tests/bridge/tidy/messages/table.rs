//! Tables of the scan of error messages: constructors to read, and exceptions.

/// Words that error texts must not have: they name no subject, or no action.
pub const REFUSED: &[&str] = &[
    "told",
    "there is no",
    "there are no",
    "is none",
    "is no",
    "nobody",
    "somebody",
    "whoever",
    "wish",
    "wants",
];

/// A constructor: name, places of texts, kind, where, and whether each call must have a text.
pub type Row = (
    &'static str,
    &'static [usize],
    Option<&'static str>,
    &'static str,
    bool,
);

/// Constructors of errors, of warnings, and of reasons inside them.
#[rustfmt::skip]
pub const CONSTRUCTORS: &[Row] = &[
    ("Error::new", &[1], None, "", true),
    ("io::Error::new", &[1], None, "", true),
    ("io::Error::other", &[0], None, "", true),
    ("invalid", &[1], Some("invalidParams"), "crates/core/src", true),
    ("invalid", &[1], Some("invalidParams"), "crates/dialects/src", true),
    ("invalid", &[1], Some("invalidParams"), "crates/model/src", true),
    ("invalid", &[1], Some("invalidParams"), "crates/policy/src", true),
    ("out_of_order", &[0], Some("outOfOrder"), "crates/", true),
    ("UsageError", &[0], Some("command line (exit code 2)"), "src/cli", true),
    ("context", &[0], Some("internal"), "", true),
    ("with_context", &[0], Some("internal"), "", true),
    ("complain", &[0], Some("warnings of the command line"), "src/cli", false),
    ("note", &[0], Some("warnings of the command line"), "src/cli", false),
    ("custom", &[0], None, "", false),
    ("Fault::new", &[1], None, "src/cli/config", false),
    ("Fault::of_key", &[1], None, "src/cli/config", false),
    ("at", &[3], None, "src/cli/config/source.rs", false),
    ("timeout", &[1, 2], Some("timeout"), "crates/core/src/session", false),
    ("timeout_after", &[2, 3], Some("timeout"), "crates/core/src/session", false),
    // Reasons in the messages of others.
    ("Err", &[0], None, "", false),
    ("ok_or", &[0], None, "", false),
    ("ok_or_else", &[0], None, "", false),
    ("map_err", &[0], None, "", false),
    ("error", &[1], None, "crates/core/src/agent", false),
    ("error", &[1], None, "crates/dialects/src/claude", false),
    ("error", &[0], None, "crates/json/src", false),
    ("error", &[0], None, "crates/protocol/src", false),
    ("error", &[0], None, "crates/host/src", false),
];

/// Constructors whose text is that of an agent, of a client or of another error: the file, and the argument.
pub const FORWARDED: &[(&str, &str)] = &[
    ("src/cli/acp/errors.rs", "error message"),
    // Errors of clap, which the client of the daemon shows.
    ("src/cli/daemon/remote_settings.rs", "error to_string"),
    // `ConnectionError`.
    ("src/cli/daemon/socket_clients.rs", "error to_string"),
    // A parameter that jsonrpsee refuses.
    ("src/cli/rpc/methods.rs", "e message"),
    // `Variables::fault`, in REASONS.
    ("crates/core/src/agent/specs.rs", "why"),
    // `check_name` and `NameError`, in REASONS.
    ("crates/core/src/hub/catalog/registration.rs", "why"),
    // The reason why an agent is locked: `locks.rs` and `undefined`, in REASONS.
    ("crates/core/src/agent/specs.rs", "reason"),
    ("src/cli/agents/change.rs", "error to_string"),
    ("src/cli/agent_definitions.rs", "error to_string"),
    // The client's refusal of a file or a terminal.
    ("crates/model/src/host/forward.rs", "clip refusal message"),
    // The reason of a decision: functions of decision.rs in REASONS.
    (
        "crates/core/src/session/host_calls/serving.rs",
        "decision reason as_str",
    ),
    // `NEVER`, `NOT_OFFERED` and `had_by_other_agent`, in REASONS.
    ("crates/core/src/restore_plan.rs", "why"),
];

/// Functions whose texts become a part of an error, of a decision's reason or of a notice elsewhere.
pub const REASONS: &[(&str, &str)] = &[
    ("crates/core/src/agent/timeouts.rs", "start_hint"),
    ("crates/core/src/restore_plan.rs", "had_by_other_agent"),
    ("crates/core/src/restore_plan.rs", "plan"),
    ("crates/model/src/decision.rs", "cancelled"),
    ("crates/model/src/decision.rs", "of"),
    ("crates/model/src/decision.rs", "phrase"),
    ("crates/core/src/session/queue.rs", "fmt"),
    ("crates/core/src/agent_names.rs", "fmt"),
    (
        "crates/core/src/hub/catalog/stored_sessions.rs",
        "undefined",
    ),
    ("crates/core/src/session/settings.rs", "changed_since"),
    ("crates/model/src/idle_timer.rs", "update_name"),
    ("crates/protocol/src/wire/environment.rs", "fault"),
];

/// Macros whose texts are for the log, or for panics.
pub const LOGS: &[&str] = &[
    "trace", "debug", "info", "warn", "error", "assert", "panic", "json", "matches",
];

/// Areas for reasons without a kind: the first whose prefix fits.
pub const AREAS: &[(&str, &str)] = &[
    ("src/cli/args", "command line (exit code 2)"),
    ("src/cli/config", "configuration and permission rules"),
    ("crates/policy/src", "configuration and permission rules"),
    ("src/cli/run/questions", "answers in the terminal"),
    ("src/cli", "command line (exit code 2)"),
    ("crates/json/src", "parameters"),
    ("crates/protocol/src", "parameters"),
    ("src/demo", "demo agent"),
    ("crates/host/src", "reasons from the operating system"),
    ("", "reasons in other messages"),
];

/// Functions called in messages whose texts are not messages: names of modes, and signs of a missing sign-in.
pub const NOT_FOLLOWED: &[&str] = &["modes", "wants_sign_in"];
