//! Steps of one process of a tape.

use super::message::{ClientMessage, Language};
use acpipe_protocol::tape::{Direction, EventKind, Side, TapeEvent, TapeProcess, TapeRecord};
use std::time::Duration;

/// Steps of one process of a tape.
#[derive(Debug)]
pub struct Script {
    /// Name and number of the process.
    pub process: TapeProcess,
    /// Program and arguments; empty if the tape does not have them.
    pub command: Vec<String>,
    /// Protocol.
    pub language: Language,
    pub steps: Vec<ReplayStep>,
}

/// A step with its time.
#[derive(Debug)]
pub struct ReplayStep {
    pub at: Duration,
    pub action: Action,
}

/// Action of a step.
#[derive(Debug)]
pub enum Action {
    /// The client sends this message.
    Expect(ClientMessage),
    /// The agent sends this line.
    Send(String),
    /// The client closes the agent's stdin.
    AwaitEnd,
    /// acpipe ends the process with a signal.
    AwaitSignal,
    /// The process exits.
    Exit(ProcessExit),
}

/// Exit of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessExit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Last output on stderr.
    pub stderr: String,
}

/// All that is known of a process before its protocol is.
struct FoundProcess {
    process: TapeProcess,
    command: Vec<String>,
    lines: Vec<(Duration, FoundStep)>,
}

enum FoundStep {
    In(String),
    Out(String),
    Event(TapeEvent),
}

/// Returns the processes of a tape, in the order of their first records.
pub fn scripts<'a>(records: impl Iterator<Item = TapeRecord<'a>>) -> Vec<Script> {
    let mut found: Vec<FoundProcess> = Vec::new();
    for record in records {
        let (at, process, step) = match record {
            TapeRecord::Header(_) => continue,
            TapeRecord::Frame(frame) if frame.side == Side::Client => continue,
            TapeRecord::Frame(frame) => {
                let line = frame.body.line().to_owned();
                let step = match frame.direction {
                    Direction::In => FoundStep::In(line),
                    Direction::Out => FoundStep::Out(line),
                };
                (frame.at, frame.process, step)
            }
            TapeRecord::Event(event) => match event.kind {
                EventKind::Dropped | EventKind::Full | EventKind::Unknown => continue,
                _ => (event.at, event.process.clone(), FoundStep::Event(event)),
            },
        };
        let known = found.iter().position(|found| found.process == process);
        let known = known.unwrap_or_else(|| {
            found.push(FoundProcess {
                process,
                command: Vec::new(),
                lines: Vec::new(),
            });
            found.len() - 1
        });
        let process = &mut found[known];
        if let FoundStep::Event(event) = &step
            && !event.command.is_empty()
        {
            process.command.clone_from(&event.command);
        }
        process.lines.push((at, step));
    }
    found.into_iter().map(FoundProcess::script).collect()
}

impl FoundProcess {
    fn script(self) -> Script {
        let language = self.lines.iter().find_map(|(_, step)| match step {
            FoundStep::In(line) | FoundStep::Out(line) => Language::of(line),
            FoundStep::Event(_) => None,
        });
        let language = language.unwrap_or(Language::Text);
        let steps = self.lines.into_iter().filter_map(|(at, step)| {
            let action = match step {
                FoundStep::In(line) => Action::Send(line),
                // A line that is not a message cannot be matched.
                FoundStep::Out(line) => Action::Expect(language.client_message(&line)?),
                FoundStep::Event(event) => match event.kind {
                    EventKind::Closed if language == Language::Text => return None,
                    EventKind::Closed => Action::AwaitEnd,
                    EventKind::Killed => Action::AwaitSignal,
                    EventKind::Exited => Action::Exit(ProcessExit {
                        code: event.code,
                        signal: event.signal,
                        stderr: event.stderr.unwrap_or_default(),
                    }),
                    EventKind::Failed => Action::Exit(ProcessExit {
                        code: Some(1),
                        signal: None,
                        stderr: event.stderr.unwrap_or_default(),
                    }),
                    _ => return None,
                },
            };
            Some(ReplayStep { at, action })
        });
        Script {
            process: self.process,
            command: self.command,
            language,
            steps: steps.collect(),
        }
    }
}

impl Script {
    /// Returns `true` if the process only printed its version.
    pub fn is_version_query(&self) -> bool {
        self.command.last().is_some_and(|word| word == "--version")
    }

    /// Returns `true` if the process is an HTTP request.
    pub fn is_http(&self) -> bool {
        self.command.first().is_some_and(|word| word == "POST")
    }

    /// Returns `true` if the process sends or receives messages.
    pub fn has_messages(&self) -> bool {
        let is_message =
            |step: &ReplayStep| matches!(step.action, Action::Expect(_) | Action::Send(_));
        self.steps.iter().any(is_message)
    }

    /// Returns the lines that the process sends.
    pub fn sent(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.action {
            Action::Send(line) => Some(line.as_str()),
            _ => None,
        })
    }

    /// Returns the value of an option of the process's command line.
    pub fn option(&self, name: &str) -> Option<&str> {
        option(&self.command, name)
    }

    /// Describes the process for people.
    pub fn described(&self) -> String {
        let number = self.process.child;
        let number = number.map_or("a process without a number".to_owned(), |n| n.to_string());
        match (&self.process.agent, self.command.first()) {
            (Some(agent), Some(program)) => format!("{number} ({agent}: {program})"),
            (Some(agent), None) => format!("{number} ({agent})"),
            (None, _) => number,
        }
    }
}

/// Returns the value of an option, `--name=VALUE` or `--name VALUE`.
pub fn option<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    args.iter().enumerate().find_map(|(at, arg)| {
        let rest = arg.strip_prefix(name)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None if rest.is_empty() => args.get(at + 1).map(String::as_str),
            None => None,
        }
    })
}
