//! Members of the CLI's frames that may be absent, with reasons.

use crate::absent::{Absent, MissingFrom, absent};

use MissingFrom::{Everything, Message};

const BOOKS: &str =
    "bookkeeping: ids of frames, requests and prompts, times, positions in the stream";
const OTHERS: &str = "known from `message_start` and `message_delta`; of subagents from their task and the result of their call";
const RESULT: &str = "in the result of the turn";
const KIND: &str = "known from the type of the chunk";
const STATE: &str = "session state: `data-session` is transient, not part of the message";
const PASSING: &str = "of temporary interest: transient, not part of the message";
const REPEATED: &str = "repeats what acpipe sent";
const LIFE: &str = "identifies the answer to a prompt that was cancelled";
const HOOK: &str = "the request is refused with an error: acpipe registers no hooks";
const NOT_OPEN: &str = "empty when a session begins";

/// Members that are left out on purpose.
pub const OMISSIONS: &[Absent] = &[
    absent("*.uuid", "*", Everything, BOOKS),
    absent("*.timestamp", "*", Everything, BOOKS),
    absent("*.request_id", "*", Everything, BOOKS),
    absent("*.user_message_uuid", "*", Everything, BOOKS),
    absent("*.user_message_uuids[]", "*", Everything, BOOKS),
    absent("*.event.index", "*", Everything, BOOKS),
    absent("*.pid", "*", Everything, BOOKS),
    absent("*.thinking_display", "*", Everything, OTHERS),
    absent("assistant[*_use].message.id", "*", Everything, OTHERS),
    absent(
        "stream_event[content_block_start, tool_use].api_message_id",
        "*",
        Everything,
        OTHERS,
    ),
    absent("assistant[text].message.model", "*", Everything, OTHERS),
    absent("assistant[text].message.stop_*", "*", Everything, OTHERS),
    absent("assistant[text].message.usage", "*", Everything, OTHERS),
    absent(
        "assistant[text].message.context_management",
        "*",
        Everything,
        OTHERS,
    ),
    absent(
        "assistant[text].message.diagnostics",
        "*",
        Everything,
        OTHERS,
    ),
    absent("assistant[text].message.container", "*", Everything, OTHERS),
    absent(
        "assistant[a command of the CLI].local_command_source",
        "*",
        Everything,
        "repeats its text",
    ),
    absent("assistant[an error].*", "*", Everything, RESULT),
    absent("user[tool_result*].is_error", "*", Everything, KIND),
    absent("user[isReplay].*", "*", Everything, REPEATED),
    absent("user[isSynthetic].*", "*", Message, PASSING),
    absent("stream_event[message_*", "*", Message, PASSING),
    absent("stream_event[*].(unknown field)", "*", Message, PASSING),
    absent(
        "system[init].slash_commands[]",
        "*",
        Everything,
        "the commands are known from the answer to `initialize`",
    ),
    absent("system[init].*", "*", Message, STATE),
    absent("system[status].permissionMode", "*", Message, STATE),
    absent("system[status].*", "*", Message, PASSING),
    absent("system[permission_denied].*", "*", Message, PASSING),
    absent("system[api_retry].*", "*", Message, PASSING),
    absent("system[thinking_tokens].*", "*", Message, PASSING),
    absent("system[informational].*", "*", Message, PASSING),
    absent("system[background_tasks_changed].*", "*", Message, PASSING),
    absent("system[session_state_changed].*", "*", Message, PASSING),
    absent("system[hook_started].*", "*", Message, PASSING),
    absent("rate_limit_event.*", "*", Message, PASSING),
    absent("command_lifecycle.*", "*", Everything, LIFE),
    absent("control_request[hook_callback].*", "*", Everything, HOOK),
    absent(
        "control_response[initialize].response.pending_*",
        "*",
        Everything,
        NOT_OPEN,
    ),
    absent(
        "control_response[initialize].response.response.session_state",
        "*",
        Everything,
        NOT_OPEN,
    ),
    absent("control_response[initialize].*", "*", Message, STATE),
];
