//! Prompt retries: which errors are transient, and the attempts of a turn.

mod longer_wait;

use super::output_schema::{Violation, repair_request};
use super::turn::Turn;
use super::turn_ending::Ending;
use acpipe_json::value;
use acpipe_model::error::{Error, ErrorKind, clip};
use acpipe_model::event::TurnEnd;
use acpipe_protocol::wire::Recovery;
use longer_wait::needs_longer_wait;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum number of times a prompt is sent: once, once to a new session that replaces a stale one, and once
/// after a transient error.
pub const MAX_ATTEMPTS: u32 = 3;

/// Pause before a prompt is sent again after a transient error.
pub const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Message for a transient error that persisted (row L-46 of the demands). Callers match this text.
pub const UNAVAILABLE: &str =
    "The AI service is temporarily unavailable. Please try again in a moment.";

/// Maximum size in bytes of a single output line that counts as a printed transient error.
const PRINTED_ERROR_LIMIT: usize = 500;

const TRANSIENT_STATUSES: &[&str] = &["529", "500"];

/// Other transient errors: class name, and the texts that identify it.
const TRANSIENT_TEXTS: &[(&str, &[&str])] = &[
    ("overloaded", &["overloaded"]),
    ("rate_limit", &["rate_limit", "rate limit", "rate-limit"]),
    ("api_error", &["api_error"]),
];

/// Texts of permanent errors: sending the prompt again does not help.
const PERMANENT_TEXTS: &[&str] = &[
    "authentication_error",
    "invalid_request_error",
    "auth required",
    "authentication required",
];

/// Returns the class of a transient error of an agent; `None` if the error is not transient.
pub fn transient(error: &Error) -> Option<&'static str> {
    let may_pass = [
        ErrorKind::Session,
        ErrorKind::Network,
        ErrorKind::Overloaded,
    ];
    if !may_pass.contains(&error.kind) {
        return None;
    }
    let raw = error.data.get("raw").and_then(Value::as_str);
    class(&format!("{} {}", error.message, raw.unwrap_or_default()))
}

fn class(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    if PERMANENT_TEXTS.iter().any(|words| text.contains(words)) {
        return None;
    }
    let status = TRANSIENT_STATUSES
        .iter()
        .find(|status| has_status(&text, status));
    let said = |(_, words): &&(&str, &[&str])| words.iter().any(|word| text.contains(word));
    status
        .copied()
        .or_else(|| TRANSIENT_TEXTS.iter().find(said).map(|(name, _)| *name))
}

/// Returns `true` if `status` occurs in a lower-case text as a response status, not as an arbitrary number.
fn has_status(text: &str, status: &str) -> bool {
    const BEFORE: &[&str] = &[
        "error",
        "status",
        "code",
        "statuscode",
        "status_code",
        "returned",
    ];
    const AFTER: &[&str] = &["internal", "server error", "status code", "{"];
    text.match_indices(status).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + status.len()..]);
        let of_a_word = |c: char| c.is_alphanumeric() || "_-/.%".contains(c);
        let sentence_ends =
            after.starts_with('.') && !after[1..].starts_with(char::is_alphanumeric);
        if before.ends_with(of_a_word) || (after.starts_with(of_a_word) && !sentence_ends) {
            return false;
        }
        let between = |c: char| c.is_whitespace() || ":=\"'\\([,".contains(c);
        let before = before.trim_end_matches(between);
        let word = before.rsplit(between).next().unwrap_or_default();
        let after = after.trim_start_matches(|c| between(c) || c == ')');
        BEFORE.contains(&word)
            || (word.starts_with("http") && !word.contains("//"))
            || AFTER.iter().any(|words| after.starts_with(words))
    })
}

/// The attempts of a turn to send its prompt.
#[derive(Debug)]
pub struct Attempts {
    pub prompt: Prompt,
    /// Message that has the answer corrected, which is sent instead of the prompt once there is one.
    repair: Option<Value>,
    wish: RetryConsent,
    /// Number of times the prompt was sent.
    pub sent: u32,
    /// Reason why the agent does not have the prompt at the moment; `None` if it has it.
    pub pause: Option<Pause>,
    /// Receipt of the restore of the session, as the turn's last `data-recovery` chunk has it.
    pub recovery: Option<Recovery>,
    /// `true` after the one pause for a transient error.
    waited: bool,
    /// `true` if an attempt produced output other than its own error.
    output: bool,
    /// Byte offset in the turn's text at which the last attempt begins.
    text_at: usize,
    /// Number of files of the answer before the last attempt.
    files_at: usize,
    /// `true` if the turn ends with [`UNAVAILABLE`] and produced no other output.
    unavailable: bool,
}

/// A prompt as it is sent again.
#[derive(Debug)]
pub struct Prompt {
    /// `UIMessage` of the user.
    pub message: Value,
    /// `true` to send a link or a name in place of a file that the agent cannot take.
    pub degrade: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct RetryConsent {
    /// Send the prompt again after a transient error.
    pub transient: bool,
    /// Also if the turn has already produced output.
    pub after_output: bool,
}

/// Reason why the agent does not have the prompt of a running turn.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a turn has one at most")]
pub enum Pause {
    Transient {
        until: Instant,
    },
    /// The agent refused the prompt: its session list is searched for the session.
    Lookup {
        /// The refusal, which ends the turn if the agent has the session.
        refusal: TurnEnd,
        pages: u32,
        until: Instant,
    },
    /// The agent does not have the session: a new one is being created. Holds the error of the stale session.
    Stale(Error),
}

/// Consequence of an ended attempt.
#[derive(Debug)]
pub enum RetryDecision {
    Ends(Ending),
    /// The prompt is sent again: class of the error, the error, and the ending of the attempt.
    Retry(&'static str, Error, Ending),
}

/// Data of an attempt that an agent without memory needs to correct its answer.
#[derive(Debug)]
pub struct Forgotten {
    /// Request for an answer that matches the schema.
    pub schema: String,
    pub answer: String,
}

impl Attempts {
    #[must_use]
    pub fn first(prompt: Prompt, wish: RetryConsent) -> Self {
        Self {
            prompt,
            repair: None,
            wish,
            sent: 1,
            pause: None,
            recovery: None,
            waited: false,
            output: false,
            text_at: 0,
            files_at: 0,
            unavailable: false,
        }
    }

    /// Sets the message that has an answer corrected, to be sent next. `forgotten` is what an agent without
    /// memory needs of this attempt. Returns `false` if there was such a message before: an answer is
    /// corrected once.
    pub fn begin_repair(&mut self, violations: &[Violation], forgotten: Option<Forgotten>) -> bool {
        let is_first = self.repair.is_none();
        if is_first {
            let text = repair_request(violations);
            let mut message = json!({ "role": "user", "parts": [] });
            let mut texts = vec![text];
            if let Some(Forgotten { schema, answer }) = forgotten {
                message = self.prompt.message.clone();
                texts.splice(0..0, [schema, format!("Your answer was:\n\n{answer}")]);
            }
            if let Some(parts) = message["parts"].as_array_mut() {
                let texts = texts.iter();
                parts.extend(texts.map(|text| json!({ "type": "text", "text": text })));
            }
            self.repair = Some(message);
        }
        is_first
    }

    /// Prepares the prompt for a new session, which knows nothing of the earlier attempts.
    pub fn begin_anew(&mut self) {
        self.repair = None;
    }

    pub fn is_repair(&self) -> bool {
        self.repair.is_some()
    }

    pub fn message(&self) -> &Value {
        self.repair.as_ref().unwrap_or(&self.prompt.message)
    }

    /// Records that the prompt was sent again.
    pub fn next(&mut self, turn: &Turn) {
        self.sent += 1;
        self.pause = None;
        self.text_at = turn.text().len();
        self.files_at = turn.files().count();
    }

    /// When the pause ends; `None` without a timed pause.
    pub fn paused_until(&self) -> Option<Instant> {
        match self.pause.as_ref()? {
            Pause::Transient { until } | Pause::Lookup { until, .. } => Some(*until),
            Pause::Stale(_) => None,
        }
    }

    pub fn postpone(&mut self, by: Duration) {
        if let Some(Pause::Transient { until } | Pause::Lookup { until, .. }) = &mut self.pause {
            *until += by;
        }
    }

    /// Returns `true` if an earlier attempt produced output other than its own error.
    pub fn had_output(&self) -> bool {
        self.output
    }

    /// Decides whether an ended attempt ends the turn or the prompt is sent again.
    pub fn judge(&mut self, turn: &Turn, ending: Ending, now: Instant) -> RetryDecision {
        if !self.wish.transient {
            return RetryDecision::Ends(ending);
        }
        let said = self.said(turn);
        let failure = ending
            .error()
            .filter(|e| !was_repeated(e) && !needs_longer_wait(e))
            .and_then(|e| Some((transient(e)?, e.clone())));
        let Some((class, error)) = failure else {
            return RetryDecision::Ends(ending);
        };
        let has_files = turn.files().count() > self.files_at;
        self.output |=
            turn.has_tools() || has_files || !(said.is_empty() || is_the_error(said, &error));
        let may = self.wish.after_output || !self.output;
        if may && !self.waited && self.sent < MAX_ATTEMPTS {
            self.waited = true;
            self.pause = Some(Pause::Transient {
                until: now + RETRY_PAUSE,
            });
            return RetryDecision::Retry(class, error, ending);
        }
        self.unavailable = !self.output;
        let error = unavailable(&error);
        RetryDecision::Ends(match ending {
            // The ending keeps the cost of the attempt.
            Ending::Answered(end) => Ending::Answered(TurnEnd {
                error: Some(error),
                ..end
            }),
            Ending::Failed(_) => Ending::Failed(error),
        })
    }

    /// Text that the agent wrote in the last attempt.
    pub fn said<'t>(&self, turn: &'t Turn) -> &'t str {
        turn.text().get(self.text_at..).unwrap_or_default().trim()
    }

    /// Number of files of the answer before the last attempt.
    pub fn files_before(&self) -> usize {
        self.files_at
    }

    /// Extracts the answer from the text of the turn: the text of the last attempt, or [`UNAVAILABLE`] if the
    /// turn's only output was a transient error.
    pub fn answer(&self, mut text: String) -> String {
        if self.unavailable {
            return UNAVAILABLE.to_owned();
        }
        if text.is_char_boundary(self.text_at) {
            text.drain(..self.text_at);
        }
        text
    }
}

/// Returns the error of a turn that the agent ended with a stop reason such as `error` or `failed`. The last
/// line of the agent's text becomes part of the message, as it may be the cause.
pub fn printed_failure(said: &str, end: &TurnEnd) -> Option<Error> {
    if !end.is_named_failure() {
        return None;
    }
    let message = match said.lines().next_back() {
        Some(last) => format!(
            "the agent ended the turn with {}: {}",
            end.reported,
            clip(last)
        ),
        None => format!("the agent ended the turn with {}", end.reported),
    };
    let error = Error::new(ErrorKind::Session, message).with("raw", said);
    Some(match &end.details {
        Some(details) => error.with("agent", value(details)),
        None => error,
    })
}

/// Returns `true` if the text is only the error that ended the attempt: some agents print the error first.
fn is_the_error(said: &str, error: &Error) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    words(&error.message).contains(&words(said))
        || error.data.get("raw").and_then(Value::as_str) == Some(said)
        || (said.len() <= PRINTED_ERROR_LIMIT && !said.contains('\n') && class(said).is_some())
}

/// Returns `true` if a transport has sent the request several times already. Its error is reported as it is.
fn was_repeated(error: &Error) -> bool {
    let attempts = error.data.get("attempts").and_then(Value::as_u64);
    attempts.is_some_and(|attempts| attempts > 1)
}

/// Converts a transient error that persisted into [`UNAVAILABLE`], with the original error as `cause`.
fn unavailable(error: &Error) -> Error {
    let cause = json!({
        "kind": error.kind.name(),
        "message": error.message,
        "data": error.data,
    });
    Error::new(error.kind, UNAVAILABLE).with("cause", cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_errors_are_recognised_by_their_text() {
        let cases = [
            // Recorded from claude-agent-acp and codex-acp.
            (
                "Internal error: API Error: 529 mock 529. This is a server-side issue",
                Some("529"),
            ),
            (
                "unexpected status 529 <unknown status code>: Overloaded, url: http://127.0.0.1:8400/v1",
                Some("529"),
            ),
            ("Internal error: API Error: 400 mock 400", None),
            ("Internal error", None),
            // Gemini reports the status as the error code.
            (r#"{"code":500,"message":"x"}"#, Some("500")),
            (r#"500 {"type":"error"}"#, Some("500")),
            ("500 status code (no body)", Some("500")),
            ("Upstream gave 500 Internal Server Error", Some("500")),
            ("HTTP 500", Some("500")),
            ("HTTP/1.1 500.", Some("500")),
            ("Request failed with status code 500", Some("500")),
            ("API Error (500)", Some("500")),
            (r#"{"type":"API_ERROR"}"#, Some("api_error")),
            (r#"{"type":"overloaded_error"}"#, Some("overloaded")),
            ("Overloaded", Some("overloaded")),
            ("Rate limit reached for m", Some("rate_limit")),
            ("rate_limit_exceeded", Some("rate_limit")),
            ("took 1500 ms", None),
            ("error in /tmp/500/x", None),
            ("error at line 500", None),
            ("error 500.5", None),
            ("cannot reach 127.0.0.1:500", None),
            ("http://x 500", None),
            ("at most 500 tokens", None),
            ("status 5000", None),
            ("prices 0.529 and 529", None),
            ("API Error: 500 authentication_error", None),
            (r#"529 {"type":"invalid_request_error"}"#, None),
            ("Auth required: overloaded", None),
        ];
        for (text, want) in cases {
            assert_eq!(class(text), want, "{text}");
        }
    }

    #[test]
    fn printed_error_does_not_count_as_output() {
        let error = Error::new(
            ErrorKind::Session,
            "the agent answered session/prompt with an error: Internal error: API Error: 529 mock (-32603)",
        );
        for (said, want) in [
            ("API Error: 529 mock", true),
            ("API  Error:\n529 mock", true),
            ("stream error: 529 overloaded; giving up", true),
            ("The capital of France is", false),
            ("The answer\n\nAPI Error: 529 mock", false),
        ] {
            assert_eq!(is_the_error(said, &error), want, "{said}");
        }
    }

    #[test]
    fn answer_with_an_error_fails_and_keeps_its_cost() {
        struct Nowhere;
        impl crate::turn::TurnView for Nowhere {
            fn event(&mut self, _: &crate::turn::TurnEvent<'_>) {}
        }
        let names = std::sync::Arc::default();
        let mut turn = Turn::start("m".into(), &json!({}), &names, &mut Nowhere);
        let prompt = Prompt {
            message: Value::Null,
            degrade: false,
        };
        let wish = RetryConsent {
            transient: true,
            after_output: false,
        };
        let mut attempts = Attempts::first(prompt, wish);
        let now = Instant::now();
        let ending = |said| {
            Ending::Answered(TurnEnd {
                error: Some(Error::new(ErrorKind::Session, said)),
                cost: Some(2.0),
                ..TurnEnd::default()
            })
        };
        let verdict = attempts.judge(&turn, ending("API Error: 400"), now);
        let RetryDecision::Ends(Ending::Answered(end)) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(end.error.unwrap().message, "API Error: 400");
        let verdict = attempts.judge(&turn, ending("API Error: 529"), now);
        let RetryDecision::Retry("529", _, Ending::Answered(end)) = verdict else {
            panic!("{verdict:?}");
        };
        turn.account(&end);
        attempts.next(&turn);
        let verdict = attempts.judge(&turn, ending("API Error: 529"), now);
        let RetryDecision::Ends(Ending::Answered(end)) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(end.error.unwrap().message, UNAVAILABLE);
        assert_eq!((turn.figures().cost(), end.cost), (Some(2.0), Some(2.0)));
        assert_eq!(attempts.answer(String::new()), UNAVAILABLE);
    }
}
