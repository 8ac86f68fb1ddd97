//! What acpipe asks its client: requests that go the other way, only where the client declared that it answers them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `permission/request`, to the client: the agent wants to do something that the policy does not decide.
///
/// A question ends without an answer of the client when its time is up, when the agent withdraws it, and when the
/// turn is cancelled or ends: `$/cancelRequest` tells it then. Answers that come later, or once more, are ignored.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionParams {
    /// The client's session.
    pub session_id: String,
    /// The turn in which it is asked.
    pub turn_id: Option<String>,
    /// Id of the question, as chunks and the ledger have it.
    pub question_id: String,
    /// What the agent wants to do.
    pub tool_call: AskedTool,
    /// The answers that the agent offers, as it offers them.
    pub options: Vec<OfferedOption>,
    /// The command line that it runs, as far as the policy could read it: of the call itself, or of those that it
    /// stands for.
    pub command: Option<String>,
    /// The places that it is about, read in the same way.
    pub paths: Vec<String>,
    /// Ids of the open calls that the question stands for, where the agent asks by a call that is none of them.
    pub stands_for: Vec<String>,
    /// The rule of the policy because of which it is asked.
    pub rule: String,
    /// After how many milliseconds it is answered by the policy; `null` where it waits for ever.
    pub deadline_ms: Option<u64>,
}

/// A tool call that the client is asked about.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedTool {
    /// Id of the call, as chunks have it.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// What it is about, for people.
    pub title: Option<String>,
    /// Its kind: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `switch_mode` or `other`.
    pub kind: Option<String>,
    /// Its input.
    pub input: Option<Value>,
    /// What it shows so far: content, and `diff`s of files that it wants to change.
    pub content: Option<Value>,
    /// The places in files that it is about: `{path, line}`.
    pub locations: Option<Value>,
}

/// One of the answers that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedOption {
    /// Its id, for the answer.
    pub option_id: String,
    /// Its name, for people.
    pub name: String,
    /// What it means.
    pub kind: OfferedKind,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OfferedKind {
    /// It may, this time.
    AllowOnce,
    /// It may, from now on.
    AllowAlways,
    /// It may not, this time.
    RejectOnce,
    /// It may not, from now on.
    RejectAlways,
    /// Only the agent knows.
    Unknown,
}

/// The client's answer to `permission/request`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", expecting = "{outcome}")]
pub struct PermissionAnswer {
    /// What was chosen.
    pub outcome: PermissionOutcome,
}

/// What was chosen.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    tag = "outcome",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    expecting = "{outcome: \"selected\", optionId} or {outcome: \"cancelled\"}"
)]
pub enum PermissionOutcome {
    /// One of the options.
    Selected {
        /// Its id.
        option_id: String,
        /// What the user says with it: why not, what instead. Where the agent's protocol has no place for it, it is
        /// kept and shown as not delivered.
        #[serde(default)]
        message: Option<String>,
        /// What becomes of a `message` that is not delivered; absent: it is only kept.
        #[serde(default)]
        feedback_delivery: Option<FeedbackDelivery>,
    },
    /// None of them: the user went away from the question. Some agents end the turn then.
    Cancelled {
        /// What the user says with it, as above.
        #[serde(default)]
        message: Option<String>,
        /// What becomes of a `message` that is not delivered, as above.
        #[serde(default)]
        feedback_delivery: Option<FeedbackDelivery>,
    },
}

/// What becomes of words that an agent does not get with the answer to its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FeedbackDelivery {
    /// They are sent with the next prompt of the session, as a text part before its own.
    NextPrompt,
}

/// `question/ask`, to the client: the agent wants to know something of its user.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionParams {
    /// The client's session; `null` where the agent asks outside of any.
    pub session_id: Option<String>,
    /// The turn in which it is asked.
    pub turn_id: Option<String>,
    /// Id of the question, as chunks and the ledger have it.
    pub question_id: String,
    /// What the user is asked for.
    pub kind: QuestionKind,
    /// The question in words; the plan itself where that is to be approved.
    pub message: String,
    /// `form`: the JSON schema of the answer's `content`, an object of strings, numbers, booleans and choices.
    pub schema: Option<Value>,
    /// `url`: where the user is to go. The answer says only whether he goes there.
    pub url: Option<String>,
    /// `plan`: the answers that the agent offers; the answer's `content.optionId` is one of them.
    pub options: Vec<OfferedOption>,
    /// The tool call with which it asks.
    pub tool_call: Option<AskedTool>,
    /// After how many milliseconds it is declined; `null` where it waits for ever.
    pub deadline_ms: Option<u64>,
}

/// What a user is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum QuestionKind {
    /// To fill in a form.
    Form,
    /// To open an address.
    Url,
    /// To approve a plan.
    Plan,
}

/// The client's answer to `question/ask`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer {
    /// What the user did.
    pub action: QuestionAction,
    /// `form`: what he filled in. `plan`: `{optionId?, feedback?, feedbackDelivery?}`, by default the option that
    /// allows once; `feedbackDelivery` is as in the answer to `permission/request`.
    #[serde(default)]
    pub content: Option<Map<String, Value>>,
}

/// What a user did with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum QuestionAction {
    /// He answered.
    Accept,
    /// He said no.
    Decline,
    /// He went away from it.
    Cancel,
}

/// `$/cancelRequest`, to the client: a request of acpipe's needs no answer any more.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequestParams {
    /// Id of the request.
    pub id: String,
    /// Who decided: `timeout`, `agent`, `cancel`, `end`, or `otherClient`: another client that was asked too.
    pub by: String,
}

/// A decision, as the session's log has it: the line of a `decision` record.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerEntry {
    /// What was asked for: `permission`, `question`, `readFile`, `writeFile` or `terminal`. `tool`: nothing; a tool ran
    /// without a question that the policy would have refused or asked about.
    pub what: String,
    /// Id of the question; of a tool that ran without one, the id of its call.
    pub question_id: String,
    /// Id of the tool call, where there is one.
    pub tool_call_id: Option<String>,
    /// Name of the tool.
    pub tool_name: Option<String>,
    /// What it was about, for people.
    pub title: Option<String>,
    /// Kind of the tool.
    pub kind: Option<String>,
    /// The places it was about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The command line.
    pub command: Option<String>,
    /// Ids of the open calls that the question stood for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<String>,
    /// What the agent wrote in the call of its question: `title`, `kind`, `rawInput`, `content`, each cut after 4 KiB.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool_call: Map<String, Value>,
    /// Whether it was allowed, or answered.
    pub approved: bool,
    /// The option that was chosen; `null` where none was.
    pub option_id: Option<String>,
    /// What a person answered to a question, without what its form calls secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// What the user said with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Whether the agent got that with the answer; `null` where nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback_delivered: Option<bool>,
    /// Who decided: `policy`, `client`, `timeout`, `agent`, `cancel` or `end`.
    pub by: String,
    /// The rule of the policy that decided, because of which the client was asked, or that a tool ran against.
    pub rule: Option<String>,
    /// The same in a sentence.
    pub reason: String,
    /// For how long the client was asked, in milliseconds; `null` where it was not.
    pub waited_ms: Option<u64>,
}
