//! `nats-server`s on free ports of the loopback interface, with their files in a temporary directory.

use crate::Failure;
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{self, Context};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Running servers; they are killed and their files are removed when this is dropped.
pub struct Server {
    processes: Vec<Child>,
    /// A connection to each server.
    pub connections: Vec<Context>,
    pub version: String,
    /// Largest message that the server accepts, in bytes.
    pub max_payload: usize,
    _files: TempDir,
}

impl Server {
    /// Starts a server; `synced` makes it sync its files before each acknowledgement.
    pub async fn start(synced: bool) -> Result<Self, Failure> {
        Self::start_all(1, synced).await
    }

    /// Starts three servers that replicate streams among them.
    pub async fn start_cluster() -> Result<Self, Failure> {
        Self::start_all(3, false).await
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the rule is that of acpipe itself, whose processes have supervisors"
    )]
    async fn start_all(count: usize, synced: bool) -> Result<Self, Failure> {
        let files = tempfile::tempdir()?;
        let ports = free_ports(count * 2)?;
        let (ports, routes) = ports.split_at(count);
        let all: Vec<_> = routes
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        let sync = if synced { "sync_interval: always" } else { "" };
        let program = std::env::var("NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
        let mut processes = Vec::new();
        for (number, (port, route)) in ports.iter().zip(routes).enumerate() {
            let store = files.path().join(format!("store{number}"));
            let mut settings = format!(
                "server_name: n{number}\nlisten: \"127.0.0.1:{port}\"\n\
                 jetstream {{ store_dir: {store:?}\n {sync} }}\n"
            );
            if count > 1 {
                settings += &format!(
                    "cluster {{ name: bench, listen: \"127.0.0.1:{route}\", routes: {all:?} }}\n"
                );
            }
            let settings_file = files.path().join(format!("server{number}.conf"));
            std::fs::write(&settings_file, settings)?;
            let process = Command::new(&program)
                .arg("-c")
                .arg(&settings_file)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|e| {
                    format!("cannot start {program}: {e}; install nats-server or set NATS_SERVER")
                })?;
            processes.push(process);
        }
        let mut server = Self {
            processes,
            connections: Vec::new(),
            version: String::new(),
            max_payload: 0,
            _files: files,
        };
        for port in ports {
            let client = connect(*port).await?;
            let info = client.server_info();
            server.version = info.version;
            server.max_payload = info.max_payload;
            server.connections.push(jetstream::new(client));
        }
        Ok(server)
    }

    /// Returns the first connection.
    pub fn jetstream(&self) -> &Context {
        &self.connections[0]
    }

    /// Returns the number of replicas that a stream can have.
    pub fn replicas(&self) -> usize {
        self.processes.len()
    }

    /// Creates a stream; a cluster that has just started refuses until it has a leader.
    pub async fn create_stream(&self, mut config: Config) -> Result<Stream, Failure> {
        config.num_replicas = self.replicas();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match self.jetstream().create_stream(&config).await {
                Ok(stream) => return Ok(stream),
                Err(e) if self.replicas() == 1 || Instant::now() > deadline => {
                    return Err(e.into());
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    /// Returns `true` if the server knows the setting `sync_interval: always` (2.10).
    pub fn can_always_sync(&self) -> bool {
        let mut parts = self
            .version
            .split('.')
            .map(|part| part.parse().unwrap_or(0));
        (parts.next(), parts.next()) >= (Some(2), Some(10))
    }

    /// Returns the CPU time that the servers have used, in steps of 10 ms.
    pub fn cpu(&self) -> Result<Duration, Failure> {
        let mut ticks = 0;
        for process in &self.processes {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id()))?;
            let fields = stat.rsplit(')').next().unwrap_or_default();
            let times = fields.split_whitespace().skip(11).take(2);
            ticks += times.map(|field| field.parse().unwrap_or(0)).sum::<u64>();
        }
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // Nothing can be done about a server that has ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns ports that are free now, all different.
fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    let listeners: Result<Vec<_>, _> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect();
    let addresses = listeners?;
    let ports = addresses.iter().map(|listener| listener.local_addr());
    Ok(ports
        .map(|address| address.map(|address| address.port()))
        .collect::<Result<_, _>>()?)
}

/// Connects as soon as the server listens.
async fn connect(port: u16) -> Result<async_nats::Client, Failure> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match async_nats::connect(format!("127.0.0.1:{port}")).await {
            Ok(client) => return Ok(client),
            Err(e) if Instant::now() > deadline => return Err(e.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}
