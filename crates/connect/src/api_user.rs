//! The API user of the caller, as far as the credentials show it.
//!
//! Gap in kube: a client does not expose its user. Asking the API server takes a request, and works only
//! since Kubernetes 1.28.

use std::fs;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::selection::ConnectTarget;
use super::tls::Identity;

/// The API user that the credentials show, without a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiUser {
    /// The user name.
    Known(String),
    /// Only the API server knows the name.
    Unknown,
    /// No credentials are sent.
    Anonymous,
}

impl ApiUser {
    /// The user with these credentials: the impersonated user, else the common name of the certificate, else
    /// the service account of the token. The API server checks them in the same order.
    pub(super) fn of(target: &ConnectTarget, identity: &Identity) -> Self {
        let user = &target.user;
        if let Some(name) = &user.impersonate {
            return Self::Known(name.clone());
        }
        if !target.is_secure() {
            return Self::Anonymous;
        }
        if let Some(certificate) = identity.certificate() {
            let name = common_name(&certificate);
            return name.map_or(Self::Unknown, Self::Known);
        }
        let file = user.token_file.as_ref();
        let token = file.and_then(|path| fs::read_to_string(path).ok());
        if let Some(account) = token
            .or_else(|| user.token.clone())
            .as_deref()
            .and_then(service_account)
        {
            return Self::Known(account);
        }
        match user.token_file.is_some()
            || user.token.is_some()
            || user.exec.is_some()
            || user.auth_provider.is_some()
        {
            true => Self::Unknown,
            false => Self::Anonymous,
        }
    }
}

impl ApiUser {
    /// The same user, completed with the `name` that the API server reports. Without credentials the name is
    /// ignored: it is shared by everyone who reaches the server this way, for example through `kubectl
    /// proxy`.
    #[must_use]
    pub fn or_named(self, name: Option<String>) -> Self {
        match (self, name) {
            (Self::Unknown, Some(name)) => Self::Known(name),
            (known, _) => known,
        }
    }
}

/// The service account in a Kubernetes token. Only the server checks the signature.
fn service_account(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claims {
        sub: String,
        #[serde(rename = "kubernetes.io")]
        _of_kubernetes: serde_json::Value,
    }
    let payload = token.trim().split('.').nth(1)?;
    let payload = BASE64_URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Some(claims.sub).filter(|name| name.starts_with("system:serviceaccount:"))
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const VERSION: u8 = 0xa0;

/// The object ID of a common name.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// The common name of the subject of a DER certificate. If there are several, the last one counts, as for the
/// API server.
fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, mut rest, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    if element(rest)?.0 == VERSION {
        rest = element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer, validity.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    let (_, mut names, _) = element(rest).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let mut found = None;
    while let Some((SET, mut set, after)) = element(names) {
        names = after;
        while let Some((SEQUENCE, attribute, after)) = element(set) {
            set = after;
            let (OBJECT_ID, id, value) = element(attribute)? else {
                return None;
            };
            if id == COMMON_NAME {
                let (UTF8_STRING | PRINTABLE_STRING, text, _) = element(value)? else {
                    return None;
                };
                found = Some(str::from_utf8(text).ok()?.to_owned());
            }
        }
    }
    found.filter(|name| !name.is_empty())
}

/// The tag and the content of the first DER element, and the bytes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.len() > 4 {
            return None;
        }
        length = bytes
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;

    use super::*;

    #[test]
    fn the_common_name_is_read() {
        let certificate = |names: &[(rcgen::DnType, &str)]| {
            let mut params = rcgen::CertificateParams::default();
            params.distinguished_name = rcgen::DistinguishedName::new();
            for (kind, name) in names {
                params.distinguished_name.push(kind.clone(), *name);
            }
            let key = rcgen::KeyPair::generate().expect("a key");
            params
                .self_signed(&key)
                .expect("a certificate")
                .der()
                .to_vec()
        };
        let long = "system:serviceaccount:".to_owned() + &"x".repeat(200);
        for name in ["alice", "käthe", &long] {
            let der = certificate(&[
                (rcgen::DnType::OrganizationName, "kubectl-maint:users"),
                (rcgen::DnType::CommonName, name),
            ]);
            assert_eq!(common_name(&der).as_deref(), Some(name));
            // Truncated or changed input must not panic.
            for end in 0..der.len() {
                let _ = common_name(&der[..end]);
            }
        }
        let without = certificate(&[(rcgen::DnType::OrganizationName, "ops")]);
        assert_eq!(common_name(&without), None);
        assert_eq!(common_name(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }

    #[test]
    fn only_tokens_of_kubernetes_name_their_account() {
        let token = |claims: &str| format!("h.{}.s", BASE64_URL_SAFE_NO_PAD.encode(claims));
        let name = "system:serviceaccount:ops:robot";
        let account = token(&format!(r#"{{"sub":"{name}","kubernetes.io":{{}}}}"#));
        assert_eq!(service_account(&account).as_deref(), Some(name));
        for other in [
            token(r#"{"sub":"alice","kubernetes.io":{}}"#),
            token(&format!(r#"{{"sub":"{name}"}}"#)),
            "opaque".to_owned(),
            "a.b.c".to_owned(),
        ] {
            assert_eq!(service_account(&other), None, "{other}");
        }
    }
}
