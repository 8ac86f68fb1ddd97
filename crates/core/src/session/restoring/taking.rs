//! A session that the agent has or claims to have: checked against what is stored, and taken over with its receipt.

use super::doubts::doubt_adopted;
use super::receipt::{TakenSession, receipt_of};
use super::setting_calls::begin_to_restore;
use super::{RestoreStep, Restoring};
use crate::agent::directory::Holder;
use crate::agent_spec::DEFAULT_AGENT;
use crate::config::OnLost;
use crate::cx::Cx;
use crate::replay::ReplayedMessages;
use crate::session::restore::Adoption;
use crate::session::{Conversation, Stage};
use acpipe_dialects::traits;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::Rung;

pub struct Taken {
    agent_session: String,
    adoption: Adoption,
    /// Strategy that opened it.
    rung: Rung,
    forked: bool,
    /// `true` if nothing but the agent's word says that it has the session.
    doubtful: bool,
    /// `true` if a new session may replace it.
    may_be_new: bool,
    replayed: Option<ReplayedMessages>,
    on_lost: OnLost,
}

impl Taken {
    /// Strategy that restored the session, if a new session may still replace it.
    pub fn restored_by(&self) -> Option<Rung> {
        Some(self.rung).filter(|rung| *rung != Rung::New && self.may_be_new)
    }

    /// Returns `true` if the agent created the session: a background turn belongs to the session before.
    pub fn is_new(&self) -> bool {
        self.rung == Rung::New
    }
}

impl Restoring {
    /// Checks a session that the agent has or claims to have.
    pub fn claimed(
        &mut self,
        agent_session: String,
        adoption: Adoption,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> RestoreStep {
        let configured = cx.shared.settings.on_lost_of(cx.agent.definition);
        let on_lost = self.on_lost(configured);
        let Stage::Opening(restore) = &talk.stage else {
            return RestoreStep::Waits;
        };
        let mut rung = restore.rung().unwrap_or(Rung::New);
        let known = talk.known.id_of(&cx.agent.identity());
        let has_same_id = known == Some(agent_session.as_str());
        let repeats_nothing = rung == Rung::Load && restore.history().is_empty();
        // The session was created to adopt one of the agent's sessions.
        let doubtful = talk.output.log().is_empty() && has_same_id && repeats_nothing;
        if doubtful
            && adoption == Adoption::Unknown
            && let Some(step) = doubt_adopted(&agent_session, talk, cx)
        {
            return step;
        }
        let Stage::Opening(restore) = &mut talk.stage else {
            return RestoreStep::Waits;
        };
        let may_be_new = restore.may_be_new();
        let mut replayed = restore.history_mut().take();
        let history = talk.output.log().count() > 0;
        let forked = std::mem::take(&mut self.forks);
        if rung != Rung::New && !forked && !has_same_id {
            let message = "the agent created a new session instead";
            restore.note_failed(rung, &Error::new(ErrorKind::SessionNotFound, message));
            if !may_be_new {
                return RestoreStep::Next;
            }
            (rung, replayed) = (Rung::New, None);
        }
        if rung == Rung::Load && history && repeats_nothing {
            let message = "the agent loaded the session but replayed no history";
            restore.note_failed(rung, &Error::new(ErrorKind::SessionNotFound, message));
            return RestoreStep::Next;
        }
        let cost = restore.cost();
        talk.turns.set_cost(match rung {
            Rung::New => Some(0.0),
            // Only acpipe knows the earlier cost of the session.
            _ if history => talk.turns.cost(),
            _ => None,
        });
        talk.turns.note_cost(cost);
        RestoreStep::Take(Box::new(Taken {
            agent_session,
            adoption,
            rung,
            forked,
            doubtful,
            may_be_new,
            replayed,
            on_lost,
        }))
    }

    /// Takes over a session that the agent has: writes the receipt, and begins to restore the settings.
    pub fn take(&mut self, taken: Taken, talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
        let Taken {
            agent_session,
            rung,
            forked,
            on_lost,
            ..
        } = taken;
        let (key, at) = (cx.agent.identity(), cx.time());
        if rung == Rung::New && on_lost.clear {
            talk.output.catch_up_at_end(cx.clients);
        }
        let Stage::Opening(restore) = &talk.stage else {
            return RestoreStep::Waits;
        };
        let failed = restore.failed().to_vec();
        let before = talk.known.clone();
        let session = TakenSession {
            agent: &key,
            id: &agent_session,
            is_fork: forked,
            program: &cx.agent.spec.key(),
            receives_history: cx.agent.takes_transcript(),
            remembers: traits(cx.agent.spec.protocol).remembers,
        };
        let receipt = receipt_of(rung, session, failed, taken.replayed, on_lost, talk, &at);
        let mut recovery = match receipt {
            Ok(recovery) => recovery,
            Err(error) => {
                talk.known = before;
                cx.close_at_agent(&agent_session);
                return RestoreStep::Failed(error);
            }
        };
        recovery.not_restored.extend(self.withheld_servers());
        recovery.handed_over_from = self.handover.as_ref().map(|h| h.name.clone());
        if talk.preamble.needs_instructions {
            let hash = cx.agent.definition.instructions_hash();
            talk.known.note_instructions(hash);
        }
        recovery.instructions_in_prompt =
            talk.preamble.needs_instructions && cx.agent.definition.instructions.is_some();
        if taken.doubtful && taken.adoption != Adoption::Listed {
            recovery.warning = Some(format!(
                "the agent reported session {agent_session:?} as loaded but replayed no messages; it may not \
                 have the session"
            ));
        }
        if let Stage::Opening(restore) = &mut talk.stage {
            restore.begin_settings(agent_session.clone(), recovery, &talk.settings);
        }
        let command = cx.shared.share_command(cx.agent.spec.stored());
        talk.known.started_by(Some(command));
        let name = cx.agent.name();
        talk.known.name = (name != DEFAULT_AGENT).then(|| name.to_owned());
        if let Some(connection) = &mut cx.agent.connection {
            let directory = &mut connection.directory;
            directory.remove(&talk.id);
            if let Some(record) = talk.known.find(&key).cloned() {
                let session = talk.id.clone();
                directory.note_holder(Holder { session, record });
            }
            directory.add(agent_session, talk.id.clone());
        }
        if rung == Rung::New || forked {
            cx.end_other_claims();
        }
        begin_to_restore(talk, cx)
    }
}
