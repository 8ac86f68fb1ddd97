//! State that requests share.

use super::guard::Guard;
use super::metrics::Metrics;
use super::token::Tokens;
use crate::cli::connections::NewConnection;
use acpipe_host::Connector;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// State that all requests of one address share.
pub struct ServerState {
    /// Opens connections to the loop.
    pub connector: Connector<NewConnection>,
    /// Tokens of clients.
    pub tokens: Arc<Tokens>,
    /// Check of `Host` and `Origin`.
    pub guard: Guard,
    /// Metrics of all addresses.
    pub metrics: Arc<Metrics>,
    /// Requests with a wrong token that are being delayed.
    pub delays: Arc<Semaphore>,
}
