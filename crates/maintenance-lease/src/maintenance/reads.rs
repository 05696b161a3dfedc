//! The reads: the current state and the changes of Leases, Nodes and heartbeats.

use std::collections::HashMap;

use futures::stream::BoxStream;
use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::apimachinery::pkg::version::Info;

use super::Maintenance;
use crate::any_lease::{AnyLease, Candidate, LeaseScope};
use crate::cluster::error::ApiError;
use crate::cluster::nodes::NodeRow;
use crate::cluster::nodes::RowDetail;
use crate::cluster::reads::{NodeAndLease, NodeLookup};
use crate::cluster::watch::NodeRowEvent;
use crate::lease::NodeLease;
use crate::outcome::{Error, Right};
use crate::protocol::{Names, Refusal};

impl Maintenance {
    /// The node's Lease. `None` if it does not exist, which means that the node is free.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::protocol::State;
    /// use maintenance_lease::{Acquire, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// assert!(maintenance.get("worker-1").await?.is_none());
    ///
    /// maintenance.try_acquire("worker-1", &Acquire::new().reason("new kernel")).await?;
    /// let lease = maintenance.get("worker-1").await?.expect("it was just made");
    /// assert_eq!(lease.reason(), Some("new kernel"));
    /// let now = maintenance.server_time().now();
    /// assert!(matches!(lease.state(now), State::Held { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If it can't be read; [`Error::Refused`] if it lacks the repository's labels.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn get(&self, node: &str) -> Result<Option<NodeLease>, Error> {
        let lease = self
            .api
            .lease(node)
            .await
            .map_err(|error| self.api.lease_right("get").explain(error))?;
        self.own(lease)
    }

    /// All maintenance Leases by node name.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # maintenance.try_acquire("worker-1", &Acquire::new()).await?;
    /// for (node, lease) in maintenance.list().await? {
    ///     println!("{node}: {}", lease.holder().unwrap_or("free"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If they can't be listed.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn list(&self) -> Result<HashMap<String, NodeLease>, Error> {
        self.api
            .leases()
            .await
            .map_err(|error| self.api.lease_right("list").explain(error))
    }

    /// The node's Lease and, if `with_node` is set and it is a Node, its row. Sends two requests in
    /// parallel.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::Maintenance;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let seen = maintenance.read("worker-1", true).await?;
    /// assert!(seen.lease.is_none());
    /// assert_eq!(seen.row.row().map(|node| node.status.as_str()), Some("Ready"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the Lease can't be read or lacks the repository's labels, or if the Node can't be read for
    /// another reason than a missing permission.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn read(&self, node: &str, with_node: bool) -> Result<NodeAndLease, Error> {
        let seen = self
            .api
            .read(node, with_node)
            .await
            .map_err(|error| self.api.lease_right("get").explain(error))?;
        let lease = self.own(seen.lease)?;
        Ok(NodeAndLease { lease, ..seen })
    }

    /// The Node's row.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Maintenance, NodeLookup};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// match maintenance.node("worker-7").await? {
    ///     NodeLookup::Row(node) => println!("{}", node.status),
    ///     NodeLookup::Missing => println!("no such node"),
    ///     NodeLookup::Forbidden | NodeLookup::Unread => println!("may not be read"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If it can't be read for another reason than a missing permission.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn node(&self, node: &str) -> Result<NodeLookup, Error> {
        Ok(self.api.node_row(node).await?)
    }

    /// The rows of the Nodes that match `selector`, in the server's order.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Maintenance, RowDetail};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # sandbox.add_node(sandbox::Node::named("worker-2").label("pool", "spot").cordoned());
    /// let nodes = maintenance.nodes(Some("pool=spot"), RowDetail::Cells).await?;
    /// assert_eq!(nodes[0].name, "worker-2");
    /// assert!(nodes[0].is_cordoned());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If they can't be listed.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn nodes(
        &self,
        selector: Option<&str>,
        detail: RowDetail,
    ) -> Result<Vec<NodeRow>, Error> {
        self.api
            .node_rows(selector, detail)
            .await
            .map_err(|error| Right::on_nodes("list").explain(error))
    }

    /// The Leases in `scope` in the server's order, for any purpose. The repository of this handle makes
    /// no difference. They are read one page at a time.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, LeaseScope, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # maintenance.try_acquire("worker-1", &Acquire::new()).await?;
    /// for any in maintenance.any_leases(LeaseScope::EverywhereButHeartbeats).await? {
    ///     println!("{}/{}: {:?}", any.namespace, any.name(), any.lease.holder());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If they can't be listed.
    ///
    /// # Caveats
    /// Dropping this future abandons the rest of the list and changes nothing.
    pub async fn any_leases(&self, scope: LeaseScope<'_>) -> Result<Vec<AnyLease>, Error> {
        let right = Right {
            verb: "list",
            resource: "leases.coordination.k8s.io",
            namespace: scope.namespace().map(ToOwned::to_owned),
        };
        let listed = self.api.any_leases(scope).await;
        listed.map_err(|error| right.explain(error))
    }

    /// The candidates of coordinated leader elections in `namespace`, or in all namespaces, in the
    /// server's order. Empty if the server does not support such elections.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::Maintenance;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// for candidate in maintenance.candidates(Some("kube-system")).await? {
    ///     println!("{} would have {}", candidate.name, candidate.lease);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If they can't be listed.
    ///
    /// # Caveats
    /// Dropping this future abandons the rest of the list and changes nothing.
    pub async fn candidates(&self, namespace: Option<&str>) -> Result<Vec<Candidate>, Error> {
        let right = Right {
            verb: "list",
            resource: "leasecandidates.coordination.k8s.io",
            namespace: namespace.map(ToOwned::to_owned),
        };
        let listed = self.api.candidates(namespace).await;
        listed.map_err(|error| right.explain(error))
    }

    /// The rows of the Nodes, or of `node` alone, or of those that match `selector`, and every change of
    /// them: a list first. A watch that was cut or has become too old is resumed, with another list if
    /// needed, so that nothing is missed. A Node that does not match any longer counts as deleted.
    ///
    /// # Errors
    /// The stream does not end: after an error, its next item is the result of trying again, after a
    /// pause. That grows to a minute for what the server refuses, such as without the right to it.
    ///
    /// # Caveats
    /// An event shows what was true once. Nothing is sent before the stream is polled, and dropping it
    /// ends the watch. A future of its next event may be dropped at any time: that event comes from the
    /// following one.
    pub fn watch_nodes(
        &self,
        node: Option<&str>,
        selector: Option<&str>,
        detail: RowDetail,
    ) -> BoxStream<'static, Result<NodeRowEvent, Error>> {
        self.api.watch_nodes(node, selector, detail)
    }

    /// The API server's version.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::Maintenance;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let version = maintenance.server_version().await?;
    /// assert!(version.git_version.starts_with("v1."));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the server does not answer, or the answer is not a version.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn server_version(&self) -> Result<Info, ApiError> {
        self.api.server_version().await
    }

    /// Whether the namespace of the Leases exists; `None`: the user may not read it. Without it, nobody has locked a node.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::Maintenance;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// assert_eq!(maintenance.has_namespace().await?, Some(false));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the server does not answer.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn has_namespace(&self) -> Result<Option<bool>, ApiError> {
        self.api.has_namespace().await
    }

    /// The API user that the server takes the caller for: the user that RBAC and audit logs see.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::Maintenance;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let user = maintenance.api_user().await?;
    /// println!("{} in {:?}", user.username.unwrap_or_default(), user.groups);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the server does not answer, or refuses to say. It has this API since Kubernetes 1.28.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn api_user(&self) -> Result<UserInfo, ApiError> {
        self.api.api_user().await
    }

    /// Sets the API user that is written with every acquisition, also with those of clones. If the lease policy refuses
    /// the name, a request reads the correct one, and the acquisition is retried.
    pub fn set_api_user(&self, name: impl Into<String>) {
        self.api.set_user(name.into());
    }

    /// Sets whether an acquisition creates the namespace of the node locks if it is missing. The default is true. If
    /// false, it fails with [`Error::NamespaceMissing`]. This also applies to clones.
    pub fn set_creates_namespace(&self, creates: bool) {
        self.api.set_creates_namespace(creates);
    }

    /// Refuses a Lease of another application, which is neither this one's nor free.
    fn own(&self, lease: Option<NodeLease>) -> Result<Option<NodeLease>, Error> {
        match lease {
            Some(lease) if lease.foreign => {
                let reduced = lease.reduced(&mut Names::default());
                let now = self.api.time.now();
                Err(self.api.refused(
                    lease.node(),
                    Refusal::Foreign,
                    Some(&lease),
                    Some(&reduced),
                    now,
                ))
            }
            lease => Ok(lease),
        }
    }
}
