//! Certificates of the control plane and its clients.

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
/// Every [`ControlPlane`](crate::ControlPlane) has its own. Create another one for tests in which
/// the client must not trust the server, or the server the client.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority that is valid for a year. It is valid since yesterday, for clients
    /// whose clock is behind.
    ///
    /// # Errors
    /// If no key can be generated.
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

    /// The certificate of the authority.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// Signs a client certificate. The API server reads the user from the common name, and the
    /// groups from the organisations.
    ///
    /// # Errors
    /// If there are more than two groups. `rcgen` keeps one value for each type of name, and there
    /// are two types for a group: by name and by object identifier.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        self.client_valid(user, groups, usual_validity())
    }

    /// Like [`client`](Self::client), but with these times, for certificates that have expired or
    /// are not valid yet.
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
    /// If a name is not allowed in a certificate.
    pub fn server(&self, names: &[&str]) -> Result<Identity> {
        self.server_valid(names, usual_validity())
    }

    /// Like [`server`](Self::server), but with these times, for certificates that have expired or
    /// are not valid yet.
    ///
    /// # Errors
    /// If a name is not allowed in a certificate.
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

/// A year, beginning yesterday, for clients whose clock is behind.
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
