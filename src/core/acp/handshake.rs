//! Capabilities that acpipe declares to agents.

use super::elicitation;
use crate::core::dialect::AgentServices;
use crate::proto::acp::VERSION;
use agent_client_protocol_schema::v1 as schema;

/// Builds the parameters of `initialize` for a client that serves `offer`.
pub fn initialize(offer: AgentServices) -> schema::InitializeRequest {
    let files = schema::FileSystemCapabilities::new()
        .read_text_file(offer.host.read_files)
        .write_text_file(offer.host.write_files);
    let client = schema::Implementation::new("acpipe", env!("CARGO_PKG_VERSION"));
    let options = schema::SessionConfigOptionsCapabilities::new()
        .boolean(schema::BooleanConfigOptionCapabilities::new());
    let session = schema::ClientSessionCapabilities::new().config_options(options);
    // acpipe shows terminal sign-in commands to its client; older agents look for that capability in `_meta`.
    let terminal = serde_json::Map::from_iter([("terminal-auth".to_owned(), true.into())]);
    let capabilities = schema::ClientCapabilities::new()
        .fs(files)
        .terminal(offer.host.terminals)
        .session(session)
        .elicitation(offer.questions.then(elicitation::capabilities))
        .auth(schema::AuthCapabilities::new().terminal(true))
        .meta(terminal);
    schema::InitializeRequest::new(VERSION.into())
        .client_info(client.title("acpipe".to_owned()))
        .client_capabilities(capabilities)
}
