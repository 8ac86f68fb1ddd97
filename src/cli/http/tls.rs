//! TLS of the HTTP server, from certificate files.

use acpipe_host::read_input;
use anyhow::{Context as _, ensure};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Maximum size of a file with certificates or a key, in bytes.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Reads a certificate chain and its key.
pub fn acceptor(cert: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let unreadable = |path: &Path| format!("cannot read the PEM file {}", path.display());
    let read = |path: &Path| read_input(path, MAX_PEM_BYTES).with_context(|| unreadable(path));
    let pem = read(cert)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .with_context(|| unreadable(cert))?;
    ensure!(
        !chain.is_empty(),
        "cannot use {}: it has no certificate; pass a PEM file with the certificate chain",
        cert.display()
    );
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).with_context(|| unreadable(key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth();
    let mut config = config.with_single_cert(chain, private).with_context(|| {
        let (cert, key) = (cert.display(), key.display());
        format!("cannot use the certificate {cert} with the key {key}")
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
