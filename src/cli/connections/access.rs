//! Permissions of a client, by its connection.

use super::setup::ClientAccess;
use acpipe_core::client::{Command, Reply};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::{ClientCapabilities, Done, OnDisconnect, Role};

/// Handling of a call.
#[derive(Debug)]
pub(super) enum Admission {
    /// The hub gets it.
    Pass(Command),
    /// It is answered without the hub.
    Answer(Result<Reply, Error>),
    /// It is answered, then the connection is closed.
    Leave(Reply),
}

/// Decides whether a client may make a call, and adapts the call to the connection.
pub(super) fn admit(access: ClientAccess, command: Command) -> Admission {
    match (access, command) {
        (_, Command::Initialize(mut p)) => {
            // The end of the connection shows the end of the client.
            p.process_id = None;
            p.on_disconnect = OnDisconnect::Continue;
            if access == ClientAccess::Observer {
                // Also in sessions that it subscribes to without attaching.
                p.role = Role::Observer;
                p.capabilities = ClientCapabilities {
                    chunks: p.capabilities.chunks,
                    ..ClientCapabilities::default()
                };
            }
            Admission::Pass(Command::Initialize(p))
        }
        (ClientAccess::Control, command) => Admission::Pass(command),
        // The daemon has other clients.
        (_, Command::Shutdown) => Admission::Leave(Reply::Done(Done::default())),
        (ClientAccess::Full, command) => Admission::Pass(command),
        (ClientAccess::Observer, Command::Attach(mut p)) if p.role != Some(Role::Controller) => {
            p.role = Some(Role::Observer);
            Admission::Pass(Command::Attach(p))
        }
        (ClientAccess::Observer, command) if may_observe(&command) => Admission::Pass(command),
        (ClientAccess::Observer, command) => {
            let message = format!(
                "{} is not allowed: the token of this connection only permits reading; connect with the full token",
                command.method().name
            );
            Admission::Answer(Err(Error::new(ErrorKind::Forbidden, message)))
        }
    }
}

fn may_observe(command: &Command) -> bool {
    command.method().only_reads || matches!(command, Command::Subscribe(_) | Command::Detach(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Command {
        Command::Cancel(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn observer_may_read_but_not_change() {
        let list = Command::ListAgents(serde_json::from_str("{}").unwrap());
        assert!(matches!(
            admit(ClientAccess::Observer, list),
            Admission::Pass(_)
        ));
        let Admission::Answer(Err(error)) = admit(ClientAccess::Observer, command("{}")) else {
            panic!("the call was passed on");
        };
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert!(matches!(
            admit(ClientAccess::Full, command("{}")),
            Admission::Pass(_)
        ));
    }

    #[test]
    fn observer_attaches_as_observer_only() {
        let attach = |text: &str| {
            let command = Command::Attach(serde_json::from_str(text).unwrap());
            admit(ClientAccess::Observer, command)
        };
        for text in ["{}", r#"{"role":"observer"}"#] {
            let Admission::Pass(Command::Attach(p)) = attach(text) else {
                panic!("{text} was not passed on");
            };
            assert_eq!(p.role, Some(Role::Observer), "{text}");
        }
        let Admission::Answer(Err(error)) = attach(r#"{"role":"controller"}"#) else {
            panic!("the call was passed on");
        };
        assert_eq!(error.kind, ErrorKind::Forbidden);
    }

    #[test]
    fn observer_answers_no_requests() {
        let params = r#"{"protocolVersion":1,"capabilities":{"permissions":true,"chunks":false}}"#;
        let initialize = Command::Initialize(serde_json::from_str(params).unwrap());
        let Admission::Pass(Command::Initialize(p)) = admit(ClientAccess::Observer, initialize)
        else {
            panic!("initialize was not passed on");
        };
        assert!(!p.capabilities.permissions);
        assert_eq!(p.role, Role::Observer);
        assert_eq!(p.capabilities.chunks, Some(false));
    }

    #[test]
    fn shutdown_of_a_client_does_not_end_the_daemon() {
        for access in [ClientAccess::Full, ClientAccess::Observer] {
            assert!(matches!(
                admit(access, Command::Shutdown),
                Admission::Leave(_)
            ));
        }
        assert!(matches!(
            admit(ClientAccess::Control, Command::Shutdown),
            Admission::Pass(_)
        ));
    }
}
