//! Which Leases a handle works on, and their rules.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::cluster::requests::escape;
use crate::protocol::identity::{self, InvalidIdentity};

/// The namespace of the Node Maintenance Leases (KEP-1411).
pub const NAMESPACE: &str = "kube-node-maintenance";

/// The Leases that a handle works on: all in one namespace, or those among them with certain labels.
///
/// In [`NAMESPACE`] a Lease locks the Node of the same name. The Node is read and owns the Lease, and
/// holders that begin with `kubeadm` are administrators. In every other namespace a Lease locks what its
/// users agree on. There are no Nodes and no such rule, and the namespace is not created.
///
/// With labels, applications can share a namespace. Each one lists, watches and creates only Leases with
/// its labels, and refuses to change a Lease without them ([`Refusal::Foreign`]). Labels prevent
/// accidents; they are no protection: a name is still used only once per namespace, and permissions apply
/// to the whole namespace.
///
/// # Usage
/// ```
/// use maintenance_lease::{Acquire, Maintenance, Repository};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = sandbox::Sandbox::new();
/// let databases = Repository::new("default").label("app", "db");
/// let locks = Maintenance::builder(sandbox.client(), "db-0")
///     .repository(databases)
///     .build()?;
/// locks.try_acquire("compaction", &Acquire::new()).await?;
///
/// // Another application's Leases are none of its business.
/// # let queues = Repository::new("default").label("app", "queue");
/// # let queue = Maintenance::builder(sandbox.client(), "queue-0").repository(queues).build()?;
/// queue.try_acquire("rebalancing", &Acquire::new()).await?;
/// let mine = locks.list().await?;
/// assert_eq!(mine.keys().collect::<Vec<_>>(), ["compaction"]);
/// # Ok(())
/// # }
/// ```
///
/// [`Refusal::Foreign`]: crate::protocol::Refusal::Foreign
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Repository {
    namespace: Cow<'static, str>,
    labels: BTreeMap<String, String>,
}

/// What a lock is for, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A Node.
    Node,
    /// Only the Lease itself.
    Lease,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node",
            Self::Lease => "lease",
        })
    }
}

impl Subject {
    /// The Lease of what is called `name`, in a message.
    pub(crate) fn lease(self, name: &str) -> String {
        match self {
            Self::Node => format!("the Lease of node/{name}"),
            Self::Lease => format!("lease/{name}"),
        }
    }

    /// A holder as messages name it, escaped for terminals. For an administrator's hold of a node, the
    /// person who holds it.
    pub(crate) fn holder(self, holder: &str) -> String {
        let person = match self {
            Self::Node => identity::person(holder),
            Self::Lease => holder,
        };
        identity::visible(&person.escape_debug().to_string()).into_owned()
    }
}

impl Default for Repository {
    fn default() -> Self {
        Self::node_maintenance()
    }
}

impl Repository {
    /// The Node Maintenance Leases: those of [`NAMESPACE`].
    pub const fn node_maintenance() -> Self {
        Self {
            namespace: Cow::Borrowed(NAMESPACE),
            labels: BTreeMap::new(),
        }
    }

    /// The Leases of `namespace`.
    pub fn new(namespace: impl Into<String>) -> Self {
        Self {
            namespace: Cow::Owned(namespace.into()),
            labels: BTreeMap::new(),
        }
    }

    /// Of these, only those with the label `key` and this `value`. The server refuses invalid labels.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The labels that its Leases carry.
    #[must_use]
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// What its Leases lock.
    #[must_use]
    pub fn subject(&self) -> Subject {
        if self.namespace == NAMESPACE {
            Subject::Node
        } else {
            Subject::Lease
        }
    }

    pub(crate) fn locks_nodes(&self) -> bool {
        self.subject() == Subject::Node
    }

    /// Whether `holder` is an administrator's hold.
    pub(crate) fn is_admin(&self, holder: &str) -> bool {
        self.locks_nodes() && identity::is_admin(holder)
    }

    /// The holder that an administrator's hold by `identity` is written as. Without support for holds,
    /// the identity itself.
    pub(crate) fn hold_identity<'a>(&self, identity: &'a str) -> Cow<'a, str> {
        if self.locks_nodes() {
            Cow::Owned(identity::hold_identity(identity))
        } else {
            Cow::Borrowed(identity)
        }
    }

    /// Checks an identity to acquire with.
    pub(crate) fn check_identity(&self, identity: &str) -> Result<(), InvalidIdentity> {
        if self.locks_nodes() {
            identity::validate(identity)
        } else {
            identity::validate_holder(identity)
        }
    }

    /// The path of the Leases, or of one of them.
    pub(crate) fn path(&self, name: Option<&str>) -> String {
        let namespace = escape(&self.namespace);
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        match name {
            Some(name) => format!("{leases}/{}", escape(name)),
            None => leases,
        }
    }

    /// The path of a list of all its Leases.
    pub(crate) fn list_path(&self) -> String {
        let path = self.path(None);
        match &self.selection(None)[..] {
            [] => path,
            selection => format!("{path}?{}", selection.join("&")),
        }
    }

    /// The parameters of a query that select the Leases, or `name` alone, of those at the path.
    pub(crate) fn selection(&self, name: Option<&str>) -> Vec<String> {
        let by_labels = (!self.labels.is_empty()).then(|| {
            let labels: Vec<_> = self
                .labels
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            format!("labelSelector={}", escape(&labels.join(",")))
        });
        name.map(by_name).into_iter().chain(by_labels).collect()
    }
}

/// Selects one object of a collection. A permission on that name alone covers lists and watches with this
/// selector.
pub(crate) fn by_name(name: &str) -> String {
    format!("fieldSelector={}", escape(&format!("metadata.name={name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apps() -> Repository {
        Repository::new("apps")
            .label("app", "db")
            .label("tier", "a")
    }

    #[test]
    fn rules_about_nodes_are_those_of_their_namespace() {
        let nodes = Repository::new(NAMESPACE);
        assert_eq!(nodes, Repository::node_maintenance());
        assert_eq!(nodes.subject(), Subject::Node);
        assert!(nodes.is_admin("kubeadm:alice"));
        assert_eq!(
            nodes.check_identity("kubeadm-0"),
            Err(InvalidIdentity::Admin)
        );
        assert_eq!(nodes.hold_identity("alice"), "kubeadm:alice");

        assert_eq!(apps().subject(), Subject::Lease);
        assert!(!apps().is_admin("kubeadm:alice"));
        assert_eq!(apps().check_identity("kubeadm-0"), Ok(()));
        assert_eq!(apps().check_identity(""), Err(InvalidIdentity::Empty));
        assert_eq!(apps().hold_identity("alice"), "alice");
    }

    #[test]
    fn it_selects_by_all_its_labels() {
        assert_eq!(
            apps().selection(Some("x")),
            [
                "fieldSelector=metadata.name%3Dx",
                "labelSelector=app%3Ddb%2Ctier%3Da"
            ]
        );
        assert!(Repository::default().selection(None).is_empty());
    }
}
