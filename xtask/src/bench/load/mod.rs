//! Holders and waiters of the library, in a process of their own: a release build, and separate from the
//! program that runs the benchmark.

mod crash;
mod hand_over;
mod keepers;
mod waiters;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use control_plane::{ControlPlane, target_dir};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use maintenance_lease::Maintenance;
use tower::{BoxError, ServiceBuilder};

use super::metrics::Requests;

/// Put load on an API server with the library, and print the cost
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    kubeconfig: PathBuf,

    #[command(subcommand)]
    load: Load,
}

/// What is done; nodes are there already, `PREFIX-0` and so on.
#[derive(Debug, clap::Subcommand)]
enum Load {
    /// Pass one lock back and forth between two holders
    HandOver { node: String, count: usize },
    /// Stop holders without a release, with one waiting client each
    Crash { prefix: String, count: usize },
    /// Let all clients wait for one lock, and release it as soon as they have it
    Waiters { node: String, count: usize },
    /// Renew locks of this many seconds until stdin ends
    Keepers {
        prefix: String,
        count: usize,
        length: u64,
    },
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("failed to start a runtime")?;
        runtime.block_on(async {
            let server = Server::read(&self.kubeconfig).await?;
            match self.load {
                Load::HandOver { node, count } => hand_over::measure(&server, &node, count).await,
                Load::Crash { prefix, count } => crash::measure(&server, &prefix, count).await,
                Load::Waiters { node, count } => waiters::measure(&server, &node, count).await,
                Load::Keepers {
                    prefix,
                    count,
                    length,
                } => {
                    let length = Duration::from_secs(length);
                    keepers::keep(&server, &prefix, count, length).await
                }
            }
        })
    }
}

/// The API server, for a program that only has a kubeconfig.
struct Server {
    config: Config,
}

impl Server {
    async fn read(kubeconfig: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let mut config =
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        config.proxy_url = None;
        Ok(Self { config })
    }

    /// A client with its own connections, like the plugin's. kube's default client lacks `TCP_NODELAY`: the
    /// first request of each connection waits 40 ms until the server acknowledges the end of the TLS
    /// handshake.
    fn client(&self) -> Result<Client> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        let connector = self
            .config
            .rustls_https_connector_with_connector(connector)?;
        let service = ServiceBuilder::new()
            .layer(self.config.base_uri_layer())
            .option_layer(self.config.auth_layer()?)
            .map_err(BoxError::from)
            .service(legacy::Client::builder(TokioExecutor::new()).build(connector));
        Ok(Client::new(service, self.config.default_namespace.clone()))
    }

    /// A holder with its own connections, as every process has.
    fn holder(&self, identity: &str) -> Result<Maintenance> {
        Ok(Maintenance::new(self.client()?, identity)?)
    }

    /// The requests that the server has counted so far.
    async fn requests(&self) -> Result<Requests> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        Ok(Requests::read(&self.client()?.request_text(request).await?))
    }
}

/// A load, run by this program's release build with an empty environment.
pub(super) fn command(plane: &ControlPlane, arguments: &[&str]) -> Command {
    let mut command = Command::new(target_dir().join("release/xtask"));
    command
        .args(["load", "--kubeconfig"])
        .arg(plane.admin_kubeconfig())
        .args(arguments)
        .env_clear();
    command
}
