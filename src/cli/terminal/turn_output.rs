//! Output of turns: chunks go to the view and the tape, and are printed once they are in the log.

use crate::cli::args::shared::Format;
use crate::cli::remote_hub::shown_chunk;
use crate::cli::run::receipt_notes::show_receipt_notes;
use crate::cli::run::recorder::RunRecorder;
use crate::cli::run::view::RunView;
use acpipe_core::client_sink::ChunkAddress;
use acpipe_core::deltas::TextDelta;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::SessionResult;

/// View and tape of the turns of one client.
pub struct TurnOutput {
    pub view: RunView,
    pub recorder: RunRecorder,
    /// Sequence number of the last chunk given to the view.
    shown: u64,
    /// `true` while the view has chunks that are not yet in the log; nothing is printed until they are.
    log_pending: bool,
}

impl TurnOutput {
    pub fn new(view: RunView, recorder: RunRecorder) -> Self {
        Self {
            view,
            recorder,
            shown: 0,
            log_pending: false,
        }
    }

    /// Shows how the session was restored, and which settings it does not have.
    pub fn session(&mut self, session: &SessionResult) {
        self.view.session(session);
        show_receipt_notes(&session.session_id, &session.recovery, &mut self.view);
    }

    pub fn chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]) {
        self.shown = place.seq;
        self.recorder.chunk(place, json);
        self.view.chunk(chunk, json);
    }

    pub fn delta(&mut self, place: ChunkAddress<'_>, delta: TextDelta<'_>, json: &[u8]) {
        if self.view.format == Format::Text {
            delta.with_chunk(|chunk| self.chunk(place, chunk, json));
            return;
        }
        self.shown = place.seq;
        self.recorder.chunk(place, json);
        self.view.json_chunk(None, json);
    }

    pub fn adapted_chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[Vec<u8>]) {
        self.shown = place.seq;
        let json = json.iter().map(Vec::as_slice);
        json.clone()
            .for_each(|chunk| self.recorder.chunk(place, chunk));
        self.view.adapted(chunk, json);
    }

    /// Shows a chunk of the daemon.
    pub fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        self.shown = place.seq;
        self.view.json_chunk(shown_chunk(json).as_ref(), json);
    }

    /// Drops the chunks after this one, which could not be logged.
    pub fn retract(&mut self, after: u64) {
        if self.shown > after {
            self.view.retract();
        }
    }

    pub fn hold(&mut self, held: bool) {
        self.log_pending = held;
    }

    pub fn take(&mut self, buffer: &mut Vec<u8>) {
        if !self.log_pending {
            self.view.take_output(buffer);
        }
    }
}
