//! Prompts that are sent again: which errors pass by themselves, and what a turn knows of its attempts.

use super::error::{Error, ErrorKind, clip};
use super::event::{StopReason, TurnEnd};
use super::turn::Turn;
use super::turn_ending::Ending;
use crate::proto::json::value;
use crate::proto::wire::Recovery;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often a prompt is sent at most: first, to a new session in the place of a stale one, and after a
/// transient error.
pub const ATTEMPTS: u32 = 3;

/// For how long a transient error is given time to pass.
pub const WAIT: Duration = Duration::from_secs(2);

/// What is said of a transient error that did not pass (row L-46 of the demands); callers match it.
pub const UNAVAILABLE: &str =
    "The AI service is temporarily unavailable. Please try again in a moment.";

/// Up to this size, in bytes, a line with the signs of a transient error is one that was printed.
const PRINTED: usize = 500;

/// The statuses of an answer that are transient.
const STATUSES: &[&str] = &["529", "500"];

/// The other transient errors, each by what is said in it.
const WORDS: &[(&str, &[&str])] = &[
    ("overloaded", &["overloaded"]),
    ("rate_limit", &["rate_limit", "rate limit", "rate-limit"]),
    ("api_error", &["api_error"]),
];

/// What is said in errors that come again however often the prompt is sent.
const LASTING: &[&str] = &[
    "authentication_error",
    "invalid_request_error",
    "auth required",
    "authentication required",
];

/// The class of an agent's error that may pass by itself.
#[must_use]
pub fn transient(error: &Error) -> Option<&'static str> {
    if !matches!(error.kind, ErrorKind::Session | ErrorKind::Network) {
        return None;
    }
    let raw = error.data.get("raw").and_then(Value::as_str);
    class(&format!("{} {}", error.message, raw.unwrap_or_default()))
}

fn class(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    if LASTING.iter().any(|words| text.contains(words)) {
        return None;
    }
    let status = STATUSES.iter().find(|status| has_status(&text, status));
    let said = |(_, words): &&(&str, &[&str])| words.iter().any(|word| text.contains(word));
    status
        .copied()
        .or_else(|| WORDS.iter().find(said).map(|(name, _)| *name))
}

/// Whether a number stands in a text (in lower case) as the status of an answer, not as any number.
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

/// What a turn knows of its attempts.
#[derive(Debug)]
pub struct Attempts {
    pub prompt: Prompt,
    wish: Wish,
    /// How often the prompt was sent.
    pub sent: u32,
    /// Why it is not with the agent now.
    pub pause: Option<Pause>,
    /// The receipt of the session that took the place of a stale one.
    pub recovery: Option<Recovery>,
    /// Whether a transient error was given its time.
    waited: bool,
    /// Whether an attempt said or did anything but print its own error.
    output: bool,
    /// Where the text of the last attempt begins.
    text_at: usize,
    /// Whether the turn ends with [`UNAVAILABLE`] and said nothing else.
    unavailable: bool,
}

/// What is sent again.
#[derive(Debug)]
pub struct Prompt {
    /// The `UIMessage` of the user.
    pub message: Value,
    pub degrade: bool,
}

/// What the client allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish {
    /// To send the prompt again after a transient error.
    pub transient: bool,
    /// Even if the turn had said or done something.
    pub after_output: bool,
}

/// Why the prompt of a turn is not with the agent.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a turn has one at most")]
pub enum Pause {
    /// A transient error gets time to pass.
    Transient { until: Instant },
    /// The agent refused: its list is asked whether it has the session at all.
    Doubt {
        refusal: TurnEnd,
        pages: u32,
        until: Instant,
    },
    /// The agent does not have the session: a new one is made.
    Stale(Error),
}

/// What a failure of the agent leads to.
#[derive(Debug)]
pub enum Verdict {
    /// The turn is over.
    Ends(Ending),
    /// The prompt is sent again, after an error of this class, with which the attempt ended so.
    Again(&'static str, Error, Ending),
}

impl Attempts {
    /// The first attempt.
    #[must_use]
    pub fn first(prompt: Prompt, wish: Wish) -> Self {
        Self {
            prompt,
            wish,
            sent: 1,
            pause: None,
            recovery: None,
            waited: false,
            output: false,
            text_at: 0,
            unavailable: false,
        }
    }

    /// The prompt was sent once more.
    pub fn next(&mut self, turn: &Turn) {
        self.sent += 1;
        self.pause = None;
        self.text_at = turn.text().len();
    }

    /// When the pause is over.
    #[must_use]
    pub fn paused_until(&self) -> Option<Instant> {
        match self.pause.as_ref()? {
            Pause::Transient { until } | Pause::Doubt { until, .. } => Some(*until),
            Pause::Stale(_) => None,
        }
    }

    /// Puts off the end of the pause.
    pub fn postpone(&mut self, by: Duration) {
        if let Some(Pause::Transient { until } | Pause::Doubt { until, .. }) = &mut self.pause {
            *until += by;
        }
    }

    /// What becomes of an attempt that ended so.
    pub fn judge(&mut self, turn: &Turn, ending: Ending, now: Instant) -> Verdict {
        if !self.wish.transient {
            return Verdict::Ends(ending);
        }
        let said = self.said(turn);
        let failure = ending
            .error()
            .and_then(|e| Some((transient(e)?, e.clone())));
        let Some((class, error)) = failure else {
            return Verdict::Ends(ending);
        };
        self.output |= turn.has_tools() || !(said.is_empty() || is_the_error(said, &error));
        let may = self.wish.after_output || !self.output;
        if may && !self.waited && self.sent < ATTEMPTS {
            self.waited = true;
            self.pause = Some(Pause::Transient { until: now + WAIT });
            return Verdict::Again(class, error, ending);
        }
        self.unavailable = !self.output;
        let error = unavailable(&error);
        Verdict::Ends(match ending {
            // What it cost is not lost with it.
            Ending::Answered(end) => Ending::Answered(TurnEnd {
                error: Some(error),
                ..end
            }),
            Ending::Failed(_) => Ending::Failed(error),
        })
    }

    /// What the agent wrote in this attempt.
    #[must_use]
    pub fn said<'t>(&self, turn: &'t Turn) -> &'t str {
        turn.text().get(self.text_at..).unwrap_or_default().trim()
    }

    /// The text of the answer, out of all that the turn said: what the last attempt said, or where that is
    /// nothing but a transient error, what is said of it.
    #[must_use]
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

/// The error of a turn that the agent ended with a word for failure: what it wrote may be the reason.
#[must_use]
pub fn printed_failure(said: &str, end: &TurnEnd) -> Option<Error> {
    let failed = end.stop_reason == StopReason::Unknown
        && ["error", "failed", "failure"]
            .iter()
            .any(|word| end.reported.eq_ignore_ascii_case(word));
    if !failed {
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

/// Whether what was said is only the error that ended the attempt: some agents print it first.
fn is_the_error(said: &str, error: &Error) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    words(&error.message).contains(&words(said))
        || error.data.get("raw").and_then(Value::as_str) == Some(said)
        || (said.len() <= PRINTED && !said.contains('\n') && class(said).is_some())
}

/// A transient error that did not pass, in words for users; the error itself stands beside them.
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
    fn errors_that_pass_are_told_by_what_they_say() {
        let cases = [
            // As recorded of claude-agent-acp and codex-acp.
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
            // Gemini gives the status as the code of the error.
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
    fn an_error_that_is_printed_first_is_no_output() {
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
    fn an_answer_with_an_error_is_a_failure_and_keeps_what_it_cost() {
        struct Nowhere;
        impl crate::core::turn::TurnView for Nowhere {
            fn event(&mut self, _: &crate::core::turn::TurnEvent<'_>) {}
        }
        let names = std::sync::Arc::default();
        let mut turn = Turn::start("m".into(), &json!({}), &names, &mut Nowhere);
        let prompt = Prompt {
            message: Value::Null,
            degrade: false,
        };
        let wish = Wish {
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
        let Verdict::Ends(Ending::Answered(end)) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(end.error.unwrap().message, "API Error: 400");
        let verdict = attempts.judge(&turn, ending("API Error: 529"), now);
        let Verdict::Again("529", _, Ending::Answered(end)) = verdict else {
            panic!("{verdict:?}");
        };
        turn.account(&end);
        attempts.next(&turn);
        let verdict = attempts.judge(&turn, ending("API Error: 529"), now);
        let Verdict::Ends(Ending::Answered(end)) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(end.error.unwrap().message, UNAVAILABLE);
        assert_eq!((turn.cost(), end.cost), (Some(2.0), Some(2.0)));
        assert_eq!(attempts.answer(String::new()), UNAVAILABLE);
    }
}
