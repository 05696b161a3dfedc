//! The API server, for a program that only has a kubeconfig.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::Body;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use maintenance_lease::Maintenance;
use tower::{BoxError, ServiceBuilder};

/// The API server.
pub(super) struct Server {
    config: Config,
    /// The number of requests that its clients have sent.
    sent: Arc<AtomicU64>,
}

impl Server {
    pub(super) async fn read(kubeconfig: &Path) -> Result<Self> {
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
    pub(super) fn client(&self) -> Result<Client> {
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

    /// A holder with its own connections, like a separate process.
    pub(super) fn holder(&self, identity: &str) -> Result<Maintenance> {
        Ok(Maintenance::new(self.client()?, identity)?)
    }

    /// Returns a function that counts the requests of all clients so far.
    pub(super) fn counter(&self) -> impl Fn() -> u64 + Send + 'static {
        let sent = Arc::clone(&self.sent);
        move || sent.load(Ordering::Relaxed)
    }
}
