//! What a client gets and what is taken back.

use super::*;

#[test]
fn only_what_could_not_be_stored_is_taken_back() {
    let mut client = RpcClient::new(Secrets::default());
    for (session, seq) in [("a", 1), ("a", 2), ("b", 1), ("a", 3), ("b", 2)] {
        let turn = None;
        let place = Place { session, turn, seq };
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
fn several_sessions_are_taken_back_one_after_the_other() {
    let mut client = RpcClient::new(Secrets::default());
    let turn = None;
    for (session, seq) in [("a", 1), ("b", 1), ("a", 2), ("b", 2)] {
        let place = Place { session, turn, seq };
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
