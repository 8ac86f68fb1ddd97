//! Error responses of agents as errors of acpipe.

use super::pending::Pending;
use super::{Acp, auth, decode, failures, session_gone};
use crate::core::builtin_agents::hints;
use crate::core::error::{Error, ErrorKind, clip};
use crate::proto::acp as wire;
use crate::proto::rpc::RpcError;

impl Acp {
    /// Converts the error response to a request.
    pub(super) fn agent_error(&self, pending: &Pending, e: &RpcError<'_>) -> Error {
        let signing = matches!(pending, Pending::Authenticate(_));
        if !signing && auth::wants_sign_in(e) {
            let said = decode::error_text(e);
            let login = hints::login(&self.launch.command, &self.launch.args);
            let error = Error::auth_required(&said, &self.info.auth_methods, login);
            // Other codes are less certain: a configured key may be wrong. The raw error shows that.
            return match e.code {
                wire::AUTH_REQUIRED => error,
                _ => error.with("raw", e.raw.get()),
            };
        }
        let kind = match pending {
            Pending::Authenticate(_) if !decode::is_network(e) => ErrorKind::AuthRequired,
            Pending::Initialize => ErrorKind::Initialize,
            _ if pending.is_of_open_session() && session_gone::is_session_gone(e) => {
                ErrorKind::SessionNotFound
            }
            _ if decode::is_network(e) => ErrorKind::Network,
            _ => ErrorKind::Session,
        };
        let kind = failures::reported_kind(e).unwrap_or(kind);
        let message = format!(
            "the agent answered {} with an error: {} ({})",
            pending.method(),
            clip(&decode::error_text(e)),
            e.code
        );
        Error::new(kind, message).with("raw", e.raw.get())
    }
}
