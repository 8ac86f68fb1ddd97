//! Tests of the client's output: responses, batches and retracted chunks.

use super::*;
use acpipe_host::ReservedBytes;
use acpipe_json::to_raw;
use acpipe_protocol::wire::Done;
use serde_json::Value;

#[test]
fn only_unstored_output_is_retracted() {
    let mut client = RpcClient::new(&Secrets::default());
    for (session, seq) in [("a", 1), ("a", 2), ("b", 1), ("a", 3), ("b", 2)] {
        let turn = None;
        let place = ChunkAddress { session, turn, seq };
        client.chunk(place, &Chunk::FinishStep, br#"{"type":"finish-step"}"#);
    }
    client.retract("a", 1);
    let mut out = Vec::new();
    client.take_output(&mut out);
    let lines = out.split(|byte| *byte == b'\n').filter(|l| !l.is_empty());
    let left: Vec<(Value, Value)> = lines
        .map(|line| serde_json::from_slice::<Value>(line).unwrap())
        .map(|line| {
            (
                line["params"]["sessionId"].clone(),
                line["params"]["seq"].clone(),
            )
        })
        .collect();
    let want = [("a", 1), ("b", 1), ("b", 2)];
    assert_eq!(left, want.map(|(id, seq)| (id.into(), seq.into())));
}

#[test]
fn output_of_several_sessions_is_retracted() {
    let mut client = RpcClient::new(&Secrets::default());
    let turn = None;
    for (session, seq) in [("a", 1), ("b", 1), ("a", 2), ("b", 2)] {
        let place = ChunkAddress { session, turn, seq };
        client.chunk(place, &Chunk::FinishStep, br#"{"type":"finish-step"}"#);
    }
    client.retract("a", 1);
    client.retract("b", 0);
    let mut out = Vec::new();
    client.take_output(&mut out);
    let left: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(left["params"]["sessionId"], "a");
    assert_eq!(left["params"]["seq"], 1);
}

fn send(client: &mut RpcClient, text: &str) {
    let frame = ClientFrame::Message(text.to_owned().into());
    client.input(ClientInput::Frame(
        Framing::Lines,
        frame,
        ReservedBytes::default(),
    ));
}

/// Returns the tokens of the queued commands.
fn commands(client: &mut RpcClient) -> Vec<Token> {
    let actions = std::iter::from_fn(|| client.next_action());
    let token = |action| match action {
        ClientAction::Command(token, _) => token,
        other => panic!("{other:?}"),
    };
    actions.map(token).collect()
}

fn written(client: &mut RpcClient) -> Vec<Value> {
    let mut out = Vec::new();
    client.take_output(&mut out);
    let lines = serde_json::Deserializer::from_slice(&out).into_iter();
    lines.map(Result::unwrap).collect()
}

#[test]
fn batch_over_the_limit_is_refused_as_a_whole() {
    let mut client = RpcClient::new(&Secrets::default());
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"agent/logout"}]"#;
    for _ in 0..16 {
        send(&mut client, batch);
    }
    let open = commands(&mut client);
    assert_eq!((open.len(), written(&mut client)), (16, Vec::new()));
    send(&mut client, batch);
    assert_eq!(commands(&mut client), []);
    let refused = written(&mut client);
    assert_eq!(refused[0]["error"]["data"]["kind"], "overloaded");
    // A call outside of a batch has room, and a batch has room once another is complete.
    send(
        &mut client,
        r#"{"jsonrpc":"2.0","id":2,"method":"session/cancel"}"#,
    );
    assert_eq!(commands(&mut client).len(), 1);
    client.reply(open[0], Ok(Reply::Done(Done::default())));
    send(&mut client, batch);
    assert_eq!(commands(&mut client).len(), 1);
}

#[test]
fn oversized_batch_answer_becomes_an_error() {
    let mut client = RpcClient::new(&Secrets::default());
    let call = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/get"}}"#);
    send(&mut client, &format!("[{},{}]", call(1), call(2)));
    let open = commands(&mut client);
    let large = to_raw(&"x".repeat(65 << 20));
    client.reply(open[0], Ok(Reply::StoredTurn(large.clone())));
    client.reply(open[1], Ok(Reply::Done(Done::default())));
    let answers = written(&mut client);
    assert_eq!(answers[0][0]["id"], 1);
    assert_eq!(answers[0][0]["error"]["data"]["kind"], "overloaded");
    assert_eq!(answers[0][1]["result"], serde_json::json!({}));
    // Outside of a batch the call gets its result.
    send(&mut client, &call(3));
    let open = commands(&mut client);
    client.reply(open[0], Ok(Reply::StoredTurn(large)));
    let answers = written(&mut client);
    assert_eq!(answers[0]["result"].as_str().map(str::len), Some(65 << 20));
}

#[test]
fn calls_over_the_limit_are_refused_except_cancel() {
    let mut client = RpcClient::new(&Secrets::default());
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"agent/logout"}"#;
    for _ in 0..16 * 1024 {
        send(&mut client, call);
    }
    let open = commands(&mut client);
    assert_eq!(open.len(), 16 * 1024);
    send(&mut client, call);
    assert_eq!(commands(&mut client), []);
    let refused = written(&mut client);
    assert_eq!(refused[0]["error"]["data"]["kind"], "overloaded");
    send(
        &mut client,
        r#"{"jsonrpc":"2.0","id":2,"method":"session/cancel"}"#,
    );
    assert_eq!(commands(&mut client).len(), 1);
    client.reply(open[7], Ok(Reply::Done(Done::default())));
    client.reply(open[8], Ok(Reply::Done(Done::default())));
    send(&mut client, call);
    assert_eq!(commands(&mut client).len(), 1);
}
