//! Requests from acpipe to its client, and the client's responses. acpipe sends a request only if the client
//! declared it as a capability.

use super::DecidingClient;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Parameters of the request `permission/request`, sent to the client when the agent needs approval for an
/// action that the policy does not decide.
///
/// The request ends without an answer of the client when its time is up, when the agent withdraws it, and
/// when the turn is cancelled or ends; then acpipe sends `$/cancelRequest`. acpipe ignores answers after
/// that, and second answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Id of the turn that the action belongs to. `null` outside of a turn.
    pub turn_id: Option<String>,
    /// Id of the question; chunks and the ledger use the same id.
    pub question_id: String,
    /// Tool call to be approved.
    pub tool_call: AskedTool,
    /// Possible answers, in the agent's order.
    pub options: Vec<OfferedOption>,
    /// Command line that the tool runs, as far as the policy could parse it, from this call or from those in
    /// `standsFor`. `null` if unknown.
    pub command: Option<String>,
    /// Paths that the tool works on, parsed from the same calls as `command`. Empty if unknown.
    pub paths: Vec<String>,
    /// Ids of the open tool calls that this question covers, if the agent asks through a separate call. Empty
    /// otherwise.
    pub stands_for: Vec<String>,
    /// Rule of the policy that requires the question.
    pub rule: String,
    /// Time in milliseconds after which the policy decides without the client. `null` if there is no limit.
    pub deadline_ms: Option<u64>,
}

/// Tool call in a request to the client.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AskedTool {
    /// Id of the tool call; chunks use the same id.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// Summary of the call for people. `null` if the agent gives none.
    pub title: Option<String>,
    /// Kind of the tool: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`,
    /// `switch_mode` or `other`. `null` if the agent gives none.
    pub kind: Option<String>,
    /// Input of the tool, as the agent sent it. `null` if unknown.
    pub input: Option<Value>,
    /// Output of the call so far: content blocks, and `diff`s of files that it would change. `null` if there
    /// is none.
    pub content: Option<Value>,
    /// Files that the call works on, as `{path, line}` objects. `null` if unknown.
    pub locations: Option<Value>,
}

/// A possible answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OfferedOption {
    /// Id of the option; the response refers to it.
    pub option_id: String,
    /// Label of the option for people.
    pub name: String,
    /// Effect of the option.
    pub kind: OfferedKind,
}

/// Effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OfferedKind {
    /// Allows this action once.
    AllowOnce,
    /// Allows this action; the agent remembers the choice.
    AllowAlways,
    /// Rejects this action once.
    RejectOnce,
    /// Rejects this action; the agent remembers the choice.
    RejectAlways,
    /// An effect that acpipe does not know.
    Unknown,
}

/// The client's response to `permission/request`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", expecting = "{outcome}")]
pub struct PermissionAnswer {
    /// The user's choice.
    pub outcome: PermissionOutcome,
}

/// The user's choice.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(
    tag = "outcome",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    expecting = "{outcome: \"selected\", optionId} or {outcome: \"cancelled\"}"
)]
pub enum PermissionOutcome {
    /// The user chose one of the options.
    Selected {
        /// Id of the chosen option. Must be one of `options`.
        option_id: String,
        /// Feedback of the user: why not, or what to do instead. If the agent's protocol cannot carry it,
        /// acpipe stores it and reports it as not delivered. Default: none.
        #[serde(default)]
        message: Option<String>,
        /// Handling of a `message` that is not delivered. Default: it is only stored.
        #[serde(default)]
        feedback_delivery: Option<FeedbackDelivery>,
        /// Input with which the tool runs in place of its own, if the agent's capability `updatedInput` is
        /// set and the option allows the call. The policy judges the call again with this input. Default: the
        /// input of the call.
        #[serde(default)]
        updated_input: Option<Map<String, Value>>,
    },
    /// The user dismissed the question without choosing an option. Some agents then end the turn.
    Cancelled {
        /// Feedback of the user, as in `selected`.
        #[serde(default)]
        message: Option<String>,
        /// Handling of a `message` that is not delivered, as in `selected`.
        #[serde(default)]
        feedback_delivery: Option<FeedbackDelivery>,
    },
}

/// Handling of feedback that the agent does not receive with the answer to its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FeedbackDelivery {
    /// The session's next prompt includes the feedback, as text parts before its own parts.
    NextPrompt,
}

/// Parameters of the request `question/ask`, sent to the client when the agent needs input from its user.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuestionParams {
    /// The client's id of the session. `null` if the question belongs to no session, for example during a
    /// sign-in.
    pub session_id: Option<String>,
    /// Id of the turn that the question belongs to. `null` outside of a turn.
    pub turn_id: Option<String>,
    /// Id of the question; chunks and the ledger use the same id.
    pub question_id: String,
    /// Kind of input.
    pub kind: QuestionKind,
    /// Question for the user. With kind `plan`: the plan itself.
    pub message: String,
    /// With kind `form`: JSON schema of the answer's `content`, an object of strings, numbers, booleans and
    /// choices. `null` with other kinds.
    pub schema: Option<Value>,
    /// With kind `url`: address for the user to open. The answer only confirms that the user opens it. `null`
    /// with other kinds.
    pub url: Option<String>,
    /// With kind `plan`: options of the agent; the answer's `content.optionId` is one of their ids. Empty
    /// with other kinds.
    pub options: Vec<OfferedOption>,
    /// Tool call that the question belongs to. `null` if there is none.
    pub tool_call: Option<AskedTool>,
    /// Time in milliseconds after which acpipe declines the question. `null` if there is no limit.
    pub deadline_ms: Option<u64>,
}

/// Kind of input that an agent needs from its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum QuestionKind {
    /// Fill in a form.
    Form,
    /// Open an address.
    Url,
    /// Approve a plan, or a change of the agent's mode.
    Plan,
}

/// The client's response to `question/ask`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer {
    /// Action of the user.
    pub action: QuestionAction,
    /// With `accept`, data of the answer. Kind `form`: the values of the form; they must match `schema`. Kind
    /// `plan`: `{optionId?, feedback?, feedbackDelivery?}`; `optionId` defaults to the option that allows
    /// once, and `feedbackDelivery` is as in the response to `permission/request`. Default: none.
    #[serde(default)]
    pub content: Option<Map<String, Value>>,
}

/// Action of the user on a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum QuestionAction {
    /// The user answered, or approved.
    Accept,
    /// The user refused.
    Decline,
    /// The user dismissed the question. Claude Code then ends the turn.
    Cancel,
}

/// Parameters of the notification `$/cancelRequest`, sent to the client when a request of acpipe no longer
/// needs a response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelRequestParams {
    /// Id of the request.
    pub id: String,
    /// Cause: `timeout`, `agent` (withdrawn), `cancel` (the turn was cancelled), `end` (the turn, the session
    /// or the agent ended), `message` (the user sent a new message instead of an answer), or `otherClient` (another
    /// client answered the same question).
    pub by: String,
    /// With `otherClient`: the client that answered. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<DecidingClient>,
}

/// A decision in the ledger: a `decision` record of the session's log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LedgerEntry {
    /// Subject of the decision: `permission`, `question`, `readFile`, `writeFile` or `terminal`; or `tool`
    /// for a tool that ran without a question although the policy would have refused it or asked about it.
    pub what: String,
    /// Id of the question. With `tool`: id of the tool call.
    pub question_id: String,
    /// Id of the tool call. `null` if there is none.
    pub tool_call_id: Option<String>,
    /// Name of the tool. `null` if there is none.
    pub tool_name: Option<String>,
    /// Summary of the call for people. `null` if unknown.
    pub title: Option<String>,
    /// Kind of the tool, as in `permission/request`. `null` if unknown.
    pub kind: Option<String>,
    /// Paths that the call works on. Absent if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Command line that the call runs. `null` if unknown.
    pub command: Option<String>,
    /// Ids of the open tool calls that the question covered. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<String>,
    /// Members of the tool call in the agent's question: `title`, `kind`, `rawInput` and `content`, each cut
    /// after 4 KiB. Absent if there are none.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool_call: Map<String, Value>,
    /// Input with which the client let the tool run, cut after 4 KiB. `paths` and `command` are those of this
    /// input. Absent if the client did not change the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
    /// Whether the action was allowed, or the question answered.
    pub approved: bool,
    /// Id of the chosen option. `null` if none was chosen.
    pub option_id: Option<String>,
    /// The user's answer to a question, without the values that its form marks as secret. Absent if there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// Feedback of the user. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Whether the agent received the feedback with the answer. Absent if there is no feedback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback_delivered: Option<bool>,
    /// Who or what decided: `policy`, `client`, `message` (the user sent a new message instead of an answer),
    /// `timeout`, `agent`, `cancel` or `end`.
    pub by: String,
    /// Name of the client that decided, from `clientInfo` of its `initialize`. Absent if no client decided, or if
    /// it gave no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Rule of the policy that decided, that required the question, or that the tool call violated. `null` if
    /// no rule applied.
    pub rule: Option<String>,
    /// Explanation of the decision, one sentence.
    pub reason: String,
    /// Time in milliseconds for which the request to the client was open. `null` if there was none.
    pub waited_ms: Option<u64>,
}
