//! Clients of a session in the form in which other clients receive them.

use super::client::{ClientId, Notice};
use super::client_sink::ClientSinks;
use super::clients::Clients;
use super::subscribers::Subscribers;
use acpipe_protocol::wire::{PresenceParams, SessionClient};

/// Returns the clients of a session; `own` is the client that receives the list.
pub fn session_clients(
    subscribers: &Subscribers,
    clients: &Clients,
    own: ClientId,
) -> Vec<SessionClient> {
    let all = subscribers.iter().map(|subscriber| {
        let declaration = clients.get(subscriber.client);
        let info = declaration.and_then(|declaration| declaration.info.as_ref());
        SessionClient {
            client_id: subscriber.client.to_string(),
            name: info.map(|info| info.name.clone()),
            version: info.and_then(|info| info.version.clone()),
            role: subscriber.participation.role,
            on_disconnect: subscriber.participation.on_disconnect,
            is_self: subscriber.client == own,
        }
    });
    all.collect()
}

/// Notifies the clients of a session but `except` who is there, after the chunks up to `seq`.
pub fn notify_presence(
    (session, seq): (&str, u64),
    subscribers: &mut Subscribers,
    clients: &Clients,
    except: Option<ClientId>,
    sinks: &mut dyn ClientSinks,
) {
    if subscribers.clients().all(|client| Some(client) == except) {
        return;
    }
    let all = session_clients(subscribers, clients, ClientId::FIRST);
    let notice = |own: ClientId| {
        let mut all = all.clone();
        for client in &mut all {
            client.is_self = client.client_id == own.to_string();
        }
        Notice::Presence(PresenceParams {
            session_id: session.to_owned(),
            clients: all,
        })
    };
    subscribers.notify_each(seq, except, notice, sinks);
}
