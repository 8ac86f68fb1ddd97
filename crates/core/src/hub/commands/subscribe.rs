//! Subscriptions of clients.

use crate::client::ClientId;
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::router::Router;
use acpipe_model::error::Error;
use acpipe_protocol::wire::SubscribeParams;

/// Sets whether a client receives chunks: of one session, or of all sessions to which it is subscribed or
/// will be.
pub(super) fn subscribe(
    catalog: &Catalog,
    router: &mut Router,
    client: ClientId,
    p: &SubscribeParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    if let Some(id) = &p.session_id {
        let id = catalog.session_id(router, client, Some(id))?;
        return catalog.with_session(router, &id, cx, |session, cx| {
            session.join(client, cx);
            session.talk.output.set_chunks(client, p.chunks, cx.clients);
            Ok(())
        });
    }
    if let Some(declaration) = router.shared_mut().clients.get_mut(client) {
        declaration.subscription.chunks = p.chunks;
    }
    for session in router.sessions_mut().values_mut() {
        session.talk.output.set_chunks(client, p.chunks, cx.clients);
    }
    router.unloaded_mut().set_chunks(client, p.chunks);
    Ok(())
}
