//! A timeline: rows in their order, requests with their responses, folds of streamed updates.

use super::label::{CallFrame, Label, StreamDelta};
use super::row::{Dir, FoldedRows, Row, RowKind, RowSide};
use acpipe_json::prefix;
use std::collections::HashMap;

/// Maximum length of the joined text of a fold, in bytes.
const FOLD_TEXT: usize = 10_000;

/// All rows of a recording.
#[derive(Debug, Default)]
pub struct Timeline {
    /// File or session that the timeline shows.
    pub name: String,
    /// Facts about the recording, for its head: name and value.
    pub facts: Vec<(&'static str, String)>,
    pub rows: Vec<Row>,
    pub folds: Vec<FoldedRows>,
    /// Ids of the sessions, in the order of their appearance.
    pub sessions: Vec<String>,
    /// Number of lines that cannot be read.
    pub unreadable: usize,
    /// Requests without a response so far.
    pending: HashMap<PendingKey, usize>,
    /// Last row of each stream's scope, which the next update may be folded with.
    open: HashMap<StreamScope, OpenFold>,
}

/// Frame or event to add to a timeline.
#[derive(Debug)]
pub struct TimelineFrame {
    pub t_ms: Option<u64>,
    pub side: RowSide,
    /// `None` for an event.
    pub dir: Option<Dir>,
    /// Name of the agent and its process.
    pub agent: String,
    pub label: Label,
    /// The frame as JSON, on one line.
    pub json: String,
}

/// Sender of a request: its process, its direction and the id of the request.
type PendingKey = (RowSide, String, Dir, String);

/// Peer and session; the updates of a scope are one sequence.
type StreamScope = (RowSide, String, Option<usize>);

/// Stream that the next update may continue.
#[derive(Debug)]
struct OpenFold {
    stream: String,
    /// First row of the stream, and the text of its update.
    first: usize,
    text: String,
    /// The fold, once the stream has a second row.
    fold: Option<usize>,
}

impl Timeline {
    /// Returns the empty timeline of a file or session.
    pub fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a frame: finds its request, and folds it with the update before.
    pub fn push(&mut self, frame: TimelineFrame) {
        let at = self.rows.len();
        let Label {
            kind,
            title,
            detail,
            session,
            calls,
            delta,
        } = frame.label;
        let session = session.map(|id| self.session(id));
        self.rows.push(Row {
            t_ms: frame.t_ms,
            side: frame.side,
            dir: frame.dir,
            kind,
            title,
            detail,
            session,
            pair: None,
            took_ms: None,
            fold: None,
            agent: frame.agent,
            json: frame.json,
        });
        for call in calls {
            self.connect(at, call);
        }
        let row = &mut self.rows[at];
        if row.title.is_empty() {
            "response".clone_into(&mut row.title);
        }
        self.fold(at, delta);
    }

    /// Forgets the open requests of an agent's process, because another process reuses their ids.
    pub fn process_changed(&mut self, side: RowSide, agent: &str) {
        self.pending
            .retain(|key, _| (key.0, key.1.as_str()) != (side, agent));
    }

    /// Returns the index of a session, which is added if it is new.
    fn session(&mut self, id: String) -> usize {
        let found = self.sessions.iter().position(|known| *known == id);
        found.unwrap_or_else(|| {
            self.sessions.push(id);
            self.sessions.len() - 1
        })
    }

    fn connect(&mut self, at: usize, call: CallFrame) {
        let row = &self.rows[at];
        let Some(dir) = row.dir else { return };
        let (side, agent) = (row.side, row.agent.clone());
        match call {
            CallFrame::Request(id) => {
                self.pending.insert((side, agent, dir, id), at);
            }
            CallFrame::Response(id) => {
                let key = (side, agent, dir.reversed(), id);
                if let Some(request) = self.pending.remove(&key) {
                    self.pair(request, at);
                }
            }
        }
    }

    /// Connects a request with its response; each gets from the other what it lacks.
    fn pair(&mut self, request: usize, response: usize) {
        let took = self.rows[response].t_ms.zip(self.rows[request].t_ms);
        let took = took.map(|(end, start)| end.saturating_sub(start));
        let session = self.rows[request].session.or(self.rows[response].session);
        let title = self.rows[request].title.clone();
        let known = &mut self.rows[request];
        (known.pair, known.took_ms, known.session) = (Some(response), took, session);
        let row = &mut self.rows[response];
        (row.pair, row.took_ms, row.session) = (Some(request), took, session);
        if row.title.is_empty() {
            row.title = title;
        }
    }

    /// Adds an update to the fold of the row before it in its scope, if that is of its stream.
    fn fold(&mut self, at: usize, delta: Option<StreamDelta>) {
        let row = &self.rows[at];
        if row.dir.is_none() {
            // An event, such as the end of a process, divides all streams.
            self.open.clear();
            return;
        }
        let scope = (row.side, row.agent.clone(), row.session);
        let Some(delta) = delta.filter(|_| row.kind == RowKind::Notification) else {
            self.open.remove(&scope);
            return;
        };
        let open = match self.open.get_mut(&scope) {
            Some(open) if open.stream == delta.stream => open,
            _ => {
                let open = OpenFold {
                    stream: delta.stream,
                    first: at,
                    text: delta.text,
                    fold: None,
                };
                self.open.insert(scope, open);
                return;
            }
        };
        let fold = *open.fold.get_or_insert_with(|| {
            self.folds.push(FoldedRows {
                first: open.first,
                last: open.first,
                count: 1,
                text: std::mem::take(&mut open.text),
            });
            self.folds.len() - 1
        });
        self.rows[open.first].fold = Some(fold);
        self.rows[at].fold = Some(fold);
        let known = &mut self.folds[fold];
        (known.last, known.count) = (at, known.count + 1);
        let room = FOLD_TEXT.saturating_sub(known.text.len());
        known
            .text
            .push_str(&delta.text[..prefix(&delta.text, room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(t_ms: u64, dir: Dir, agent: &str, label: Label) -> TimelineFrame {
        TimelineFrame {
            t_ms: Some(t_ms),
            side: RowSide::Agent,
            dir: Some(dir),
            agent: agent.to_owned(),
            label,
            json: "{}".to_owned(),
        }
    }

    fn request(method: &str, id: &str) -> Label {
        Label::new(RowKind::Request, method, "").with_call(CallFrame::Request(id.to_owned()))
    }

    fn response(id: &str) -> Label {
        Label::new(RowKind::Response, "", "").with_call(CallFrame::Response(id.to_owned()))
    }

    fn update(session: &str, stream: &str, text: &str) -> Label {
        Label::new(RowKind::Notification, stream, text)
            .in_session(&session.into())
            .of_stream(stream, text)
    }

    #[test]
    fn response_belongs_to_the_request_of_the_other_direction_and_the_same_process() {
        let mut timeline = Timeline::default();
        let session = request("session/prompt", "1").in_session(&"s".into());
        timeline.push(frame(10, Dir::Out, "a", session));
        timeline.push(frame(20, Dir::In, "a", request("fs/read", "1")));
        timeline.push(frame(25, Dir::Out, "b", request("other", "1")));
        timeline.push(frame(30, Dir::In, "a", response("1")));
        timeline.push(frame(70, Dir::Out, "a", response("1")));
        timeline.push(frame(80, Dir::In, "a", response("9")));
        let found: Vec<_> = timeline
            .rows
            .iter()
            .map(|row| (row.title.as_str(), row.pair, row.took_ms, row.session))
            .collect();
        let want = [
            ("session/prompt", Some(3), Some(20), Some(0)),
            ("fs/read", Some(4), Some(50), None),
            ("other", None, None, None),
            ("session/prompt", Some(0), Some(20), Some(0)),
            ("fs/read", Some(1), Some(50), None),
            ("response", None, None, None),
        ];
        assert_eq!(found, want);
        assert!(timeline.rows[2].is_unanswered() && !timeline.rows[0].is_unanswered());
    }

    #[test]
    fn request_takes_its_session_from_the_response() {
        let mut timeline = Timeline::default();
        timeline.push(frame(1, Dir::Out, "", request("session/new", "1")));
        timeline.push(frame(2, Dir::In, "", response("1").in_session(&"s".into())));
        assert_eq!(timeline.rows[0].session, Some(0));
        assert_eq!(timeline.sessions, ["s"]);
    }

    #[test]
    fn requests_of_an_ended_process_are_not_answered_by_the_next_one() {
        let mut timeline = Timeline::default();
        timeline.push(frame(1, Dir::Out, "a", request("x", "1")));
        timeline.process_changed(RowSide::Agent, "a");
        timeline.push(frame(2, Dir::In, "a", response("1")));
        assert!(timeline.rows[0].is_unanswered());
        assert_eq!(timeline.rows[1].pair, None);
    }

    #[test]
    fn updates_of_a_stream_are_folded_across_frames_of_other_sessions() {
        let mut timeline = Timeline::default();
        for (session, stream, text) in [
            ("s", "message", "a"),
            ("r", "message", "x"),
            ("s", "message", "b"),
            ("s", "message", "c"),
            ("s", "thought", "d"),
            ("s", "message", "e"),
        ] {
            timeline.push(frame(1, Dir::In, "", update(session, stream, text)));
        }
        let folds: Vec<_> = timeline.rows.iter().map(|row| row.fold).collect();
        assert_eq!(folds, [Some(0), None, Some(0), Some(0), None, None]);
        let fold = &timeline.folds[0];
        assert_eq!((fold.first, fold.last, fold.count), (0, 3, 3));
        assert_eq!(fold.text, "abc");
        assert_eq!(timeline.folds.len(), 1);
    }

    #[test]
    fn requests_and_events_end_a_fold() {
        let mut timeline = Timeline::default();
        let next = |timeline: &mut Timeline| {
            timeline.push(frame(1, Dir::In, "", update("s", "message", "a")));
        };
        next(&mut timeline);
        let permission = request("session/request_permission", "1").in_session(&"s".into());
        timeline.push(frame(1, Dir::In, "", permission));
        next(&mut timeline);
        timeline.push(TimelineFrame {
            dir: None,
            ..frame(1, Dir::In, "", Label::new(RowKind::Event, "exited", ""))
        });
        next(&mut timeline);
        assert!(timeline.folds.is_empty());
        next(&mut timeline);
        assert_eq!(timeline.folds.len(), 1);
    }

    #[test]
    fn text_of_a_fold_is_bounded() {
        let mut timeline = Timeline::default();
        for _ in 0..3 {
            let text = "é".repeat(FOLD_TEXT / 3);
            timeline.push(frame(1, Dir::In, "", update("s", "message", &text)));
        }
        assert_eq!(timeline.folds[0].text.len(), FOLD_TEXT);
    }
}
