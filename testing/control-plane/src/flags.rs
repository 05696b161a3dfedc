//! The command line of each process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use rcgen::KeyPair;
use serde_json::json;

use crate::api::{Api, Worker};
use crate::assets::Binary;
use crate::authority::{Authority, Identity};
use crate::component::{Component, Launch};
use crate::janitor::Janitor;
use crate::kubeconfig::private_file;
use crate::ports::free_port;

/// What the start of each process needs.
pub(crate) struct Ground<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) janitor: &'a Arc<Janitor>,
    pub(crate) worker: &'a Worker,
    pub(crate) authority: &'a Authority,
    pub(crate) admin: &'a Identity,
}

impl Ground<'_> {
    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    /// Starts a process, and repeats that with other ports if necessary.
    pub(crate) fn start(
        &self,
        binary: Binary,
        launch: impl Fn() -> Result<Launch>,
    ) -> Result<Component> {
        let log = self.logs().join(format!("{}.log", binary.name()));
        Component::start(binary.name(), self.janitor, &log, launch)
    }

    /// Writes the certificates and keys, which do not depend on the ports.
    pub(crate) fn write_certificates(&self) -> Result<()> {
        let server = self.authority.server(&["127.0.0.1", "localhost"])?;
        let tokens = KeyPair::generate()?;
        private_file(&self.directory.join("ca.crt"), &self.authority.pem())?;
        private_file(&self.directory.join("server.crt"), &server.cert_pem)?;
        private_file(&self.directory.join("server.key"), &server.key_pem)?;
        private_file(&self.directory.join("tokens.key"), &tokens.serialize_pem())?;
        private_file(&self.directory.join("tokens.pub"), &tokens.public_key_pem())
    }

    pub(crate) fn etcd(&self, fsync: bool) -> Result<Launch> {
        let name = format!("etcd-{:016x}", fastrand::u64(..));
        let client = format!("http://127.0.0.1:{}", free_port()?);
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let mut args = vec![
            format!("--name={name}"),
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={name}={peer}"),
        ];
        if !fsync {
            args.push("--unsafe-no-fsync".to_owned());
        }
        let api = Api::plain(self.worker, &client)?;
        let ready = move || {
            let members = api.post("/v3/cluster/member/list", &json!({}))?;
            ensure!(
                members["members"][0]["name"] == name.as_str(),
                "another etcd is on this port"
            );
            Ok(())
        };
        Ok(Launch {
            program: Binary::Etcd.locate()?,
            args,
            url: client.clone(),
            ready: Box::new(ready),
        })
    }

    pub(crate) fn api_server(&self, etcd: &str, extra: &[String]) -> Result<Launch> {
        let port = free_port()?;
        let url = format!("https://127.0.0.1:{port}");
        let mut args = vec![
            format!("--etcd-servers={etcd}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            // The reconciler would write the address to Endpoints, which must not contain a
            // loopback address.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", self.path("api-server")),
            format!("--tls-cert-file={}", self.path("server.crt")),
            format!("--tls-private-key-file={}", self.path("server.key")),
            format!("--client-ca-file={}", self.path("ca.crt")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.path("tokens.pub")),
            format!(
                "--service-account-signing-key-file={}",
                self.path("tokens.key")
            ),
        ];
        args.extend_from_slice(extra);
        let api = Api::secure(self.worker, &url, self.authority, self.admin)?;
        let ready = move || {
            api.get_text("/readyz")?;
            // The server creates these namespaces a moment after it reports that it is ready.
            for namespace in ["default", "kube-system", "kube-node-lease"] {
                api.get(&format!("/api/v1/namespaces/{namespace}"))?;
            }
            Ok(())
        };
        Ok(Launch {
            program: Binary::KubeApiserver.locate()?,
            args,
            url,
            ready: Box::new(ready),
        })
    }

    pub(crate) fn controller_manager(&self, kubeconfig: &Path, extra: &[String]) -> Result<Launch> {
        let port = free_port()?;
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = kubeconfig.display();
        let mut args = vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", self.path("server.crt")),
            format!("--tls-private-key-file={}", self.path("server.key")),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=false".to_owned(),
            // There are no kubelets. Without another flag, nodes must keep the state in which they
            // were created.
            "--node-monitor-grace-period=24h".to_owned(),
        ];
        args.extend_from_slice(extra);
        let api = Api::secure(self.worker, &url, self.authority, self.admin)?;
        let ready = move || api.get_text("/healthz").map(drop);
        Ok(Launch {
            program: Binary::KubeControllerManager.locate()?,
            args,
            url,
            ready: Box::new(ready),
        })
    }
}
