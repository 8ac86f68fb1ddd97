//! Cost of a session's log as a stream: publishes the chunk lines of a log to a local `nats-server`, and
//! appends the same lines in the same batches to a file. See `docs/internals/scaling.md`.
//!
//! ```sh
//! ACPIPE_STATE_DIR=/tmp/state acpipe run --agent demo --session log "list the files here"
//! cargo run --release --manifest-path benches/nats/Cargo.toml --target-dir target/nats -- /tmp/state/sessions/log.jsonl
//! ```
//!
//! `NATS_SERVER` is the path of another server, `ROUNDS` the number of rounds (default 5).

mod append;
mod facts;
mod publish;
mod server;
mod table;

use append::Sync;
use async_nats::jetstream::stream::StorageType;
use publish::{Headers, Target};
use server::Server;
use std::time::Duration;
use table::{Row, Table};

type Failure = Box<dyn std::error::Error>;

/// How lines are divided into messages and when the publisher waits for acknowledgements.
#[derive(Debug, Clone, Copy)]
pub struct Batching {
    name: &'static str,
    lines_per_message: usize,
    /// Messages of a commit: they are sent together, then all are awaited.
    messages_per_commit: usize,
    /// Messages that may be unacknowledged beyond the commit, for a publisher that awaits only the oldest one.
    window: usize,
    pace: Option<Duration>,
    lines: usize,
}

impl Batching {
    /// Returns the number of lines that a log on disk takes in one write.
    fn lines_per_write(&self) -> usize {
        self.lines_per_message * self.messages_per_commit
    }

    /// Returns `true` if at most one message is unacknowledged, so that the next one can name its predecessor.
    fn is_fenceable(&self) -> bool {
        self.messages_per_commit == 1 && self.window == 0
    }
}

const EACH: Batching = Batching {
    name: "each line, awaited",
    lines_per_message: 1,
    messages_per_commit: 1,
    window: 0,
    pace: None,
    lines: 1_000,
};

/// Appends that compete for the same place, see [`facts::races`].
const PAIRS: usize = 500;

/// Lines of a commit: about as many as a flooding agent produces in one slice of its output (16 KiB).
const COMMIT: usize = 64;

const BATCHINGS: [Batching; 5] = [
    EACH,
    Batching {
        name: "the same at 1,000 lines/s",
        pace: Some(Duration::from_millis(1)),
        lines: 300,
        ..EACH
    },
    Batching {
        name: "each line, window of 256",
        window: 256,
        lines: 300 * COMMIT,
        ..EACH
    },
    Batching {
        name: "commit of 64 messages",
        messages_per_commit: COMMIT,
        lines: 300 * COMMIT,
        ..EACH
    },
    Batching {
        name: "commit of 64 lines in one message",
        lines_per_message: COMMIT,
        lines: 1_000 * COMMIT,
        ..EACH
    },
];

/// Reads the chunk lines of a log, with their line ends.
fn chunk_lines(path: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let log = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    let lines: Vec<_> = log
        .split_inclusive('\n')
        .filter(|line| line.starts_with(r#"{"record":"chunk""#) && line.ends_with('\n'))
        .map(|line| line.as_bytes().to_vec())
        .collect();
    if lines.is_empty() {
        return Err(format!("{path} has no chunks; pass the log of a session").into());
    }
    Ok(lines)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: nats-bench SESSION.jsonl")?;
    let lines = chunk_lines(&path)?;
    let rounds: usize = std::env::var("ROUNDS").map_or(Ok(5), |rounds| rounds.parse())?;
    let lazy = Server::start(false).await?;
    let bytes: usize = lines.iter().map(Vec::len).sum();
    println!(
        "nats-server {}, {} lines of {} bytes on average, medians of {rounds} rounds\n",
        lazy.version,
        lines.len(),
        bytes / lines.len()
    );
    facts::check(&lazy).await?;
    let cluster = Server::start_cluster().await?;
    for server in [&lazy, &cluster] {
        let both = facts::races(server, PAIRS).await?;
        let replicas = server.replicas();
        println!(
            "- replicas: {replicas}; of {PAIRS} pairs of appends with one fence, both were accepted in {both}"
        );
    }
    println!();
    // Older servers sync at a fixed interval only.
    let synced = match lazy.can_always_sync() {
        true => Some(Server::start(true).await?),
        false => None,
    };
    let mut table = Table::default();
    for _ in 0..rounds {
        for batching in &BATCHINGS {
            let file = append::run(&lines, batching, Sync::Never)?;
            table.add(Row::file(batching, "file"), &file, &file);
            let mut targets = vec![
                (&lazy, StorageType::File, Headers::None),
                (&lazy, StorageType::File, Headers::Id),
                (&lazy, StorageType::Memory, Headers::None),
                (&lazy, StorageType::Memory, Headers::Id),
            ];
            if batching.is_fenceable() {
                targets.push((&lazy, StorageType::File, Headers::Fence));
                targets.push((&lazy, StorageType::Memory, Headers::Fence));
                targets.push((&cluster, StorageType::File, Headers::Fence));
            }
            for (server, storage, headers) in targets {
                let target = Target {
                    server,
                    storage,
                    headers,
                };
                let run = publish::run(&lines, batching, &target).await?;
                let replicas = server.replicas();
                table.add(
                    Row::stream(batching, storage, headers, replicas),
                    &run,
                    &file,
                );
            }
            let Some(server) = &synced else { continue };
            if batching.pace.is_some() || batching.window > 0 {
                continue;
            }
            // Syncs take milliseconds on some disks: fewer lines give the same medians.
            let fewer = Batching {
                lines: (batching.lines / 10).next_multiple_of(COMMIT),
                ..*batching
            };
            let file = append::run(&lines, &fewer, Sync::EachWrite)?;
            table.add(Row::file(&fewer, "file, synced"), &file, &file);
            let target = Target {
                server,
                storage: StorageType::File,
                headers: Headers::Id,
            };
            let run = publish::run(&lines, &fewer, &target).await?;
            table.add(Row::synced(&fewer), &run, &file);
        }
    }
    print!("{table}");
    Ok(())
}
