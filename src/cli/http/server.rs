//! Listening: addresses, connections and their limits.

use super::args::{ListenArgs, ListenOptions};
use super::guard::Guard;
use super::metrics::Metrics;
use super::routes::router;
use super::state::ServerState;
use super::tls;
use super::token::Tokens;
use crate::cli::connections::NewConnection;
use crate::cli::failure::UsageError;
use acpipe_host::Connector;
use anyhow::{Context as _, bail, ensure};
use axum::Router;
use axum::http::HeaderValue;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

/// Maximum number of open TCP connections. Others wait in the queue of the operating system.
const MOST_CONNECTIONS: usize = 512;

/// Maximum time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Maximum time for the head of a request, and for the pause between two requests of a connection.
const HEAD: Duration = Duration::from_secs(30);

/// Time in which a client must read something of a response, so that it does not keep its place for ever.
const SEND: Duration = Duration::from_secs(90);

/// Maximum size of the head of a request.
const MOST_HEAD: usize = 64 << 10;

/// Number of requests with a wrong token that are delayed at once.
const DELAYS: usize = 16;

/// Pause after an error of the listener, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Time in which connections end after the loop.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// A server that accepts clients.
pub struct Listening {
    /// Bound addresses.
    pub addresses: Vec<SocketAddr>,
    /// Address of the page, with the token in the fragment, which browsers do not send.
    pub url_with_token: String,
    /// Ends, without a value, when the addresses are free again: when the loop has ended.
    pub closed: mpsc::Receiver<Infallible>,
    /// Ends with the last connection after the loop has ended.
    pub task: JoinHandle<()>,
}

impl Listening {
    /// Returns the bound addresses as URLs, without the token.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let scheme = self.url_with_token.split("://").next();
        let scheme = scheme.unwrap_or("http");
        let all = self.addresses.iter();
        all.map(|address| format!("{scheme}://{address}")).collect()
    }
}

/// Listener of one address, and the service of its connections.
struct Acceptor {
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    places: Arc<Semaphore>,
    /// Dropped with the listener.
    _is_bound: mpsc::Sender<Infallible>,
}

/// Starts the HTTP server.
///
/// # Errors
/// An address cannot be bound or must not be used without TLS, or a certificate or token cannot be used.
pub async fn listen(
    options: ListenOptions,
    connector: Connector<NewConnection>,
) -> anyhow::Result<Listening> {
    let args = &options.args;
    ensure!(
        !args.listen.is_empty(),
        "no address to listen on; pass --listen"
    );
    let (tls, origins) = checked(args)?;
    let tokens = Arc::new(Tokens::load(&options.state_dir, &options.secrets)?);
    let metrics = Arc::<Metrics>::default();
    let delays = Arc::new(Semaphore::new(DELAYS));
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut addresses = Vec::new();
    let mut acceptors = JoinSet::new();
    let mut bound = Vec::new();
    let (is_bound, closed) = mpsc::channel(1);
    for address in &args.listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| busy(*address))?;
        let address = listener.local_addr()?;
        addresses.push(address);
        let host = (address.ip(), address.port());
        let guard = Guard::new(host, tls.is_some(), &args.allow_host, &args.allow_origin);
        let state = Arc::new(ServerState {
            connector: connector.clone(),
            tokens: Arc::clone(&tokens),
            guard,
            metrics: Arc::clone(&metrics),
            delays: Arc::clone(&delays),
        });
        bound.push(Acceptor {
            listener,
            router: router(state, &origins),
            tls: tls.clone(),
            places: Arc::clone(&places),
            _is_bound: is_bound.clone(),
        });
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    for address in &addresses {
        info!("listening on {scheme}://{address}");
    }
    for acceptor in bound {
        acceptors.spawn(accept(acceptor, connector.clone()));
    }
    let task = tokio::spawn(async move { while acceptors.join_next().await.is_some() {} });
    Ok(Listening {
        url_with_token: format!("{scheme}://{}/#token={}", addresses[0], tokens.full()),
        addresses,
        closed,
        task,
    })
}

/// Checks the options of the HTTP server. Nothing is opened but the files of the certificate.
///
/// # Errors
/// An address must not be used without TLS, or a certificate or an origin cannot be used.
pub fn check_listen(args: &ListenArgs) -> anyhow::Result<()> {
    checked(args)?;
    Ok(())
}

/// The options of a server, checked. Each error is one of the command line.
type CheckedOptions = (Option<TlsAcceptor>, Vec<HeaderValue>);

fn checked(args: &ListenArgs) -> Result<CheckedOptions, UsageError> {
    let check = || {
        check_addresses(args)?;
        let tls = match (&args.tls_cert, &args.tls_key) {
            (Some(cert), Some(key)) => Some(tls::acceptor(cert, key)?),
            _ => None,
        };
        Ok((tls, origins(&args.allow_origin)?))
    };
    check().map_err(|error: anyhow::Error| UsageError(format!("{error:#}")))
}

/// Checks that addresses are free, except those with the ports of `own`, which a server that will have ended has.
///
/// # Errors
/// One cannot be bound.
pub fn check_free(args: &ListenArgs, own: &[String]) -> anyhow::Result<()> {
    let port = |url: &String| url.rsplit(':').next().and_then(|port| port.parse().ok());
    let own: Vec<u16> = own.iter().filter_map(port).collect();
    let others = args.listen.iter();
    let others = others.filter(|address| !own.contains(&address.port()));
    // All at once, so that none is given twice.
    let bound: anyhow::Result<Vec<_>> = others
        .map(|address| std::net::TcpListener::bind(address).with_context(|| busy(*address)))
        .collect();
    bound.map(drop)
}

fn busy(address: SocketAddr) -> String {
    format!("cannot listen on {address}; choose another port, or port 0 for a free one")
}

/// Refuses addresses that other machines reach without TLS, unless the user insists.
fn check_addresses(args: &ListenArgs) -> anyhow::Result<()> {
    if args.tls_cert.is_some() || args.insecure_i_know {
        return Ok(());
    }
    for address in &args.listen {
        if !address.ip().is_loopback() {
            bail!(
                "cannot listen on {address} without TLS: others could read the token and run commands; pass --tls-cert and --tls-key, or --insecure-i-know if the network is trusted"
            );
        }
    }
    Ok(())
}

fn origins(all: &[String]) -> anyhow::Result<Vec<HeaderValue>> {
    all.iter()
        .map(|origin| {
            let rest = origin.split_once("://").map(|(_, rest)| rest);
            ensure!(
                rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/')),
                "--allow-origin {origin} is not an origin; pass scheme, host and port without a path, for example https://app.example"
            );
            let value = HeaderValue::from_str(&origin.to_ascii_lowercase());
            value.with_context(|| format!("--allow-origin {origin} is not a valid header value"))
        })
        .collect()
}

/// Accepts connections until the loop has ended.
async fn accept(acceptor: Acceptor, connector: Connector<NewConnection>) {
    let mut open = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = next(&acceptor) => stream,
            Some(_) = open.join_next() => continue,
            () = connector.ended() => break,
        };
        let Some((stream, place)) = stream else {
            continue;
        };
        let (router, tls) = (acceptor.router.clone(), acceptor.tls.clone());
        open.spawn(async move {
            serve(stream, router, tls).await;
            drop(place);
        });
    }
    // The next daemon can have the address then, however long a client keeps its connection.
    drop(acceptor);
    // Streams end by themselves when the loop does.
    let _ = timeout(LAST_OUTPUT, async {
        while open.join_next().await.is_some() {}
    })
    .await;
}

/// Waits for a place, then for a connection. Cancel safe.
async fn next(acceptor: &Acceptor) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(&acceptor.places).acquire_owned().await.ok()?;
    match acceptor.listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            warn!("cannot accept a connection: {error}");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

async fn serve(stream: TcpStream, router: Router, tls: Option<TlsAcceptor>) {
    // Chunks are small and must not wait for each other.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(SEND));
    let stream = Box::pin(stream);
    match tls {
        None => serve_http(stream, router).await,
        Some(tls) => match timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => serve_http(stream, router).await,
            Ok(Err(error)) => debug!("TLS handshake failed: {error}"),
            Err(_) => debug!("TLS handshake timed out"),
        },
    }
}

async fn serve_http(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MOST_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades()
        .await;
    if let Err(error) = served {
        debug!("HTTP connection ended: {error}");
    }
}
