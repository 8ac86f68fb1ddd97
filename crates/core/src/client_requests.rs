//! Open requests to clients: permission requests and questions.

use super::client::ClientId;
use super::client_request::{ClientRequest, ClientRequestId};
use super::turn::Question;
use acpipe_model::event::PermissionOption;
use acpipe_model::host::Ticket;
use acpipe_model::request_key::RequestKey;
use acpipe_policy::Subject;
use acpipe_protocol::wire::{ClientCapabilities, LedgerEntry};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of open requests per session, or per agent outside of sessions; no person answers more.
pub const MOST_OPEN_REQUESTS: usize = 256;

/// Total size in bytes of open requests from which no further one is sent. A request has a few KiB, so there
/// is room for 256 requests that each contain a file of 256 KiB.
const MOST_OPEN_BYTES: usize = 64 << 20;

/// Reason of a decision if no client can answer.
pub const NO_CLIENT: &str = "no client answers permission requests";

/// Reason of a declined question if no client declares that it answers questions.
pub const NO_QUESTION_CAPABILITY: &str = "no client answers questions";

pub const TOO_MANY_OPEN: &str = "too many questions are open";

pub const ID_REUSED: &str = "the agent has used the id of the request for another one";

/// Open request to one or more clients; the first valid answer decides.
#[derive(Debug)]
pub struct OpenRequest {
    pub id: ClientRequestId,
    /// Number of the connection of the agent that sent the question.
    pub agent: u64,
    /// Key of the agent's request, for the response.
    pub key: RequestKey,
    /// File or command that waits for the decision; a key alone is not unique, since the agent chooses it.
    pub ticket: Option<Ticket>,
    /// Time at which the request was sent.
    pub since: Instant,
    /// Time at which the policy decides instead; `None` if there is no limit.
    pub until: Option<Instant>,
    /// Id of the turn whose chunks show the request.
    pub turn_id: String,
    pub about: OpenRequestKind,
    /// Subject for the policy of a session, which judges it again if it becomes stricter; `None` outside of sessions.
    pub subject: Option<Box<Subject>>,
    pub request: Arc<ClientRequest>,
    /// Size of the request in bytes.
    pub size: usize,
    /// Clients that received the request and can still answer it.
    pub asked: Vec<ClientId>,
    /// Entry for the ledger, without the decision.
    pub entry: Box<LedgerEntry>,
}

/// Reason why the agent's side ends an open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEnd {
    Withdrawn,
    /// The agent has given the id of the request to another one. A response names only the id, so the approval of the
    /// one could be taken for that of the other.
    IdReused,
}

impl RequestEnd {
    /// Returns `true` if it ends this request. The response to a request for a file or terminal is no decision.
    #[must_use]
    pub fn ends(self, open: &OpenRequest) -> bool {
        self == Self::Withdrawn || open.ticket.is_none()
    }
}

/// Open requests to clients of one session, or of one agent outside of sessions.
///
/// Owns what was asked, of whom, and until when. Decides nothing: the machine decides about a request that it takes out.
#[derive(Debug, Default)]
pub struct ClientRequests(Vec<OpenRequest>);

impl ClientRequests {
    pub fn push(&mut self, open: OpenRequest) {
        self.0.push(open);
    }

    pub fn iter(&self) -> impl Iterator<Item = &OpenRequest> {
        self.0.iter()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if no further request may be sent because of the number or the size of the open ones.
    #[must_use]
    pub fn are_full(&self) -> bool {
        let bytes: usize = self.iter().map(|open| open.size).sum();
        self.0.len() >= MOST_OPEN_REQUESTS || bytes >= MOST_OPEN_BYTES
    }

    #[must_use]
    pub fn has_question(&self, question: &str) -> bool {
        self.iter().any(|open| open.about.question().id == question)
    }

    #[must_use]
    pub fn get(&self, id: ClientRequestId) -> Option<&OpenRequest> {
        self.iter().find(|open| open.id == id)
    }

    /// Records the requests that a client receives now, of those that it can answer: `send` gets each. Without a limit on
    /// answers, such a request no longer ends by itself.
    pub fn send_to(
        &mut self,
        client: ClientId,
        can: ClientCapabilities,
        is_unlimited: bool,
        mut send: impl FnMut(ClientRequestId, &Arc<ClientRequest>),
    ) {
        for open in &mut self.0 {
            if open.request.is_answered_with(&can) && !open.asked.contains(&client) {
                if is_unlimited {
                    // The limit was only for the time without a client.
                    open.until = None;
                }
                open.asked.push(client);
                send(open.id, &open.request);
            }
        }
    }

    /// Records the answer of a client. Returns the request if the answer decides: it is valid, or no other client can
    /// still answer.
    pub fn answered(
        &mut self,
        id: ClientRequestId,
        client: ClientId,
        is_valid: bool,
    ) -> Option<OpenRequest> {
        let open = self.0.iter_mut().find(|open| open.id == id)?;
        match open.record_answer(client, is_valid) {
            AnswerEffect::Decides => self.take(id),
            AnswerEffect::Ignored => None,
        }
    }

    /// Records that a client has left. Returns the requests that no client is left to answer.
    #[must_use]
    pub fn remove_client(&mut self, client: ClientId) -> Vec<ClientRequestId> {
        let open = self.0.iter_mut();
        let left = open.filter_map(|open| open.remove_client(client).then_some(open.id));
        left.collect()
    }

    /// Limits the wait for an answer, unless it is limited.
    pub fn limit(&mut self, ids: &[ClientRequestId], until: Option<Instant>) {
        for open in self.0.iter_mut().filter(|open| ids.contains(&open.id)) {
            open.until = open.until.or(until);
        }
    }

    /// Shortens the wait for each answer to this limit, which began with the request.
    pub fn shorten(&mut self, limit: Option<Duration>) {
        let Some(limit) = limit else {
            return;
        };
        for open in &mut self.0 {
            let until = open.since.checked_add(limit);
            open.until = open.until.into_iter().chain(until).min();
        }
    }

    pub fn take(&mut self, id: ClientRequestId) -> Option<OpenRequest> {
        self.take_first(|open| open.id == id)
    }

    pub fn take_first(&mut self, wanted: impl Fn(&OpenRequest) -> bool) -> Option<OpenRequest> {
        let at = self.0.iter().position(wanted)?;
        Some(self.0.remove(at))
    }

    pub fn take_due(&mut self, now: Instant) -> Option<OpenRequest> {
        self.take_first(|open| open.until.is_some_and(|at| at <= now))
    }

    #[must_use]
    pub fn take_all(&mut self) -> Vec<OpenRequest> {
        std::mem::take(&mut self.0)
    }

    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.iter().filter_map(|open| open.until).min()
    }

    pub fn deadlines_mut(&mut self) -> impl Iterator<Item = &mut Instant> {
        self.0.iter_mut().filter_map(|open| open.until.as_mut())
    }
}

#[derive(Debug)]
enum AnswerEffect {
    Decides,
    /// The client did not receive the request; or the answer is not valid, and other clients can still
    /// answer.
    Ignored,
}

impl OpenRequest {
    fn record_answer(&mut self, client: ClientId, is_valid: bool) -> AnswerEffect {
        if !self.asked.contains(&client) {
            return AnswerEffect::Ignored;
        }
        self.asked.retain(|asked| *asked != client);
        if is_valid || self.asked.is_empty() {
            AnswerEffect::Decides
        } else {
            AnswerEffect::Ignored
        }
    }

    /// Records that a client has left; returns `true` if no client remains that can answer.
    fn remove_client(&mut self, client: ClientId) -> bool {
        let before = self.asked.len();
        self.asked.retain(|asked| *asked != client);
        self.asked.len() < before && self.asked.is_empty()
    }
}

/// Subject of a request to clients.
#[derive(Debug)]
pub enum OpenRequestKind {
    Permission {
        /// The question as the turn's chunks show it.
        question: Question,
        options: Vec<PermissionOption>,
        /// Rule of the policy that requires the request.
        rule: String,
    },
    Question {
        /// The question as the turn's chunks show it.
        question: Question,
        /// Possible answers; empty if the answer is not a choice of the agent's options.
        options: Vec<PermissionOption>,
    },
}

impl OpenRequestKind {
    #[must_use]
    pub fn options(&self) -> &[PermissionOption] {
        match self {
            Self::Permission { options, .. } | Self::Question { options, .. } => options,
        }
    }

    /// Returns the question as the turn's chunks show it.
    #[must_use]
    pub fn question(&self) -> &Question {
        match self {
            Self::Permission { question, .. } | Self::Question { question, .. } => question,
        }
    }
}
