//! Face of a connection: the protocol of its client, and the queue of its output.

use super::setup::ClientFace;
use crate::cli::acp::client::AcpConnection;
use crate::cli::rpc::RpcClient;
use acpipe_core::client_sink::ClientSink;
#[cfg(any(feature = "listen", test))]
use acpipe_core::methods::learn_secrets;
use acpipe_host::{ClientAction, ClientConnection, ClientInput, OutputQueue, Pressure};
#[cfg(any(feature = "listen", test))]
use acpipe_host::{DirectOutput, DirectSink};
use acpipe_model::secret::Secrets;
#[cfg(any(feature = "listen", test))]
use std::collections::VecDeque;
use std::sync::Arc;

/// Face of a connection. A face with a protocol serves a single client, which it calls the first.
pub(super) enum Face {
    Neutral(WrittenFace<Box<RpcClient>>),
    Acp(WrittenFace<Box<AcpConnection>>),
    #[cfg(any(feature = "listen", test))]
    Direct(Box<DirectFace>),
}

/// Face of a client that reads and writes bytes.
pub(super) struct WrittenFace<F> {
    face: F,
    output: Arc<OutputQueue>,
}

/// Face of a client in this program.
#[cfg(any(feature = "listen", test))]
pub(super) struct DirectFace {
    sink: DirectSink,
    output: Arc<OutputQueue<DirectOutput>>,
    actions: VecDeque<ClientAction>,
    secrets: Secrets,
}

/// Calls a method of the face of a client that reads and writes bytes.
macro_rules! written {
    ($self:expr, $written:ident => $call:expr, $direct:ident => $other:expr) => {
        match $self {
            Face::Neutral($written) => $call,
            Face::Acp($written) => $call,
            #[cfg(any(feature = "listen", test))]
            Face::Direct($direct) => $other,
        }
    };
}

impl Face {
    /// Creates the face of a client that reads and writes bytes.
    pub(super) fn written(face: ClientFace, output: Arc<OutputQueue>, secrets: &Secrets) -> Self {
        match face {
            ClientFace::Neutral => {
                let face = Box::new(RpcClient::new(secrets));
                Self::Neutral(WrittenFace { face, output })
            }
            ClientFace::Acp(settings) => {
                let face = Box::new(AcpConnection::new(settings, secrets, None));
                Self::Acp(WrittenFace { face, output })
            }
        }
    }

    /// Creates the face of a client in this program.
    #[cfg(any(feature = "listen", test))]
    pub(super) fn direct(output: Arc<OutputQueue<DirectOutput>>, secrets: &Secrets) -> Self {
        let queue = Arc::clone(&output);
        Self::Direct(Box::new(DirectFace {
            sink: DirectSink::new(move || queue.unread(), true),
            output,
            actions: VecDeque::new(),
            secrets: secrets.of_client(),
        }))
    }

    pub(super) fn sink(&mut self) -> &mut dyn ClientSink {
        written!(self, written => written.face.as_mut(), direct => &mut direct.sink)
    }

    pub(super) fn sink_ref(&self) -> &dyn ClientSink {
        written!(self, written => written.face.as_ref(), direct => &direct.sink)
    }

    pub(super) fn input(&mut self, input: ClientInput) {
        written!(self, written => written.face.input(input), _direct => drop(input));
    }

    /// Takes an action of a client in this program.
    pub(super) fn act(&mut self, action: ClientAction) {
        written!(self, _written => drop(action), direct => {
            if let ClientAction::Command(_, command) = &action {
                learn_secrets(command, &direct.secrets);
            }
            direct.actions.push_back(action);
        });
    }

    pub(super) fn next_action(&mut self) -> Option<ClientAction> {
        written!(self, written => written.face.next_action(), direct => direct.actions.pop_front())
    }

    /// Returns the backpressure of the client.
    pub(super) fn pressure(&self) -> Pressure {
        written!(self, written => written.output.pressure(), direct => direct.output.pressure())
    }

    pub(super) fn set_backpressure(&mut self, pressure: Pressure) {
        // A client in this program has its unread output counted by its sink.
        written!(self, written => written.face.set_backpressure(pressure), _direct => ());
    }

    /// Moves the output to the queue of the connection. Returns `false` if the client does not take it.
    pub(super) fn deliver(&mut self) -> bool {
        written!(self, written => {
            let mut bytes = Vec::new();
            written.face.take_output(&mut bytes);
            bytes.is_empty() || written.output.push(bytes)
        }, direct => {
            let values = direct.sink.take();
            acpipe_host::QueuedOutput::is_empty(&values) || direct.output.push(values)
        })
    }

    /// Ends the output.
    pub(super) fn close(&self) {
        written!(self, written => written.output.close(), direct => direct.output.close());
    }
}
