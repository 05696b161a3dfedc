//! Kubeconfig files.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use crate::authority::Identity;

/// A kubeconfig with one context, which has the name of the user.
///
/// [`ControlPlane::user`](crate::ControlPlane::user) writes the usual one. Use this type in tests
/// that connect in another way: through their own proxy, or with a wrong authority.
#[derive(Debug, Clone, Copy)]
pub struct Kubeconfig<'a> {
    /// The server's URL.
    pub server: &'a str,
    /// The authority that must have signed the server's certificate.
    pub ca_pem: &'a str,
    /// The name of the user entry. The API server reads the user from the certificate.
    pub user: &'a str,
    /// The client certificate and its key.
    pub identity: &'a Identity,
}

impl Kubeconfig<'_> {
    /// Writes it to a new file.
    ///
    /// # Errors
    /// If the file exists, or can't be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let Self {
            server,
            ca_pem,
            user,
            identity,
        } = *self;
        // JSON is YAML.
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {
                "server": server,
                "certificate-authority-data": BASE64.encode(ca_pem),
            }}],
            "users": [{"name": user, "user": {
                "client-certificate-data": BASE64.encode(&identity.cert_pem),
                "client-key-data": BASE64.encode(&identity.key_pem),
            }}],
            "contexts": [{"name": user, "context": {"cluster": "test", "user": user}}],
            "current-context": user,
        });
        private_file(path, &format!("{kubeconfig:#}\n"))
    }
}

/// Writes a new file that only its owner may read, because it contains a key.
pub(crate) fn private_file(path: &Path, content: &str) -> Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("failed to write {}", path.display()))
}
