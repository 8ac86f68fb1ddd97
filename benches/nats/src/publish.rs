//! Publishes lines to a stream and awaits their acknowledgements.

use crate::server::Server;
use crate::{Batching, Failure};
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, StorageType};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Headers of each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    None,
    /// `Nats-Msg-Id`: the server drops a message that it has already.
    Id,
    /// The id, and the sequence of the session's last message: the server refuses a message of an old owner.
    Fence,
}

/// Stream to publish to.
pub struct Target<'a> {
    pub server: &'a Server,
    pub storage: StorageType,
    pub headers: Headers,
}

/// Figures of one run.
pub struct Run {
    pub lines_per_second: f64,
    /// Latencies of all messages in microseconds, sorted.
    pub latencies: Vec<f64>,
    /// CPU time of this process for each line, in microseconds.
    pub client_cpu: f64,
    pub server_cpu: f64,
}

/// Clock of a run.
pub struct Meter {
    begin: Instant,
    cpu: Duration,
    server_cpu: Duration,
    latencies: Vec<f64>,
}

impl Meter {
    pub fn start(server: Option<&Server>) -> Result<Self, Failure> {
        Ok(Self {
            server_cpu: server.map_or(Ok(Duration::ZERO), Server::cpu)?,
            latencies: Vec::new(),
            cpu: own_cpu(),
            begin: Instant::now(),
        })
    }

    pub fn latency(&mut self, latency: Duration) {
        self.latencies.push(latency.as_secs_f64() * 1e6);
    }

    /// Blocks until a time after the start of the run.
    pub fn sleep_until_blocking(&self, at: Duration) {
        std::thread::sleep(at.saturating_sub(self.begin.elapsed()));
    }

    /// Ends the run in which `lines` lines were stored.
    pub fn finish(mut self, lines: usize, server: Option<&Server>) -> Result<Run, Failure> {
        let elapsed = self.begin.elapsed();
        let cpu = own_cpu().saturating_sub(self.cpu);
        let server_cpu = server.map_or(Ok(Duration::ZERO), Server::cpu)?;
        let for_each = |time: Duration| time.as_secs_f64() * 1e6 / lines as f64;
        self.latencies.sort_by(f64::total_cmp);
        Ok(Run {
            lines_per_second: lines as f64 / elapsed.as_secs_f64(),
            latencies: self.latencies,
            client_cpu: for_each(cpu),
            server_cpu: for_each(server_cpu.saturating_sub(self.server_cpu)),
        })
    }
}

fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Messages that the server has not acknowledged, with the times at which they were sent.
#[derive(Default)]
struct Unacknowledged {
    queue: VecDeque<(Instant, PublishAckFuture)>,
    /// Sequence of the last acknowledged message in the stream.
    last: u64,
}

impl Unacknowledged {
    /// Awaits the oldest messages until at most `most` are unacknowledged.
    async fn reduce_to(&mut self, most: usize, meter: &mut Meter) -> Result<(), Failure> {
        while self.queue.len() > most {
            let Some((sent, ack)) = self.queue.pop_front() else {
                break;
            };
            let ack = ack.await?;
            meter.latency(sent.elapsed());
            if ack.duplicate || ack.sequence <= self.last {
                return Err(format!("wrong acknowledgement: {ack:?}").into());
            }
            self.last = ack.sequence;
        }
        Ok(())
    }
}

/// Publishes the lines, repeated as often as needed, and checks that the stream has all messages.
pub async fn run(
    lines: &[Vec<u8>],
    batching: &Batching,
    target: &Target<'_>,
) -> Result<Run, Failure> {
    let jetstream = target.server.jetstream();
    let config = Config {
        name: "sessions".to_owned(),
        subjects: vec!["log.*".to_owned()],
        storage: target.storage,
        ..Config::default()
    };
    let stream = target.server.create_stream(config).await?;
    let mut source = lines.iter().cycle();
    let mut meter = Meter::start(Some(target.server))?;
    let mut unacknowledged = Unacknowledged::default();
    let messages = batching.lines / batching.lines_per_message;
    for number in 1..=messages {
        if let Some(pace) = batching.pace {
            tokio::time::sleep_until((meter.begin + pace * u32::try_from(number)?).into()).await;
        }
        let mut payload = Vec::new();
        for line in source.by_ref().take(batching.lines_per_message) {
            payload.extend_from_slice(line);
        }
        let mut message = PublishMessage::build().payload(payload.into());
        if target.headers != Headers::None {
            message = message.message_id(format!("session:{number}"));
        }
        if target.headers == Headers::Fence {
            message = message.expected_last_subject_sequence(unacknowledged.last);
        }
        let sent = Instant::now();
        let ack = jetstream.send_publish("log.session", message).await?;
        unacknowledged.queue.push_back((sent, ack));
        if batching.window > 0 {
            unacknowledged
                .reduce_to(batching.window - 1, &mut meter)
                .await?;
        } else if number % batching.messages_per_commit == 0 {
            unacknowledged.reduce_to(0, &mut meter).await?;
        }
    }
    unacknowledged.reduce_to(0, &mut meter).await?;
    let run = meter.finish(batching.lines, Some(target.server))?;
    let stored = stream.get_info().await?.state.messages;
    if stored != messages as u64 {
        return Err(format!("the stream has {stored} messages of {messages}").into());
    }
    jetstream.delete_stream("sessions").await?;
    Ok(run)
}
