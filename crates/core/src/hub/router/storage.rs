//! Storage: writes session logs before clients receive their chunks, and handles the results of the store.

use super::panics::catch_and_repair;
use super::unfinished_turns::end_unfinished_turns;
use super::{Router, claims};
use crate::client::Reply;
use crate::client_sink::ClientSinks;
use crate::hub::cx::HubCx;
use crate::log::{Log, disk_timeout};
use crate::sessions::Sessions;
use crate::shared::{PendingStoreReply, Shared, StoreCall};
use crate::store::Store;
use acpipe_json::{to_raw, value};
use acpipe_model::error::{Error, ErrorKind};
use std::time::Instant;
use tracing::warn;

/// Writes the new records of all sessions. This must come before clients receive anything, since
/// everything that a client received must be in the log.
pub fn commit(router: &mut Router, cx: &mut HubCx<'_>) {
    if has_unsent(&router.shared, cx.clients) {
        catch_and_repair(router, cx, |router, cx| {
            router
                .sessions
                .for_each_awake(|session| session.talk.output.number_unsent_if_read(cx.clients));
        });
    }
    let mut failed = Vec::new();
    let (limits, counters) = (&router.shared.settings.limits, &mut router.shared.counters);
    router.sessions.for_each_awake(|session| {
        session.count_output(cx.now, counters);
        if session.talk.output.log().is_dirty()
            && let Err(error) = session.talk.output.commit((cx.now, limits), cx.clients)
        {
            failed.push((session.id.clone(), error));
        }
    });
    for (id, error) in failed {
        router.with(&id, cx, |session, cx| {
            session.not_stored(error, cx);
        });
    }
}

/// Returns `true` if chunks are held back for clients that are behind.
fn has_unsent(shared: &Shared, clients: &mut dyn ClientSinks) -> bool {
    let mut all = shared.clients.ids();
    all.any(|client| clients.sink(client).is_some_and(|sink| sink.unsent() > 0))
}

/// Numbers the chunks that are held back for clients that are behind, so that they precede whatever comes
/// next.
pub fn number_unsent(router: &mut Router, clients: &mut dyn ClientSinks) {
    if has_unsent(&router.shared, clients) {
        router
            .sessions
            .for_each_awake(|session| session.talk.output.number_unsent(clients));
    }
}

/// Opens a log, and ends its unfinished turns.
pub fn open_log(store: &mut dyn Store, id: &str) -> Result<Log, Error> {
    let mut log = Log::open(store.open(id)?)?;
    if log.corrupt() > 0 {
        let lines = log.corrupt();
        warn!(
            session = id,
            lines, "unreadable lines of the log are left in place"
        );
    }
    end_unfinished_turns(&mut log);
    // A full disk must not prevent reading.
    log.release_pending();
    log.commit()?;
    log.store_index();
    Ok(log)
}

/// Answers a call that waited for the disk, or whose time limit is reached.
pub fn synced(
    router: &mut Router,
    wait: PendingStoreReply,
    outcome: Result<(), Error>,
    cx: &mut HubCx<'_>,
) {
    match (wait.call, outcome) {
        (StoreCall::Turn(id, token, summary), outcome) => {
            let answer = match outcome {
                Ok(()) => Ok(Reply::Turn(summary)),
                Err(error) if !needs_sync(&router.sessions, &id, &error) => {
                    Ok(Reply::Turn(summary))
                }
                Err(error) => Err(error.with("summary", value(&to_raw(&summary)))),
            };
            match router.sessions.get_mut(&id) {
                Some(session) => session.talk.output.reply(token, answer, cx.clients),
                None => cx.clients.reply(token, answer),
            }
        }
        (StoreCall::List(token, ..), _) => {
            let message = "cannot list the sessions: the disk does not respond";
            cx.clients
                .reply(token, Err(Error::new(ErrorKind::Storage, message)));
        }
        (StoreCall::Claim(id), _) => {
            claims::not_searched(router, &id, &disk_timeout(), cx);
        }
    }
}

/// Returns `true` if a turn of the session fails whose sync has failed.
fn needs_sync(sessions: &Sessions, id: &str, error: &Error) -> bool {
    let session = sessions.get(id);
    session.is_none_or(|session| session.talk.output.log().needs_sync(error))
}

/// Returns the deadlines of the calls that wait for the store.
pub fn store_limits(shared: &Shared) -> impl Iterator<Item = Instant> {
    let waits = shared.pending_store_replies.values();
    waits.filter_map(|wait| wait.until)
}

pub fn time_out_store(router: &mut Router, cx: &mut HubCx<'_>) {
    let is_due = |wait: &PendingStoreReply| wait.until.is_some_and(|at| at <= cx.now);
    let waits = router.shared.pending_store_replies.iter();
    let due = waits.filter(|(_, wait)| is_due(wait));
    let due: Vec<u64> = due.map(|(ticket, _)| *ticket).collect();
    for ticket in due {
        if let Some(wait) = router.shared.pending_store_replies.remove(&ticket) {
            synced(router, wait, Err(disk_timeout()), cx);
        }
    }
}
