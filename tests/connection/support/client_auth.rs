//! TLS of a server that requires a client certificate, and accepts only one.

use std::sync::Arc;

use control_plane::Identity;
use rcgen::PublicKeyData as _;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};

/// Accepts a client that has this certificate and proves that it has the key. Unlike the verifiers of rustls, it does
/// not parse the certificate, which may be of X.509 version 1.
#[derive(Debug)]
struct OnlyClient {
    certificate: CertificateDer<'static>,
    public_key: SubjectPublicKeyInfoDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The configuration of a server with the certificate of `server`, which accepts only clients with that of `client`.
pub(super) fn server_config(server: &Identity, client: &Identity) -> Arc<ServerConfig> {
    let certificate = |identity: &Identity| {
        CertificateDer::from_pem_slice(identity.cert_pem.as_bytes()).expect("a certificate in PEM")
    };
    let key = PrivateKeyDer::from_pem_slice(server.key_pem.as_bytes()).expect("a key in PEM");
    let client_key = rcgen::KeyPair::from_pem(&client.key_pem).expect("a key in PEM");
    let verifier = OnlyClient {
        certificate: certificate(client),
        public_key: client_key.subject_public_key_info().into(),
        algorithms: ring::default_provider().signature_verification_algorithms,
    };
    let config = ServerConfig::builder_with_protocol_versions(&[&TLS13])
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(vec![certificate(server)], key)
        .expect("the key is the certificate's");
    Arc::new(config)
}

impl ClientCertVerifier for OnlyClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match *shown == self.certificate {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(Error::General("another certificate".to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        _: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = &self.public_key;
        verify_tls13_signature_with_raw_key(message, key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
