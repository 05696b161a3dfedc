//! TLS to the API server: the trusted authorities and the client certificate.
//!
//! Gap in kube: it reads the client certificate once. If a plugin renews the certificate, kube needs a new
//! client (kube-rs/kube#1675).

use std::fs;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::client::ConfigExt as _;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SignatureScheme};

use super::error::{ConnectError, in_words};
use super::selection::ConnectTarget;

/// The TLS configuration for a target. The system's authorities are loaded only if the kubeconfig names none.
pub(super) fn client_config(
    target: &ConnectTarget,
    identity: &Identity,
) -> Result<ClientConfig, ConnectError> {
    let mut trust = kube::Config::new(target.server.clone());
    trust.accept_invalid_certs = target.cluster.insecure_skip_tls_verify;
    trust.root_cert = if trust.accept_invalid_certs {
        Some(Vec::new())
    } else {
        authorities(target)?
    };
    let mut config = trust
        .rustls_client_config()
        .map_err(|err| ConnectError::new(err.to_string()))?;
    config.client_auth_cert_resolver = Arc::new(identity.clone());
    Ok(config)
}

/// Trusts no authority, for connections without TLS.
pub(super) fn no_trust() -> ClientConfig {
    ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

/// The certificates of the authorities from the kubeconfig or a flag.
fn authorities(target: &ConnectTarget) -> Result<Option<Vec<Vec<u8>>>, ConnectError> {
    let cluster = &target.cluster;
    let Some(pem) = load(
        "certificate-authority",
        &target.server.to_string(),
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
    )?
    else {
        return Ok(None);
    };
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .filter_map(Result::ok)
        .map(|der| der.to_vec())
        .collect();
    if certificates.is_empty() {
        return Err(ConnectError::new(
            "unable to load root certificates: no certificate in the certificate authority's PEM",
        ));
    }
    Ok(Some(certificates))
}

/// The client certificate to use. A credential plugin or new files may replace it while connections are made.
#[derive(Clone, Default)]
pub(super) struct Identity {
    current: Arc<RwLock<ClientCertificate>>,
}

#[derive(Default)]
struct ClientCertificate {
    certificate: Option<Arc<CertifiedKey>>,
    /// How many times the certificate was replaced by another one.
    generation: u64,
}

impl Identity {
    /// The kubeconfig user's own certificate, or none.
    pub(super) fn of_user(target: &ConnectTarget) -> Result<Self, ConnectError> {
        if !target.is_secure() {
            return Ok(Self::default());
        }
        let user = &target.user;
        let owner = target.user_description.clone().unwrap_or_default();
        let certificate = user.client_certificate_data.as_deref();
        let certificate = load(
            "client-cert",
            &owner,
            certificate,
            user.client_certificate.as_deref(),
        )?;
        let key = load(
            "client-key",
            &owner,
            user.client_key_data.as_deref(),
            user.client_key.as_deref(),
        )?;
        let identity = Self::default();
        if let (Some(certificate), Some(key)) = (certificate, key) {
            identity.replace(&certificate, &key).map_err(|detail| {
                ConnectError::new(format!("client certificate of {owner}: {detail}"))
            })?;
        }
        Ok(identity)
    }

    /// The client certificate in use.
    pub(super) fn certificate(&self) -> Option<Vec<u8>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let certificate = current.certificate.as_ref()?.cert.first()?;
        Some(certificate.to_vec())
    }

    /// How many times the certificate was replaced by another one. Connections of an earlier generation use
    /// an older certificate.
    pub(super) fn generation(&self) -> u64 {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .generation
    }

    /// Uses this certificate from the next connection on.
    pub(super) fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), String> {
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|err| err.to_string())?;
        if chain.is_empty() {
            return Err("tls: failed to find any PEM data in certificate input".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| "tls: failed to find any PEM data in key input".to_owned())?;
        let provider = rustls::crypto::ring::default_provider();
        let key = provider.key_provider.load_private_key(key);
        let pair = CertifiedKey::new(chain, key.map_err(|err| err.to_string())?);
        pair.keys_match().map_err(|err| match err {
            rustls::Error::InconsistentKeys(_) => {
                "tls: private key does not match public key".to_owned()
            }
            other => other.to_string(),
        })?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current
            .certificate
            .as_ref()
            .is_some_and(|old| old.cert != pair.cert)
        {
            current.generation += 1;
        }
        current.certificate = Some(Arc::new(pair));
        Ok(())
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .certificate
            .clone()
    }

    fn has_certs(&self) -> bool {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .certificate
            .is_some()
    }
}

/// The PEM of a certificate or key: its inline base64 data if there is any, otherwise its file.
fn load(
    what: &'static str,
    owner: &str,
    data: Option<&str>,
    path: Option<&str>,
) -> Result<Option<Vec<u8>>, ConnectError> {
    match (data, path) {
        (Some(data), _) => {
            let compact: String = data.split_whitespace().collect();
            BASE64_STANDARD
                .decode(compact)
                .map(Some)
                .map_err(|err| ConnectError::new(format!("{what} of {owner}: not base64: {err}")))
        }
        (None, Some(path)) => fs::read(path).map(Some).map_err(|err| {
            let why = in_words(&err);
            ConnectError::new(format!(
                "unable to read {what} {path} for {owner} due to open {path}: {why}"
            ))
        }),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_another_certificate_is_refused() {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let replaced = Identity::default().replace(pair.cert.pem().as_bytes(), other.as_bytes());
        let refused = "tls: private key does not match public key";
        assert_eq!(replaced, Err(refused.to_owned()));
    }
}
