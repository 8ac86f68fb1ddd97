//! `GET /rpc`: the neutral protocol over a WebSocket, one message in each text frame.

use super::failure::HttpFailure;
use super::state::ServerState;
use crate::cli::connections::{ClientAccess, ClientFace, ConnectionSetup, NewConnection, Via};
use acpipe_host::{ClientChannel, ConnectionInput, ConnectionOutput};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// Subprotocol of the neutral protocol.
const SUBPROTOCOL: &str = "acpipe";

/// Maximum size of a message from a client.
const MOST_MESSAGE: usize = 16 << 20;

/// Interval of pings.
const PING: Duration = Duration::from_secs(30);

/// Time without any frame of the client, pongs included, after which the connection is closed.
const SILENCE: Duration = Duration::from_secs(90);

/// Time in which the client must read a frame.
const SEND: Duration = Duration::from_secs(90);

/// Close codes of RFC 6455.
const GOING_AWAY: u16 = 1001;
const UNSUPPORTED: u16 = 1003;
const TOO_LARGE: u16 = 1009;

/// End of a connection: close code and reason for the client.
type WebSocketEnd = (u16, &'static str);

/// Handles `GET /rpc`.
pub async fn get_rpc(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, HttpFailure> {
    let setup = ConnectionSetup {
        face: ClientFace::Neutral,
        access,
        via: Via::WebSocket,
        settings: None,
    };
    let new = |output| NewConnection::Written(setup, output);
    let connection = server.connector.open(new).await?;
    let upgrade = upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(MOST_MESSAGE)
        .max_frame_size(MOST_MESSAGE);
    Ok(upgrade.on_upgrade(|socket| serve(socket, connection)))
}

async fn serve(socket: WebSocket, connection: ClientChannel<NewConnection>) {
    let (mut sink, stream) = socket.split();
    let (pings, due) = mpsc::channel(1);
    let end = tokio::select! {
        end = read(stream, connection.input, pings) => end,
        end = write(&mut sink, connection.output, due) => end,
    };
    if let Some((code, reason)) = end {
        let reason = Utf8Bytes::from_static(reason);
        let close = Message::Close(Some(CloseFrame { code, reason }));
        // A client that is gone needs no reason.
        let _ = timeout(Duration::from_secs(1), sink.send(close)).await;
    }
}

/// Passes messages of the client to the loop. Requests a ping when one is due.
async fn read(
    mut stream: SplitStream<WebSocket>,
    input: ConnectionInput<NewConnection>,
    pings: mpsc::Sender<()>,
) -> Option<WebSocketEnd> {
    let mut ticks = interval_at(Instant::now() + PING, PING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        let frame = tokio::select! {
            frame = stream.next() => frame?,
            _ = ticks.tick() => {
                if last.elapsed() > SILENCE {
                    return Some((GOING_AWAY, "the client did not answer pings"));
                }
                // A ping that waits already is enough.
                let _ = pings.try_send(());
                continue;
            }
        };
        last = Instant::now();
        match frame {
            Ok(Message::Text(text)) => {
                if input.message(text.as_bytes().to_vec()).await.is_err() {
                    return Some((GOING_AWAY, "acpipe is shutting down"));
                }
            }
            Ok(Message::Binary(_)) => return Some((UNSUPPORTED, "send JSON in text frames")),
            Ok(Message::Close(_)) => {
                input.close().await;
                return None;
            }
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Err(error) if is_too_long(&error) => {
                return Some((TOO_LARGE, "a message must not be larger than 16 MiB"));
            }
            Err(_) => return None,
        }
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    error.to_string().contains("too long")
}

/// Sends output of the loop, and pings.
async fn write(
    sink: &mut SplitSink<WebSocket, Message>,
    mut output: ConnectionOutput,
    mut due: mpsc::Receiver<()>,
) -> Option<WebSocketEnd> {
    let mut unsent = Vec::new();
    loop {
        let more = tokio::select! {
            more = output.next() => more,
            Some(()) = due.recv() => {
                send(sink, Message::Ping(bytes::Bytes::new())).await?;
                continue;
            }
        };
        let Some(mut more) = more else {
            return Some((GOING_AWAY, "acpipe closed the connection"));
        };
        unsent.append(&mut more);
        let mut begin = 0;
        while let Some(length) = memchr::memchr(b'\n', &unsent[begin..]) {
            let message = &unsent[begin..begin + length];
            begin += length + 1;
            let Ok(text) = Utf8Bytes::try_from(message.to_vec()) else {
                continue;
            };
            send(sink, Message::Text(text)).await?;
        }
        unsent.drain(..begin);
    }
}

/// Sends a frame. `None` if the client is gone or does not read.
async fn send(sink: &mut SplitSink<WebSocket, Message>, message: Message) -> Option<()> {
    timeout(SEND, sink.send(message)).await.ok()?.ok()
}
