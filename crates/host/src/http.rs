//! HTTP transports: a task for each request, which delivers the head and the body of the response as lines.

#[cfg(feature = "http")]
mod attempts;
#[cfg(feature = "http")]
mod body;
#[cfg(feature = "http")]
mod clients;
#[cfg(feature = "http")]
mod failure;
#[cfg(feature = "http")]
mod retry_after;

#[cfg(feature = "otlp")]
pub use clients::HttpClients;
#[cfg(feature = "otlp")]
pub use failure::causes;

use super::inbox::EventSender;
use super::recorder::ProcessRecorder;
use acpipe_core::hub::{AgentId, AgentInput, Exit};
use acpipe_model::error::Error;
#[cfg(not(feature = "http"))]
use acpipe_model::error::ErrorKind;
use acpipe_model::http::HttpRequest;
use std::convert::Infallible;
use tokio::sync::oneshot;

/// The loop's handle of an exchange, which closes the connection when it is dropped.
pub struct HttpExchange {
    _open: oneshot::Sender<Infallible>,
}

/// Reason why an exchange ends before its response is complete.
enum Cut {
    /// The exchange failed.
    Failed(Error),
    /// The loop no longer receives events.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "nothing is delivered without HTTP")
    )]
    LoopEnded,
}

/// Starter of exchanges, which share their connections.
#[derive(Debug, Default)]
pub struct Http {
    #[cfg(feature = "http")]
    clients: clients::HttpClients,
}

impl Http {
    /// Sends a request. The lines of the response and its end arrive through `events`.
    #[cfg_attr(
        not(feature = "http"),
        expect(clippy::unused_self, reason = "there are no connections without HTTP")
    )]
    pub fn start(
        &mut self,
        id: AgentId,
        request: HttpRequest,
        max_line: usize,
        events: EventSender,
        recorder: Option<ProcessRecorder>,
    ) -> HttpExchange {
        let (open, closed) = oneshot::channel::<Infallible>();
        if let Some(recorder) = &recorder {
            recorder.started();
            recorder.sent(&request.body);
        }
        #[cfg(feature = "http")]
        let work = {
            let recorder = recorder.clone();
            let client = self.clients.client(&request.url, request.limits.connect);
            let events = events.clone();
            async move {
                let client = client.map_err(Cut::Failed)?;
                let mut exchange =
                    attempts::HttpAttempts::new(id, request, client, (events, recorder));
                let response = exchange.response().await?;
                body::deliver(response, exchange, max_line).await
            }
        };
        #[cfg(not(feature = "http"))]
        let work = {
            drop((request, max_line));
            std::future::ready(Err(absent()))
        };
        tokio::spawn(run(id, work, closed, (events, recorder)));
        HttpExchange { _open: open }
    }
}

/// Works on an exchange until it ends or its handle is dropped, then reports its end.
async fn run(
    id: AgentId,
    work: impl Future<Output = Result<(), Cut>>,
    closed: oneshot::Receiver<Infallible>,
    (mut events, recorder): (EventSender, Option<ProcessRecorder>),
) {
    // The work is dropped before the end is reported, which closes the connection.
    let end = {
        tokio::select! {
            end = work => end,
            _ = closed => Ok(()),
        }
    };
    let end = match end {
        Ok(()) => AgentInput::Exited(Exit {
            code: Some(0),
            ..Exit::default()
        }),
        Err(Cut::Failed(error)) => AgentInput::StartFailed(error),
        Err(Cut::LoopEnded) => return,
    };
    match (&recorder, &end) {
        (Some(recorder), AgentInput::StartFailed(error)) => recorder.failed(&error.message),
        (Some(recorder), _) => recorder.exited(Some(0), None, ""),
        (None, _) => {}
    }
    // Fails only if the loop has ended; the event is not needed then.
    let _ = events.send(id, end).await;
}

#[cfg(not(feature = "http"))]
fn absent() -> Cut {
    let message = "this acpipe cannot use HTTP endpoints: it was built without the feature `http`; build it with \
                   the feature, or install a released binary";
    Cut::Failed(Error::new(ErrorKind::AgentStart, message))
}
