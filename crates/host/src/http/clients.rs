//! HTTP clients with their connection pools.

use super::failure::causes;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::http::is_on_this_machine;
use reqwest::Client;
use reqwest::redirect::Policy;
use std::collections::BTreeMap;
use std::time::Duration;

/// One client for each connect limit and use of proxies, since both belong to the client. Usually there is one.
#[derive(Debug, Default)]
pub struct HttpClients(BTreeMap<(Option<Duration>, bool), Client>);

impl HttpClients {
    /// Returns the client for an address with this limit on connections. An address on this machine is not
    /// reached through a proxy, which would see the key and could not connect to it.
    ///
    /// # Errors
    /// The client cannot be created, for example because the system has no certificates.
    pub fn client(&mut self, url: &str, connect: Option<Duration>) -> Result<Client, Error> {
        let is_local = is_on_this_machine(url);
        if let Some(client) = self.0.get(&(connect, is_local)) {
            return Ok(client.clone());
        }
        // Fails if another provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .user_agent(concat!("acpipe/", env!("CARGO_PKG_VERSION")));
        if is_local {
            builder = builder.no_proxy();
        }
        if let Some(limit) = connect {
            builder = builder.connect_timeout(limit);
        }
        let client = builder.build().map_err(|error| {
            let why = causes(&error);
            let message = format!(
                "cannot set up HTTP: {why}; install the system's certificates (package ca-certificates), or set \
                 SSL_CERT_FILE"
            );
            Error::new(ErrorKind::Network, message)
        })?;
        self.0.insert((connect, is_local), client.clone());
        Ok(client)
    }
}
