//! Messages of the client, read by a thread.

use super::message::{ClientMessage, Language};
use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Capacity of the queue, in lines.
const QUEUE: usize = 64;

/// Result of a wait for the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Another message has arrived.
    Message,
    /// Nothing has arrived in time.
    Timeout,
    /// The client has closed stdin.
    End,
}

/// Messages of the client that no step has taken.
pub struct ClientInbox {
    lines: Receiver<String>,
    language: Language,
    pub waiting: Vec<ClientMessage>,
}

impl ClientInbox {
    /// Starts the thread, which reads to the end of the input.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(input: impl BufRead + Send + 'static, language: Language) -> io::Result<Self> {
        let (sender, lines) = sync_channel(QUEUE);
        let mut input = input;
        std::thread::Builder::new()
            .name("stdin".into())
            .spawn(move || {
                let mut line = Vec::new();
                // A read error ends the input, too.
                while matches!(input.read_until(b'\n', &mut line), Ok(1..)) {
                    let text = String::from_utf8_lossy(&line).trim().to_owned();
                    line.clear();
                    if sender.send(text).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            lines,
            language,
            waiting: Vec::new(),
        })
    }

    /// Waits for the next message; without a limit, as long as it takes.
    pub fn next(&mut self, limit: Option<Duration>) -> Arrival {
        let line = match limit {
            Some(limit) => self.lines.recv_timeout(limit),
            None => self
                .lines
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        match line {
            Ok(line) => {
                self.waiting.extend(self.language.client_message(&line));
                Arrival::Message
            }
            Err(RecvTimeoutError::Timeout) => Arrival::Timeout,
            Err(RecvTimeoutError::Disconnected) => Arrival::End,
        }
    }

    /// Takes the message that fits best to one of the tape.
    pub fn take(&mut self, want: &ClientMessage) -> Option<ClientMessage> {
        let fits = self.waiting.iter().enumerate();
        let fits = fits.filter_map(|(at, got)| Some((want.fit(got)?, at)));
        let (_, at) = fits.min()?;
        Some(self.waiting.remove(at))
    }
}
