//! Load on the daemon: 200 clients on 50 sessions, of which 10 do not read, compared with one client alone.
//!
//! `cargo bench --bench clients`. Both cases have 1,000 updates a second in total. Agents write the time into each
//! update; a client's latency includes the agent's pipe, the daemon and the socket. Absolute figures depend on the
//! machine; the difference between the two cases is what counts.

#![expect(
    clippy::disallowed_methods,
    reason = "it measures processes from outside"
)]
#![expect(clippy::cast_precision_loss, reason = "the figures are for people")]

#[path = "clients/client.rs"]
mod client;

use client::Client;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const ACPIPE: &str = env!("CARGO_BIN_EXE_acpipe");
const AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");

/// Sessions of the crowd, and clients of each.
const SESSIONS: usize = 50;
const CLIENTS_EACH: usize = 4;

/// Clients of the crowd that do not read.
const SLOW: usize = 10;

/// Updates a second in total.
const RATE: u64 = 1000;

/// Length of a turn in seconds.
const SECONDS: u64 = 10;

const ROUNDS: usize = 3;

fn main() -> Outcome {
    let mut rows = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..ROUNDS {
        let alone = latencies(1, 1, 0)?.0;
        let (crowd, per_client) = latencies(SESSIONS, CLIENTS_EACH, SLOW)?;
        rows.push(
            [alone, crowd].map(|mut all| (quantile(&mut all, 0.5), quantile(&mut all, 0.99))),
        );
        memory.push(per_client);
    }
    let mut table = "| | p50 alone | p50 crowd | p99 alone | p99 crowd |\n|-|-|-|-|-|\n".to_owned();
    for (round, [alone, crowd]) in rows.iter().enumerate() {
        let (number, figures) = (round + 1, [alone.0, crowd.0, alone.1, crowd.1]);
        let cells = figures.map(|figure| format!("{figure:.0} µs")).join(" | ");
        writeln!(table, "| round {number} | {cells} |")?;
    }
    let per_client = quantile(&mut memory, 0.5) / 1024.0;
    writeln!(
        table,
        "\nMemory of the daemon per attached client, without output: {per_client:.1} KiB (median of {ROUNDS})"
    )?;
    std::io::stdout().write_all(table.as_bytes())?;
    Ok(())
}

/// Daemon with a state directory of its own.
struct Daemon(PathBuf);

impl Daemon {
    fn start() -> Outcome<Self> {
        let state = std::env::temp_dir().join(format!("acpipe-clients-{}", std::process::id()));
        let _ = fs::remove_dir_all(&state);
        let daemon = Self(state);
        daemon.run("start")?;
        Ok(daemon)
    }

    fn run(&self, verb: &str) -> Outcome {
        let mut command = Command::new(ACPIPE);
        command
            .args(["daemon", verb])
            .env("ACPIPE_STATE_DIR", &self.0);
        let status = command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("acpipe daemon {verb} failed").into())
        }
    }

    fn socket(&self) -> PathBuf {
        self.0.join("daemon/socket")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.run("stop");
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the latencies of the reading clients in µs, and the memory of the daemon per further client in bytes.
fn latencies(sessions: usize, clients: usize, slow: usize) -> Outcome<(Vec<f64>, f64)> {
    let daemon = Daemon::start()?;
    let socket = daemon.socket();
    let rate = RATE / sessions as u64;
    let interval = (1_000_000 / rate).to_string();
    let updates = (rate * SECONDS).to_string();
    let mut owners = Vec::new();
    for session in 0..sessions {
        let number = format!("SESSION={session}");
        let options = [
            // Another variable makes another agent: the flooding agents give their sessions equal ids.
            "--env",
            &number,
            "--",
            AGENT,
            "--flood",
            "--updates",
            &updates,
            "--mix",
            "text",
            "--interval-us",
            &interval,
        ];
        let mut owner = Client::connect(&socket, &options)?;
        owner.open(&name(session))?;
        owners.push(owner);
    }
    let pid = owners[0].daemon_pid();
    let before = resident(pid)?;
    let mut others = Vec::new();
    for session in 0..sessions {
        for _ in 1..clients {
            let mut client = Client::connect(&socket, &[])?;
            client.attach(&name(session))?;
            others.push(client);
        }
    }
    let added = resident(pid)?.saturating_sub(before);
    let per_client = added as f64 / others.len().max(1) as f64;
    let idle: Vec<Client> = others.drain(..slow.min(others.len())).collect();
    let mut readers = Vec::new();
    for (session, mut owner) in owners.into_iter().enumerate() {
        // Turns begin at different times, as those of people do.
        thread::sleep(Duration::from_micros(1_000_000 / (rate * sessions as u64)));
        owner.prompt(&name(session))?;
        readers.push(thread::spawn(move || owner.read_turn()));
    }
    for client in others {
        readers.push(thread::spawn(move || client.read_turn()));
    }
    let mut all = Vec::new();
    for reader in readers {
        all.extend(reader.join().map_err(|_| "a reader failed")??);
    }
    drop(idle);
    Ok((all, per_client))
}

fn name(session: usize) -> String {
    format!("s{session}")
}

/// Returns the resident memory of a process in bytes.
fn resident(pid: u64) -> Outcome<u64> {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next())
        .ok_or("no VmRSS")?;
    Ok(kib.parse::<u64>()? * 1024)
}

fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let at = (values.len().saturating_sub(1) as f64 * part).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
