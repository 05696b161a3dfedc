//! The clusters with the Machines of Nodes, which Cluster API calls management clusters.

use std::error::Error;
use std::sync::Arc;

use maintenance_lease::Requests;

/// Why a cluster can't be reached.
pub type ConnectFailure = Arc<dyn Error + Send + Sync>;

/// A cluster with Machines.
#[derive(Clone)]
pub struct ManagementCluster {
    /// The kubeconfig context that leads to it.
    pub context: String,
    /// The URL of its API server.
    pub server: String,
    /// How requests are sent there.
    pub requests: Requests,
}

/// How the clusters with Machines are reached, by kubeconfig context.
pub trait ManagementClusters {
    /// The context that the user named.
    fn given(&self) -> Option<&str>;

    /// The URL of the API server behind `context`. Runs and sends nothing.
    ///
    /// # Errors
    /// If the kubeconfig has no usable context of this name.
    fn server_of(&self, context: &str) -> Result<String, ConnectFailure>;

    /// The cluster behind `context`. Sends nothing.
    ///
    /// # Errors
    /// If the kubeconfig has no usable context of this name, or if the cluster can't be reached.
    fn open(
        &self,
        context: &str,
    ) -> impl Future<Output = Result<ManagementCluster, ConnectFailure>>;

    /// Called if the cluster behind `context` did not answer in time.
    fn note_silence(&self, context: &str);
}
