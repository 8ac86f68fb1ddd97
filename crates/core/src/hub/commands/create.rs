//! Implements `session/create`.

use super::ensure::ensure;
use crate::client::Token;
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::lifecycle::total_limits::TotalLimits;
use crate::hub::router::Router;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire;
use acpipe_protocol::wire::{Rung, Strategy};
use serde_json::Map;

pub(super) fn create(
    catalog: &mut Catalog,
    router: &mut Router,
    limits: &mut TotalLimits,
    token: Token,
    p: wire::CreateParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let (id, _) =
        catalog.ensured_id(router, token.client, Some(&p.session_id), p.cwd.as_deref())?;
    if catalog.session(router, &id).is_ok() {
        let message =
            format!("session {id:?} already exists; use another id, or call session/ensure");
        return Err(Error::new(ErrorKind::SessionExists, message));
    }
    let params = wire::EnsureParams {
        acp: Map::new(),
        session_id: Some(p.session_id),
        agent: p.agent,
        cwd: p.cwd,
        mcp_servers: p.mcp_servers,
        options: p.options,
        strict: p.strict,
        strategy: Strategy::Only(Rung::New),
        agent_session_id: None,
        fork: false,
        timeout_ms: p.timeout_ms,
        elapsed_ms: 0,
    };
    ensure(catalog, router, limits, token, params, cx)
}
