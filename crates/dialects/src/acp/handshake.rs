//! Capabilities that acpipe declares to agents.

use acpipe_json::{to_raw, value};
use acpipe_model::acp_client::AcpClient;
use acpipe_model::dialect::AgentServices;
use acpipe_protocol::acp::VERSION;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub fn initialize(offer: &AgentServices) -> Box<RawValue> {
    match &offer.acp {
        Some(client) => to_raw(&initialize_of(client, offer)),
        None => to_raw(&own_initialize(offer)),
    }
}

/// Returns the parameters of a client that speaks ACP, with what acpipe serves in addition.
fn initialize_of(client: &AcpClient, offer: &AgentServices) -> Value {
    let mut params = value(&client.handshake);
    params["protocolVersion"] = VERSION.into();
    let host = offer.host;
    let served = [
        (&["fs", "readTextFile"][..], host.read_files),
        (&["fs", "writeTextFile"], host.write_files),
        (&["terminal"], host.terminals),
    ];
    for (path, _) in served.into_iter().filter(|(_, is_served)| *is_served) {
        // A client without capabilities stays one without: an agent may reject the value `null`.
        let capabilities = &mut params["clientCapabilities"];
        let place = path.iter().try_fold(capabilities, |place, name| {
            let may_index = place.is_object() || place.is_null();
            may_index.then(|| &mut place[*name])
        });
        if let Some(place) = place {
            *place = true.into();
        }
    }
    params
}

fn own_initialize(offer: &AgentServices) -> Value {
    let host = offer.host;
    let mut capabilities = json!({
        "fs": { "readTextFile": host.read_files, "writeTextFile": host.write_files },
        "terminal": host.terminals,
        "session": { "configOptions": { "boolean": {} } },
        "auth": { "terminal": true },
    });
    if offer.questions {
        capabilities["elicitation"] = json!({ "form": {}, "url": {} });
    }
    // acpipe shows terminal sign-in commands to its client; older agents look for that capability in `_meta`.
    capabilities["_meta"] = json!({ "terminal-auth": true });
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": capabilities,
        "clientInfo": { "name": "acpipe", "title": "acpipe", "version": version },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::host::HostServices;
    use agent_client_protocol_schema::v1 as schema;
    use std::sync::Arc;

    fn initialize_for(handshake: &Value, host: HostServices) -> Value {
        let client = AcpClient {
            handshake: to_raw(handshake),
        };
        value(&initialize(&AgentServices {
            questions: true,
            host,
            acp: Some(Arc::new(client)),
        }))
    }

    #[test]
    fn own_handshake_has_the_form_of_the_schema() {
        for (questions, served) in [(true, true), (false, false)] {
            let own = value(&initialize(&AgentServices {
                questions,
                host: HostServices {
                    read_files: served,
                    write_files: served,
                    terminals: served,
                },
                acp: None,
            }));
            let typed: schema::InitializeRequest = serde_json::from_value(own.clone()).unwrap();
            assert_eq!(serde_json::to_string(&typed).unwrap(), own.to_string());
        }
    }

    #[test]
    fn client_without_capabilities_declares_none_to_the_agent() {
        let handshake = json!({ "clientInfo": { "name": "editor", "version": "1" } });
        let params = initialize_for(&handshake, HostServices::default());
        let wanted = json!({ "protocolVersion": VERSION, "clientInfo": handshake["clientInfo"] });
        assert_eq!(params, wanted);
    }

    #[test]
    fn served_files_are_declared_beside_the_capabilities_of_the_client() {
        let handshake =
            json!({ "clientCapabilities": { "fs": { "writeTextFile": true }, "_x": 1 } });
        let host = HostServices {
            read_files: true,
            ..HostServices::default()
        };
        let capabilities = &initialize_for(&handshake, host)["clientCapabilities"];
        let fs = json!({ "readTextFile": true, "writeTextFile": true });
        assert_eq!(capabilities, &json!({ "fs": fs, "_x": 1 }));
    }
}
