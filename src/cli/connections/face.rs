//! Face of a connection: the protocol of its client.

use super::setup::ClientFace;
use crate::cli::acp::client::AcpConnection;
use crate::cli::rpc::RpcClient;
use acpipe_core::client_sink::ClientSink;
use acpipe_host::{ClientAction, ClientConnection as _, ClientInput, Pressure};
use acpipe_model::secret::Secrets;

/// Face of a connection. It serves a single client, which it calls the first.
pub(super) enum Face {
    Neutral(Box<RpcClient>),
    Acp(Box<AcpConnection>),
}

impl Face {
    pub(super) fn new(face: ClientFace, secrets: &Secrets) -> Self {
        match face {
            ClientFace::Neutral => Self::Neutral(Box::new(RpcClient::new(secrets))),
            ClientFace::Acp(settings) => {
                Self::Acp(Box::new(AcpConnection::new(settings, secrets, None)))
            }
        }
    }

    pub(super) fn sink(&mut self) -> &mut dyn ClientSink {
        match self {
            Self::Neutral(face) => face.as_mut(),
            Self::Acp(face) => face.as_mut(),
        }
    }

    pub(super) fn sink_ref(&self) -> &dyn ClientSink {
        match self {
            Self::Neutral(face) => face.as_ref(),
            Self::Acp(face) => face.as_ref(),
        }
    }

    pub(super) fn input(&mut self, input: ClientInput) {
        match self {
            Self::Neutral(face) => face.input(input),
            Self::Acp(face) => face.input(input),
        }
    }

    pub(super) fn next_action(&mut self) -> Option<ClientAction> {
        match self {
            Self::Neutral(face) => face.next_action(),
            Self::Acp(face) => face.next_action(),
        }
    }

    pub(super) fn set_backpressure(&mut self, pressure: Pressure) {
        match self {
            Self::Neutral(face) => face.set_backpressure(pressure),
            Self::Acp(face) => face.set_backpressure(pressure),
        }
    }

    pub(super) fn take_output(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        match self {
            Self::Neutral(face) => face.take_output(&mut output),
            Self::Acp(face) => face.take_output(&mut output),
        }
        output
    }
}
