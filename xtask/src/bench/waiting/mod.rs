//! Holders and waiters of the library, in a process of their own: a release build, and separate from the
//! program that runs the benchmark.

mod hand_over;
mod many_waiters;
mod takeover;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use control_plane::{ControlPlane, NodeSpec, target_dir};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::Body;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use maintenance_lease::Maintenance;
use tower::{BoxError, ServiceBuilder};

use crate::cargo::run;

/// How often a lock changes its holder.
const HAND_OVERS: usize = 200;
/// How many holders stop without a release.
const CRASHES: usize = 10;
/// How many clients wait for one lock.
const WAITERS: usize = 200;

/// Measures all of it, in processes of their own.
pub(super) fn measure(plane: &ControlPlane) -> Result<()> {
    let nodes: Vec<NodeSpec> = (0..CRASHES)
        .map(|number| format!("crash-{number}"))
        .chain(["hand-over".to_owned(), "many-waiters".to_owned()])
        .map(|name| NodeSpec::ready(&name))
        .collect();
    plane.create_nodes(&nodes)?;
    for scenario in ["hand-over", "takeover", "many-waiters"] {
        let mut command = Command::new(target_dir().join("release/xtask"));
        command
            .args(["waiting", scenario, "--kubeconfig"])
            .arg(plane.admin_kubeconfig())
            .env_clear();
        run(&mut command)?;
    }
    Ok(())
}

/// Wait for locks with the library, and print how long it takes
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    scenario: Scenario,

    #[arg(long)]
    kubeconfig: PathBuf,
}

/// What the clients do. The nodes exist already.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Scenario {
    /// Pass one lock back and forth between two holders
    HandOver,
    /// Stop holders without a release, with one waiting client each
    Takeover,
    /// Let all clients wait for one lock, and release it as soon as they have it
    ManyWaiters,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("failed to start a runtime")?;
        runtime.block_on(async {
            let server = Server::read(&self.kubeconfig).await?;
            match self.scenario {
                Scenario::HandOver => hand_over::measure(&server, "hand-over", HAND_OVERS).await,
                Scenario::Takeover => takeover::measure(&server, "crash", CRASHES).await,
                Scenario::ManyWaiters => {
                    many_waiters::measure(&server, "many-waiters", WAITERS).await
                }
            }
        })
    }
}

/// The API server, for a program that only has a kubeconfig.
struct Server {
    config: Config,
    /// The requests that its clients have sent.
    sent: Arc<AtomicU64>,
}

impl Server {
    async fn read(kubeconfig: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let mut config =
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        config.proxy_url = None;
        let sent = Arc::default();
        Ok(Self { config, sent })
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
        let sent = Arc::clone(&self.sent);
        let service = ServiceBuilder::new()
            .map_request(move |request: http::Request<Body>| {
                sent.fetch_add(1, Ordering::Relaxed);
                request
            })
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

    /// Counts the requests that all clients have sent so far.
    fn counter(&self) -> impl Fn() -> u64 + Send + 'static {
        let sent = Arc::clone(&self.sent);
        move || sent.load(Ordering::Relaxed)
    }
}
