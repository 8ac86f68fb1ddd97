//! Latency of a paced session while other agents of the same `acpipe serve` are idle, flood or crash.

use std::fs;
use std::io::{self, Read};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use memchr::{memchr, memchr_iter, memmem};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::floor::{Rpc, send};
use crate::load::Load;
use crate::output::Output;
use crate::stats::Spread;
use crate::{AGENT, Bench, Outcome, in_turn, say};

/// Number of updates of a flooding turn: more than are read until its agent is killed.
const ENDLESS: u64 = 9_999_999;

/// Request id of the first session's prompts.
const FIRST: u32 = 100;

/// Behaviour of an agent in its only session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// One turn of paced updates, whose latency is measured.
    Paced,
    /// No turn.
    Idle,
    /// One turn of updates without pause, until it is killed.
    Flooding,
    /// A turn that ends and a turn in which the agent crashes, in alternation: acpipe delays the restart of an agent
    /// that crashes in every turn.
    Crashing,
}

/// Row of the table.
struct Row {
    name: &'static str,
    /// Agents of the measured acpipe.
    agents: &'static [Role],
    /// Agents of a second acpipe with its own client: the same load on the machine without sharing an acpipe.
    apart: &'static [Role],
    /// Bytes that the measured acpipe's client reads in a second; `None` without a limit.
    client_rate: Option<u32>,
}

/// Rate of a slow client, in bytes per second.
const SLOW: Option<u32> = Some(500_000);

const ROWS: [Row; 7] = {
    use Role::{Crashing, Flooding, Idle, Paced};
    const fn row(name: &'static str, agents: &'static [Role], apart: &'static [Role]) -> Row {
        Row {
            name,
            agents,
            apart,
            client_rate: None,
        }
    }
    [
        row("no other agent", &[Paced], &[]),
        row("an idle agent", &[Paced, Idle], &[]),
        row("an agent that floods", &[Paced, Flooding], &[]),
        row("the same in a second acpipe", &[Paced], &[Flooding]),
        row("an agent that crashes", &[Paced, Crashing], &[]),
        row("the same in a second acpipe", &[Paced], &[Crashing]),
        row(
            "an agent that floods, an agent that crashes",
            &[Paced, Flooding, Crashing],
            &[],
        ),
    ]
};

/// Rows with a client that reads slowly, and updates that are rare enough for it.
const SLOW_ROWS: [Row; 2] = {
    const fn row(name: &'static str, agents: &'static [Role]) -> Row {
        Row {
            name,
            agents,
            apart: &[],
            client_rate: SLOW,
        }
    }
    [
        row("no other agent", &[Role::Paced]),
        row("an agent that floods", &[Role::Paced, Role::Flooding]),
    ]
};

/// One run of a row.
struct Sample {
    latencies_us: Vec<f64>,
    flooded_per_second: f64,
    crashes_per_second: f64,
}

impl Bench {
    /// Prints the table of latency while other agents run.
    pub(crate) fn neighbours(&self) -> Outcome {
        let load = Load {
            interval_us: 1000,
            ..Load::text(2000)
        };
        self.neighbour_table("latency of a session at 1000 updates/s", &ROWS, &load)?;
        let load = Load {
            interval_us: 20_000,
            ..Load::text(200)
        };
        let heading = "the same at 50 updates/s if the client reads 500 KB/s";
        self.neighbour_table(heading, &SLOW_ROWS, &load)
    }

    fn neighbour_table(&self, heading: &str, rows: &[Row], load: &Load) -> Outcome {
        say(&format!("\n### Several agents at once: {heading}\n"))?;
        say("| beside it | p50 µs | p99 µs | flood, updates/s | crashes/s |\n|-|-:|-:|-:|-:|")?;
        let runs = in_turn(rows, if self.quick { 1 } else { 5 }, |row| {
            self.beside(row, load)
                .map_err(|error| self.explain(row.name, &*error))
        })?;
        for (row, samples) in rows.iter().zip(&runs) {
            let at = |part| {
                let rounds = samples.iter().map(|s| &*s.latencies_us);
                let Spread { low, median, high } = Spread::of_quantile(rounds, part);
                format!("{median:.0} ({low:.0}–{high:.0})")
            };
            let flooded = Spread::of(samples.iter().map(|s| s.flooded_per_second)).median;
            let crashes = Spread::of(samples.iter().map(|s| s.crashes_per_second)).median;
            let (p50, p99) = (at(0.5), at(0.99));
            say(&format!(
                "| {} | {p50} | {p99} | {flooded:.0} | {crashes:.0} |",
                row.name
            ))?;
        }
        Ok(())
    }

    /// Runs a row once.
    fn beside(&self, row: &Row, load: &Load) -> Outcome<Sample> {
        let over = &AtomicBool::new(false);
        let (sender, warm) = sync_channel(1);
        let (here, apart) = thread::scope(|scope| {
            let apart = (!row.apart.is_empty()).then(|| {
                let run = move || {
                    let client = Client::start(self, row.apart, load)?;
                    client.run(load, None, || Ok(sender.try_send(())?), over)
                };
                scope.spawn(move || run().map_err(|error| error.to_string()))
            });
            // Receiving fails if the second acpipe failed and its sender was dropped.
            let is_warm = apart.is_none() || warm.recv().is_ok();
            let here = is_warm.then(|| {
                let client = Client::start(self, row.agents, load)?;
                client.run(load, row.client_rate, || Ok(()), over)
            });
            over.store(true, Ordering::Relaxed);
            (here, apart.map(thread::ScopedJoinHandle::join))
        });
        let apart = apart.transpose().map_err(|_| "a client panicked")?;
        let apart = apart.transpose()?;
        let here = here.ok_or("the second acpipe did not start")??;
        here.output.check(load)?;
        // The logs of all rounds would take gigabytes, and the next round would restore the sessions.
        let _ = fs::remove_dir_all(self.home.join("XDG_STATE_HOME"));
        let work = apart.map_or(here.work, |apart| apart.work);
        Ok(Sample {
            flooded_per_second: work.updates as f64 / work.seconds,
            crashes_per_second: work.crashes as f64 / work.seconds,
            latencies_us: here.output.latencies_us,
        })
    }
}

/// Client of an `acpipe serve` with connected agents, one session each.
struct Client {
    rpc: Rpc,
    sessions: Vec<Session>,
}

/// Session and its agent.
struct Session {
    role: Role,
    pid: Pid,
    /// Whether a turn runs.
    pending: bool,
    /// Number of flood updates read so far, or of crashes so far.
    count: u64,
    /// Value of `count` at the start of the paced turn.
    before: u64,
}

/// Results of a client at the end of acpipe.
struct Done {
    output: Output,
    work: Work,
}

/// Work of the other agents during the paced turn.
#[derive(Default)]
struct Work {
    seconds: f64,
    updates: u64,
    crashes: u64,
}

impl Client {
    fn start(bench: &Bench, roles: &[Role], load: &Load) -> Outcome<Self> {
        let mut rpc = Rpc::start(&mut bench.command(&[&*bench.acpipe, "serve"]))?;
        rpc.call(1, "initialize", &json!({"protocolVersion": 1}))?;
        let mut sessions = Vec::new();
        for &role in roles {
            let name = role.name();
            let connect = json!({"agent": name, "command": AGENT, "args": role.args(load)});
            let status = rpc.call(2, "agent/connect", &connect)?;
            let session = json!({"sessionId": name, "agent": name, "cwd": bench.home});
            rpc.call(3, "session/ensure", &session)?;
            let pid = status["pid"].as_i64().ok_or("no process id of the agent")?;
            sessions.push(Session {
                role,
                pid: Pid::from_raw(i32::try_from(pid)?).ok_or("no process id of the agent")?,
                pending: false,
                count: 0,
                before: 0,
            });
        }
        Ok(Self { rpc, sessions })
    }

    /// Prompts the busy sessions. Once each of their agents has flooded or crashed, calls `warm` and prompts
    /// the paced session. The end of the paced turn sets `over`, which ends the other turns, also those of a
    /// client without a paced session.
    fn run(
        self,
        load: &Load,
        rate: Option<u32>,
        warm: impl FnOnce() -> Outcome,
        over: &AtomicBool,
    ) -> Outcome<Done> {
        let Rpc {
            mut child,
            stdin,
            stdout,
        } = self.rpc;
        let mut turns = Turns {
            stdin: Some(stdin),
            sessions: self.sessions,
            warm: Some(warm),
            over,
            begin: Instant::now(),
            work: None,
        };
        turns.start()?;
        let stdout = Throttled {
            source: stdout,
            rate,
            due: Instant::now(),
        };
        let output = Output::read(stdout, load, |lines| turns.read(lines))?;
        let work = turns.work.filter(|_| turns.stdin.is_none());
        let work = work.ok_or("acpipe ended before the turns")?;
        if !child.wait()?.success() {
            return Err("acpipe failed".into());
        }
        Ok(Done { output, work })
    }
}

/// Reader that reads at most `rate` bytes in a second, in small pieces; `None` without a limit.
struct Throttled<R> {
    source: R,
    rate: Option<u32>,
    /// Time of the next read.
    due: Instant,
}

impl<R: Read> Read for Throttled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(rate) = self.rate else {
            return self.source.read(buffer);
        };
        thread::sleep(self.due.saturating_duration_since(Instant::now()));
        // A hundredth of a second.
        let most = (rate / 100) as usize;
        let most = buffer.len().min(most);
        let n = self.source.read(&mut buffer[..most])?;
        let took = Duration::from_secs_f64(n as f64 / f64::from(rate));
        self.due = (self.due + took).max(Instant::now());
        Ok(n)
    }
}

/// Running turns of a client.
struct Turns<'o, W> {
    /// `None` once all turns have ended, so that acpipe ends.
    stdin: Option<ChildStdin>,
    sessions: Vec<Session>,
    /// `None` once it was called.
    warm: Option<W>,
    over: &'o AtomicBool,
    begin: Instant,
    /// Set at the end of the measurement.
    work: Option<Work>,
}

impl<W: FnOnce() -> Outcome> Turns<'_, W> {
    fn start(&mut self) -> Outcome {
        for at in 0..self.sessions.len() {
            if self.sessions[at].role.is_busy() {
                self.prompt(at)?;
            }
        }
        self.proceed()
    }

    fn prompt(&mut self, at: usize) -> Outcome {
        let stdin = self.stdin.as_mut().ok_or("a prompt after the last turn")?;
        let session = &mut self.sessions[at];
        session.pending = true;
        let params = json!({"sessionId": session.role.name(), "message": "go"});
        send(stdin, FIRST + u32::try_from(at)?, "session/prompt", &params)
    }

    /// Searches lines of acpipe for responses and for the number of the last flooding update.
    fn read(&mut self, lines: &[u8]) -> Outcome {
        const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
        let mut begin = 0;
        for end in memchr_iter(b'\n', lines) {
            if let Some(answer) = lines[begin..end].strip_prefix(ANSWER) {
                self.answered(answer)?;
            }
            begin = end + 1;
        }
        let floods = |session: &&mut Session| session.role == Role::Flooding;
        if let Some(flood) = self.sessions.iter_mut().find(floods) {
            flood.count = last_number(lines).unwrap_or(flood.count);
        }
        self.proceed()
    }

    fn answered(&mut self, answer: &[u8]) -> Outcome {
        let digits = memchr(b',', answer).unwrap_or(answer.len());
        let id: u32 = std::str::from_utf8(&answer[..digits])?.parse()?;
        let at = id.checked_sub(FIRST).ok_or("an unexpected answer")? as usize;
        let session = self.sessions.get_mut(at).ok_or("an unexpected answer")?;
        session.pending = false;
        let has = |part: &[u8]| memmem::find(answer, part).is_some();
        let (ended, crashed) = (has(br#""isError":false"#), has(br#""kind":"agentExited""#));
        let is_expected = match session.role {
            Role::Paced => ended,
            Role::Idle => false,
            Role::Flooding => crashed && self.work.is_some(),
            Role::Crashing => ended || crashed,
        };
        if !is_expected {
            let answer = String::from_utf8_lossy(&answer[..answer.len().min(500)]);
            return Err(format!("an unexpected end of a turn: {answer}").into());
        }
        match session.role {
            Role::Paced => self.over.store(true, Ordering::Relaxed),
            Role::Crashing => {
                session.count += u64::from(crashed);
                if !self.over.load(Ordering::Relaxed) {
                    self.prompt(at)?;
                }
            }
            Role::Idle | Role::Flooding => {}
        }
        Ok(())
    }

    /// Begins or ends the measurement, or closes stdin, when the conditions for it are met.
    fn proceed(&mut self) -> Outcome {
        let is_warm = |session: &Session| session.count > 0 || !session.role.is_busy();
        if self.warm.is_some() && self.sessions.iter().all(is_warm) {
            if let Some(warm) = self.warm.take() {
                warm()?;
            }
            self.begin = Instant::now();
            for session in &mut self.sessions {
                session.before = session.count;
            }
            let mut roles = self.sessions.iter().map(|session| session.role);
            if let Some(at) = roles.position(|role| role == Role::Paced) {
                self.prompt(at)?;
            }
        }
        if !self.over.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.work.is_none() {
            let mut work = Work {
                seconds: self.begin.elapsed().as_secs_f64(),
                ..Work::default()
            };
            for session in &self.sessions {
                let count = session.count - session.before;
                match session.role {
                    Role::Paced | Role::Idle => {}
                    Role::Flooding => {
                        work.updates += count;
                        kill_process(session.pid, Signal::KILL)?;
                    }
                    Role::Crashing => work.crashes += count,
                }
            }
            self.work = Some(work);
        }
        if !self.sessions.iter().any(|session| session.pending) {
            self.stdin = None;
        }
        Ok(())
    }
}

/// Returns the number of the last flooding update in these lines. Deltas of other agents do not begin with a
/// digit.
fn last_number(lines: &[u8]) -> Option<u64> {
    const DELTA: &[u8] = br#""delta":"0"#;
    let at = memmem::rfind(lines, DELTA)? + DELTA.len();
    std::str::from_utf8(lines.get(at..at + 7)?)
        .ok()?
        .parse()
        .ok()
}

impl Role {
    /// Returns the name of the agent, which is also the id of its session: a row has each role once over both
    /// of its acpipes.
    fn name(self) -> &'static str {
        match self {
            Self::Paced => "paced",
            Self::Idle => "idle",
            Self::Flooding => "flooding",
            Self::Crashing => "crashing",
        }
    }

    /// Returns `true` if the session has turns during the paced one.
    fn is_busy(self) -> bool {
        matches!(self, Self::Flooding | Self::Crashing)
    }

    /// Returns the arguments of the fake agent.
    fn args(self, load: &Load) -> Vec<String> {
        let flood = |load: &Load| [vec!["--flood".to_owned()], load.args()].concat();
        match self {
            Self::Paced => flood(load),
            Self::Idle | Self::Flooding => flood(&Load::text(ENDLESS)),
            Self::Crashing => {
                let text = json!({"type": "text", "text": "working"});
                let update = json!({"sessionUpdate": "agent_message_chunk", "content": text});
                let capabilities = json!({"sessionCapabilities": {"resume": {}}});
                let script = json!({
                    "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": capabilities}}]],
                    "session/resume": [[{"reply": {}}]],
                    "session/prompt": [
                        [{"update": update}, {"reply": {"stopReason": "end_turn"}}],
                        [{"update": update}, {"exit": 1}],
                    ],
                });
                vec![script.to_string()]
            }
        }
    }
}
