//! The HTTP server of the daemon.

mod chat;
mod follow;
mod reads;
mod request;
mod secrets;
mod security;
mod websocket;

pub use chat::{submit, user};

use crate::daemon::Daemon;
use crate::harness::{FAKE_AGENT, World};
use serde_json::Value;
use std::net::SocketAddr;

/// A daemon that serves HTTP, with an agent that plays a script.
pub struct Server {
    pub daemon: Daemon,
    address: SocketAddr,
    token: String,
}

impl Server {
    fn start(script: &Value) -> Self {
        Self::with_permissions("ask", script)
    }

    fn with_permissions(mode: &str, script: &Value) -> Self {
        Self::start_in(World::new(), &["--permissions", mode], script)
    }

    fn start_in(world: World, options: &[&str], script: &Value) -> Self {
        let agent = [FAKE_AGENT.to_owned(), world.script(script)];
        Self::of_agent(world, options, &agent)
    }

    /// Starts it with this command line of the agent.
    pub fn of_agent(world: World, options: &[&str], agent: &[String]) -> Self {
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        let listen = ["--listen", "127.0.0.1:0"];
        let options = [&listen, options, &["--"], &agent].concat();
        let daemon = Daemon::start_in(world, &options);
        let status = daemon.run(&["daemon", "status", "--json"], 0);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        let url = status["daemon"]["listening"][0].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        let token = token(&daemon, "token");
        Self {
            daemon,
            address,
            token,
        }
    }
}

fn token(daemon: &Daemon, name: &str) -> String {
    let token = std::fs::read_to_string(daemon.world.dir.join("state").join(name));
    token.unwrap().trim().to_owned()
}
