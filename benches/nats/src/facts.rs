//! Checks of what the design relies on, against the running server.

use crate::Failure;
use crate::server::Server;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::Config;
use std::time::{Duration, Instant};

/// Time after which the server forgets ids and leases in these checks.
const SHORT: Duration = Duration::from_secs(1);

/// Runs all checks; fails at the first one that does not hold.
pub async fn check(server: &Server) -> Result<(), Failure> {
    let config = Config {
        name: "facts".to_owned(),
        subjects: vec!["facts.*".to_owned()],
        duplicate_window: SHORT,
        ..Config::default()
    };
    server.create_stream(config).await?;
    appends(server).await?;
    leases(server).await?;
    server.jetstream().delete_stream("facts").await?;
    println!();
    Ok(())
}

async fn appends(server: &Server) -> Result<(), Failure> {
    let first = append(server, "facts.a", "a:1", 0).await?;
    let other = append(server, "facts.b", "b:1", 0).await?;
    let second = append(server, "facts.a", "a:2", first.sequence).await?;
    holds(
        "sequences of a subject have gaps where other subjects have messages",
        (first.sequence, other.sequence, second.sequence) == (1, 2, 3),
    )?;

    // Servers differ in which of the two headers they check first.
    let again = append(server, "facts.a", "a:2", first.sequence).await;
    let is_acknowledged =
        matches!(&again, Ok(ack) if ack.duplicate && ack.sequence == second.sequence);
    let fact = match is_acknowledged {
        true => {
            "a repeated append stores nothing; this server acknowledges it by its id, as a duplicate"
        }
        false => "a repeated append stores nothing; this server refuses it by its fence",
    };
    holds(fact, is_acknowledged || is_refused(&again))?;
    let stream = server.jetstream().get_stream("facts").await?;
    let last = stream.get_last_raw_message_by_subject("facts.a").await?;
    let id = last.headers.get("Nats-Msg-Id").map(ToString::to_string);
    holds(
        "the last message of the subject shows whether a refused append was stored",
        last.sequence == second.sequence && id.as_deref() == Some("a:2"),
    )?;

    let claim = append(server, "facts.a", "a:owner:2", second.sequence).await?;
    let stale = append(server, "facts.a", "a:3", second.sequence).await;
    holds(
        "an append of the owner before is refused once the next owner has appended",
        claim.sequence == 4 && is_refused(&stale),
    )?;

    let begin = Instant::now();
    // The id is forgotten by time alone; the fence refuses the repeated message before and after.
    while begin.elapsed() < SHORT * 2 {
        tokio::time::sleep(SHORT / 10).await;
    }
    let late = append(server, "facts.a", "a:2", first.sequence).await;
    holds(
        "after the window of ids only the fence refuses a repeated append",
        is_refused(&late),
    )?;

    let cleared = append(server, "facts.a", "a:clear", claim.sequence).await?;
    let purge = stream.purge().filter("facts.a").sequence(cleared.sequence);
    let purged = purge.await?.purged;
    let next = append(server, "facts.a", "a:4", cleared.sequence).await;
    holds(
        "a purge up to a message leaves that message, its fence and the other subjects",
        purged == 3 && next.is_ok() && stream.get_info().await?.state.messages == 3,
    )?;

    let large = PublishMessage::build().payload(vec![0; server.max_payload + 1].into());
    let large = match server.jetstream().send_publish("facts.a", large).await {
        Ok(ack) => ack.await.map(drop),
        Err(e) => Err(e),
    };
    holds(
        &format!("a message over {} bytes is refused", server.max_payload),
        large.is_err_and(|e| e.kind() == PublishErrorKind::MaxPayloadExceeded),
    )
}

/// Lets two owners append with the same fence at the same time; returns in how many of the pairs both were accepted.
pub async fn races(server: &Server, pairs: usize) -> Result<usize, Failure> {
    let config = Config {
        name: "races".to_owned(),
        subjects: vec!["races.*".to_owned()],
        ..Config::default()
    };
    let stream = server.create_stream(config).await?;
    let (one, other) = (&server.connections[0], server.connections.last());
    let other = other.unwrap_or(one);
    let mut both = 0;
    for number in 0..pairs {
        let last = stream.get_last_raw_message_by_subject("races.a").await;
        let last = last.map_or(0, |message| message.sequence);
        let (a, b) = (format!("{number}:a"), format!("{number}:b"));
        let (a, b) = tokio::join!(
            append_through(one, "races.a", &a, last),
            append_through(other, "races.a", &b, last)
        );
        match (a.is_ok(), b.is_ok()) {
            (true, true) => both += 1,
            (false, false) => return Err(format!("both refused: {a:?}, {b:?}").into()),
            _ => {}
        }
    }
    let stored = stream.get_info().await?.state.messages;
    if stored != (pairs + both) as u64 {
        return Err(format!("the stream has {stored} messages of {}", pairs + both).into());
    }
    server.jetstream().delete_stream("races").await?;
    Ok(both)
}

async fn leases(server: &Server) -> Result<(), Failure> {
    // Made as a stream, since `create_key_value` reads account facts that servers before 2.10 do not send.
    let config = Config {
        name: "KV_owners".to_owned(),
        subjects: vec!["$KV.owners.>".to_owned()],
        max_messages_per_subject: 1,
        max_age: SHORT,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..Config::default()
    };
    server.create_stream(config).await?;
    let leases = server.jetstream().get_key_value("owners").await?;
    let taken = leases.create("a", "machine 1".into()).await?;
    let second = leases.create("a", "machine 2".into()).await;
    holds("a lease that is held cannot be taken", second.is_err())?;

    let renewed = leases.update("a", "machine 1".into(), taken).await?;
    let stale = leases.update("a", "machine 1".into(), taken).await;
    holds(
        "a lease is renewed by its last revision only",
        renewed > taken && stale.is_err(),
    )?;

    let deadline = Instant::now() + SHORT * 5;
    let next = loop {
        match leases.create("a", "machine 2".into()).await {
            Ok(revision) => break revision,
            Err(e) if Instant::now() > deadline => return Err(e.into()),
            Err(_) => tokio::time::sleep(SHORT / 20).await,
        }
    };
    let stale = leases.update("a", "machine 1".into(), renewed).await;
    holds(
        "a lease that was not renewed can be taken, with a higher revision, and is lost for its holder",
        next > renewed && stale.is_err(),
    )?;
    server.jetstream().delete_stream("KV_owners").await?;
    Ok(())
}

/// Appends a message as the owner does that knows `last` as the sequence of the session's last message.
async fn append(
    server: &Server,
    subject: &'static str,
    id: &str,
    last: u64,
) -> Result<PublishAck, PublishError> {
    append_through(server.jetstream(), subject, id, last).await
}

async fn append_through(
    jetstream: &Context,
    subject: &'static str,
    id: &str,
    last: u64,
) -> Result<PublishAck, PublishError> {
    let message = PublishMessage::build()
        .payload(id.to_owned().into())
        .message_id(id)
        .expected_last_subject_sequence(last);
    jetstream.send_publish(subject, message).await?.await
}

fn is_refused(appended: &Result<PublishAck, PublishError>) -> bool {
    matches!(appended, Err(e) if e.kind() == PublishErrorKind::WrongLastSequence)
}

fn holds(fact: &str, observed: bool) -> Result<(), Failure> {
    if !observed {
        return Err(format!("this server behaves otherwise: {fact}").into());
    }
    println!("- {fact}");
    Ok(())
}
