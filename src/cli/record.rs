//! Tape of a command: its file, and the redaction of its frames.

use super::UsageError;
use super::args::record::RecordArgs;
use acpipe_host::{Recorder, RecorderThread, open_tape};
use acpipe_model::secret::{Secrets, hide_in_frame};

/// Recording of a command. Dropping it writes the rest of the tape.
pub struct Recording(Option<(Recorder, RecorderThread)>);

impl Recording {
    /// Starts the recording, if the command line requests one.
    pub fn start(args: &RecordArgs, secrets: &Secrets) -> anyhow::Result<Self> {
        let Some(path) = &args.record else {
            return Ok(Self(None));
        };
        let (secrets, limit) = (secrets.clone(), args.record_limit as u64);
        let redact =
            Box::new(move |line: &str, sender| hide_in_frame(&secrets, line, sender).into_owned());
        let started = open_tape(path).and_then(|file| Recorder::start(file, limit, redact));
        let started = started.map_err(|error| {
            UsageError(format!(
                "--record: cannot record to {}: {error}; choose another file",
                path.display()
            ))
        });
        Ok(Self(Some(started?)))
    }

    /// Returns the recorder, for the loop and the client; `None` if nothing is recorded.
    pub fn recorder(&self) -> Option<Recorder> {
        self.0.as_ref().map(|(recorder, _)| recorder.clone())
    }
}
