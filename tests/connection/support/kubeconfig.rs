//! Kubeconfig files in a temporary directory, which is deleted at the end of the test.

use std::fs;
use std::path::{Path, PathBuf};

use control_plane::shared;
use tempfile::TempDir;

/// The real API server as a YAML flow mapping, with more fields.
pub(crate) fn real_cluster(more: &str) -> String {
    let server = shared().url();
    format!(
        "{{server: {server:?}, certificate-authority: {:?}, {more}}}",
        shared().ca_path()
    )
}

/// A directory with one kubeconfig, and other files that a test needs.
pub(crate) struct Kubeconfig {
    directory: TempDir,
}

impl Kubeconfig {
    /// A kubeconfig with one context, whose cluster and user have these YAML flow mappings.
    pub(crate) fn new(cluster: &str, user: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             contexts: [{{name: test, context: {{cluster: cluster, user: user}}}}]\n\
             clusters: [{{name: cluster, cluster: {cluster}}}]\n\
             users: [{{name: user, user: {user}}}]\n"
        );
        let this = Self { directory };
        this.write("config", &text);
        this
    }

    /// A kubeconfig of the real API server for this user, with a client certificate.
    pub(crate) fn real(user: &str) -> Self {
        let identity = shared().identity(user, &[]).expect("a client certificate");
        let this = Self::new(
            &real_cluster(""),
            "{client-certificate: user.crt, client-key: user.key}",
        );
        this.write("user.crt", &identity.cert_pem);
        this.write("user.key", &identity.key_pem);
        this
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory().join("config")
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file to the directory of the kubeconfig.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory().join(name);
        fs::write(&path, text).expect("a file in a temporary directory");
        path
    }

    /// Writes a shell script to the directory of the kubeconfig.
    pub(crate) fn write_script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.write(name, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
        path
    }
}
