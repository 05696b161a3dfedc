//! Credential plugins: programs in the kubeconfig that return a token or a client certificate.
//!
//! Gap in kube: it blocks until the plugin ends, even if nothing waits for it any more (kube-rs/kube#1632).
//! It gives the plugin stdin even if stdin is not a terminal. It does not check the API version of the
//! response.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use futures::future::try_join;
use kube::config::ExecInteractiveMode;
use serde::{Deserialize, Serialize};
use supervisor::find_program;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use super::error::{ConnectError, in_words};
use super::kubeconfig::{Cluster, Exec};
use super::platform::{TerminalModes, start_own_group};

const API_VERSIONS: [&str; 2] = [
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
];

/// The cluster's extension that is passed to the users' plugins.
const CONFIG_EXTENSION: &str = "client.authentication.k8s.io/exec";

/// A response that is no `ExecCredential`. The message contains nothing of it, because it may be a secret.
pub(super) fn undecodable() -> ConnectError {
    ConnectError::of_credentials("decoding stdout: not an ExecCredential")
}

/// The credentials that a plugin returned.
pub(super) struct Credential {
    pub(super) token: Option<String>,
    pub(super) certificate: Option<(String, String)>,
    /// When to run the plugin again; `None` means never.
    pub(super) expires: Option<DateTime<Utc>>,
}

/// A plugin as configured in the kubeconfig. The configuration has been checked.
#[derive(Clone)]
pub(super) struct Plugin {
    config: Exec,
    cluster: Option<ClusterInfo>,
    stdin: Stdin,
}

/// Whether a plugin may prompt on stdin.
#[derive(Clone, Default)]
pub(super) struct Stdin {
    is_terminal: bool,
    is_taken: Arc<AtomicBool>,
}

impl Stdin {
    /// Allows prompts if stdin is a terminal.
    pub(super) fn new(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            is_taken: Arc::default(),
        }
    }

    /// Forbids prompts from now on, because something else reads stdin.
    pub(super) fn take(&self) {
        self.is_taken.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), ConnectError> {
        let why = match (self.is_terminal, self.is_taken.load(Ordering::Relaxed)) {
            (true, false) => return Ok(()),
            (true, true) => "is used by the command",
            (false, _) => "is not a terminal",
        };
        Err(ConnectError::of_credentials(format_args!(
            "exec plugin cannot support interactive mode: standard input {why}"
        )))
    }
}

impl Plugin {
    pub(super) fn new(
        config: &Exec,
        cluster: &Cluster,
        stdin: &Stdin,
    ) -> Result<Self, ConnectError> {
        if !API_VERSIONS.contains(&config.api_version.as_str()) {
            return Err(ConnectError::of_credentials(format_args!(
                "exec plugin: invalid apiVersion {:?}",
                config.api_version
            )));
        }
        if config.command.is_empty() {
            let missing = "exec: command must be specified";
            return Err(ConnectError::of_credentials(missing));
        }
        let cluster = config
            .provide_cluster_info
            .then(|| ClusterInfo::of(cluster));
        Ok(Self {
            config: config.clone(),
            cluster,
            stdin: stdin.clone(),
        })
    }

    /// The program, as named in the kubeconfig.
    pub(super) fn command(&self) -> &str {
        &self.config.command
    }

    /// Runs the plugin and waits for it. It shares our stderr, and also our stdin if it may prompt there. It shares
    /// our process group unless a command has the terminal. Dropping the future kills it and the processes that it started. On macOS and Windows,
    /// only the plugin itself is killed.
    pub(super) async fn run(&self) -> Result<Credential, ConnectError> {
        let interactive = match self.config.interactive_mode {
            Some(ExecInteractiveMode::Never) => false,
            Some(ExecInteractiveMode::IfAvailable) | None => self.stdin.check().is_ok(),
            Some(ExecInteractiveMode::Always) => self.stdin.check().map(|()| true)?,
        };
        let request = Exchange {
            kind: "ExecCredential".to_owned(),
            api_version: self.config.api_version.clone(),
            spec: Some(Spec {
                interactive,
                cluster: self.cluster.clone(),
            }),
            status: None,
        };
        let request = serde_json::to_string(&request).map_err(|_| undecodable())?;
        let plugin = self.clone();
        let start = move || plugin.start(interactive, request);
        let output = async { Process::start(start, interactive).await?.output().await };
        let (status, stdout) = output.await.map_err(|err| self.not_started(&err))?;
        if !status.success() {
            let status = match status.code() {
                Some(code) => format!("exit code {code}"),
                None => status.to_string(),
            };
            let command = &self.config.command;
            return Err(ConnectError::of_credentials(format_args!(
                "exec: executable {command} failed with {status}"
            )));
        }
        self.decode(&stdout)
    }

    fn start(&self, interactive: bool, request: String) -> io::Result<Child> {
        let mut command = Command::new(find_program(self.config.command.as_ref()));
        if self.stdin.is_taken.load(Ordering::Relaxed) {
            // A plugin that opens the terminal in spite of that is stopped, together with its whole group.
            start_own_group(&mut command);
        }
        command
            .args(&self.config.args)
            .envs(
                self.config
                    .env
                    .iter()
                    .map(|variable| (&variable.name, &variable.value)),
            )
            .env("KUBERNETES_EXEC_INFO", request)
            .stdin(if interactive {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
    }

    fn not_started(&self, err: &io::Error) -> ConnectError {
        let command = &self.config.command;
        if err.kind() != io::ErrorKind::NotFound {
            let why = in_words(err);
            return ConnectError::of_credentials(format_args!(
                "exec: executable {command} failed: {why}"
            ));
        }
        let missing = format!("exec: executable {command} not found");
        let missing = ConnectError::of_credentials(missing);
        match &self.config.install_hint {
            Some(hint) => missing.with_hint(hint),
            None => missing,
        }
    }

    fn decode(&self, stdout: &[u8]) -> Result<Credential, ConnectError> {
        let text = std::str::from_utf8(stdout).map_err(|_| undecodable())?;
        let answer: Exchange = serde_saphyr::from_str(text).map_err(|_| undecodable())?;
        if answer.kind != "ExecCredential" {
            return Err(undecodable());
        }
        if answer.api_version != self.config.api_version {
            return Err(ConnectError::of_credentials(format_args!(
                "exec plugin is configured to use API version {}, plugin returned version {}",
                self.config.api_version, answer.api_version
            )));
        }
        let status = answer.status.ok_or_else(undecodable)?;
        let nonempty = |value: Option<String>| value.filter(|value| !value.is_empty());
        let certificate = nonempty(status.certificate).zip(nonempty(status.key));
        let token = nonempty(status.token);
        if token.is_none() && certificate.is_none() {
            return Err(ConnectError::of_credentials(
                "exec plugin didn't return a token or cert/key pair",
            ));
        }
        let expires = nonempty(status.expires)
            .map(|time| DateTime::parse_from_rfc3339(&time).map_err(|_| undecodable()))
            .transpose()?;
        Ok(Credential {
            token,
            certificate,
            expires: expires.map(|time| time.to_utc()),
        })
    }
}

/// The process of a plugin. If this is dropped before the process has ended, nothing waits for its response
/// any more. So the process is killed, with the processes that it started. On macOS and Windows, those continue.
struct Process {
    child: Child,
    /// The terminal's modes before the plugin ran, if it may prompt there. A plugin that is killed while it
    /// hides the input can't restore them.
    modes: Option<TerminalModes>,
}

impl Process {
    /// Starts the process in a separate thread, because a file system may hang. The deadlines of locks must
    /// not wait for it.
    async fn start(
        start: impl FnOnce() -> io::Result<Child> + Send + 'static,
        interactive: bool,
    ) -> io::Result<Self> {
        let starting = tokio::task::spawn_blocking(move || {
            let modes = interactive.then(TerminalModes::of_stdin).flatten();
            start().map(|child| Self { child, modes })
        });
        starting.await.map_err(io::Error::other)?
    }

    /// Waits until the process and its stdout have ended.
    async fn output(mut self) -> io::Result<(ExitStatus, Vec<u8>)> {
        let pipe = self.child.stdout.take();
        let reading = async {
            let mut stdout = Vec::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(&mut stdout).await?;
            }
            Ok(stdout)
        };
        try_join(self.child.wait(), reading).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once the process was waited for, its pid may belong to another process.
        let Some(pid) = self.child.id() else { return };
        supervisor::kill_tree(pid);
        // The process may already have ended.
        let _ = self.child.start_kill();
        if let Some(modes) = &self.modes {
            modes.restore();
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exchange {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    #[serde(skip_deserializing)]
    spec: Option<Spec>,
    #[serde(skip_serializing)]
    status: Option<Status>,
}

#[derive(Serialize)]
struct Spec {
    interactive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterInfo>,
}

/// The information about the cluster that is passed to a plugin, with the field names of the kubeconfig.
#[derive(Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ClusterInfo {
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    insecure_skip_tls_verify: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<serde_json::Value>,
}

impl ClusterInfo {
    fn of(cluster: &Cluster) -> Self {
        let from_file = || {
            Some(BASE64_STANDARD.encode(fs::read(cluster.certificate_authority.as_ref()?).ok()?))
        };
        let config = cluster
            .extensions
            .iter()
            .find(|extension| extension.name == CONFIG_EXTENSION);
        Self {
            server: cluster.server.clone(),
            tls_server_name: cluster.tls_server_name.clone(),
            insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
            certificate_authority_data: cluster
                .certificate_authority_data
                .clone()
                .or_else(from_file),
            proxy_url: cluster.proxy_url.clone(),
            config: config.map(|extension| extension.extension.clone()),
        }
    }
}

#[derive(Deserialize)]
struct Status {
    token: Option<String>,
    #[serde(rename = "clientCertificateData")]
    certificate: Option<String>,
    #[serde(rename = "clientKeyData")]
    key: Option<String>,
    #[serde(rename = "expirationTimestamp")]
    expires: Option<String>,
}
