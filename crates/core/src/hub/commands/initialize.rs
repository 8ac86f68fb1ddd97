//! Implements `initialize`: what a client declares.

use crate::client::ClientId;
use crate::clients::ClientDeclaration;
use crate::effect::Effect;
use crate::hub::catalog::Catalog;
use crate::hub::router::Router;
use crate::profile::Profile;
use acpipe_model::acp_client::AcpClient;
use acpipe_model::error::{Error, ErrorKind, invalid};
use acpipe_model::printable::printable;
use acpipe_protocol::wire;
use std::sync::Arc;

/// Maximum length of the name and version of a client, in characters. Other clients receive them often.
const LONGEST_NAME: usize = 100;

pub(super) fn initialize(
    catalog: &mut Catalog,
    router: &mut Router,
    client: ClientId,
    p: &wire::InitializeParams,
) -> Result<wire::InitializeResult, Error> {
    if p.protocol_version != wire::PROTOCOL_VERSION {
        let message = format!(
            "protocolVersion {} is not supported; use {}",
            p.protocol_version,
            wire::PROTOCOL_VERSION
        );
        let error = Error::new(ErrorKind::InvalidParams, message);
        return Err(error.with("field", "protocolVersion"));
    }
    let earlier = router.shared().clients.get(client).cloned();
    let mut declaration = earlier.unwrap_or_else(|| {
        ClientDeclaration::new(catalog.scopes().caller_settings(router.shared()).profile)
    });
    let subscription = &mut declaration.subscription;
    if let Some(profile) = p.chunk_profile {
        let unknown = || invalid("chunkProfile", "must be 7, 6, 5 or \"discobot\"");
        subscription.profile = Profile::of_wire(profile).ok_or_else(unknown)?;
    }
    if p.capabilities.agui {
        let unusable = || {
            invalid(
                "chunkProfile",
                "must be 7 for a client that receives AG-UI events",
            )
        };
        if p.chunk_profile
            .is_some_and(|_| subscription.profile != Profile::V7)
        {
            return Err(unusable());
        }
        subscription.profile = Profile::V7;
    }
    if let Some(chunks) = p.capabilities.chunks {
        subscription.chunks = chunks;
    }
    let chunk_profile = subscription.profile.to_wire();
    declaration.capabilities = p.capabilities;
    declaration.unknown_fields = p.unknown_fields;
    declaration.info = p.client_info.as_ref().map(shown_info).or(declaration.info);
    (declaration.role, declaration.on_disconnect) = (p.role, p.on_disconnect);
    if let Some(handshake) = p.acp.clone() {
        declaration.subscription.updates = true;
        declaration.acp = Some(Arc::new(AcpClient { handshake }));
    }
    let services = declaration.services();
    router.shared_mut().clients.declare(client, declaration);
    let (agents, shared) = router.agents_and_shared();
    let scopes = catalog.scopes_mut();
    scopes.declare(agents, shared, client, services)?;
    // acpipe outlives a client whose departure ends nothing.
    let watched = p
        .process_id
        .filter(|_| p.on_disconnect == wire::OnDisconnect::Cancel);
    if let Some(watched) = watched {
        router.push(Effect::Watch(watched));
    }
    let machine = router.agents().get(catalog.scopes().default_agent());
    let agent = &machine.definition().spec;
    Ok(wire::InitializeResult {
        protocol_version: wire::PROTOCOL_VERSION,
        server_info: wire::PeerInfo {
            name: "acpipe".to_owned(),
            title: None,
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        },
        chunk_profile,
        default_agent: wire::DefaultAgent {
            name: machine.name().to_owned(),
            command: agent.command.clone(),
            args: agent.args.clone(),
            source: agent.source,
        },
    })
}

/// Returns the name and version of a client as other clients and the user see them.
fn shown_info(given: &wire::PeerInfo) -> wire::PeerInfo {
    // A line break would let a client write lines of its own in the terminals of others.
    let in_one_line = |c: char| if c.is_control() { ' ' } else { c };
    let shown = |text: &String| {
        let text = printable(text);
        text.chars().map(in_one_line).take(LONGEST_NAME).collect()
    };
    wire::PeerInfo {
        name: shown(&given.name),
        title: given.title.as_ref().map(shown),
        version: given.version.as_ref().map(shown),
    }
}
