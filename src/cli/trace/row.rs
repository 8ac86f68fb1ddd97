//! Rows of a timeline and their folds.

use serde::Serialize;

/// Party at the other end of a frame; acpipe is always one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RowSide {
    /// The client: the program that uses acpipe.
    Client,
    /// The agent.
    #[default]
    Agent,
    /// An event inside acpipe, without another party.
    Acpipe,
}

/// Direction of a frame, as seen by acpipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Dir {
    /// acpipe received the frame.
    In,
    /// acpipe sent the frame.
    Out,
}

impl Dir {
    pub fn reversed(self) -> Self {
        match self {
            Self::In => Self::Out,
            Self::Out => Self::In,
        }
    }
}

/// Kind of a row; each has a color and a filter on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RowKind {
    Request,
    Response,
    Notification,
    /// Error response, failed turn or agent that ended by itself.
    Error,
    /// Event that is no frame: a process started, a decision was made.
    Event,
}

/// A frame or event on the timeline.
#[derive(Debug)]
pub struct Row {
    /// Time since the start of the recording, in milliseconds; `None` if it was not recorded.
    pub t_ms: Option<u64>,
    pub side: RowSide,
    /// `None` for an event.
    pub dir: Option<Dir>,
    pub kind: RowKind,
    /// Method or type of the frame.
    pub title: String,
    /// Content of the frame on one line.
    pub detail: String,
    /// Session, as an index into [`super::timeline::Timeline::sessions`].
    pub session: Option<usize>,
    /// Row of the response to this request, or of the request of this response.
    pub pair: Option<usize>,
    /// Time between request and response, in milliseconds.
    pub took_ms: Option<u64>,
    /// Fold that contains the row, as an index into [`super::timeline::Timeline::folds`].
    pub fold: Option<usize>,
    /// Name of the agent and its process, if the recording has several.
    pub agent: String,
    /// The frame or event as JSON, on one line.
    pub json: String,
}

impl Row {
    /// Returns `true` for a request without a response in the recording.
    pub fn is_unanswered(&self) -> bool {
        self.kind == RowKind::Request && self.pair.is_none()
    }
}

/// Consecutive updates of one stream, shown as one row.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FoldedRows {
    /// First row.
    pub first: usize,
    /// Last row.
    pub last: usize,
    /// Number of rows.
    pub count: usize,
    /// Texts of the updates, joined.
    pub text: String,
}
