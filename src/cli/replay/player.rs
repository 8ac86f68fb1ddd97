//! Plays the steps of a process to its client.

use super::inbox::{Arrival, ClientInbox};
use super::message::{AgentMessage, ClientMessage, ClientMessageKind, Language, session_of};
use super::script::{Action, ProcessExit, ReplayStep};
use acpipe_json::rpc;
use acpipe_json::rpc::Message;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Time that a message of the tape is waited for while the client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time that it is waited for while the client has sent a request that follows later in the tape.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// Maximum time that the process waits for the signal that ends it.
const SIGNAL_WAIT: Duration = Duration::from_secs(60);

/// Shortest id that is replaced in all texts; a shorter one may be a part of another text.
const SHORTEST_ID: usize = 8;

/// Pauses of a replay.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Divisor of the pauses.
    pub speed: f64,
    /// Longest pause; `None` for no limit.
    pub longest: Option<Duration>,
}

impl Pace {
    fn pause(self, recorded: Duration) -> Duration {
        let pause = self.longest.map_or(recorded, |most| recorded.min(most));
        pause.div_f64(self.speed)
    }
}

/// Player of one process.
pub struct Player<W> {
    language: Language,
    steps: Vec<ReplayStep>,
    /// `None` for no pauses.
    pace: Option<Pace>,
    inbox: ClientInbox,
    out: W,
    /// Ids of the tape's requests → those of the client's.
    ids: HashMap<String, String>,
    /// Requests and prompts of the tape that are not answered yet.
    open: Vec<ClientMessageKind>,
    /// Ids of the tape, in quotes → those of the client.
    renamed: Vec<(String, String)>,
    /// Requests of the tape that restored a session and are answered as new sessions → the session.
    restored: HashMap<String, String>,
    /// Writes a message for the user.
    note: fn(&str),
}

/// Result of a wait for a message.
#[derive(Debug, PartialEq, Eq)]
enum Met {
    Yes,
    /// The client has left.
    Left,
}

impl<W: Write> Player<W> {
    /// Creates a player.
    pub fn new(
        (language, steps): (Language, Vec<ReplayStep>),
        pace: Option<Pace>,
        inbox: ClientInbox,
        out: W,
        note: fn(&str),
    ) -> Self {
        Self {
            language,
            steps,
            pace,
            inbox,
            out,
            ids: HashMap::new(),
            open: Vec::new(),
            renamed: Vec::new(),
            restored: HashMap::new(),
            note,
        }
    }

    /// Replaces an id of the tape by one of the client in everything that is sent.
    pub fn rename(&mut self, recorded: &str, own: &str) {
        if recorded != own && recorded.len() >= SHORTEST_ID && !own.is_empty() {
            self.renamed.push((
                Value::from(recorded).to_string(),
                Value::from(own).to_string(),
            ));
        }
    }

    /// Plays all steps and returns how the process ends.
    ///
    /// # Errors
    /// The client does not read its input any more.
    pub fn play(mut self) -> io::Result<ProcessExit> {
        let steps = std::mem::take(&mut self.steps);
        for (at, step) in steps.iter().enumerate() {
            let before = at.checked_sub(1).map_or(step.at, |before| steps[before].at);
            match &step.action {
                Action::Expect(want) => {
                    if self.expect(want, &steps[at..])? == Met::Left {
                        return Ok(ProcessExit::default());
                    }
                }
                Action::Send(line) => {
                    self.pause(step.at.saturating_sub(before))?;
                    self.send(line)?;
                }
                Action::AwaitEnd => self.await_end()?,
                Action::AwaitSignal => {
                    self.out.flush()?;
                    std::thread::sleep(SIGNAL_WAIT);
                }
                Action::Exit(ending) => {
                    self.pause(step.at.saturating_sub(before))?;
                    self.out.flush()?;
                    return Ok(ending.clone());
                }
            }
        }
        if self.language != Language::Text {
            self.await_end()?;
        }
        self.out.flush()?;
        Ok(ProcessExit::default())
    }

    fn pause(&mut self, recorded: Duration) -> io::Result<()> {
        let pause = self
            .pace
            .map_or(Duration::ZERO, |pace| pace.pause(recorded));
        if !pause.is_zero() {
            self.out.flush()?;
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Waits for a message of the client. One that does not come while the client waits for an answer is
    /// skipped.
    fn expect(&mut self, want: &ClientMessage, ahead: &[ReplayStep]) -> io::Result<Met> {
        self.out.flush()?;
        let since = Instant::now();
        loop {
            if let Some(got) = self.inbox.take(want) {
                self.met(want, &got, ahead);
                return Ok(Met::Yes);
            }
            self.refuse_unexpected(Some(want), ahead)?;
            let patience = self.patience(want);
            let left = patience.map(|patience| patience.saturating_sub(since.elapsed()));
            match self.inbox.next(left) {
                Arrival::Message => {}
                Arrival::End if self.inbox.waiting.is_empty() => return Ok(Met::Left),
                Arrival::Timeout | Arrival::End => {
                    (self.note)(&format!(
                        "the client does not send {}, which the tape has here; the replay goes on without it",
                        want.described()
                    ));
                    return Ok(Met::Yes);
                }
            }
        }
    }

    /// Returns how long a message is waited for; `None` for no limit.
    fn patience(&self, want: &ClientMessage) -> Option<Duration> {
        if matches!(want.kind, ClientMessageKind::Response(_)) {
            // The agent waits for its answer, too.
            return None;
        }
        if self.inbox.waiting.iter().any(ClientMessage::waits) {
            return Some(SHORT_PATIENCE);
        }
        (!self.open.is_empty()).then_some(PATIENCE)
    }

    /// Pairs a message of the client with one of the tape.
    fn met(&mut self, want: &ClientMessage, got: &ClientMessage, ahead: &[ReplayStep]) {
        match (&want.kind, &got.kind) {
            (ClientMessageKind::Request(recorded), ClientMessageKind::Request(id)) => {
                self.ids.insert(recorded.clone(), id.clone());
                self.open.push(want.kind.clone());
                if want.opens_session() {
                    self.open_session(recorded, want, got, ahead);
                }
            }
            (ClientMessageKind::Prompt(recorded), ClientMessageKind::Prompt(uuid)) => {
                self.open.push(want.kind.clone());
                self.rename(recorded, uuid);
            }
            (ClientMessageKind::Response(id), _) if want.outcome() != got.outcome() => {
                (self.note)(&format!(
                    "the client answers request {id} in another way than in the tape; the agent goes on as in the tape"
                ));
            }
            _ => {}
        }
    }

    /// Adapts the session of the tape to how the client opens it.
    fn open_session(
        &mut self,
        id: &str,
        want: &ClientMessage,
        got: &ClientMessage,
        ahead: &[ReplayStep],
    ) {
        let opened = || {
            ahead.iter().find_map(|step| match &step.action {
                Action::Send(line) => match rpc::parse(line).ok()? {
                    Message::Response {
                        id: Some(answered),
                        outcome: Ok(result),
                    } if answered.get() == id => session_of(Some(result)),
                    _ => None,
                },
                _ => None,
            })
        };
        let Some(recorded) = want.session.clone().or_else(opened) else {
            return;
        };
        match &got.session {
            Some(own) => self.rename(&recorded, own),
            None if want.session.is_some() => {
                self.restored.insert(id.to_owned(), recorded);
            }
            None => {}
        }
    }

    /// Answers the messages that neither fit here nor later in the tape.
    fn refuse_unexpected(
        &mut self,
        want: Option<&ClientMessage>,
        ahead: &[ReplayStep],
    ) -> io::Result<()> {
        let is_later = |got: &ClientMessage| {
            let mut ahead = ahead.iter();
            ahead
                .any(|step| matches!(&step.action, Action::Expect(want) if want.fit(got).is_some()))
        };
        let waiting = std::mem::take(&mut self.inbox.waiting);
        let (later, unexpected) = waiting.into_iter().partition(is_later);
        self.inbox.waiting = later;
        for got in unexpected {
            let place = want.map_or("nothing more".to_owned(), ClientMessage::described);
            let why = format!(
                "the tape does not have {} here; it has {place}. Send the messages of the tape, or record another tape",
                got.described()
            );
            (self.note)(&why);
            if let Some(answer) = self
                .language
                .refusal(&got, &format!("acpipe replay: {why}"))
            {
                self.line(&answer)?;
                self.out.flush()?;
            }
        }
        Ok(())
    }

    /// Sends a line of the agent.
    fn send(&mut self, line: &str) -> io::Result<()> {
        let line = match self.language.agent_message(line) {
            AgentMessage::Response(recorded) => {
                // The request was skipped.
                let Some(id) = self.ids.get(&recorded) else {
                    return Ok(());
                };
                let own = self.language.with_id(line, id);
                let answered = ClientMessageKind::Request(recorded.clone());
                self.open.retain(|open| *open != answered);
                match self.restored.remove(&recorded) {
                    Some(session) => with_session(&own, &session),
                    None => own,
                }
            }
            AgentMessage::Result => {
                let is_prompt =
                    |open: &ClientMessageKind| matches!(open, ClientMessageKind::Prompt(_));
                if let Some(at) = self.open.iter().position(is_prompt) {
                    self.open.remove(at);
                }
                line.to_owned()
            }
            AgentMessage::Other => line.to_owned(),
        };
        self.line(&line)
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        let mut line = line.to_owned();
        for (recorded, own) in &self.renamed {
            if line.contains(recorded.as_str()) {
                line = line.replace(recorded.as_str(), own);
            }
        }
        line.push('\n');
        self.out.write_all(line.as_bytes())
    }

    /// Waits until the client closes stdin.
    fn await_end(&mut self) -> io::Result<()> {
        loop {
            self.refuse_unexpected(None, &[])?;
            self.out.flush()?;
            if self.inbox.next(None) == Arrival::End {
                return Ok(());
            }
        }
    }
}

/// Adds the session to the result of a request that restored it.
fn with_session(line: &str, session: &str) -> String {
    let Ok(mut message) = serde_json::from_str::<Value>(line) else {
        return line.to_owned();
    };
    match message.get_mut("result") {
        Some(Value::Object(result)) => {
            result.insert("sessionId".to_owned(), session.into());
        }
        Some(result @ Value::Null) => *result = serde_json::json!({ "sessionId": session }),
        _ => {}
    }
    message.to_string()
}
