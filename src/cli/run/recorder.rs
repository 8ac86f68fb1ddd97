//! Frames of a run in its tape: those that a client of `acpipe serve` would exchange for the same calls.

use crate::cli::rpc::write_error;
use acpipe_core::client::{Command, Reply};
use acpipe_core::client_sink::ChunkAddress;
use acpipe_host::{ClientAction, Recorder};
use acpipe_json::{rpc, to_raw};
use acpipe_model::error::Error;
use acpipe_protocol::tape::Direction;
use serde_json::{Value, json};

/// Recorder of a run's calls and chunks; does nothing if nothing is recorded.
#[derive(Debug, Default)]
pub struct RunRecorder {
    recorder: Option<Recorder>,
    /// Id of the last call.
    last: u64,
}

impl RunRecorder {
    /// Records to this recorder.
    pub fn new(recorder: Option<Recorder>) -> Self {
        Self { recorder, last: 0 }
    }

    /// Records an action that the loop takes, if it is a call.
    pub fn action(&mut self, action: Option<&ClientAction>) {
        if let (Some(recorder), Some(ClientAction::Command(_, command))) = (&self.recorder, action)
        {
            self.last += 1;
            let mut out = Vec::new();
            let method = command.method().name;
            rpc::write_request(&mut out, &self.last, method, &params(command));
            recorder.client(Direction::In, &out);
        }
    }

    /// Records the reply to the last call.
    pub fn reply(&self, answer: &Result<Reply, Error>) {
        if let Some(recorder) = &self.recorder {
            let (mut out, id) = (Vec::new(), to_raw(&self.last));
            match answer {
                Ok(reply) => rpc::write_result(&mut out, &id, reply),
                Err(error) => write_error(&mut out, &id, error),
            }
            recorder.client(Direction::Out, &out);
        }
    }

    /// Records a chunk.
    pub fn chunk(&self, place: ChunkAddress<'_>, chunk: &[u8]) {
        if let Some(recorder) = &self.recorder {
            let (session, turn) = (to_raw(&place.session), to_raw(&place.turn));
            let begin = format!(
                r#"{{"jsonrpc":"2.0","method":"session/chunk","params":{{"sessionId":{session},"turnId":{turn},"seq":{},"chunk":"#,
                place.seq
            );
            recorder.client(Direction::Out, &[begin.as_bytes(), chunk, b"}}"].concat());
        }
    }
}

/// Returns the main parameters of a call.
fn params(command: &Command) -> Value {
    match command {
        Command::Ensure(ensure) => json!({
            "sessionId": ensure.session_id,
            "cwd": ensure.cwd,
            "agent": ensure.agent,
        }),
        Command::Prompt(prompt) => json!({
            "sessionId": prompt.session_id,
            "turnId": prompt.turn_id,
            "message": { "role": "user", "parts": prompt.message.parts },
        }),
        Command::Cancel(cancel) => json!({ "sessionId": cancel.session_id }),
        _ => json!({}),
    }
}
