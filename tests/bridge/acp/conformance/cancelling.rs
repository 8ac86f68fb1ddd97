//! Cancelled turns and requests.

use super::case::{Case, Check, Unmet, ensure};
use super::{Requirement, must, offered, should};
use crate::acp::peer::Answer;
use serde_json::json;

pub const ROWS: &[Requirement] = &[
    must(
        "CANCEL-001",
        "a cancelled turn is answered with `cancelled`, not with an error",
        cancelled,
    ),
    must(
        "CANCEL-002",
        "no update follows the response of a cancelled turn",
        no_late_update,
    ),
    offered(
        "CANCEL-101",
        "a turn that is cancelled while a permission request is open ends with `cancelled`",
        open_permission,
    ),
    should(
        "CANCEL-102",
        "a cancel without a turn is ignored, and the next prompt works",
        idle_cancel,
    ),
    should(
        "CANCEL-103",
        "the prompt after a cancelled turn works",
        next_prompt,
    ),
    should(
        "CANCEL-104",
        "several cancels of one turn are one cancel",
        several_cancels,
    ),
    must(
        "CANCEL-105",
        "a prompt that is cancelled with `$/cancel_request` is answered, with a result or -32800",
        cancelled_request,
    ),
    should(
        "CANCEL-106",
        "`$/cancel_request` ends the turn of the prompt",
        request_ends,
    ),
    should(
        "CANCEL-107",
        "`$/cancel_request` for an unknown or answered request is ignored",
        cancelled_unknown_request,
    ),
];

fn cancelled(case: &mut Case) -> Check {
    let session = case.opened()?;
    let turn = case.cancelled_turn(&session)?;
    turn.was_cancelled()
}

fn no_late_update(case: &mut Case) -> Check {
    let session = case.opened()?;
    let turn = case.cancelled_turn(&session)?;
    case.agent.settle()?;
    case.agent.close()?;
    let late = case
        .agent
        .updates(&session, turn.to, case.agent.received.len());
    ensure(late.is_empty(), || format!("{late:?}"))
}

fn open_permission(case: &mut Case) -> Check {
    let session = case.opened()?;
    let text = case.subject.cancelled_ask.ok_or(Unmet::NotOffered)?;
    case.agent.answer_with(|_| Answer::Later);
    let from = case.agent.received.len();
    let prompt = case.send_prompt(&session, text);
    let at = case.agent.find(from, |message| {
        message["method"] == "session/request_permission"
    })?;
    let request = case.agent.received[at]["id"].clone();
    case.cancel(&session);
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    case.agent
        .send(&json!({"jsonrpc": "2.0", "id": request, "result": outcome}));
    let turn = case.turn(&session, &prompt, from)?;
    turn.was_cancelled()?;
    let mut done = turn.updates.iter();
    let done = done.find(|update| update["status"] == "completed");
    ensure(done.is_none(), || format!("the tool ran: {done:?}"))?;
    case.hello(&session).map(drop)
}

fn idle_cancel(case: &mut Case) -> Check {
    let session = case.opened()?;
    case.cancel(&session);
    case.hello(&session)?;
    case.cancel(&session);
    case.cancel("no-such-session");
    case.hello(&session).map(drop)
}

fn next_prompt(case: &mut Case) -> Check {
    cancelled(case)?;
    let session = case.session()?;
    for _ in 0..3 {
        let (prompt, from) = case.long_turn(&session)?;
        case.cancel(&session);
        case.turn(&session, &prompt, from)?;
        let turn = case.hello(&session)?;
        ensure(!turn.text().is_empty(), || "no text".to_owned())?;
    }
    Ok(())
}

fn several_cancels(case: &mut Case) -> Check {
    let session = case.opened()?;
    let (prompt, from) = case.long_turn(&session)?;
    for _ in 0..3 {
        case.cancel(&session);
    }
    let turn = case.turn(&session, &prompt, from)?;
    turn.was_cancelled()?;
    case.hello(&session).map(drop)
}

fn cancelled_request(case: &mut Case) -> Check {
    let session = case.opened()?;
    let (prompt, from) = case.long_turn(&session)?;
    case.agent
        .notify("$/cancel_request", &json!({"requestId": prompt}));
    case.agent.barrier()?;
    // An agent may ignore the notification, which is optional. The turn then ends with the cancel.
    case.cancel(&session);
    let turn = case.turn(&session, &prompt, from)?;
    let response = &turn.response;
    ensure(
        response["result"]["stopReason"] == "cancelled" || response["error"]["code"] == -32800,
        || format!("{response}"),
    )?;
    case.hello(&session).map(drop)
}

fn request_ends(case: &mut Case) -> Check {
    let session = case.opened()?;
    let (prompt, _) = case.long_turn(&session)?;
    case.agent
        .notify("$/cancel_request", &json!({"requestId": prompt}));
    case.agent.response(&prompt)?;
    case.hello(&session).map(drop)
}

fn cancelled_unknown_request(case: &mut Case) -> Check {
    let session = case.opened()?;
    let from = case.agent.received.len();
    for id in [json!(1), json!(4711), json!("x"), json!(null)] {
        case.agent
            .notify("$/cancel_request", &json!({"requestId": id}));
    }
    case.agent.notify("$/cancel_request", &json!({}));
    case.agent.barrier()?;
    let mut answers = case.agent.received[from..].iter();
    let errors = answers.find(|message| message.get("id") == Some(&json!(null)));
    ensure(errors.is_none(), || format!("{errors:?}"))?;
    case.hello(&session).map(drop)
}
