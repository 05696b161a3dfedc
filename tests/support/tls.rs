//! TLS of the servers and proxies that tests start.

use std::sync::Arc;

use control_plane::Identity;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The configuration of a server with this certificate, which offers these protocols.
pub(crate) fn server_config(identity: &Identity, protocols: &[&str]) -> Arc<ServerConfig> {
    let chain =
        CertificateDer::pem_slice_iter(identity.cert_pem.as_bytes()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).expect("a key in PEM");
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.expect("a certificate in PEM"), key)
        .expect("the key is the certificate's");
    config.alpn_protocols = protocols
        .iter()
        .map(|protocol| protocol.as_bytes().to_vec())
        .collect();
    Arc::new(config)
}
