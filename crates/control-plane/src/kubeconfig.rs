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

/// Writes a kubeconfig with one context, which is named after the user. (JSON is YAML.)
pub(crate) fn write(
    path: &Path,
    url: &str,
    ca_pem: &str,
    user: &str,
    identity: &Identity,
) -> Result<()> {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {
            "server": url,
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

/// Writes a file that only its owner may read, as befits a key.
pub(crate) fn private_file(path: &Path, content: &str) -> Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("failed to write {}", path.display()))
}
