//! Cost of the whole binary: `acpipe run` and `acpipe acp` against a flooding agent, compared with a client that only
//! copies lines.
//!
//! `cargo bench --bench flood [-- SECTION…]`, sections: cpu, latency, acp, neighbours, memory, startup (default:
//! all). `QUICK=1`: fewer rounds. `ACPIPE_BIN=PATH` measures another acpipe; `ACPIPE_LIMIT='COMMAND…'`
//! measures an additional client, started with the agent's command appended to its own.
//!
//! Absolute figures depend on the machine. The ratio to the copying client (the floor) is stable: both run
//! alternately, and the median of the ratios of all rounds is printed. CPU is that of the client: the agent
//! reports its own, which is subtracted.
//!
//! The binary has two internal modes: `--floor -- COMMAND…` is the client that only copies, and `--meter FILE
//! -- COMMAND…` runs a command and writes its resource usage to a file.

#![expect(
    clippy::disallowed_methods,
    reason = "it measures processes from outside"
)]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the figures are for people"
)]

#[path = "flood/acp.rs"]
mod acp;
#[path = "flood/floor.rs"]
mod floor;
#[path = "flood/load.rs"]
mod load;
#[path = "flood/meter.rs"]
mod meter;
#[path = "flood/neighbours.rs"]
mod neighbours;
#[path = "flood/output.rs"]
mod output;
#[path = "flood/stats.rs"]
mod stats;

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use floor::Rpc;
use load::Load;
use output::Output;
use stats::Spread;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const SECTIONS: [&str; 6] = ["cpu", "latency", "acp", "neighbours", "memory", "startup"];

const AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--floor", "--", program, ..] => floor::run(program, &args[3..]),
        ["--meter", file, "--", program, ..] => meter::run(file, program, &args[4..]),
        _ => Bench::new(&args).and_then(|bench| bench.run()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "flood: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Bench {
    sections: Vec<String>,
    quick: bool,
    /// acpipe, the floor and the optional additional client.
    clients: Vec<Client>,
    acpipe: String,
    /// Home directory of all processes, so that no user's sessions or settings are used or changed.
    home: PathBuf,
}

/// A client of the agent.
#[derive(Clone)]
struct Client {
    name: &'static str,
    /// Its command, to which the agent's command is appended.
    words: Vec<String>,
    /// Whether it is an ACP agent itself, which needs a client.
    is_agent: bool,
}

impl Client {
    fn new(name: &'static str, words: &[&str]) -> Self {
        Self {
            name,
            words: words.iter().map(|&word| word.to_owned()).collect(),
            is_agent: false,
        }
    }
}

/// One run of one client.
struct Sample {
    cpu_us: f64,
    rss_mb: f64,
    seconds: f64,
    lines: usize,
    latencies_us: Vec<f64>,
}

impl Bench {
    fn new(args: &[String]) -> Outcome<Self> {
        // Cargo adds `--bench`.
        let sections: Vec<String> = args
            .iter()
            .filter(|arg| *arg != "--bench")
            .cloned()
            .collect();
        if let Some(odd) = sections.iter().find(|s| !SECTIONS.contains(&s.as_str())) {
            let known = SECTIONS.join(", ");
            return Err(format!("unknown section {odd} (known: {known})").into());
        }
        let own = std::env::current_exe()?.to_string_lossy().into_owned();
        let acpipe =
            std::env::var("ACPIPE_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_acpipe").to_owned());
        let mut clients = vec![
            Client::new("acpipe", &[&acpipe, "run", "-o", "chunks", "go", "--"]),
            Client::new("floor", &[&own, "--floor", "--"]),
        ];
        if let Ok(limit) = std::env::var("ACPIPE_LIMIT") {
            let words: Vec<&str> = limit.split_whitespace().collect();
            clients.push(Client::new("limit", &words));
        }
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flood-home");
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home)?;
        let quick = std::env::var_os("QUICK").is_some_and(|quick| quick != "0");
        Ok(Self {
            sections,
            quick,
            clients,
            acpipe,
            home,
        })
    }

    fn run(&self) -> Outcome {
        let wanted =
            |section: &str| self.sections.is_empty() || self.sections.iter().any(|s| s == section);
        let mut peaks = Vec::new();
        if wanted("cpu") {
            peaks = self.cpu("CPU per update", &self.clients)?;
        }
        if wanted("latency") {
            self.latency("Latency", &self.clients)?;
        }
        if wanted("acp") {
            let clients = self.clients_with_acp();
            self.cpu("CPU per update, passed on to an ACP client", &clients)?;
            self.latency("Latency to an ACP client", &clients)?;
        }
        if wanted("neighbours") {
            self.neighbours()?;
        }
        if wanted("memory") {
            self.memory(peaks)?;
        }
        if wanted("startup") {
            self.startup()?;
        }
        Ok(())
    }

    /// Prints the table of CPU per update; returns each client's peak memory in the text flood.
    fn cpu(&self, heading: &str, clients: &[Client]) -> Outcome<Vec<f64>> {
        say(&format!("\n### {heading}\n"))?;
        let references: Vec<usize> = (1..clients.len()).collect();
        let title = |&at: &usize| ["× ", clients[at].name, " | "].concat();
        let titles: String = references.iter().map(title).collect();
        let rules = "-:|".repeat(references.len());
        say(&format!(
            "| flood | client | ns/update | {titles}updates/s | lines |\n|-|-|-:|{rules}-:|-:|"
        ))?;
        let mut peaks = Vec::new();
        for load in [
            Load::text(200_000),
            Load {
                mixed: true,
                ..Load::text(50_000)
            },
        ] {
            let runs = self.clients_in_turn(clients, &load, if self.quick { 3 } else { 11 })?;
            for (Client { name, .. }, samples) in clients.iter().zip(&runs) {
                let updates = load.updates as f64;
                let ratio = |&to: &usize| {
                    let ratios = samples
                        .iter()
                        .zip(&runs[to])
                        .map(|(own, other)| own.cpu_us / other.cpu_us);
                    let Spread { low, median, high } = Spread::of(ratios);
                    format!("{median:.2} ({low:.2}–{high:.2}) | ")
                };
                let ratios: String = references.iter().map(ratio).collect();
                let nanos = Spread::of(samples.iter().map(|s| s.cpu_us * 1e3 / updates)).median;
                let rate = Spread::of(samples.iter().map(|s| updates / s.seconds)).median;
                let lines = samples.first().map_or(0, |s| s.lines);
                say(&format!(
                    "| {load} | {name} | {nanos:.0} | {ratios}{rate:.0} | {lines} |"
                ))?;
            }
            if !load.mixed {
                peaks = runs
                    .iter()
                    .map(|samples| Spread::of(samples.iter().map(|s| s.rss_mb)).high)
                    .collect();
            }
        }
        Ok(peaks)
    }

    fn latency(&self, heading: &str, clients: &[Client]) -> Outcome {
        say(&format!(
            "\n### {heading}, from the agent's write to the reader of the output\n"
        ))?;
        say("| updates/s | client | p50 µs | p99 µs | CPU µs/update |\n|-:|-|-:|-:|-:|")?;
        for interval_us in [1000, 100] {
            let load = Load {
                interval_us,
                ..Load::text(2_000_000 / interval_us)
            };
            let runs = self.clients_in_turn(clients, &load, if self.quick { 1 } else { 5 })?;
            for (Client { name, .. }, samples) in clients.iter().zip(&runs) {
                let rounds = || samples.iter().map(|s| &*s.latencies_us);
                let at = |part| Spread::of_quantile(rounds(), part).median;
                let cpu = Spread::of(samples.iter().map(|s| s.cpu_us / load.updates as f64)).median;
                say(&format!(
                    "| {} | {name} | {:.0} | {:.0} | {cpu:.1} |",
                    1_000_000 / interval_us,
                    at(0.5),
                    at(0.99)
                ))?;
            }
        }
        Ok(())
    }

    fn memory(&self, mut peaks: Vec<f64>) -> Outcome {
        if peaks.is_empty() {
            let runs = self.clients_in_turn(&self.clients, &Load::text(200_000), 1)?;
            peaks = runs
                .iter()
                .map(|samples| Spread::of(samples.iter().map(|s| s.rss_mb)).high)
                .collect();
        }
        say("\n### Memory\n\n| what | client | MB |\n|-|-|-:|")?;
        for (Client { name, .. }, peak) in self.clients.iter().zip(peaks) {
            say(&format!(
                "| peak in the flood of 200000 text updates | {name} | {peak:.1} |"
            ))?;
        }
        let mut serve = self.serve()?;
        serve.call(1, "initialize", &json!({"protocolVersion": 1}))?;
        let live = serve.call(
            2,
            "session/ensure",
            &json!({"sessionId": "idle", "cwd": self.home}),
        );
        thread::sleep(Duration::from_millis(300));
        let status = fs::read_to_string(format!("/proc/{}/status", serve.child.id()))?;
        let rss = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        let rss: f64 = rss.ok_or("no VmRSS in /proc")?.parse()?;
        let what = live.map_or_else(
            |error| format!("idle under `serve` ({error})"),
            |_| "idle under `serve`, one session".to_owned(),
        );
        say(&format!("| {what} | acpipe | {:.1} |", rss / 1024.0))?;
        serve.finish()
    }

    fn startup(&self) -> Outcome {
        let rounds = if self.quick { 5 } else { 25 };
        say("\n### Start-up\n\n| from the spawn to | ms (median, range) |\n|-|-:|")?;
        let row = |what: &str, millis: Vec<f64>| {
            let Spread { low, median, high } = Spread::of(millis);
            say(&format!("| {what} | {median:.1} ({low:.1}–{high:.1}) |"))
        };

        let mut answered = Vec::new();
        for _ in 0..rounds {
            let begin = Instant::now();
            let mut serve = self.serve()?;
            serve.call(1, "initialize", &json!({"protocolVersion": 1}))?;
            answered.push(millis(begin));
            serve.finish()?;
        }
        row("the answer of `initialize` by `acpipe serve`", answered)?;

        let mut first = vec![Vec::new(); self.clients.len()];
        for _ in 0..rounds {
            for (Client { words, .. }, first) in self.clients.iter().zip(&mut first) {
                let begin = Instant::now();
                let mut child = self
                    .command(words)
                    .args([AGENT, "--flood", "--updates", "10"])
                    .stdout(Stdio::piped())
                    .spawn()?;
                let mut stdout = child.stdout.take().ok_or("no pipe")?;
                stdout.read_exact(&mut [0])?;
                first.push(millis(begin));
                io::copy(&mut stdout, &mut io::sink())?;
                child.wait()?;
            }
        }
        for (Client { name, .. }, first) in self.clients.iter().zip(first) {
            row(&format!("the first output of one turn by {name}"), first)?;
        }

        let mut overheads = Vec::new();
        for _ in 0..rounds {
            let words = [
                "run",
                "-o",
                "json",
                "go",
                "--",
                AGENT,
                "--flood",
                "--updates",
                "10",
            ];
            let output = self.command(&[&self.acpipe]).args(words).output()?;
            let summary: Value = serde_json::from_slice(&output.stdout)?;
            overheads.extend(summary["overheadMs"].as_f64());
        }
        if overheads.is_empty() {
            return say("| (no overheadMs in the summary of `acpipe run -o json`) | – |");
        }
        row(
            "`overheadMs` in the summary of `acpipe run -o json` (not from the spawn)",
            overheads,
        )
    }

    fn serve(&self) -> Outcome<Rpc> {
        let words = ["serve", "--", AGENT, "--flood"];
        Rpc::start(self.command(&[&self.acpipe]).args(words))
    }

    /// Runs every client with the same load; returns a list of samples for each.
    fn clients_in_turn(
        &self,
        clients: &[Client],
        load: &Load,
        count: usize,
    ) -> Outcome<Vec<Vec<Sample>>> {
        in_turn(clients, count, |client| {
            let run = || format!("{}, {load}", client.name);
            self.sample(client, load)
                .map_err(|error| self.explain(&run(), &*error))
        })
    }

    fn sample(&self, client: &Client, load: &Load) -> Outcome<Sample> {
        let (report, stats) = (self.home.join("report.json"), self.home.join("stats.json"));
        for file in [&report, &stats] {
            let _ = fs::remove_file(file);
        }
        let own = std::env::current_exe()?;
        let metered = [
            own.as_os_str(),
            "--meter".as_ref(),
            report.as_os_str(),
            "--".as_ref(),
        ];
        let mut command = self.command(&metered);
        command
            .args(&client.words)
            .args([AGENT, "--flood"])
            .args(load.args())
            .env("FLOOD_STATS", &stats);
        let begin = Instant::now();
        let (mut child, output) = if client.is_agent {
            acp::turn(&mut command, load)?
        } else {
            let mut child = command.stdout(Stdio::piped()).spawn()?;
            let stdout = child.stdout.take().ok_or("no pipe")?;
            (child, Output::read(stdout, load, |_| Ok(()))?)
        };
        let seconds = begin.elapsed().as_secs_f64();
        if !child.wait()?.success() {
            return Err("the meter failed".into());
        }

        let report: Value = serde_json::from_slice(&fs::read(&report)?)?;
        if let Some(failed) = report["failed"].as_str() {
            return Err(failed.into());
        }
        output.check(load)?;
        let stats = fs::read(&stats)
            .map_err(|e| format!("the agent's statistics: {e} (is its environment passed on?)"))?;
        let number =
            |value: &Value, key: &str| value[key].as_f64().ok_or(format!("no {key} in a report"));
        let agent_us = number(&serde_json::from_slice(&stats)?, "cpuUs")?;
        Ok(Sample {
            cpu_us: number(&report, "cpuUs")? - agent_us,
            rss_mb: number(&report, "rssKb")? / 1024.0,
            seconds,
            lines: output.lines,
            latencies_us: output.latencies_us,
        })
    }

    /// Adds the path of the log file to an error of a run.
    fn explain(&self, run: &str, error: &dyn Error) -> Box<dyn Error> {
        format!("{run}: {error}; see {}", self.stderr().display()).into()
    }

    fn stderr(&self) -> PathBuf {
        self.home.join("stderr")
    }

    fn command(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> Command {
        let mut command = Command::new(&words[0]);
        // The clients' stderr is kept for the analysis of failures.
        let stderr = File::options()
            .append(true)
            .create(true)
            .open(self.stderr());
        command
            .args(&words[1..])
            .stderr(stderr.map_or_else(|_| Stdio::null(), Stdio::from))
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .env("HOME", &self.home);
        for variable in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
        ] {
            command.env(variable, self.home.join(variable));
        }
        command
    }
}

/// Takes samples of all items in turn, `count` times after a warm-up round; returns a list of samples for
/// each.
fn in_turn<T, S>(
    what: &[T],
    count: usize,
    sample: impl Fn(&T) -> Outcome<S>,
) -> Outcome<Vec<Vec<S>>> {
    let mut runs: Vec<Vec<S>> = what.iter().map(|_| Vec::new()).collect();
    for round in 0..=count {
        for (what, samples) in what.iter().zip(&mut runs) {
            let sample = sample(what)?;
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    Ok(runs)
}

fn millis(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}

fn say(text: &str) -> Outcome {
    Ok(writeln!(io::stdout(), "{text}")?)
}
