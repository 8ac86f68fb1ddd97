//! A client on the Rust SDK. Its protocol is that of `tests/real/sdk_clients.py`.
//!
//! `acpipe-real-client allow|refuse COMMAND [ARGS...]`

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, Implementation, InitializeRequest, LoadSessionRequest,
    NewSessionRequest, PermissionOptionKind, PromptRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionNotification, TextContent,
};
use agent_client_protocol::{AcpAgent, Agent, Client, Error};
use serde_json::{Value, json};
use std::io::Write as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// Writes a line for the test.
fn say(line: &Value) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

fn decide(request: &RequestPermissionRequest, allow: bool) -> RequestPermissionResponse {
    say(&json!({
        "session": request.session_id,
        "asked": {"toolCall": request.tool_call, "options": request.options},
    }));
    let wanted = if allow {
        PermissionOptionKind::AllowOnce
    } else {
        PermissionOptionKind::RejectOnce
    };
    let option = request.options.iter().find(|option| option.kind == wanted);
    RequestPermissionResponse::new(match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
            option.option_id.clone(),
        )),
        None => RequestPermissionOutcome::Cancelled,
    })
}

/// Performs one wish of the test and returns the agent's answer.
async fn perform(agent: &ConnectionTo<Agent>, wish: &Value) -> Result<Value, Error> {
    let word = |name: &str| wish[name].as_str().unwrap_or_default().to_owned();
    let (session, cwd) = (word("session"), word("cwd"));
    let result = match wish["call"].as_str() {
        Some("new") => {
            let request = NewSessionRequest::new(cwd);
            json!(agent.send_request(request).block_task().await?)
        }
        Some("load") => {
            let request = LoadSessionRequest::new(session, cwd);
            json!(agent.send_request(request).block_task().await?)
        }
        Some("prompt") => {
            let text = ContentBlock::Text(TextContent::new(word("text")));
            let request = PromptRequest::new(session, vec![text]);
            json!(agent.send_request(request).block_task().await?)
        }
        _ => {
            agent.send_notification(CancelNotification::new(session))?;
            json!({})
        }
    };
    Ok(result)
}

async fn serve(agent: ConnectionTo<Agent>) -> Result<(), Error> {
    let start = InitializeRequest::new(ProtocolVersion::V1)
        .client_info(Implementation::new("acpipe-real-rust", "1"));
    let started = agent.send_request(start).block_task().await?;
    say(&json!({"number": 0, "result": started}));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines
        .next_line()
        .await
        .map_err(Error::into_internal_error)?
    {
        let wish: Value = serde_json::from_str(&line).map_err(Error::into_internal_error)?;
        let connection = agent.clone();
        agent.spawn(async move {
            say(&match perform(&connection, &wish).await {
                Ok(result) => json!({"number": wish["number"], "result": result}),
                Err(error) => json!({"number": wish["number"], "error": error.message}),
            });
            Ok(())
        })?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut words = std::env::args().skip(1);
    let allow = words.next().as_deref() == Some("allow");
    let agent = AcpAgent::from_args(words).expect("usage: allow|refuse COMMAND [ARGS...]");
    let ended = Client
        .v1()
        .on_receive_notification(
            async move |news: SessionNotification, _| {
                say(&json!({"session": news.session_id, "update": news.update}));
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                responder.respond(decide(&request, allow))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, serve)
        .await;
    match ended {
        Ok(()) => say(&json!({"exited": null})),
        Err(error) => say(&json!({"failed": error.message})),
    }
}
