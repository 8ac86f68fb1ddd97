//! Options of the HTTP server.

use acpipe_model::secret::Secrets;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of the HTTP server on the command line.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "HTTP server")]
pub struct ListenArgs {
    /// Serve HTTP and WebSocket clients at this address, for example 127.0.0.1:4100; port 0 chooses a free port
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<SocketAddr>,
    /// Certificate chain (PEM) for TLS
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "listen")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert", requires = "listen")]
    pub tls_key: Option<PathBuf>,
    /// Listen on an address that other machines reach although nothing is encrypted
    #[arg(long, requires = "listen")]
    pub insecure_i_know: bool,
    /// Web origin whose pages may call the server, for example `https://app.example`
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    pub allow_origin: Vec<String>,
    /// Name of the server that requests may have in Host, besides loopback names
    #[arg(long, value_name = "HOST", requires = "listen")]
    pub allow_host: Vec<String>,
}

/// Everything that the HTTP server needs besides the connector.
#[derive(Clone)]
pub struct ListenOptions {
    /// Options of the command line; `listen` has at least one address.
    pub args: ListenArgs,
    /// State directory, which has the tokens.
    pub state_dir: PathBuf,
    /// Secrets that logs and errors hide; the tokens are added.
    pub secrets: Secrets,
}
