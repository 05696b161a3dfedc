//! Certificates: who may speak to the control plane, and how it shows who it is.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A certificate and its private key, both in PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub cert_pem: String,
    /// The private key, PKCS #8.
    pub key_pem: String,
}

/// A certificate authority.
///
/// Every [`ControlPlane`](crate::ControlPlane) has its own; make another one for a test where a
/// client must not trust the server, or the server the client.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority that is valid from a day ago, for a year.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn new(common_name: &str) -> Result<Self> {
        let mut params = params(common_name, &usual_validity());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)
            .context("failed to make a certificate authority")?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// Signs a client's certificate: to the API server the common name is the user, the
    /// organisations are the groups.
    ///
    /// # Errors
    /// If there are more than two groups: `rcgen` keeps one value a type of name, and a group
    /// has two such types, by name and by object identifier.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        self.client_valid(user, groups, usual_validity())
    }

    /// As [`client`](Self::client), for odd times: an expired certificate, or one of tomorrow.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub fn client_valid(
        &self,
        user: &str,
        groups: &[&str],
        validity: Range<SystemTime>,
    ) -> Result<Identity> {
        let mut params = params(user, &validity);
        let group_types = [
            DnType::OrganizationName,
            DnType::CustomDnType(vec![2, 5, 4, 10]),
        ];
        ensure!(
            groups.len() <= group_types.len(),
            "more than two groups for {user}"
        );
        for (group_type, group) in group_types.into_iter().zip(groups) {
            params.distinguished_name.push(group_type, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    /// Signs a server's certificate for these host names and addresses.
    ///
    /// # Errors
    /// If a name can't stand in a certificate.
    pub fn server(&self, names: &[&str]) -> Result<Identity> {
        self.server_valid(names, usual_validity())
    }

    /// As [`server`](Self::server), for odd times: an expired certificate, or one of tomorrow.
    ///
    /// # Errors
    /// If a name can't stand in a certificate.
    pub fn server_valid(&self, names: &[&str], validity: Range<SystemTime>) -> Result<Identity> {
        let mut params = params("kubectl-maint test server", &validity);
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Identity> {
        let key = KeyPair::generate()?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .context("failed to sign a certificate")?;
        Ok(Identity {
            cert_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }
}

/// From a day ago, so that a clock that is somewhat behind still accepts it, for a year.
fn usual_validity() -> Range<SystemTime> {
    let now = SystemTime::now();
    now - DAY..now + 365 * DAY
}

fn params(common_name: &str, validity: &Range<SystemTime>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.not_before = validity.start.into();
    params.not_after = validity.end.into();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}
