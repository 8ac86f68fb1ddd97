//! A client on the Rust SDK that does the work of `acpipe run -o chunks`: starts an agent, sends a prompt, writes the
//! updates as AI SDK chunks and builds the message. `rust-sdk-peer AGENT ARGS…`

mod translator;

use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, SessionNotification,
    TextContent,
};
use agent_client_protocol::{AcpAgent, Agent, Client};
use tokio::sync::Notify;
use translator::Translator;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let agent = AcpAgent::from_args(std::env::args().skip(1))?;
    let translator = Arc::new(Mutex::new(Translator::start()));
    let written = Arc::new(Notify::new());

    // Chunks of one turn of the event loop are written together, which is the cheapest that loses no time.
    let (source, ready) = (translator.clone(), written.clone());
    let writer = tokio::spawn(async move {
        loop {
            ready.notified().await;
            if source.lock().unwrap().flush().is_err() {
                return;
            }
        }
    });

    let sink = translator.clone();
    let prompted = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                sink.lock().unwrap().translate(notification.update);
                written.notify_one();
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(agent, |connection: ConnectionTo<Agent>| async move {
            let initialize = InitializeRequest::new(ProtocolVersion::V1);
            connection.send_request(initialize).block_task().await?;
            let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
            let session = NewSessionRequest::new(cwd);
            let session = connection.send_request(session).block_task().await?;
            let prompt = vec![ContentBlock::Text(TextContent::new("go"))];
            let prompt = PromptRequest::new(session.session_id, prompt);
            connection.send_request(prompt).block_task().await?;
            Ok(())
        });
    prompted.await?;
    writer.abort();
    let mut translator = translator.lock().unwrap();
    translator.finish()?;
    eprintln!("message of {} bytes", translator.message_bytes());
    Ok(())
}
