//! End of a server, and its audit.

use super::Server;
use super::chunks::ReceivedChunk;
use crate::harness::{LIMIT, World, signal};
use serde_json::Value;
use std::process::ExitStatus;
use std::thread;
use std::time::Instant;

/// Log and stderr of a server that has ended.
pub struct End {
    /// Lines that the agents received.
    pub log: Vec<Value>,
    pub stderr: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            self.world.kill_all();
            let _ = self.child.wait();
        } else if !self.audited {
            self.end();
        }
    }
}

impl Server {
    /// Closes stdin, waits for acpipe's exit and audits.
    pub fn finish(mut self) -> End {
        self.end()
    }

    /// Stops acpipe, audits, and starts it again in the same world. The sequence numbers of its sessions'
    /// chunks continue.
    pub fn restart(self, args: &[&str]) -> Self {
        self.restart_in(args, &[])
    }

    /// Like [`Server::restart`], initialized, and without notifications of the agents' states.
    pub fn restarted(self, args: &[&str]) -> Self {
        let mut server = self.restart(args);
        server.initialize();
        server.waive("agent/state");
        server
    }

    /// Like [`Server::restart`], with additional environment variables.
    pub fn restart_in(mut self, args: &[&str], env: &[(&str, &str)]) -> Self {
        self.end();
        self.launch_next(args, env)
    }

    /// Kills acpipe and the processes that it leaves behind, and starts it again. Earlier messages need no
    /// claim.
    pub fn crash(mut self, args: &[&str]) -> Self {
        self.kill();
        self.world.kill_all();
        self.launch_next(args, &[])
    }

    /// Kills acpipe; output that it has already written is still read.
    pub fn kill(&mut self) {
        signal(self.pid(), rustix::process::Signal::KILL);
        self.ended();
    }

    /// Waits for acpipe's exit, which has another cause than the harness, and skips the audit.
    pub fn ended(&mut self) -> ExitStatus {
        self.killed = true;
        self.audited = true;
        self.set_reading(true);
        self.drain();
        self.stdin = None;
        self.child.wait().unwrap()
    }

    /// Starts acpipe again in the same world.
    pub fn next(mut self, args: &[&str]) -> Self {
        self.launch_next(args, &[])
    }

    fn launch_next(&mut self, args: &[&str], env: &[(&str, &str)]) -> Self {
        let world = std::mem::replace(&mut self.world, World::new());
        let mut next = Self::launch(world, args, self.framing, env);
        for (session, stream) in &self.streams {
            next.stream(session).seq = stream.seq;
        }
        next
    }

    /// Waits for acpipe's exit while stdin stays open, then audits.
    pub fn await_end(mut self) -> End {
        self.drain();
        self.end()
    }

    /// Closes stdin; answers can still be claimed.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    fn drain(&mut self) {
        let since = Instant::now();
        while !self.over {
            if since.elapsed() > LIMIT {
                self.fail("acpipe does not end");
            }
            self.take_input();
        }
    }

    fn end(&mut self) -> End {
        self.audited = true;
        self.stdin = None;
        self.set_reading(true);
        self.drain();
        let stderr = self.stderr.recv_timeout(LIMIT).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let status = self.child.wait().unwrap();
        let leaving = |state: &Value| state == "stopping" || state == "disconnected";
        self.notifications.retain(|(method, params)| {
            !(method == "agent/state" && leaving(&params["state"]) && params["reason"].is_null())
        });
        let mut wrong = Vec::new();
        if status.code() != Some(0) {
            wrong.push(format!("acpipe ended with {status}"));
        }
        if stderr.contains("panicked") {
            wrong.push("acpipe panicked".to_owned());
        }
        if !self.unanswered.is_empty() {
            wrong.push(format!("never answered: {:?}", self.unanswered));
        }
        let unclaimed: Vec<&Value> = self
            .answers
            .values()
            .chain(&self.nulls)
            .chain(self.batches.iter().flatten())
            .collect();
        if !unclaimed.is_empty() {
            wrong.push(format!("unclaimed answers: {unclaimed:?}"));
        }
        if !self.requests.is_empty() {
            wrong.push(format!("unclaimed requests: {:?}", self.requests));
        }
        if !self.notifications.is_empty() {
            wrong.push(format!("unclaimed: {:?}", self.notifications));
        }
        for (session, stream) in &self.streams {
            // Transient chunks between turns need no claim.
            let passes =
                |chunk: &&ReceivedChunk| chunk.turn.is_none() && chunk.chunk["transient"] == true;
            if let Some(chunk) = stream.chunks.iter().find(|chunk| !passes(chunk)) {
                let (n, first) = (stream.chunks.len(), &chunk.chunk);
                wrong.push(format!(
                    "unclaimed chunks of {session}: {n}, first {first} of turn {:?}",
                    chunk.turn
                ));
            }
        }
        wrong.extend(self.world.leak());
        if !wrong.is_empty() {
            let wrong = wrong.join("\n");
            self.fail(&format!("{wrong}\nstderr: {stderr}"));
        }
        End {
            log: self.world.log(),
            stderr,
        }
    }
}
