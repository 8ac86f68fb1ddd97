//! The flooding agent. It renders frames once and afterwards patches only their digits, so that a benchmark
//! measures the client.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

const USAGE: &str = "usage: fake-agent --flood [--updates N] [--mix text|mixed] [--interval-us U] \
     [--delta-bytes B] [--permissions K] [--history H]
  --updates N      updates in each prompt (1000)
  --mix MIX        text, or mixed: thoughts, texts, a tool call's life and a plan (text)
  --interval-us U  one update every U µs, each delta with its send time as t=NANOSECONDS; of CLOCK_MONOTONIC (0: all at once)
  --delta-bytes B  text bytes in each delta (32)
  --permissions K  permission requests asked before a prompt's updates (0)
  --history H      updates replayed by session/load (1000)
Environment: FLOOD_STATS=FILE gets {\"cpuUs\": the agent's own CPU time so far, \"updates\": sent so far}.";

pub(crate) struct Options {
    updates: u64,
    mixed: bool,
    interval: Duration,
    delta_bytes: usize,
    permissions: u64,
    history: u64,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self {
            updates: 1000,
            mixed: false,
            interval: Duration::ZERO,
            delta_bytes: 32,
            permissions: 0,
            history: 1000,
        };
        for pair in args.chunks(2) {
            let [flag, value] = pair else {
                return Err(format!("{} needs a value\n{USAGE}", pair[0]));
            };
            let number = || {
                value
                    .parse()
                    .map_err(|_| format!("{flag}: not a number: {value}"))
            };
            match (flag.as_str(), value.as_str()) {
                ("--updates", _) => options.updates = number()?,
                ("--mix", "text") => options.mixed = false,
                ("--mix", "mixed") => options.mixed = true,
                ("--interval-us", _) => options.interval = Duration::from_micros(number()?),
                ("--delta-bytes", _) => {
                    options.delta_bytes = usize::try_from(number()?).map_err(|e| e.to_string())?;
                }
                ("--permissions", _) => options.permissions = number()?,
                ("--history", _) => options.history = number()?,
                _ => return Err(format!("not understood: {flag} {value}\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

struct Flood {
    options: Options,
    /// Not std's stdout: its line buffer would cost more than the frames.
    stdout: File,
    batch: Vec<u8>,
    messages: io::StdinLock<'static>,
    /// Messages that arrived while an answer was awaited.
    held: VecDeque<Value>,
    sent: u64,
}

pub(crate) fn serve(options: Options) -> io::Result<()> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let messages = io::stdin().lock();
    Flood {
        options,
        stdout,
        batch: Vec::new(),
        messages,
        held: VecDeque::new(),
        sent: 0,
    }
    .serve()
}

impl Flood {
    const BATCH: usize = 64 * 1024;

    fn serve(mut self) -> io::Result<()> {
        let mut sessions = 0;
        while let Some(message) = self
            .held
            .pop_front()
            .map_or_else(|| self.read(), |held| Ok(Some(held)))?
        {
            let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
                continue;
            };
            let session = message["params"]["sessionId"].as_str().unwrap_or("flood-1");
            let result = match method {
                "initialize" => json!({
                    "protocolVersion": 1,
                    "agentInfo": {"name": "fake-agent-flood", "version": "1.0.0"},
                    "agentCapabilities": {"loadSession": true, "sessionCapabilities": {"resume": {}, "close": {}}},
                    "authMethods": [],
                }),
                "session/new" => {
                    sessions += 1;
                    json!({"sessionId": format!("flood-{sessions}")})
                }
                "session/load" => {
                    let frames = self.frames(session, true);
                    self.send_updates(&frames, self.options.history, Duration::ZERO)?;
                    json!({})
                }
                "session/prompt" => {
                    for n in 0..self.options.permissions {
                        self.ask_permission(session, n)?;
                    }
                    let frames = self.frames(session, false);
                    self.send_updates(&frames, self.options.updates, self.options.interval)?;
                    json!({"stopReason": "end_turn"})
                }
                "session/resume" | "session/close" => json!({}),
                _ => {
                    self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}))?;
                    continue;
                }
            };
            // Written before the answer, so that a benchmark with the answer can read them. The values at the
            // end of stdin are final.
            self.write_stats()?;
            self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        }
        self.write_stats()
    }

    fn read(&mut self) -> io::Result<Option<Value>> {
        let mut line = String::new();
        if self.messages.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&line)?))
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        self.stdout.write_all(format!("{message}\n").as_bytes())
    }

    fn ask_permission(&mut self, session: &str, n: u64) -> io::Result<()> {
        let id = json!(format!("permission-{n}"));
        let option = |kind: &str| json!({"optionId": kind, "name": kind, "kind": kind});
        let params = json!({
            "sessionId": session,
            "toolCall": {"toolCallId": format!("asked_{n}"), "title": "Run the tests", "kind": "execute"},
            "options": [option("allow_once"), option("reject_once")],
        });
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params}))?;
        while let Some(message) = self.read()? {
            if message.get("method").is_none() && message["id"] == id {
                return Ok(());
            }
            self.held.push_back(message);
        }
        Err(io::Error::other(
            "stdin ended while a permission was awaited",
        ))
    }

    fn send_updates(&mut self, frames: &[Frame], count: u64, interval: Duration) -> io::Result<()> {
        let begin = monotonic();
        for (seq, frame) in (0..count).zip(frames.iter().cycle()) {
            if interval.is_zero() {
                frame.render(seq, 0, &mut self.batch);
                if self.batch.len() < Self::BATCH {
                    continue;
                }
            } else {
                // Due times follow the schedule, not the previous update, so that late wake-ups do not lower
                // the rate.
                let due = begin + interval * u32::try_from(seq).unwrap_or(u32::MAX);
                thread::sleep(due.saturating_sub(monotonic()));
                frame.render(
                    seq,
                    u64::try_from(monotonic().as_nanos()).unwrap_or(0),
                    &mut self.batch,
                );
            }
            self.stdout.write_all(&self.batch)?;
            self.batch.clear();
        }
        self.stdout.write_all(&self.batch)?;
        self.batch.clear();
        self.sent += count;
        Ok(())
    }

    fn write_stats(&self) -> io::Result<()> {
        let Some(path) = std::env::var_os("FLOOD_STATS") else {
            return Ok(());
        };
        let cpu = clock(ClockId::ProcessCPUTime).as_micros();
        std::fs::write(
            path,
            format!("{{\"cpuUs\":{cpu},\"updates\":{}}}\n", self.sent),
        )
    }

    /// Renders one round of frames, through which the updates cycle.
    fn frames(&self, session: &str, replay: bool) -> Vec<Frame> {
        const USER: &str =
            r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"§T"}}"#;
        const THOUGHT: &str =
            r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"§T"}}"#;
        const TEXT: &str =
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"§T"}}"#;
        const PENDING: &str = r#"{"sessionUpdate":"tool_call","toolCallId":"tool_§S","title":"Read lib.rs","kind":"read","status":"pending","rawInput":{"path":"/work/app/src/lib.rs","limit":200},"locations":[{"path":"/work/app/src/lib.rs","line":12}]}"#;
        const RUNNING: &str =
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"tool_§S","status":"in_progress"}"#;
        const COMPLETED: &str = r#"{"sessionUpdate":"tool_call_update","toolCallId":"tool_§S","status":"completed","content":[{"type":"content","content":{"type":"text","text":"pub fn answer() -> u32 {\n    42\n}\n"}}],"rawOutput":{"lines":3,"text":"pub fn answer() -> u32 {\n    42\n}\n"}}"#;
        const PLAN: &str = r#"{"sessionUpdate":"plan","entries":[{"content":"Read the code","priority":"high","status":"completed"},{"content":"Write the test","priority":"medium","status":"pending"}]}"#;
        const MIXED: [&str; 10] = [
            THOUGHT, THOUGHT, TEXT, TEXT, TEXT, TEXT, PENDING, RUNNING, COMPLETED, PLAN,
        ];

        let mut kinds = if self.options.mixed {
            MIXED.to_vec()
        } else {
            vec![TEXT]
        };
        // Tool updates in a round share one id.
        let per_tool = kinds.len() as u64;
        if replay {
            // Turns of twenty updates, each with a first update by the user.
            kinds = kinds.into_iter().cycle().take(20).collect();
            kinds[0] = USER;
        }
        // Every eighth delta contains escapes, as code and prose do.
        (0..kinds.len() * 8)
            .map(|n| {
                let kind = kinds[n % kinds.len()];
                let update = kind.replace("§T", &delta(self.options.delta_bytes, n % 8 == 7, !self.options.interval.is_zero()));
                let line = format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{update}}}}}"#);
                Frame::new(&line, if kind.contains("§S") { per_tool } else { 1 })
            })
            .collect()
    }
}

/// Returns the JSON text of a delta, `bytes` long when decoded unless its digits take more.
fn delta(bytes: usize, escapes: bool, stamped: bool) -> String {
    let mut text = if stamped {
        "t=§N; §S".to_owned()
    } else {
        "§S".to_owned()
    };
    let mut length = if stamped {
        3 + STAMP.len() + 1 + SEQ.len()
    } else {
        SEQ.len()
    };
    if escapes {
        text.push_str(r#"\n\""#);
        length += 2;
    }
    text.extend(
        " and the agent went on to say that"
            .chars()
            .cycle()
            .take(bytes.saturating_sub(length)),
    );
    text
}

const SEQ: &str = "00000000";
const STAMP: &str = "0000000000000000000";

/// Line with the positions of the digits to patch.
struct Frame {
    line: Vec<u8>,
    seq: Option<usize>,
    stamp: Option<usize>,
    /// Number of updates that share a sequence number.
    per: u64,
}

impl Frame {
    fn new(template: &str, per: u64) -> Self {
        // The stamp, if any, stands before the sequence number: inserting it first keeps both positions
        // valid.
        let stamp = template.find("§N");
        let line = template.replace("§N", STAMP);
        let seq = line.find("§S");
        let line = line.replace("§S", SEQ) + "\n";
        Self {
            line: line.into_bytes(),
            seq,
            stamp,
            per,
        }
    }

    fn render(&self, seq: u64, stamp: u64, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.line);
        let line = &mut out[begin..];
        if let Some(at) = self.seq {
            digits(seq / self.per, &mut line[at..at + SEQ.len()]);
        }
        if let Some(at) = self.stamp {
            digits(stamp, &mut line[at..at + STAMP.len()]);
        }
    }
}

fn digits(mut number: u64, place: &mut [u8]) {
    for digit in place.iter_mut().rev() {
        *digit = b"0123456789"[(number % 10) as usize];
        number /= 10;
    }
}

fn monotonic() -> Duration {
    clock(ClockId::Monotonic)
}

fn clock(id: ClockId) -> Duration {
    // Neither clock is ever negative.
    Duration::try_from(clock_gettime(id)).unwrap_or_default()
}
