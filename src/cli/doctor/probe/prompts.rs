//! Prompts, one alone and one in each of two sessions; the list of sessions, and closing one.

use super::{Finding, Probe, Results};
use crate::cli::doctor::acp::{DoctorConnection, Outcome};
use crate::cli::doctor::basics::{new_session, sign_in};
use crate::cli::doctor::report::{Check, shown};
use serde_json::{Value, json};
use std::time::Instant;

/// Maximum number of pages of the list that are read.
const PAGES: usize = 20;

/// Words of the prompts in two sessions. Neither occurs in the other session.
const WORDS: [&str; 2] = ["ALPHA", "BETA"];

impl Probe<'_> {
    /// Sends the first prompt, and waits for output after its end. Returns `false` if the agent does not
    /// answer it.
    pub(super) async fn first_prompt(
        &self,
        connection: &mut DoctorConnection,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<bool> {
        const NAME: &str = "prompt";
        let since = Instant::now();
        let id = connection.prompt(session, "Reply with the word OK.");
        let outcome = connection.response(id, since, self.limits.prompt).await;
        let time = match &outcome {
            Outcome::Result(_, time) => *time,
            Outcome::Error(fault) if fault.wants_sign_in => {
                results.add(sign_in(NAME, fault, self.subject))?;
                return Ok(false);
            }
            Outcome::Error(_)
            | Outcome::OtherSession(_)
            | Outcome::NoAnswer(_)
            | Outcome::Exited(_) => {
                let advice = "check the agent's model and key with its own program";
                results.add(Check::problem(NAME, outcome.describe(), advice))?;
                return Ok(false);
            }
        };
        let ended = since + time;
        let deadline = Instant::now() + self.limits.prompt;
        connection
            .settle(session, self.limits.quiet, deadline)
            .await;
        let output: Vec<Instant> = connection.seen().output_of(session).map(|u| u.at).collect();
        let Some((first, last)) = output.first().zip(output.last()) else {
            let advice =
                "a failure of the model may be hidden; check the agent with its own program";
            let found = "answered without any output";
            return results
                .add(Check::warning(NAME, found, advice))
                .map(|()| true);
        };
        let first = first.duration_since(since);
        let found = format!(
            "first output after {}, end after {}",
            shown(first),
            shown(time)
        );
        results.add(
            Check::ok(NAME, found)
                .time("firstOutputMs", first)
                .time("ms", time),
        )?;
        if *last > ended {
            let late = last.duration_since(ended);
            results.fault("late output", Finding::LateOutput(late))?;
        } else {
            let found = format!("none within {} after the end", shown(self.limits.quiet));
            results.add(Check::ok("late output", found))?;
        }
        Ok(true)
    }

    /// Sends a prompt, opens a second session in the same process while the turn runs, and sends a prompt
    /// there; then closes it. Returns `true` if no turn runs afterwards.
    pub(super) async fn two_sessions(
        &self,
        connection: &mut DoctorConnection,
        first: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<bool> {
        const NAME: &str = "two sessions";
        let before = connection.seen().updates.len();
        let since = Instant::now();
        let prompt = |n: usize| format!("Reply with the word {}.", WORDS[n]);
        // Some agents drop the turn of the first session when a second one is opened.
        let first_call = connection.prompt(first, &prompt(0));
        let opened = new_session(connection, &self.cwd, &self.limits, self.subject).await;
        let Some(second) = opened.1 else {
            let why = "the second session/new failed".to_owned();
            results.fault(NAME, Finding::OneSessionPerProcess(why))?;
            let left = connection.response(first_call, since, self.limits.prompt);
            return Ok(left.await.is_answer());
        };
        if second == first {
            let why = "both have the same id".to_owned();
            results.fault(NAME, Finding::OneSessionPerProcess(why))?;
            let left = connection.response(first_call, since, self.limits.prompt);
            return Ok(left.await.is_answer());
        }
        let sessions = [first, &second];
        let ids = [first_call, connection.prompt(&second, &prompt(1))];
        let mut outcomes = Vec::new();
        for id in ids {
            outcomes.push(connection.response(id, since, self.limits.prompt).await);
        }
        let is_idle = outcomes.iter().all(Outcome::is_answer);
        let fault = outcomes.iter().zip(["first", "second"]);
        let fault = fault.filter(|(outcome, _)| !outcome.is_success());
        let fault = fault.map(|(outcome, which)| {
            format!(
                "the prompt in the {which} session failed: {}",
                outcome.describe()
            )
        });
        let updates = &connection.seen().updates[before..];
        let mixed = updates
            .iter()
            .filter(|update| update.is_output())
            .find_map(|update| {
                let own = sessions
                    .iter()
                    .position(|session| *session == update.session);
                match own {
                    None => Some("output has the id of neither session".to_owned()),
                    Some(own) => update
                        .text
                        .contains(WORDS[1 - own])
                        .then(|| "output of one has the id of the other".to_owned()),
                }
            });
        match fault.chain(mixed).next() {
            Some(why) => results.fault(NAME, Finding::OneSessionPerProcess(why))?,
            None => results.add(Check::ok(NAME, "both answered, output has the right ids"))?,
        }
        if is_idle {
            self.close(connection, &second, results).await?;
        }
        Ok(is_idle)
    }

    /// Searches the session in the agent's list.
    pub(super) async fn list(
        &self,
        connection: &mut DoctorConnection,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<()> {
        const NAME: &str = "session/list";
        if !self.capabilities.list {
            return results.add(Check::ok(NAME, "not offered"));
        }
        let mut params = json!({"cwd": self.cwd});
        for _ in 0..PAGES {
            let outcome = connection.request(NAME, &params, self.limits.answer).await;
            let Outcome::Result(page, _) = &outcome else {
                return results.fault(NAME, Finding::BrokenList(outcome.describe()));
            };
            let mut sessions = page["sessions"].as_array().into_iter().flatten();
            if sessions.any(|listed| listed["sessionId"] == session) {
                return results.outcome(NAME, &outcome);
            }
            match &page["nextCursor"] {
                Value::String(cursor) => params["cursor"] = json!(cursor),
                _ => break,
            }
        }
        let why = "it does not contain the session".to_owned();
        results.fault(NAME, Finding::BrokenList(why))
    }

    /// Closes a session.
    async fn close(
        &self,
        connection: &mut DoctorConnection,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<()> {
        const NAME: &str = "session/close";
        if !self.capabilities.close {
            return results.add(Check::ok(NAME, "not offered"));
        }
        let params = json!({"sessionId": session});
        let outcome = connection.request(NAME, &params, self.limits.answer).await;
        if outcome.is_answer() {
            results.outcome(NAME, &outcome)
        } else {
            results.fault(NAME, Finding::BrokenClose(outcome.describe()))
        }
    }
}
