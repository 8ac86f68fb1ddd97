//! A client of the daemon that measures the age of each update.

use crate::Outcome;
use memchr::memmem;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Number of digits of a time in an update.
const STAMP: usize = 19;

pub struct Client {
    stream: BufReader<UnixStream>,
    welcome: Value,
}

impl Client {
    pub fn connect(socket: &Path, options: &[&str]) -> Outcome<Self> {
        let mut stream = UnixStream::connect(socket)?;
        let args = [&["serve"], options].concat();
        let hello = json!({
            "socketVersion": 1, "acpipe": "bench", "purpose": "client", "cwd": "/", "args": args,
        });
        writeln!(stream, "{hello}")?;
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let welcome = serde_json::from_str(&line)?;
        let mut client = Self { stream, welcome };
        client.call("initialize", &json!({"protocolVersion": 1}))?;
        Ok(client)
    }

    pub fn daemon_pid(&self) -> u64 {
        self.welcome["accepted"]["pid"].as_u64().unwrap_or(0)
    }

    /// Opens a session at the client's agent.
    pub fn open(&mut self, session: &str) -> Outcome {
        self.call("agent/connect", &json!({}))?;
        self.call("session/ensure", &json!({ "sessionId": session }))
    }

    pub fn attach(&mut self, session: &str) -> Outcome {
        self.call("session/attach", &json!({ "sessionId": session }))
    }

    pub fn prompt(&mut self, session: &str) -> Outcome {
        let params = json!({"sessionId": session, "message": "go"});
        self.send("session/prompt", &params)
    }

    fn send(&mut self, method: &str, params: &Value) -> Outcome {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        writeln!(self.stream.get_mut(), "{request}")?;
        Ok(())
    }

    fn call(&mut self, method: &str, params: &Value) -> Outcome {
        self.send(method, params)?;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":"{method}","#);
        let mut line = String::new();
        while self.stream.read_line(&mut line)? > 0 {
            if let Some(rest) = line.strip_prefix(&answer) {
                if rest.starts_with("\"result\"") {
                    return Ok(());
                }
                return Err(line.into());
            }
            line.clear();
        }
        Err("the daemon closed the connection".into())
    }

    /// Reads until the end of the turn, and returns the ages of the updates in µs.
    pub fn read_turn(mut self) -> Outcome<Vec<f64>> {
        let begin = memmem::Finder::new(r#""delta":"t="#);
        let end = memmem::Finder::new(r#""chunk":{"type":"finish","#);
        let mut ages = Vec::new();
        let mut line = Vec::new();
        while self.stream.read_until(b'\n', &mut line)? > 0 {
            if let Some(at) = begin.find(&line) {
                let digits = &line[at + begin.needle().len()..][..STAMP];
                let sent: u64 = std::str::from_utf8(digits)?.parse()?;
                ages.push(Duration::from_nanos(now().saturating_sub(sent)).as_secs_f64() * 1e6);
            }
            if end.find(&line).is_some() {
                return Ok(ages);
            }
            line.clear();
        }
        Err("the daemon closed the connection".into())
    }
}

/// Time in the clock of the agents, in ns.
fn now() -> u64 {
    let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
