//! A client that checks everything it receives.

use super::{logs, stream};
use acpipe_core::client::{ClientId, Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;
use acpipe_protocol::chunk::Chunk;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Facts about a call of the client.
#[derive(Debug, Clone)]
pub struct PendingCall {
    pub what: &'static str,
    pub session: String,
}

/// Output that the hub can still retract.
#[derive(Debug)]
enum Staged {
    Chunk {
        session: String,
        turn: Option<String>,
        seq: u64,
        json: Vec<u8>,
    },
    Answer(Reply),
}

/// Chunks of a turn.
#[derive(Debug, Default)]
struct TurnChunks {
    chunks: Vec<Value>,
    ended: bool,
    /// Whether the turn ended early because its log could not be stored; then it ends with only the error.
    cut_off: bool,
    /// Whether its beginning was not received.
    partial: bool,
}

/// Output that the client has received.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Default)]
pub struct Client {
    pub id: ClientId,
    /// Whether there was ever more than one client: then it may lag, and join in the middle of a turn.
    several: Rc<Cell<bool>>,
    /// Sessions that were closed or cleared, as named in the calls: their chunk numbers may restart.
    closed_sessions: Rc<RefCell<BTreeSet<String>>>,
    /// Whether it receives every chunk, in profile 7: then none may be missing.
    pub sees_all: bool,
    /// Number of chunks that it accepts before it has to read; `None` without a limit.
    pub room: Option<usize>,
    /// Sessions that were closed while the disk failed: the number of their last chunk is unknown.
    torn: BTreeSet<String>,
    /// Sessions that may have been cleared: their next chunk has number 1 or the following number.
    cleared: BTreeSet<String>,
    /// Whether the disk may be slow: then it may lag.
    pub slow_disk: bool,
    /// Whether the disk may fail now.
    pub disk_fails: bool,
    /// Whether the disk ever failed: then turns may be cut off.
    pub disk_failed: bool,
    /// Calls without a response.
    pub waiting: BTreeMap<u64, PendingCall>,
    staged: Vec<Staged>,
    /// Agent session ids with an open turn, by turn, and in `closed` those whose turn ended in this step. The
    /// id is empty if the turn began before its session was open.
    open: BTreeMap<(String, String), String>,
    closed: BTreeSet<String>,
    /// Number of each session's last chunk, staged or handed over.
    last: BTreeMap<String, u64>,
    /// Number of each session's last chunk that was handed over.
    given: BTreeMap<String, u64>,
    turns: BTreeMap<(String, String), TurnChunks>,
    /// Turns that were prompted again on purpose.
    pub again: BTreeSet<String>,
    /// Replayed chunks of a stored turn.
    stored: Vec<Value>,
    /// Whether it declared that it answers permission requests and elicitations.
    pub answers: bool,
    /// Whether it declared that it serves files and terminals.
    pub serves: bool,
    /// Open client requests; `decided` are those that were decided without its answer.
    pub open_requests: BTreeSet<ClientRequestId>,
    pub decided: Vec<ClientRequestId>,
    /// Client requests that another client decided.
    pub decided_by_others: Vec<ClientRequestId>,
    seen_asks: BTreeSet<ClientRequestId>,
    /// The last list of sessions.
    pub list: Option<Value>,
    pub replies: u64,
    /// Whether it prints what it receives.
    pub verbose: bool,
    pub errors: BTreeMap<&'static str, u64>,
}

impl Client {
    /// Sets the client's id and the state that all clients share.
    #[must_use]
    pub fn with(
        self,
        id: ClientId,
        several: Rc<Cell<bool>>,
        closed_sessions: Rc<RefCell<BTreeSet<String>>>,
    ) -> Self {
        Self {
            id,
            several,
            closed_sessions,
            ..self
        }
    }

    /// Returns the turns that ran once and that it received from beginning to end.
    pub fn whole_turns(&self) -> impl Iterator<Item = (&(String, String), &[Value])> {
        let whole = self.turns.iter().filter(|((_, turn), seen)| {
            let once = !self.again.contains(turn) && !self.disk_failed;
            seen.ended && !seen.partial && once && self.sees_all
        });
        whole.map(|(turn, seen)| (turn, seen.chunks.as_slice()))
    }

    /// Returns the numbers of the last chunks of sessions that were never closed; none if the disk ever
    /// failed.
    pub fn last_numbers(&self) -> impl Iterator<Item = (&String, &u64)> {
        let mut last = self.last.iter();
        std::iter::from_fn(move || {
            last.find(|(session, _)| {
                !self.disk_failed && !was_closed(&self.closed_sessions, session)
            })
        })
    }

    /// Hands staged output over: the hub can no longer retract it.
    pub fn hand_over(&mut self) {
        for staged in std::mem::take(&mut self.staged) {
            let (session, turn, seq, json) = match staged {
                Staged::Answer(reply) => {
                    self.check_answer(&reply);
                    continue;
                }
                Staged::Chunk {
                    session,
                    turn,
                    seq,
                    json,
                } => (session, turn, seq, json),
            };
            self.given.insert(session.clone(), seq);
            let chunk = logs::read(&json).unwrap_or_else(|why| panic!("{why}"));
            if let Some(turn) = turn.filter(|_| self.sees_all) {
                self.take(session, turn, chunk);
            }
        }
    }

    fn note_turn(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        let Some(turn) = place.turn else { return };
        let turn = (place.session.to_owned(), turn.to_owned());
        let is = |kind: &str| json.starts_with(format!(r#"{{"type":"{kind}""#).as_bytes());
        match () {
            () if is("start") => {
                let chunk = logs::read(json).unwrap_or_default();
                let about = &chunk["messageMetadata"];
                let about = [&about["acp"]["sessionId"], &about["claude"]["sessionId"]];
                let session = about.into_iter().find_map(Value::as_str);
                let session = session.unwrap_or_default().to_owned();
                self.open.insert(turn, session);
            }
            () if is("finish") || is("abort") || is("error") => {
                self.closed.extend(self.open.remove(&turn));
            }
            () => {}
        }
    }

    /// Returns `true` if a turn is open in this agent session, or ended in this step.
    pub fn is_in_turn(&self, agent_session: &str) -> bool {
        let mut open = self.open.values().chain(&self.closed);
        !self.sees_all || open.any(|session| session.is_empty() || session == agent_session)
    }

    /// Marks the end of a step.
    pub fn settle(&mut self) {
        self.closed.clear();
    }

    fn take(&mut self, session: String, turn: String, chunk: Value) {
        let kind = chunk["type"].as_str().unwrap_or_default();
        // On a failing disk a turn that runs again may deliver only its end.
        let begins = kind == "start" || (kind == "error" && self.disk_failed);
        let again = begins && self.again.contains(&turn);
        let seen = self.turns.entry((session, turn)).or_default();
        if again && seen.ended {
            *seen = TurnChunks::default();
        }
        seen.partial |= self.several.get() && seen.chunks.is_empty() && kind != "start";
        assert!(!seen.ended, "{chunk} follows the end of its turn");
        seen.ended = matches!(kind, "finish" | "abort" | "error");
        let why = chunk["errorText"].as_str().unwrap_or_default();
        seen.cut_off = why.contains("the session's log");
        seen.chunks.push(chunk);
        if seen.ended
            && !seen.cut_off
            && !seen.partial
            && let Err(why) = stream::check(&seen.chunks)
        {
            panic!("{why} in {:#?}", seen.chunks);
        }
    }

    /// Returns an open client request.
    pub fn next_ask(&self) -> Option<(ClientId, ClientRequestId)> {
        Some((self.id, *self.open_requests.first()?))
    }

    /// Returns the turns that have begun and not ended.
    pub fn open_turns(&self) -> impl Iterator<Item = &(String, String)> {
        let open = self
            .turns
            .iter()
            .filter(|(_, seen)| !seen.ended && !seen.chunks.is_empty());
        open.map(|(turn, _)| turn)
    }

    /// Returns `true` if it may receive chunks later, from the log.
    fn may_lag(&self) -> bool {
        self.several.get() || self.slow_disk
    }

    /// Returns `true` if another client may have closed or cleared a session, so that its chunk numbers
    /// restart.
    fn may_begin_anew(&self, session: &str) -> bool {
        self.several.get() && was_closed(&self.closed_sessions, session)
    }

    fn check_answer(&mut self, reply: &Reply) {
        match reply {
            Reply::Turn(summary) if self.sees_all => {
                let summary = serde_json::to_value(summary).unwrap();
                let turn = summary["turnId"].as_str().unwrap().to_owned();
                let again = self.again.contains(&turn);
                // The id of the default session depends on the directory.
                let session = summary["sessionId"].as_str().unwrap().to_owned();
                let seen = self.turns.get(&(session, turn));
                // A forgotten turn that runs again may begin before the disk stores its first end.
                let seen = seen
                    .filter(|seen| !again || seen.chunks[0]["messageId"] == summary["messageId"]);
                // Chunks that a lagging client has missed are not sent while the disk cannot be read.
                let missed = self.may_lag() && self.disk_failed;
                let is_partial = seen.is_none_or(|seen| seen.partial || !seen.ended);
                if (again && seen.is_none()) || (is_partial && missed) {
                    return;
                }
                let chunks = seen.map(|seen| seen.chunks.as_slice()).unwrap_or_default();
                if !seen.is_some_and(|seen| seen.cut_off)
                    && let Err(why) = stream::check_with_summary(chunks, &summary)
                {
                    panic!("{why} in {chunks:#?}");
                }
            }
            Reply::StoredTurn(_) => {
                let stored = std::mem::take(&mut self.stored);
                if self.sees_all
                    && !self.disk_failed
                    && let Err(why) = stream::check(&stored)
                {
                    panic!("{why} in {stored:#?}");
                }
            }
            Reply::Sessions(_) => self.list = serde_json::to_value(reply).ok(),
            _ => {}
        }
    }
}

impl ClientSink for Client {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        self.replies += 1;
        if self.verbose {
            let answer = answer.as_ref().map(|a| serde_json::to_string(a).unwrap());
            eprintln!("  {token:?} is answered {answer:?}");
        }
        assert_eq!(token.client, self.id, "{token:?} is of another client");
        let asked = self.waiting.remove(&token.call);
        let asked = asked.unwrap_or_else(|| panic!("{token:?} was answered before: {answer:?}"));
        match answer {
            Ok(reply) => {
                if ["session/clear", "session/close"].contains(&asked.what) {
                    let mut closed = self.closed_sessions.borrow_mut();
                    closed.insert(asked.session.clone());
                }
                let torn = asked.what == "session/close" && self.disk_fails;
                if asked.what == "session/clear" || torn {
                    // The session's chunk numbers restart, or may restart.
                    self.hand_over();
                    let ids: Vec<String> = self.last.keys().cloned().collect();
                    for id in ids.into_iter().filter(|id| is_of(id, &asked.session)) {
                        self.given.remove(&id);
                        if torn {
                            self.torn.insert(id);
                        } else {
                            // The call may name several default sessions, of which only one was cleared.
                            self.cleared.insert(id);
                        }
                    }
                }
                self.staged.push(Staged::Answer(reply));
            }
            Err(error) => {
                assert!(
                    !error.message.is_empty() && error.kind.name() != "internal",
                    "{asked:?}: {error:?}"
                );
                *self.errors.entry(error.kind.name()).or_default() += 1;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.room == Some(0)
    }

    fn chunk(&mut self, place: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        self.json_chunk(place, json);
    }

    fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        self.note_turn(place, json);
        if self.verbose {
            eprintln!("  {:?} {place:?} {}", self.id, json.escape_ascii());
        }
        let (may_begin_anew, may_lag) = (self.may_begin_anew(place.session), self.may_lag());
        let last = self.last.entry(place.session.to_owned()).or_default();
        if self.torn.remove(place.session) {
            *last = place.seq - 1;
        }
        if self.cleared.remove(place.session) && place.seq == 1 {
            *last = 0;
        }
        let (before, seq) = (*last, place.seq);
        let begins_anew = seq <= before && may_begin_anew;
        assert!(begins_anew || seq >= before, "{place:?} after {before}");
        if self.sees_all && may_lag {
            assert!(begins_anew || seq > before, "{place:?} is repeated");
        } else if self.sees_all {
            assert_eq!(seq, before + 1, "{place:?}");
        }
        *last = seq;
        self.room = self.room.map(|room| room.saturating_sub(1));
        self.staged.push(Staged::Chunk {
            session: place.session.to_owned(),
            turn: place.turn.map(str::to_owned),
            seq,
            json: json.to_vec(),
        });
    }

    fn stored_chunk(&mut self, _: ChunkAddress<'_>, json: &[u8]) {
        let chunk = logs::read(json).unwrap_or_else(|why| panic!("{why}"));
        self.stored.push(chunk);
    }

    fn retract(&mut self, session: &str, after: u64) {
        let given = self.given.get(session).copied().unwrap_or_default();
        assert!(
            given <= after || self.may_begin_anew(session),
            "{session}: {given} was given, and retracted after {after}"
        );
        self.staged.retain(|staged| match staged {
            Staged::Chunk {
                session: of, seq, ..
            } => of != session || *seq <= after,
            Staged::Answer(..) => true,
        });
        if let Some(last) = self.last.get_mut(session) {
            *last = after.min(*last);
        }
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        let declared = match request {
            ClientRequest::Permission(_) | ClientRequest::Question(_) => self.answers,
            ClientRequest::Host(_) => self.serves,
            ClientRequest::Acp(..) => false,
        };
        assert!(declared, "{request:?} was never declared");
        assert!(self.seen_asks.insert(ask), "{ask:?} is not new");
        self.open_requests.insert(ask);
    }

    fn withdraw(&mut self, ask: ClientRequestId, by: &DecisionSource) {
        if matches!(by, DecisionSource::OtherClient(_)) {
            self.decided_by_others.push(ask);
        }
        assert!(self.open_requests.remove(&ask), "{ask:?} is not open");
        self.decided.push(ask);
    }

    fn notify(&mut self, _: &Notice) {}
}

fn was_closed(closed: &RefCell<BTreeSet<String>>, session: &str) -> bool {
    let closed = closed.borrow();
    closed.iter().any(|named| is_of(session, named))
}

/// Returns `true` if a call may mean the session with this id: the default session has an id for each
/// directory.
fn is_of(id: &str, named: &str) -> bool {
    id.strip_prefix(named)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
}
