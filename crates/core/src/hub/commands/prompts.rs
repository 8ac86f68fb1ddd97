//! Prompts and settings: passed to a session that has an agent, or for which an agent is started.

use super::ensure::prepare_opening;
use crate::agent::{Renewal, STOPPING};
use crate::client::{Reply, Token};
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::history_reads::HistoryReads;
use crate::hub::lifecycle::total_limits;
use crate::hub::lifecycle::total_limits::{CallPlace, GivenLimit, TotalLimits};
use crate::hub::router::{Router, next_prompt, room};
use crate::session::{Queued, Stage, answer_with_message};
use acpipe_model::error::{Error, invalid, out_of_order};
use acpipe_model::prompt_parts::prompt_parts;
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::{
    CancelParams, CancelResult, PromptParams, PromptWhenBusy, SteerParams,
};

/// Maximum length of a turn id that a client may choose, in bytes. Each record of the turn contains it.
const LONGEST_TURN_ID: usize = 256;

/// Begins a turn, or queues the prompt until it can begin.
pub(super) fn prompt(
    catalog: &mut Catalog,
    router: &mut Router,
    reads: &mut HistoryReads,
    limits: &mut TotalLimits,
    token: Token,
    p: PromptParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    // An invalid prompt is reported now, not when its turn begins.
    prompt_parts(Some(&p.message.parts))?;
    total_limits::check(p.timeout_ms)?;
    let id = &catalog.session_id(router, token.client, p.session_id.as_deref())?;
    if let Some(given) = &p.turn_id {
        if given.len() > LONGEST_TURN_ID {
            return Err(invalid("turnId", "must have at most 256 bytes"));
        }
        let agent = catalog.session(router, id)?.agent;
        let caller = Box::new(catalog.prompting_caller(router, id, agent)?);
        let taken_over = catalog.with_session(router, id, cx, |session, cx| {
            Ok(session.take_over(given, token, caller, cx))
        })?;
        if let Some(former) = taken_over {
            limits.hand_over(former, token);
            return Ok(());
        }
        let session = catalog.session(router, id)?;
        session.prompting.must_not_have(given, &session.talk)?;
        if reads
            .turns()
            .begin(router, id, given, &p.message.parts, p.rerun, token)?
        {
            return Ok(());
        }
    }
    let agent = prepare_opening(catalog, router, id)?;
    catalog.note_used(router, id)?;
    let caller = Box::new(catalog.prompting_caller(router, id, agent)?);
    let machine = router.agents().get(agent);
    // After a crash, the next agent process takes the prompt.
    let stopping = machine.is_stopping() && !machine.has_crashed();
    let crashed = machine.is_stopping() && machine.has_crashed();
    let held = machine.renewal().is_some_and(|r| r.holds(token));
    let session = catalog.session(router, id)?;
    session.prompting.takes_prompt(&p, &session.talk)?;
    let goes = !held && session.prompting.is_free(&session.talk) && session.queue.is_empty();
    let rests = matches!(session.talk.stage, Stage::Resting) && !crashed;
    if stopping && !held {
        return Err(out_of_order(STOPPING));
    }
    let is_answer = router.with(id, cx, |session, cx| {
        session.join(token.client, cx);
        let (decisions, talk) = (&mut session.decisions, &mut session.talk);
        p.when_busy == PromptWhenBusy::Redirect
            && answer_with_message(decisions, token.client, talk, cx)
    });
    let limit = GivenLimit {
        timeout_ms: p.timeout_ms,
        elapsed_ms: p.elapsed_ms,
    };
    limits.limit(token, limit, CallPlace::Session(id.clone()), cx);
    let turn_id = p.turn_id.clone();
    let queued = Queued {
        token,
        turn_id: turn_id.unwrap_or_else(|| router.shared_mut().next_id("turn")),
        caller,
        prompt: p,
        is_answer: is_answer.unwrap_or(false),
    };
    if goes {
        return catalog.with_session(router, id, cx, |session, cx| session.begin_turn(queued, cx));
    }
    if rests {
        room::make_room(router, id, agent, cx)?;
        next_prompt::ensure_agent(router, id, agent, cx)?;
    }
    router.with(id, cx, |session, cx| {
        session.enqueue(queued, rests, cx);
    });
    Ok(())
}

/// Sets a mode, model or option. A session that is not live is restored first.
pub(super) fn set(
    catalog: &mut Catalog,
    router: &mut Router,
    token: Token,
    session_id: Option<&str>,
    setting: Setting,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let id = &catalog.session_id(router, token.client, session_id)?;
    let agent = prepare_opening(catalog, router, id)?;
    let session = catalog.session(router, id)?;
    let is_live = session.agent_session().is_some();
    let rests = matches!(session.talk.stage, Stage::Resting);
    session.used = Some(cx.now);
    let machine = router.agents().get(agent);
    let comes_back = !is_live && machine.renewal().is_some_and(Renewal::is_pending);
    if machine.is_stopping() && !comes_back {
        return Err(out_of_order(STOPPING));
    }
    if rests {
        room::make_room(router, id, agent, cx)?;
        next_prompt::ensure_agent(router, id, agent, cx)?;
    }
    catalog.note_used(router, id)?;
    catalog.scopes_mut().note_set(id, &setting);
    catalog.with_session(router, id, cx, |session, cx| {
        session.join(token.client, cx);
        session.set(token, setting, cx)
    })
}

/// Cancels a turn or a queued prompt.
pub(super) fn cancel(
    catalog: &Catalog,
    router: &mut Router,
    token: Token,
    p: &CancelParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
    let cancelled = router.with(&id, cx, |session, cx| {
        session.cancel(p.turn_id.as_deref(), cx)
    });
    let cancelled = cancelled.unwrap_or(false);
    cx.clients
        .reply(token, Ok(Reply::Cancel(CancelResult { cancelled })));
    Ok(())
}

/// Passes a message into the running turn.
pub(super) fn steer(
    catalog: &Catalog,
    router: &mut Router,
    token: Token,
    p: SteerParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
    let agent = catalog.session(router, &id)?.agent;
    let caller = catalog.prompting_caller(router, &id, agent)?;
    let steered = catalog.with_session(router, &id, cx, |session, cx| {
        session.join(token.client, cx);
        session.steer(p, &caller, cx)
    })?;
    cx.clients.reply(token, Ok(Reply::Steer(steered)));
    Ok(())
}
